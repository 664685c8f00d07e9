package checkout_test

import (
	"context"
	"errors"
	"testing"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestNewsOfAPaymentStartNothingForACheckoutThatIsOver(t *testing.T) {
	for name, b := range map[string]sagatest.Basket{
		"completed": {}, "failed": {Token: psptest.TokenDeclined}, "needs review": {SKU: rejected},
	} {
		t.Run(name, func(t *testing.T) {
			w := stocked(t)
			if b.SKU == rejected {
				w.OnCall(psptest.OperationRefund, refused)
			}
			c := w.Bought("k", b)
			if !c.Status.Over() {
				t.Fatalf("got %s, want it over", c.Status)
			}
			if err := w.Checkouts.Wake(t.Context(), c.ID); err != nil {
				t.Fatal(err)
			}
			if got := w.Checkout(c.ID).Executions; got != c.Executions || w.Waiting() != 0 {
				t.Errorf("got %d executions and %d waiting, want %d and none", got, w.Waiting(), c.Executions)
			}
		})
	}
}

func TestTheFirstExecutionIsNotStartedAfterAnother(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenPending})
	var started []string
	w.OnStart = func(name string) error {
		started = append(started, name)
		return nil
	}
	if err := w.Checkouts.Begin(t.Context(), c.ID); err != nil || len(started) != 1 || started[0] != c.ID+"-1" {
		t.Fatalf("before another: got %v %v, want the first one's name", started, err)
	}
	if err := w.Checkouts.Wake(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	started = nil
	if err := w.Checkouts.Begin(t.Context(), c.ID); err != nil || len(started) != 0 {
		t.Errorf("after another: got %v %v, want no start", started, err)
	}
	w.Settle()
}

// watchedPayments counts the compensations of a payment.
type watchedPayments struct {
	checkout.Payments
	compensations int
}

func (a *watchedPayments) Compensate(ctx context.Context, id payment.ID, attempts int) (payment.Payment, charge.Compensation, error) {
	a.compensations++
	return a.Payments.Compensate(ctx, id, attempts)
}

func TestAPaymentThatIsUndoneIsNotTouchedAgain(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	payments := &watchedPayments{Payments: w.Saga.Payments}
	w.Saga.Payments = payments
	c := w.Ordered("k", sagatest.Basket{})
	if err := w.Saga.Charge(t.Context(), c.ID, inventory.Reserved); err != nil {
		t.Fatal(err)
	}
	err := w.Saga.Complete(t.Context(), c.ID, checkout.OrderAnswer{Outcome: order.OutcomeRejected})
	if _, turned := errors.AsType[*checkout.BackwardError](err); !turned {
		t.Fatalf("got %v, want a turn", err)
	}
	for range 3 { // two executions more that are late
		if err := w.Saga.UndoCharge(t.Context(), c.ID); err != nil {
			t.Fatal(err)
		}
	}
	if payments.compensations != 1 {
		t.Errorf("got %d compensations, want 1", payments.compensations)
	}
	w.WantCalls(psptest.OperationRefund, 1)
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusFailed, "order_rejected")
	version := w.Checkout(c.ID).Version
	if err := errors.Join(w.Saga.UndoCharge(t.Context(), c.ID), w.Saga.Close(t.Context(), c.ID)); err != nil {
		t.Errorf("compensations of one that has failed: got %v, want nothing left to do", err)
	}
	if got := w.Checkout(c.ID).Version; got != version || payments.compensations != 1 {
		t.Errorf("got version %d and %d compensations, want %d and 1", got, payments.compensations, version)
	}
}
