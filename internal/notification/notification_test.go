package notification_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/store"
)

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
	want := `{"id":"` + first + `","object":"notification","type":"order_confirmation","status":"sent","checkout_id":"chk_1","order_id":"ord_1","recipient":"a@example.com","created_at":"2026-01-02T03:04:05Z"}`
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

func TestTheFirstDeliveryIsTheOneKept(t *testing.T) {
	s := open(t)
	first := s.now
	s.during = func() {
		if _, err := s.Send(t.Context(), confirmed()); err != nil {
			t.Error(err)
		}
		s.now = s.now.Add(time.Hour)
	}
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Error(err)
	}
	s.wantSent(t, 2)
	item, err := s.table.Get(t.Context(), rowKey)
	if err != nil || item["delivered_at"] != first.UnixMilli() {
		t.Errorf("got %v %v, want delivered at %d", item, err, first.UnixMilli())
	}
	if _, due := item[store.AttrDueAt]; due {
		t.Errorf("got %v, want nothing due", item)
	}
}

func TestARowThatIsGoneIsNotBroughtBack(t *testing.T) {
	s := open(t)
	s.during = func() {
		if err := s.table.Write(t.Context(), store.Write{Kind: store.Delete, Key: rowKey}); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Send(t.Context(), confirmed()); err != nil {
		t.Error(err)
	}
	if item, err := s.table.Get(t.Context(), rowKey); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v %v, want nothing", item, err)
	}
}

func TestSimultaneousSendsEndInOneSentRow(t *testing.T) {
	s := open(t)
	p := notification.New(notification.Options{
		Table: s.table, Sender: notification.StoredOnly{},
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
	logger.Info("whole", "notification", n, "to", n.To)
	text := log.String() + fmt.Sprintf("%v %+v %#v %s %q", n, n, n, n.To, n.To)
	if strings.Contains(text, address) {
		t.Errorf("got %s, want no address in it", text)
	}
}
