package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// A call may be answered when its sender has been taken for dead, and others have gone
// on: its answer says nothing of what they have sent.

// A void is answered late: the PSP has refused its repeat meanwhile, and another void
// is on its way.
func TestALateAnswerToAVoidDoesNotPutTheNextOneInDoubt(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.OnCall(psptest.OperationCancel, Then(func() { // the first void, which its sender waits for
		w.OnCall(psptest.OperationCancel, refused)
		w.Clock.Advance(time.Minute)
		w.Crash(func() {
			w.Store.After(Row(payment.EventVoidRefused), Then(func() { w.OnCall(psptest.OperationCancel, w.Die) }))
			w.Sweep()
		})
		wantSent(t, "the second void", w.Payment(p.ID).Void, 2, 1)
		w.PSP.Alter(psptest.OperationCancel, func(c *psp.Charge) { c.Status = psp.StatusPending })
	}))
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	wantSent(t, "the second void", w.Payment(p.ID).Void, 2, 1)
	w.Pass(5 * time.Minute)
	w.Want(p.ID, payment.StatusCanceled)
}

// The same of a capture that is refused late: taken for a refusal of the next one, it
// would let a third leave beside it.
func TestALateRefusalOfACaptureIsNotTheNextOnes(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, func() error { // the first, whose sender waits for the answer
		w.OnCall(psptest.OperationCapture, refused)
		w.Clock.Advance(time.Minute)
		w.Sweep() // nothing of it is at the PSP: it is sent again, and refused
		w.Crash(func() {
			w.OnCall(psptest.OperationCapture, w.Die)
			w.Capture("c2", id, 4000)
		})
		return refused()
	})
	if _, err := w.Capture("c1", id, 5000); !errors.Is(err, charge.ErrCaptureRefused) {
		t.Errorf("got %v, want %v", err, charge.ErrCaptureRefused)
	}
	wantSent(t, "the second capture", w.Payment(id).Capture, 2, 1)
	if _, err := w.Capture("c3", id, 1000); !errors.Is(err, charge.ErrInvalidStatus) {
		t.Errorf("a third capture: got %v, want %v while the second is on its way", err, charge.ErrInvalidStatus)
	}
	w.Pass(5 * time.Minute)
	if got := w.Want(id, payment.StatusCaptured); got.AmountCaptured != 4000 {
		t.Errorf("got %d captured, want the 4000 of the second", got.AmountCaptured)
	}
}

// While a repeat of a capture is on its way nobody is told that it was refused.
func TestALateRefusalOfACaptureIsNotItsRepeats(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, func() error {
		w.Clock.Advance(time.Minute)
		w.Crash(func() {
			w.OnCall(psptest.OperationCapture, w.Die)
			w.Sweep()
		})
		return refused()
	})
	r, err := w.Capture("c", id, 5000)
	if err != nil || r.Payment.Status != payment.StatusAuthorized {
		t.Errorf("got %s, %v, want it authorized", r.Payment.Status, err)
	}
	wantSent(t, "the repeat", w.Payment(id).Capture, 1, 2)
	w.Pass(5 * time.Minute)
	w.Want(id, payment.StatusCaptured)
}

// A charge that was sent again, and that the PSP has taken, has not failed because the
// first request for it is refused.
func TestALateRefusalOfAChargeIsNotItsRepeats(t *testing.T) {
	w := New(t)
	w.OnCall(psptest.OperationCreate, func() error {
		w.Clock.Advance(time.Minute)
		w.Sweep()
		return refused()
	})
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	if got := w.Want(p.ID, payment.StatusCaptured); len(got.Refunds) != 0 {
		t.Errorf("got refunds %+v, want none", got.Refunds)
	}
}

// The same of a refund: what it gave back would be free for another one.
func TestALateRefusalOfARefundIsNotItsRepeats(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Amount: 5000}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, func() error {
		w.Clock.Advance(time.Minute)
		w.Sweep()
		return refused()
	})
	w.Refunded("r1", p.ID, 3000, payment.RefundSucceeded)
	if _, err := w.Refund("r2", p.ID, 3000); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Errorf("another refund: got %v, want %v", err, payment.ErrAmountTooLarge)
	}
	if n := len(w.PSP.Charges()[0].Refunds); n != 1 {
		t.Errorf("got %d refunds at the psp, want 1", n)
	}
}

func refused() error { return &psp.Error{Outcome: psp.OutcomeRejected} }

// wantSent ends the test unless o is on its way, for the sends-th time under its
// attempt-th key.
func wantSent(t *testing.T, what string, o payment.Operation, attempt, sends int) {
	t.Helper()
	if o.Attempt != attempt || o.Sends != sends || o.State != payment.OperationSent {
		t.Fatalf("%s: got %+v, want sending %d of key %d on its way", what, o, sends, attempt)
	}
}
