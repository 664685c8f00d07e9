package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// lies are what a PSP may say of a charge that is not the payment's.
var lies = map[string]func(*psp.Charge){
	"amount":    func(c *psp.Charge) { c.Amount.Minor++ },
	"currency":  func(c *psp.Charge) { c.Amount.Currency = "USD" },
	"captured":  func(c *psp.Charge) { c.Captured = 1 },
	"payment":   func(c *psp.Charge) { c.PaymentID = "pay_01KDYAK348M9S346Q3D2999999" },
	"reference": func(c *psp.Charge) { c.Reference = "ch_of_somebody_else" },
}

func TestAnAnswerAboutOtherMoneyCapturesNothing(t *testing.T) {
	for name, lie := range lies {
		if name == "reference" {
			continue // the first answer is what tells us the reference
		}
		t.Run(name, func(t *testing.T) {
			w := New(t)
			w.Lies = true
			w.PSP.Alter(psptest.OperationCreate, lie)
			order := Order{Reference: "order-42"}
			p := w.Charged("k", order, payment.StatusProcessing)
			if !p.InDoubt() || !p.HoldsReference || p.AmountCaptured != 0 {
				t.Errorf("got in doubt %t, reference held %t, captured %d, want a doubt that holds it", p.InDoubt(), p.HoldsReference, p.AmountCaptured)
			}
			if n := w.Meter.Of(journal.MetricMismatch); n != 1 {
				t.Errorf("got %d alarms, want 1", n)
			}
			again, err := w.Charge("k", order) // the first request is over
			if err != nil || !again.Replayed || again.Payment.Status != payment.StatusProcessing {
				t.Errorf("replay: got %s, %v, want it processing", again.Payment.Status, err)
			}
			w.Clock.Advance(Durations.InProgressTTL)
			if _, err := w.Charge("k", order); err != nil {
				t.Error(err)
			}
			w.WantCalls(psptest.OperationCreate, 1)
			// The PSP comes to its senses: a look-up tells the truth.
			w.Pass(time.Minute)
			w.Want(p.ID, payment.StatusCaptured)
		})
	}
}

func TestALookUpAboutOtherMoneyCapturesNothing(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
			w.PSP.Approve(string(p.ID))
			w.PSP.Alter(psptest.OperationLookup, lie)
			w.Lies = true
			w.Pass(time.Hour)
			if got := w.Want(p.ID, payment.StatusProcessing); !got.InDoubt() {
				t.Error("it is not in doubt")
			}
			if w.Meter.Of(journal.MetricMismatch) == 0 || w.Meter.Of(charge.MetricNeedsPerson) == 0 {
				t.Error("nobody was called")
			}
			if rows := w.Types(p.ID); len(rows) > 6 {
				t.Errorf("got rows %v, want the mismatch noted once", rows)
			}
		})
	}
}

func TestACaptureAnsweredWithOtherMoneyIsInDoubt(t *testing.T) {
	for name, lie := range lies {
		if name == "captured" {
			continue // what the PSP captured of held funds is believed
		}
		t.Run(name, func(t *testing.T) {
			w, id := held(t)
			w.PSP.Alter(psptest.OperationCapture, lie)
			r, err := w.Capture("c", id, 0)
			if err != nil || r.Payment.Status != payment.StatusAuthorized || !r.Payment.InDoubt() {
				t.Fatalf("got %s in doubt %t, %v, want it held and in doubt", r.Payment.Status, r.Payment.InDoubt(), err)
			}
			again, err := w.Capture("c", id, 0)
			if err != nil || !again.Replayed {
				t.Errorf("replay: got %v, want the payment", err)
			}
			w.WantCalls(psptest.OperationCapture, 1)
			w.Pass(time.Minute)
			w.Want(id, payment.StatusCaptured)
		})
	}
}

func TestAnotherCapturedAmountOfHeldFundsIsBelieved(t *testing.T) {
	w, id := held(t)
	w.OnCall(psptest.OperationCapture, func() error { return Lost() })
	if _, err := w.Capture("c", id, 0); err != nil {
		t.Fatal(err)
	}
	w.PSP.CaptureLate(string(id))
	w.Pass(time.Minute)
	if p := w.Want(id, payment.StatusCaptured); p.AmountCaptured != 10000 {
		t.Errorf("got %d, want what the PSP captured", p.AmountCaptured)
	}
}

func TestARefundAnsweredWithOtherMoneyIsInDoubt(t *testing.T) {
	for name, lie := range map[string]func(*psp.Refund){
		"amount": func(r *psp.Refund) { r.Amount = 1 },
		"id":     func(r *psp.Refund) { r.RefundID = "re_of_somebody_else" },
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{}, payment.StatusCaptured)
			w.PSP.AlterRefund(lie)
			refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
			if w.Meter.Of(journal.MetricMismatch) == 0 {
				t.Error("nobody was called")
			}
			if _, err := w.Refund("r", p.ID, 2000); err != nil {
				t.Errorf("replay: got %v, want the refund", err)
			}
			w.WantCalls(psptest.OperationRefund, 1)
			w.PSP.AlterRefund(nil)
			w.Pass(time.Minute)
			if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundSucceeded {
				t.Errorf("got %s, want the look-up believed", got.Status)
			}
		})
	}
}

func TestALookUpThatDisagreesAboutARefundCallsSomebody(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnAnswer(psptest.OperationRefund, Lost)
	refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
	w.PSP.Alter(psptest.OperationLookup, func(c *psp.Charge) {
		for i := range c.Refunds {
			c.Refunds[i].Amount = 1
		}
	})
	w.Pass(time.Minute)
	if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundPending {
		t.Errorf("got %s, want it pending", got.Status)
	}
	if w.Meter.Of(journal.MetricMismatch) == 0 {
		t.Error("nobody was called")
	}
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestAVoidAnsweredWithOtherMoneyIsLookedInto(t *testing.T) {
	for name, lie := range lies {
		if name == "captured" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
			w.PSP.Alter(psptest.OperationCancel, lie)
			r, err := w.Cancel("c", p.ID)
			if err != nil || !r.Payment.Status.Open() || !r.Payment.InDoubt() {
				t.Fatalf("got %s in doubt %t, %v, want it open and in doubt", r.Payment.Status, r.Payment.InDoubt(), err)
			}
			w.Pass(5 * time.Minute)
			w.Want(p.ID, payment.StatusCanceled) // the look-up tells that it is voided
		})
	}
}

func TestOtherMoneyThatWasCanceledCanEnd(t *testing.T) {
	w := New(t)
	w.PSP.Alter(psptest.OperationCreate, lies["amount"])
	w.PSP.Alter(psptest.OperationLookup, lies["amount"])
	w.PSP.Alter(psptest.OperationCancel, lies["amount"])
	w.Lies = true
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent, Reference: "order-42"}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Pass(5 * time.Minute)
	w.Want(p.ID, payment.StatusCanceled)
	if _, err := w.Charge("k2", Order{Reference: "order-42"}); err != nil {
		t.Errorf("got %v, want the reference free", err)
	}
}

func TestOtherMoneyCapturedForADeadPaymentIsNotRefundedBlindly(t *testing.T) {
	w, id, success := dead(t)
	success.Event.Charge.Amount.Minor, success.Event.Charge.Captured = 1, 1
	event := w.PSP.Push(success.Event)
	w.Deliver(event)
	w.WantItem(event, "quarantined")
	w.Want(id, payment.StatusCanceled)
	w.WantCalls(psptest.OperationRefund, 0)
}

func TestAConflictOfReferenceIsNoOtherError(t *testing.T) {
	w := New(t)
	w.Charged("k1", Order{Reference: "order-42"}, payment.StatusCaptured)
	_, err := w.Charge("k2", Order{Reference: "order-42"})
	if used, ok := errors.AsType[*charge.ReferenceInUseError](err); !ok || used.Error() == "" {
		t.Errorf("got %v, want the reference in use", err)
	}
}
