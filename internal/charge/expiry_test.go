package charge_test

import (
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestWhatNobodyFinishedExpires(t *testing.T) {
	for _, c := range []struct {
		order  Order
		status payment.Status // before
		voids  int
	}{
		{Order{Token: psptest.TokenRequiresAction}, payment.StatusRequiresAction, 1},
		{Order{Token: psptest.TokenPending}, payment.StatusProcessing, 1},
		{Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing, 0},
	} {
		t.Run(c.order.Token, func(t *testing.T) {
			w := New(t)
			c.order.Reference = "order-42"
			p := w.Charged("k", c.order, c.status)
			w.Pass(Durations.PaymentExpiry - time.Millisecond)
			w.Want(p.ID, c.status)
			w.Pass(2 * time.Minute)
			got := w.Want(p.ID, payment.StatusCanceled)
			if got.Failure == nil || got.Failure.Code != payment.FailureExpired || got.CancelCause != payment.CancelByExpiry {
				t.Errorf("got failure %+v by %s, want %s", got.Failure, got.CancelCause, payment.FailureExpired)
			}
			w.WantCalls(psptest.OperationCancel, c.voids)
			if got.HoldsReference || got.RedirectURL != "" {
				t.Error("it holds its reference or its redirect")
			}
			replay, err := w.Charge("k", c.order)
			if err != nil || !replay.Replayed || replay.Payment.Status != payment.StatusCanceled {
				t.Errorf("replay: got %s, %v, want canceled", replay.Payment.Status, err)
			}
		})
	}
}

func TestAtTheDeadlineThePSPsStateWins(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.Pass(Durations.PaymentExpiry - time.Minute)
	w.PSP.Approve(string(p.ID))
	w.Clock.Advance(10 * time.Minute) // nobody looked in time
	w.Sweep()
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAChargeThatIsCapturedWhileItIsVoidedIsCaptured(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.OnCall(psptest.OperationCancel, Then(func() { w.PSP.Approve(string(p.ID)) }))
	w.Pass(Durations.PaymentExpiry + time.Minute)
	w.Want(p.ID, payment.StatusCaptured)
	w.WantCalls(psptest.OperationRefund, 0)
}

func TestAVoidWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	for name, fault := range map[string]func(w *World){
		"request lost": func(w *World) { w.OnCall(psptest.OperationCancel, Lost) },
		"answer lost":  func(w *World) { w.OnAnswer(psptest.OperationCancel, Lost) },
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
			fault(w)
			w.Pass(Durations.PaymentExpiry)
			if got := w.Want(p.ID, payment.StatusProcessing); !got.InDoubt() {
				t.Error("it is not in doubt: the void has no answer")
			}
			w.Pass(3 * time.Minute)
			w.Want(p.ID, payment.StatusCanceled)
			for _, c := range w.Calls(psptest.OperationCancel) {
				if c.Key != string(p.ID)+"-cancel-1" {
					t.Errorf("got key %s, want the same void again", c.Key)
				}
			}
		})
	}
}

func TestARepeatPastTheDeadlineSendsNothing(t *testing.T) {
	w := New(t)
	w.Crash(func() {
		w.OnCall(psptest.OperationCreate, w.Die)
		w.Charge("k", Order{})
	})
	w.Clock.Advance(Durations.PaymentExpiry)
	r, err := w.Charge("k", Order{})
	if err != nil || !r.Replayed || r.Payment.Status != payment.StatusCanceled {
		t.Fatalf("got %s replayed %t, %v, want canceled", r.Payment.Status, r.Replayed, err)
	}
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestAnExpiredRepeatAtAPSPThatCapturedIsCaptured(t *testing.T) {
	w := New(t)
	w.Crash(func() {
		w.OnAnswer(psptest.OperationCreate, w.Die)
		w.Charge("k", Order{})
	})
	w.Clock.Advance(Durations.PaymentExpiry)
	r, err := w.Charge("k", Order{})
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want captured", r.Payment.Status, err)
	}
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestTheLastSecondBeforeTheDeadlineIsNotWasted(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenRequiresAction}, payment.StatusRequiresAction)
	w.Pass(Durations.PaymentExpiry - time.Second)
	w.PSP.Approve(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	w.Want(p.ID, payment.StatusCaptured)
	if c := w.PSP.Charges()[0]; c.Status != psp.StatusCaptured {
		t.Errorf("the psp's charge is %s", c.Status)
	}
}
