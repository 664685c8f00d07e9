package flowtest_test

import (
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store/storetest"
)

// cost is what something costs at the table.
func cost(w *World, do func()) storetest.Count {
	w.Cost.Reset()
	do()
	return w.Cost.Count()
}

func TestAFirstChargeIsTwoSequentialTrips(t *testing.T) {
	for name, order := range map[string]Order{
		"captured":       {Reference: "order-42"},
		"held":           {Manual: true, Reference: "order-42"},
		"declined":       {Token: psptest.TokenDeclined, Reference: "order-42"},
		"pending":        {Token: psptest.TokenPending, Reference: "order-42"},
		"customer acts":  {Token: psptest.TokenRequiresAction},
		"without answer": {Token: psptest.TokenTimeoutCaptured},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			got := cost(w, func() {
				if _, err := w.Charge("k", order); err != nil {
					t.Fatal(err)
				}
			})
			if got.Trips != 2 || got.Reads != 0 {
				t.Errorf("got %d trips with %d reads, want 2 and none", got.Trips, got.Reads)
			}
		})
	}
}

func TestAReplayIsAtMostTwoTrips(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Manual: true, Reference: "order-42"}, payment.StatusAuthorized)
	if _, err := w.Capture("c", p.ID, 0); err != nil {
		t.Fatal(err)
	}
	w.Refunded("r", p.ID, 1000, payment.RefundSucceeded)
	pending := w.Charged("k2", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	if _, err := w.Cancel("v", pending.ID); err != nil {
		t.Fatal(err)
	}
	for name, replay := range map[string]func() error{
		"charge":  func() error { _, err := w.Charge("k", Order{Manual: true, Reference: "order-42"}); return err },
		"capture": func() error { _, err := w.Capture("c", p.ID, 0); return err },
		"refund":  func() error { _, err := w.Refund("r", p.ID, 1000); return err },
		"cancel":  func() error { _, err := w.Cancel("v", pending.ID); return err },
	} {
		got := cost(w, func() {
			if err := replay(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		})
		if got.Trips > 2 {
			t.Errorf("%s: got %d trips, want at most 2", name, got.Trips)
		}
	}
}

func TestAWebhookIsTakenInByOneTrip(t *testing.T) {
	w := New(t)
	w.Charged("k", Order{}, payment.StatusCaptured)
	got := cost(w, func() { w.Receive(w.PSP.Drain()...) })
	if got.Trips != 1 || got.Writes != 1 {
		t.Errorf("got %d trips with %d writes, want one of each", got.Trips, got.Writes)
	}
}

func TestAWebhookThatWasAppliedIsTakenInAgainByOneTrip(t *testing.T) {
	w := New(t)
	w.Charged("k", Order{}, payment.StatusCaptured)
	events := w.PSP.Drain()
	w.Deliver(events...)
	got := cost(w, func() { w.Receive(events...) })
	if got.Trips != 1 || got.Writes != 1 {
		t.Errorf("got %d trips with %d writes, want one of each", got.Trips, got.Writes)
	}
}

// What one charge and its one webhook write. DynamoDB counts a kilobyte as one
// unit, twice in a transaction, and each move in the index of due dates.
func TestTheWriteUnitsOfAChargeAndItsWebhook(t *testing.T) {
	for _, c := range []struct {
		name                         string
		order                        Order
		intent, answer, intake, done int
	}{
		// The intent: state, row and record (6), with a reference its guard and its
		// place in the list (4), the due date (1). The answer: state and row (4), the
		// due date taken out (1). Intake: the item (1) and its due date (1). Done: the
		// item (1), which moves from the queue of received ones to the list of applied
		// ones (2).
		{"without a reference", Order{}, 7, 5, 2, 3},
		{"with a reference", Order{Reference: "order-42"}, 11, 5, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(t)
			var intent storetest.Count
			w.OnCall(psptest.OperationCreate, Then(func() { intent = w.Cost.Count() }))
			charge := cost(w, func() { w.Charged("k", c.order, payment.StatusCaptured) })
			w.Store.TakeChanges()
			intake := cost(w, func() { w.Receive(w.PSP.Drain()...) })
			done := cost(w, w.Stream)
			t.Logf("intent %d, answer %d, intake %d, applied %d write units: %d together", intent.WriteUnits,
				charge.WriteUnits-intent.WriteUnits, intake.WriteUnits, done.WriteUnits, charge.WriteUnits+intake.WriteUnits+done.WriteUnits)
			for what, n := range map[string][2]int{
				"intent": {intent.WriteUnits, c.intent}, "answer": {charge.WriteUnits - intent.WriteUnits, c.answer},
				"intake": {intake.WriteUnits, c.intake}, "applied": {done.WriteUnits, c.done},
			} {
				if n[0] != n[1] {
					t.Errorf("%s: got %d write units, want %d", what, n[0], n[1])
				}
			}
		})
	}
}

func TestWhatIsAtRestCostsASweepNothing(t *testing.T) {
	w := New(t)
	w.Charged("k", Order{Reference: "order-42"}, payment.StatusCaptured)
	w.Deliver(w.PSP.Drain()...)
	w.Clock.Advance(24 * time.Hour)
	got := cost(w, func() { w.Sweep() })
	if got.Writes != 0 || got.Reads != w.Table.Shards() {
		t.Errorf("got %d reads and %d writes, want one read a shard", got.Reads, got.Writes)
	}
}
