package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store/payments"
)

// counted is a feed that counts how often it hears of each event.
type counted struct {
	feed
	heard map[string]int
}

func (c counted) Publish(ctx context.Context, events []outbox.Event) []error {
	for _, e := range events {
		c.heard[e.ID]++
	}
	return c.feed.Publish(ctx, events)
}

// What a stream lost while nobody read it is sent again once, with the ids that the
// events always had; what got out is left alone.
func TestEventsThatNeverGotOutAreSentAgain(t *testing.T) {
	w := newWorld(t)
	bus := counted{feed{w.World}, map[string]int{}}
	w.Relay.Publisher = bus
	told := w.charged("told", psptest.TokenCaptured, payment.StatusCaptured)
	half := w.charged("half", psptest.TokenPending, payment.StatusProcessing)
	lost := w.Charged("lost", flowtest.Order{}, payment.StatusCaptured)
	w.PSP.Approve(string(half.ID))
	w.Receive(w.PSP.Drain()...)
	for _, c := range w.Store.TakeChanges() { // the stream's records end, and with them the rows
		if name, id, ok := payments.InboxChange(c); ok {
			if err := w.Applier.Apply(t.Context(), name, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.Want(half.ID, payment.StatusCaptured)
	w.Store.TakeChanges()
	again := func(r *audit.Request) { r.Events = true }
	if run := w.run(again); run.Resent != 0 {
		t.Errorf("got %d sent again, want none while they may be on their way", run.Resent)
	}
	w.Clock.Advance(2 * time.Hour)
	if run := w.run(nil); run.Resent != 0 {
		t.Errorf("got %d sent again, want none unasked", run.Resent)
	}
	missing := int64(len(w.Rows(lost.ID)) + 1)
	if run := w.run(again); run.Resent != missing || w.Meter.Of(audit.MetricResent) != missing {
		t.Errorf("got %d sent again, want %d: the whole of one payment and the capture of another", run.Resent, missing)
	}
	w.Settle()
	for _, p := range []payment.Payment{told, half, lost} {
		for _, row := range w.Rows(p.ID) {
			if n := bus.heard[outbox.EventID(string(p.ID), row.Version)]; n != 1 {
				t.Errorf("%s of %s: got %d times, want once", row.Type, p.ID, n)
			}
		}
	}
	if run := w.run(again); run.Resent != 0 {
		t.Errorf("got %d sent again, want none any more", run.Resent)
	}
	// Now the feed knows of the payments, and they are compared from this side, too.
	if run := w.completed(); run.Payments != 3 {
		t.Errorf("got %d payments, want 3", run.Payments)
	}
}

func TestEventsOfCheckoutsAreSentAgainToo(t *testing.T) {
	w := newWorld(t)
	w.Deaf = true
	c := w.Bought("1", sagatest.Basket{})
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	w.Deaf = false
	w.Clock.Advance(2 * time.Hour)
	run := w.run(func(r *audit.Request) { r.Events = true })
	if want := int64(len(w.CheckoutRows(c.ID)) + len(w.Rows(c.PaymentID))); run.Resent != want {
		t.Errorf("got %d sent again, want %d", run.Resent, want)
	}
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	events, _, err := w.Table.Happened(t.Context(), flowtest.Merchant, audit.Window{From: flowtest.Start.Add(-time.Hour), To: w.Clock.Now(), Limit: 100})
	if err != nil || int64(len(events)) != run.Resent {
		t.Errorf("got %v, %v, want all in the feed", events, err)
	}
	if _, err := w.Table.Resend(t.Context(), "pay_none", time.Time{}, w.Clock.Now()); err != nil && !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("got %v, want nothing to send", err)
	}
}
