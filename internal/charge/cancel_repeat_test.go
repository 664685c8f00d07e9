package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestARepeatOfACancelSendsTheVoidThatIsOwed(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.Crash(func() {
		w.Store.After(Row(payment.EventCancelRequested), w.Die)
		w.Cancel("c", p.ID)
	})
	r, err := w.Cancel("c", p.ID)
	if err != nil || !r.Replayed || r.Payment.Status != payment.StatusCanceled {
		t.Fatalf("got %s replayed %t, %v, want canceled at once", r.Payment.Status, r.Replayed, err)
	}
}

func TestARepeatOfACancelInFlightIsToldToWait(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.OnCall(psptest.OperationCancel, Then(func() {
		w.Clock.Advance(Durations.InProgressTTL - time.Second)
		_, err := w.Cancel("c", p.ID)
		if e, ok := errors.AsType[*charge.InProgressError](err); !ok || e.RetryAfter != time.Second {
			t.Errorf("got %v, want in progress for a second", err)
		}
		w.Clock.Advance(time.Second)
		if r, err := w.Cancel("c", p.ID); err != nil || !r.Replayed {
			t.Errorf("later: got %s replayed %t, %v, want the payment", r.Payment.Status, r.Replayed, err)
		}
	}))
	if r, err := w.Cancel("c", p.ID); err != nil || r.Payment.Status != payment.StatusCanceled {
		t.Fatalf("got %s, %v, want canceled", r.Payment.Status, err)
	}
	w.WantCalls(psptest.OperationCancel, 1)
}

// A void that got no answer is nobody's request any more.
func TestARepeatOfACancelWhoseVoidGotNoAnswerIsThePayment(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.OnCall(psptest.OperationCancel, Lost)
	for _, replayed := range []bool{false, true} {
		r, err := w.Cancel("c", p.ID)
		if err != nil || !r.Payment.Status.Open() || r.Replayed != replayed {
			t.Fatalf("got %s replayed %t, %v, want it to wait, replayed %t", r.Payment.Status, r.Replayed, err, replayed)
		}
	}
	w.WantCalls(psptest.OperationCancel, 1)
}

// The first request has committed, and another worker has the lease and not sent the
// void yet: the first is still running, until it must be dead.
func TestARepeatOfACancelBeforeItsVoidLeavesIsToldToWait(t *testing.T) {
	w := New(t)
	p := w.Charged("charge", Order{Manual: true}, payment.StatusAuthorized)
	if _, err := w.Charges.Leases.Acquire(t.Context(), p.ID); err != nil { // the other worker, which dies
		t.Fatal(err)
	}
	repeats := 0
	w.Charges.Journal.Pause = pauses(func() {
		if repeats++; repeats > 1 {
			return
		}
		_, err := w.Cancel("cancel", p.ID)
		if e, ok := errors.AsType[*charge.InProgressError](err); !ok || e.RetryAfter != Durations.InProgressTTL {
			t.Errorf("got %v, want in progress for %s", err, Durations.InProgressTTL)
		}
	})
	if first, err := w.Cancel("cancel", p.ID); err != nil || first.Payment.Status != payment.StatusAuthorized {
		t.Fatalf("first: got %s, %v, want it to wait", first.Payment.Status, err)
	}
	w.Clock.Advance(Durations.InProgressTTL)
	r, err := w.Cancel("cancel", p.ID)
	if err != nil || !r.Replayed {
		t.Errorf("later: got %s replayed %t, %v, want the payment", r.Payment.Status, r.Replayed, err)
	}
}

// The webhook says what became of the void before its answer comes: then it is over,
// whoever still waits.
func TestARepeatOfACancelThatIsOverIsNotInFlight(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.OnAnswer(psptest.OperationCancel, Then(func() {
		w.Deliver(w.PSP.Drain()...)
		r, err := w.Cancel("c", p.ID)
		if err != nil || !r.Replayed || r.Payment.Status != payment.StatusCanceled {
			t.Errorf("got %s replayed %t, %v, want canceled", r.Payment.Status, r.Replayed, err)
		}
	}))
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.WantCalls(psptest.OperationCancel, 1)
}

// Funds that are held late are voided, but the cancel was over before.
func TestARepeatOfACancelIsNotInFlightWhileLateFundsAreVoided(t *testing.T) {
	w := New(t)
	w.Line.Hold(psptest.OperationCreate)
	p := w.Charged("k", Order{Manual: true}, payment.StatusProcessing)
	w.Clock.Advance(Arrival)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Line.Arrive()
	w.OnCall(psptest.OperationCancel, Then(func() {
		r, err := w.Cancel("c", p.ID)
		if err != nil || !r.Replayed || r.Payment.Status != payment.StatusCanceled {
			t.Errorf("got %s replayed %t, %v, want canceled", r.Payment.Status, r.Replayed, err)
		}
	}))
	w.Deliver(w.PSP.Drain()...)
	w.Sweep()
	w.WantCalls(psptest.OperationCancel, 1)
}
