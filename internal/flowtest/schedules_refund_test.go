package flowtest_test

import (
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

func TestSchedule08AKeyIsNotSentAgainPastHalfItsLife(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnAnswer(psptest.OperationRefund, Lost)
	refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
	down(w) // the PSP is down
	w.Pass(25 * time.Hour)
	up(w)
	w.PSP.ForgetKeys() // whatever comes with the old key now is done again
	w.Pass(25 * time.Hour)
	w.WantCalls(psptest.OperationRefund, 1)
	if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundSucceeded {
		t.Errorf("got %s, want the look-up to have found it succeeded", got.Status)
	}
}

func TestSchedule08ALostRefundPastHalfItsKeysLifeWaitsForAPerson(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, Lost) // it never arrived
	refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
	down(w)
	w.Pass(13 * time.Hour)
	up(w)
	w.Pass(24 * time.Hour)
	if _, err := w.Refund("r", p.ID, 2000); err != nil { // nor does a repeat send it
		t.Fatal(err)
	}
	w.WantCalls(psptest.OperationRefund, 1)
	if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundPending {
		t.Errorf("got %s, want it pending", got.Status)
	}
	if w.Meter.Of(charge.MetricNeedsPerson) == 0 {
		t.Error("nobody was called")
	}
}

func TestSchedule09Toggles(t *testing.T) {
	t.Run("dispute", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{}, payment.StatusCaptured)
		w.PSP.Drain()
		reference, _ := w.PSP.DisputeOpen(string(p.ID))
		opened := w.PSP.Take(0)
		w.Crash(func() { // applied, and the worker dies before it marks the inbox
			w.Store.Before(Saved, w.Die)
			w.Deliver(opened)
		})
		w.PSP.DisputeClose(reference, "won")
		w.Deliver(w.PSP.Take(0), opened)
		w.WantItem(opened, webhook.StatusApplied)
		if w.Payment(p.ID).Disputed() {
			t.Error("the payment is disputed again, want closed to be final")
		}
	})
	t.Run("refund", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{}, payment.StatusCaptured)
		refund := w.Refunded("r", p.ID, 5000, payment.RefundSucceeded)
		succeeded := lastEvent(w)
		w.Crash(func() {
			w.Store.Before(Saved, w.Die)
			w.Deliver(succeeded)
		})
		w.PSP.SettleRefund(string(refund.ID), psp.RefundFailed)
		w.Deliver(lastEvent(w), succeeded)
		if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundFailed {
			t.Errorf("got %s, want failed to be final", got.Status)
		}
	})
}

// lastEvent takes all events of the provider and returns the last.
func lastEvent(w *World) psptest.Event {
	events := w.PSP.Drain()
	return events[len(events)-1]
}

func TestSchedule10NoWayOut(t *testing.T) {
	t.Run("a refund fails after refunded", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{}, payment.StatusCaptured)
		refund := w.Refunded("r1", p.ID, 0, payment.RefundSucceeded)
		w.Want(p.ID, payment.StatusRefunded)
		w.PSP.SettleRefund(string(refund.ID), psp.RefundFailed)
		w.Deliver(w.PSP.Drain()...)
		if got := w.Want(p.ID, payment.StatusRefunded).AmountRefunded(); got != 0 {
			t.Errorf("got %d refunded, want 0", got)
		}
		w.Refunded("r2", p.ID, 0, payment.RefundSucceeded)
	})
	t.Run("the refund of late money fails", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Token: psptest.TokenLateCaptured}, payment.StatusProcessing)
		if _, err := w.Cancel("c", p.ID); err != nil {
			t.Fatal(err)
		}
		w.PSP.CaptureLate(string(p.ID))
		w.OnCall(psptest.OperationRefund, func() error { return &psp.Error{Operation: "refund", Outcome: psp.OutcomeRejected} })
		w.Deliver(w.PSP.Drain()...)
		if got := w.Want(p.ID, payment.StatusCanceled).Refunds[0].Status; got != payment.RefundFailed {
			t.Fatalf("got %s, want failed", got)
		}
		w.WantRest(p.ID)
		w.Refunded("r", p.ID, 0, payment.RefundSucceeded) // an operator makes the next
		w.Want(p.ID, payment.StatusRefunded)
	})
	t.Run("another amount", func(t *testing.T) {
		w := New(t)
		w.Lies = true
		w.PSP.Alter(psptest.OperationCreate, func(c *psp.Charge) { c.Amount.Minor, c.Captured = 4999, 4999 })
		w.PSP.Alter(psptest.OperationLookup, func(c *psp.Charge) { c.Amount.Minor, c.Captured = 4999, 4999 })
		p := w.Charged("k", Order{Reference: "order-42"}, payment.StatusProcessing)
		if !p.InDoubt() || !p.HoldsReference {
			t.Errorf("got in doubt %t, reference held %t, want both", p.InDoubt(), p.HoldsReference)
		}
		w.Pass(25 * time.Hour)
		w.Want(p.ID, payment.StatusProcessing)
		if w.Meter.Of(charge.MetricNeedsPerson) == 0 {
			t.Error("nobody was called")
		}
	})
	t.Run("an authorization lapses", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Manual: true}, payment.StatusAuthorized)
		w.PSP.Drain()
		w.PSP.Lapse(string(p.ID))
		w.Pass(25 * time.Hour)
		if f := w.Want(p.ID, payment.StatusCanceled).Failure; f == nil || f.Code != payment.FailureAuthorization {
			t.Errorf("got failure %+v, want %s", f, payment.FailureAuthorization)
		}
	})
}

func TestSchedule17ARefundIsNotCountedTwice(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.PSP.Drain()
	// The PSP tells of the refund without our reference before it answers.
	anonymous := w.PSP.Push(psp.Event{Charge: w.PSP.Charges()[0], Refund: &psp.Refund{Reference: "rf_000001", Amount: 2000, Status: psp.RefundSucceeded}})
	w.OnAnswer(psptest.OperationRefund, Then(func() {
		w.Deliver(anonymous)
		w.WantItem(anonymous, webhook.StatusReceived)
	}))
	w.Refunded("r", p.ID, 2000, payment.RefundSucceeded)
	w.Pass(time.Minute)
	w.WantItem(anonymous, webhook.StatusApplied)
	if got := w.Payment(p.ID); len(got.Refunds) != 1 || got.AmountRefunded() != 2000 {
		t.Errorf("got %d refunds of %d, want one of 2000", len(got.Refunds), got.AmountRefunded())
	}
}
