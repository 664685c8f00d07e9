package checkout_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

func TestAnOperatorResumesOncePerKey(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenPending})
	before := w.Checkout(c.ID).Executions
	for i := range 3 {
		r, err := w.Resume("r", c.ID)
		if err != nil || r.Replayed != (i > 0) || r.Checkout.Status != checkout.StatusPending {
			t.Fatalf("got %+v %v, want the pending checkout", r, err)
		}
	}
	if got := w.Checkout(c.ID).Executions; got != before+1 {
		t.Errorf("got %d executions more, want 1", got-before)
	}
	other := sagatest.OperatorRequest("r", c.ID)
	other.Fingerprint = "another"
	if _, err := w.Checkouts.Resume(t.Context(), other, c.ID); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("got %v, want ErrKeyReused", err)
	}
	w.PSP.Approve(string(c.PaymentID))
	w.Deliver(w.PSP.Drain()...)
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	if _, err := w.Resume("r2", c.ID); !errors.Is(err, checkout.ErrOver) {
		t.Errorf("got %v, want ErrOver", err)
	}
	if r, err := w.Resume("r", c.ID); err != nil || !r.Replayed || r.Checkout.Status != checkout.StatusCompleted {
		t.Errorf("got %+v %v, want a replay as it is now", r.Checkout, err)
	}
	failed := w.Bought("k2", sagatest.Basket{Token: psptest.TokenDeclined})
	if _, err := w.Resume("r", failed.ID); !errors.Is(err, checkout.ErrOver) {
		t.Errorf("got %v, want ErrOver", err)
	}
	for _, id := range []string{"chk_01KDYAK348M9S346Q3D2ZZZZZZ", "chk_1"} {
		if _, err := w.Resume("r", id); !errors.Is(err, checkout.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
}

func TestAResumeThatDidNotComeToItsStartIsMadeGoodByItsRepeat(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenPending})
	w.Deaf = true
	w.PSP.Approve(string(c.PaymentID))
	w.Deliver(w.PSP.Drain()...)
	w.OnStart = func(string) error { return errTimeout }
	if _, err := w.Resume("r", c.ID); !errors.Is(err, errTimeout) {
		t.Fatalf("got %v, want the start's error", err)
	}
	w.OnStart = nil
	if r, err := w.Resume("r", c.ID); err != nil || !r.Replayed {
		t.Fatalf("got %+v %v, want a replay", r, err)
	}
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
}

// TestAResumeIsNeverForgottenByARace: whoever raises the counter first, the
// operator's key is kept.
func TestAResumeIsNeverForgottenByARace(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenPending})
	raises := func(writes []store.Write) bool {
		_, raised := writes[0].Set["executions"]
		return raised
	}
	w.Store.Before(raises, func() error { return w.Checkouts.Wake(t.Context(), c.ID) })
	if r, err := w.Resume("r", c.ID); err != nil || r.Replayed {
		t.Fatalf("got %+v %v, want the first answer", r, err)
	}
	if r, err := w.Resume("r", c.ID); err != nil || !r.Replayed {
		t.Errorf("got %+v %v, want a replay", r, err)
	}
	if got := w.Checkout(c.ID).Executions; got != 3 {
		t.Errorf("got %d executions, want the first, the wake-up's and the operator's", got)
	}
}

func TestTwoOperatorsResumeAtOnce(t *testing.T) {
	w := stocked(t)
	w.OnCall(psptest.OperationRefund, refused)
	c := w.Bought("k", sagatest.Basket{SKU: rejected})
	resumes := func(writes []store.Write) bool { return writes[0].Set["status"] == string(checkout.StatusPending) }
	w.Store.Before(resumes, func() error {
		_, err := w.Checkouts.Resume(t.Context(), sagatest.OperatorRequest("r2", c.ID), c.ID)
		return err
	})
	if r, err := w.Resume("r1", c.ID); err != nil || r.Replayed {
		t.Fatalf("got %+v %v, want the checkout", r, err)
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, "order_rejected")
	if got := w.Checkout(c.ID).Resumes; got != 1 {
		t.Errorf("got resumed %d times, want once", got)
	}
	w.Want(c.PaymentID, payment.StatusRefunded)
}

// TestTheSweepLooksLessAndLessOften counts the executions that it starts for a
// checkout that does not come on.
func TestTheSweepLooksLessAndLessOften(t *testing.T) {
	w := stocked(t)
	w.Rough, w.Deaf = true, true
	c := w.Ordered("k", sagatest.Basket{})
	w.Around = func(sagatest.Call, func() ([]byte, error)) ([]byte, error) { return nil, errFatal }
	w.Settle()
	start := w.Clock.Now()
	var at []time.Duration
	for range 18 * 60 {
		n := len(w.Ended())
		w.Pass(time.Minute)
		if len(w.Ended()) > n {
			at = append(at, w.Clock.Now().Sub(start))
		}
	}
	pauses := []time.Duration{1, 1, 2, 4, 8, 16, 32, 64, 128, 256} // in minutes, after the one before
	var when time.Duration
	for i, pause := range pauses {
		when += pause * time.Minute
		if len(at) <= i || at[i] != when {
			t.Fatalf("execution %d: got %v, want one at %s", i+1, at, when)
		}
	}
	if len(at) != len(pauses) {
		t.Errorf("got %d executions, want %d and then a person", len(at), len(pauses))
	}
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "")
	if got := w.Checkout(c.ID).DueAt; !got.IsZero() {
		t.Errorf("got due at %s, want it to wait for a person", got)
	}
}

func TestASweepDoesNotParkWhatComesOn(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	c := w.Ordered("k", sagatest.Basket{})
	w.Around = func(sagatest.Call, func() ([]byte, error)) ([]byte, error) { return nil, errFatal }
	w.Settle()
	for w.Checkout(c.ID).Tries < 10 {
		w.Pass(time.Minute)
	}
	w.Around = nil
	w.Clock.Advance(7 * time.Hour)
	parks := func(writes []store.Write) bool {
		return writes[0].Set["status"] == string(checkout.StatusNeedsReview)
	}
	w.Store.Before(parks, func() error {
		w.Again(c.ID)
		return nil
	})
	if err := w.Checkouts.Repair(t.Context(), c.ID); err != nil {
		t.Errorf("got %v, want nothing to do", err)
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, payment.FailureExpired) // past its deadline
}

func TestWhatIsNotDueIsLeftAlone(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenPending})
	before := w.Checkout(c.ID)
	if err := w.Checkouts.Repair(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if got := w.Checkout(c.ID); got.Executions != before.Executions || !got.DueAt.Equal(before.DueAt) {
		t.Errorf("got %+v, want %+v", got, before)
	}
	w.Clock.Advance(flowtest.Durations.ReconcileAfter)
	if err := w.Checkouts.Repair(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if got := w.Checkout(c.ID); got.Executions != before.Executions || !got.DueAt.After(before.DueAt) || got.Tries != 0 {
		t.Errorf("got %+v, want it put off, for the PSP has the word", got)
	}
}

func TestALostNotificationIsFoundByTheSweep(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	lost := 0
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Function == sagatest.Notifications && lost < 3 {
			lost++
			return nil, errLost
		}
		return invoke()
	}
	c := w.Bought("k", sagatest.Basket{})
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	if got := w.Mail.Delivered(c.ID); got != 0 || lost != 3 {
		t.Fatalf("got %d deliveries and %d lost, want 0 and 3", got, lost)
	}
	w.Pass(2 * time.Minute)
	if got := w.Mail.Delivered(c.ID); got != 1 {
		t.Errorf("got %d deliveries, want 1", got)
	}
	w.Pass(2 * time.Minute)
	w.WantEvents(c.ID, words(wayCompleted)...)
	if got := w.Checkout(c.ID).DueAt; !got.IsZero() {
		t.Errorf("got due at %s, want it at rest", got)
	}
}

func TestANotificationThatIsStoredIsItsParticipants(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	w.Mail.SetDown(true)
	c := w.Bought("k", sagatest.Basket{})
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	executions := w.Checkout(c.ID).Executions
	w.Pass(3 * time.Minute)
	if got := w.Checkout(c.ID); got.Executions != executions || !got.DueAt.IsZero() {
		t.Errorf("got %d executions, due at %s, want it left to the participant", got.Executions, got.DueAt)
	}
	w.Mail.SetDown(false)
	w.Pass(time.Hour)
	if got := w.Mail.Delivered(c.ID); got != 1 {
		t.Errorf("got %d deliveries, want 1", got)
	}
}

func TestABuyerWhoCannotBeToldIsAnAlarmAndNothingIsUndone(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if call.Function == sagatest.Notifications {
			return nil, errLost
		}
		return invoke()
	}
	c := w.Bought("k", sagatest.Basket{})
	w.Pass(18 * time.Hour)
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	w.WantEvents(c.ID, words(wayCompleted)...)
	w.Want(c.PaymentID, payment.StatusCaptured)
	if got := w.Meter.Of(checkout.MetricNotNotified); got != 1 {
		t.Errorf("got %d alarms, want 1", got)
	}
	if got := w.Checkout(c.ID).DueAt; !got.IsZero() {
		t.Errorf("got due at %s, want it at rest", got)
	}
}

func TestProgressStartsTheSweepsCountAnew(t *testing.T) {
	w := stocked(t)
	w.Rough, w.Deaf = true, true
	c := w.Ordered("k", sagatest.Basket{})
	dead := map[string]bool{sagatest.Inventory: true, sagatest.Orders: true}
	w.Around = func(call sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		if dead[call.Function] {
			return nil, errFatal
		}
		return invoke()
	}
	w.Settle()
	for w.Checkout(c.ID).Tries < 4 {
		w.Pass(time.Minute)
	}
	dead[sagatest.Inventory] = false
	for !w.Checkout(c.ID).Charged {
		w.Pass(time.Minute)
	}
	if got := w.Checkout(c.ID); got.Tries != 0 || !got.DueAt.Equal(w.Clock.Now().Add(flowtest.Durations.ReconcileAfter)) {
		t.Errorf("got %d tries, due at %s, want a fresh start", got.Tries, got.DueAt)
	}
	dead[sagatest.Orders] = false
	w.Pass(2 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
}
