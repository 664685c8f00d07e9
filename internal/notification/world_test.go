package notification_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
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
)

// shop is a participant on a table that can be cut off, with a Sender that can
// fail and a clock to be moved.
type shop struct {
	*notification.Participant
	table *memory.Table
	meter *storetest.Meter
	log   bytes.Buffer

	now    time.Time
	jitter func(n int64) int64
	fail   error    // of the Sender
	sent   []string // ids the Sender got
	during func()   // runs while the Sender delivers

	calls int                                 // of Write
	cut   func(call int) (before, after bool) // loses a write, or its answer
	stale map[string]store.Page               // once not nil: what the index says for ever after
}

var errCut = errors.New("connection cut")

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{
		now:    time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		jitter: func(n int64) int64 { return n / 2 },
	}
	s.table = memory.New(memory.Options{Now: func() time.Time { return s.now }})
	s.meter = storetest.NewMeter(s.table)
	s.Participant = notification.New(notification.Options{
		Table: cutTable{s.meter, s}, Sender: s, Now: func() time.Time { return s.now },
		Jitter: func(n int64) int64 { return s.jitter(n) }, Log: slog.New(slog.NewJSONHandler(&s.log, nil)),
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

func (c cutTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Index == "" || c.s.stale == nil {
		return c.Table.Query(ctx, q)
	}
	if page, ok := c.s.stale[q.PK]; ok {
		return page, nil
	}
	page, err := c.Table.Query(ctx, q)
	c.s.stale[q.PK] = page
	return page, err
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
		MerchantID: merchant, CheckoutID: checkout, Kind: notification.OrderConfirmation, To: address,
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

var rowKey = store.Key{PK: "CHECKOUT#alpha#chk_1", SK: "NOTIFICATION#order_confirmation"}
