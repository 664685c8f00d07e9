package notification_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/storetest"
)

const merchant, checkout, address = "alpha", "chk_1", "a@example.com"

var (
	_ lambda.Handler      = notification.Handler{}
	_ notification.Sender = notification.StoredOnly{}
	_ notification.Sender = notification.Logged{}
)

// shop is a participant on a table that can be cut off, with a Sender that can
// fail and a clock to be moved.
type shop struct {
	*notification.Participant
	table *memory.Table
	meter *storetest.Meter
	log   bytes.Buffer

	now    time.Time
	fail   error    // of the Sender
	sent   []string // ids the Sender got
	during func()   // runs while the Sender delivers

	calls int
	cut   func(call int) (before, after bool)
}

var errCut = errors.New("connection cut")

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.table = memory.New(memory.Options{Now: func() time.Time { return s.now }})
	s.meter = storetest.NewMeter(s.table)
	s.Participant = notification.New(notification.Options{
		Table: cutTable{s.meter, s}, Sender: s, Now: func() time.Time { return s.now },
		Jitter: func(n int64) int64 { return n / 2 }, Log: slog.New(slog.NewJSONHandler(&s.log, nil)),
	})
	return s
}

func (s *shop) Deliver(_ context.Context, n notification.Notification) error {
	s.sent = append(s.sent, n.ID)
	if s.during != nil {
		during := s.during
		s.during = nil
		during()
	}
	return s.fail
}

// cutTable loses writes: before they take effect, or their answers.
type cutTable struct {
	store.Table
	s *shop
}

func (c cutTable) Write(ctx context.Context, writes ...store.Write) error {
	c.s.calls++
	if c.s.cut == nil {
		return c.Table.Write(ctx, writes...)
	}
	before, after := c.s.cut(c.s.calls)
	if before {
		return errCut
	}
	err := c.Table.Write(ctx, writes...)
	if after {
		return errCut
	}
	return err
}

func confirmed() notification.Notification {
	return notification.Notification{
		MerchantID: merchant, CheckoutID: checkout, Kind: notification.OrderConfirmed, To: address,
		OrderID: "ord_1", Reference: "order-42", Amount: money.Amount{Minor: 5000, Currency: "JPY"},
	}
}

func (s *shop) wantStatus(t *testing.T, want notification.Status) {
	t.Helper()
	list, err := s.ListByCheckout(t.Context(), merchant, checkout)
	if err != nil || len(list) != 1 || list[0].Status != want {
		t.Errorf("got %v %v, want one %s", list, err, want)
	}
}

func (s *shop) wantSent(t *testing.T, want int) {
	t.Helper()
	if len(s.sent) != want {
		t.Errorf("got %d deliveries, want %d", len(s.sent), want)
	}
	for _, id := range s.sent {
		if id != s.sent[0] {
			t.Errorf("got ids %v, want one and the same", s.sent)
		}
	}
}

func TestABuyerIsToldOnce(t *testing.T) {
	s := open(t)
	first, err := s.Send(t.Context(), confirmed())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.meter.Count().Trips; got != 2 {
		t.Errorf("got %d trips, want one before and one after the delivery", got)
	}
	for range 3 {
		if again, err := s.Send(t.Context(), confirmed()); err != nil || again != first {
			t.Errorf("got %s %v, want %s", again, err, first)
		}
	}
	s.wantSent(t, 1)
	s.wantStatus(t, notification.Sent)
	list, err := s.ListByCheckout(t.Context(), merchant, checkout)
	if err != nil || len(list) != 1 {
		t.Fatalf("got %v %v, want one", list, err)
	}
	got, err := json.Marshal(list[0].View())
	want := `{"id":"` + first + `","object":"notification","checkout_id":"chk_1","kind":"order_confirmed","to":"a@example.com","status":"sent","created_at":"2026-01-02T03:04:05Z"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s %v, want %s", got, err, want)
	}
	if !strings.HasPrefix(first, "ntf_") || len(first) != 30 {
		t.Errorf("got id %s, want ntf_ and 26 characters", first)
	}
}

func TestAMerchantNeverSeesAnothersNotifications(t *testing.T) {
	s := open(t)
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"beta", "", "alpha#chk_1"} {
		if list, err := s.ListByCheckout(t.Context(), m, checkout); err != nil || len(list) != 0 {
			t.Errorf("%q: got %v %v, want none", m, list, err)
		}
	}
	foreign := confirmed()
	foreign.MerchantID = "beta"
	id, err := s.Send(t.Context(), foreign)
	if err != nil || id == s.sent[0] {
		t.Errorf("got %s %v, want a notification of its own", id, err)
	}
}

func TestTellingSomethingElseOrNonsenseIsInvalid(t *testing.T) {
	s := open(t)
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*notification.Notification){
		"another address":   func(n *notification.Notification) { n.To = "b@example.com" },
		"another order":     func(n *notification.Notification) { n.OrderID = "ord_2" },
		"another reference": func(n *notification.Notification) { n.Reference = "order-43" },
		"another amount":    func(n *notification.Notification) { n.Amount.Minor = 5001 },
		"no address":        func(n *notification.Notification) { n.To = "" },
		"no such address":   func(n *notification.Notification) { n.To = "a@example.com\r\nBcc: b@example.com" },
		"unknown kind":      func(n *notification.Notification) { n.Kind = "sale" },
		"no kind":           func(n *notification.Notification) { n.Kind = "" },
		"no merchant":       func(n *notification.Notification) { n.MerchantID = "" },
		"no checkout":       func(n *notification.Notification) { n.CheckoutID = "" },
		"no order":          func(n *notification.Notification) { n.OrderID = "" },
		"amount 0":          func(n *notification.Notification) { n.Amount.Minor = 0 },
		"amount too large":  func(n *notification.Notification) { n.Amount.Minor = money.Max + 1 },
		"unknown currency":  func(n *notification.Notification) { n.Amount.Currency = "XXX" },
		"long reference":    func(n *notification.Notification) { n.Reference = strings.Repeat("x", 65) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			n := confirmed()
			change(&n)
			_, err := s.Send(t.Context(), n)
			if !errors.Is(err, notification.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
			if err != nil && strings.Contains(err.Error(), "example.com") {
				t.Errorf("got %v, want no address in it", err)
			}
		})
	}
	s.wantSent(t, 1)
}

func TestAFailedDeliveryIsRepeatedWithTheSameID(t *testing.T) {
	s := open(t)
	s.fail = errors.New("mail server: 451 <a@example.com> greylisted")
	for range 2 {
		_, err := s.Send(t.Context(), confirmed())
		if !errors.Is(err, s.fail) || strings.Contains(err.Error(), address) {
			t.Errorf("got %v, want the Sender's error without the address", err)
		}
		s.wantStatus(t, notification.Pending)
	}
	s.fail = nil
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Error(err)
	}
	s.wantSent(t, 3)
	s.wantStatus(t, notification.Sent)
}

// Cut off at any write, with or without its effect: the repeat ends it, nothing is
// delivered without a row, and nothing delivered stays unsaid.
func TestACutOffSendIsFinishedByItsRepeat(t *testing.T) {
	for at := 1; at <= 2; at++ {
		for _, heard := range []bool{true, false} {
			s := open(t)
			s.cut = func(call int) (before, after bool) { return call == at && heard, call == at && !heard }
			if _, err := s.Send(t.Context(), confirmed()); !errors.Is(err, errCut) {
				t.Errorf("write %d: got %v, want the cut", at, err)
			}
			if _, err := s.Send(t.Context(), confirmed()); err != nil {
				t.Errorf("write %d: %v", at, err)
			}
			want := 1
			if at == 2 && heard {
				want = 2 // delivered, not kept: at least once
			}
			s.wantSent(t, want)
			s.wantStatus(t, notification.Sent)
		}
	}
}

// The function died after the row, and nobody repeats: the sweep delivers.
func TestTheSweepDeliversWhatWasLeft(t *testing.T) {
	s := open(t)
	s.fail = errors.New("down")
	if _, err := s.Send(t.Context(), confirmed()); err == nil {
		t.Fatal("got a success, want the Sender's error")
	}
	s.fail = nil
	s.wantSwept(t, notification.Swept{}) // an attempt may still be on its way
	s.now = s.now.Add(time.Minute)
	s.wantSwept(t, notification.Swept{Delivered: 1})
	s.now = s.now.Add(24 * time.Hour)
	s.wantSwept(t, notification.Swept{})
	s.wantSent(t, 2)
	s.wantStatus(t, notification.Sent)
}

func (s *shop) wantSwept(t *testing.T, want notification.Swept) {
	t.Helper()
	if got, err := s.Sweep(t.Context()); err != nil || got != want {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
}

// Each failure moves the row further away, so it is never at the head of the
// line, and in the end a person is asked.
func TestASweepBacksOffAndGivesUp(t *testing.T) {
	s := open(t)
	s.fail = errors.New("550 a@example.com unknown")
	if _, err := s.Send(t.Context(), confirmed()); err == nil {
		t.Fatal("got a success, want the Sender's error")
	}
	begun := s.now
	for attempts := 1; attempts < 24; {
		s.now = s.now.Add(10 * time.Minute)
		swept, err := s.Sweep(t.Context())
		if err != nil || swept.Delivered != 0 || swept.GivenUp != 0 {
			t.Fatalf("got %+v %v, want none delivered or given up", swept, err)
		}
		attempts += swept.Postponed
		s.wantSent(t, attempts)
		s.wantStatus(t, notification.Pending)
	}
	if took := s.now.Sub(begun); took < 24*time.Hour || took > 4*24*time.Hour {
		t.Errorf("got 24 attempts in %s, want them over one to four days", took)
	}
	s.now = s.now.Add(7 * time.Hour)
	s.wantSwept(t, notification.Swept{GivenUp: 1})
	s.wantSwept(t, notification.Swept{})
	s.wantStatus(t, notification.Failed)
	if got := s.log.String(); !strings.Contains(got, "notification given up") || strings.Contains(got, address) {
		t.Errorf("got log %s, want it told without the address", got)
	}
	s.fail = nil
	if _, err := s.Send(t.Context(), confirmed()); err != nil { // a person has looked
		t.Error(err)
	}
	s.wantStatus(t, notification.Sent)
}

func TestOneThatFailsDoesNotHoldUpAnother(t *testing.T) {
	s := open(t)
	s.fail = errors.New("down")
	const all = 300
	for i := range all {
		n := confirmed()
		n.CheckoutID = fmt.Sprintf("chk_%d", i)
		if _, err := s.Send(t.Context(), n); err == nil {
			t.Fatal("got a success, want the Sender's error")
		}
	}
	s.now = s.now.Add(time.Minute)
	seen := map[string]bool{}
	s.sent = nil
	for range 3 { // more than two full sweeps, while everything fails and nothing else is due
		if _, err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range s.sent {
		seen[id] = true
	}
	if len(seen) != all || len(s.sent) != all {
		t.Errorf("got %d attempts of %d notifications, want one of each of %d", len(s.sent), len(seen), all)
	}
}

// Whoever counts an attempt makes it: a second sweep at the same moment does not.
func TestTwoSweepsMakeOneAttempt(t *testing.T) {
	s := open(t)
	s.fail = errors.New("down")
	if _, err := s.Send(t.Context(), confirmed()); err == nil {
		t.Fatal("got a success, want the Sender's error")
	}
	s.fail = nil
	s.now = s.now.Add(time.Minute)
	s.during = func() { s.wantSwept(t, notification.Swept{}) }
	s.wantSwept(t, notification.Swept{Delivered: 1})
	s.wantSent(t, 2)
}

func TestSimultaneousSendsEndInOneSentRow(t *testing.T) {
	s := open(t)
	p := notification.New(notification.Options{
		Table: s.table, Sender: notification.Logged{Log: slog.New(slog.NewJSONHandler(io.Discard, nil))},
		Now: func() time.Time { return s.now }, Jitter: func(int64) int64 { return 0 },
	})
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			// One that another attempt overtakes is told so, and repeats.
			for attempt := 0; ; attempt++ {
				if _, err := p.Send(t.Context(), confirmed()); err == nil {
					return
				} else if attempt == 64 {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	s.wantStatus(t, notification.Sent)
}

func TestWhatWasSentExpiresAndWhatWasNotStays(t *testing.T) {
	s := open(t)
	s.fail = errors.New("down")
	_, _ = s.Send(t.Context(), confirmed())
	s.now = s.now.Add(1000 * 24 * time.Hour)
	s.table.Expire()
	s.wantStatus(t, notification.Pending)
	s.fail = nil
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(364 * 24 * time.Hour)
	s.table.Expire()
	s.wantStatus(t, notification.Sent)
	s.now = s.now.Add(2 * 24 * time.Hour)
	s.table.Expire()
	if list, err := s.ListByCheckout(t.Context(), merchant, checkout); err != nil || len(list) != 0 {
		t.Errorf("got %v %v, want none", list, err)
	}
}

func TestNoWayOfPrintingShowsTheAddress(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, nil))
	n := confirmed()
	if err := (notification.Logged{Log: logger}).Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	logger.Info("whole", "notification", n, "to", n.To)
	text := log.String() + fmt.Sprintf("%v %+v %#v %s %q", n, n, n, n.To, n.To)
	if strings.Contains(text, address) {
		t.Errorf("got %s, want no address in it", text)
	}
	if !strings.Contains(text, "notification delivered") {
		t.Errorf("got %s, want the line of the delivery", text)
	}
}

func TestTheHandlerAnswersInDataAndFailsByName(t *testing.T) {
	const send = `{"command":"send","merchant_id":"alpha","checkout_id":"chk_1","kind":"order_confirmed","order_id":"ord_1","reference":null,"amount":5000,"currency":"JPY"`
	steps := []struct {
		payload, want, failure string
		down                   bool
	}{
		{payload: send + `,"to":"a@example.com"}`, failure: "UnavailableError", down: true},
		{payload: send + `,"to":"a@example.com"}`,
			want: `{"outcome":"sent","checkout_id":"chk_1","notification_id":"NTF","swept":null}`},
		{payload: send + `,"to":null}`, want: `{"outcome":"skipped","checkout_id":"chk_1","notification_id":null,"swept":null}`},
		{payload: `{"command":"sweep"}`,
			want: `{"outcome":"swept","checkout_id":"","notification_id":null,"swept":{"delivered":0,"postponed":0,"given_up":0}}`},
		{payload: send + `,"to":"b@example.com"}`, failure: "InvalidCommandError"},
		{payload: send + `,"to":"a@example.com","cc":"b@example.com"}`, failure: "InvalidCommandError"},
		{payload: send + `,"to":["a@example.com"]}`, failure: "InvalidCommandError"},
		{payload: `{"command":"unsend"}`, failure: "InvalidCommandError"},
	}
	s := open(t)
	h := notification.NewHandler(s.Participant)
	for _, step := range steps {
		s.fail = nil
		if step.down {
			s.fail = errors.New("down")
		}
		got, err := h.Invoke(t.Context(), []byte(step.payload))
		want := step.want
		if len(s.sent) > 0 {
			want = strings.Replace(want, "NTF", s.sent[0], 1)
		}
		name := ""
		if err != nil {
			name = reflect.TypeOf(err).Elem().Name()
			if strings.Contains(err.Error(), "@") {
				t.Errorf("%s: got %v, want no address in it", step.payload, err)
			}
		}
		if string(got) != want || name != step.failure {
			t.Errorf("%s: got %s %v, want %s %s", step.payload, got, err, want, step.failure)
		}
	}
}
