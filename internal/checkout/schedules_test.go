package checkout_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// around runs do once, before (or after) the first invocation of that command.
func around(w *sagatest.World, command string, after bool, do func()) {
	done := false
	w.Around = func(c sagatest.Call, invoke func() ([]byte, error)) ([]byte, error) {
		mine := c.Command == command && !done
		done = done || mine
		if mine && !after {
			do()
		}
		answer, err := invoke()
		if mine && after {
			do()
		}
		return answer, err
	}
	w.Cleanup(func() {
		if !done {
			w.Errorf("%s was never called", command)
		}
	})
}

func TestSchedule04AWakeUpIsNotSwallowed(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{Token: psptest.TokenPending})
	around(w, string(checkout.CommandCharge), true, func() { // it has seen that the PSP has not said yet
		w.PSP.Approve(string(c.PaymentID))
		w.Receive(w.PSP.Drain()...)
		w.Carry()
	})
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	var names []string
	for _, x := range w.Ended() {
		names = append(names, strings.TrimPrefix(x.Name, c.ID))
	}
	if want := []string{"-1", "-2"}; !slices.Equal(names, want) {
		t.Errorf("got executions %v, want %v", names, want)
	}
}

func TestSchedule04AWakeUpThatFailsComesAgainOrIsSwept(t *testing.T) {
	down := errors.New("no answer")
	pay := func(w *sagatest.World) checkout.Checkout {
		c := w.Bought("k", sagatest.Basket{Token: psptest.TokenPending})
		w.PSP.Approve(string(c.PaymentID))
		return c
	}
	t.Run("the row comes again", func(t *testing.T) {
		w := stocked(t)
		c := pay(w)
		w.OnStart = func(string) error { return down }
		w.Receive(w.PSP.Drain()...)
		changes := w.Store.TakeChanges()
		wantRelayed(t, w, changes, nil)
		changes = w.Store.TakeChanges()
		wantRelayed(t, w, changes, down)
		w.OnStart = nil
		wantRelayed(t, w, changes, nil)
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
	t.Run("the stream is lost and the sweep finds it", func(t *testing.T) {
		w := stocked(t)
		c := pay(w)
		w.Deaf = true
		w.Deliver(w.PSP.Drain()...)
		w.WantCheckout(c.ID, checkout.StatusPending, "")
		w.Pass(2 * time.Minute)
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
	t.Run("the counter was raised and its raiser died", func(t *testing.T) {
		w := stocked(t)
		c := pay(w)
		died := false
		w.OnStart = func(string) error { died = true; return down }
		w.Rough = true
		w.Deliver(w.PSP.Drain()...)
		if !died {
			t.Fatal("nobody came to start it")
		}
		w.OnStart = nil
		w.Pass(2 * time.Minute)
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
}

func TestSchedule05OppositeDirections(t *testing.T) {
	for _, after := range []bool{false, true} {
		w := sagatest.New(t)
		w.Supply(sagatest.Tee, 0)
		c := w.Ordered("k", sagatest.Basket{})
		// The first execution was refused; a piece comes back; the second reserves it, perhaps.
		around(w, string(checkout.CommandCharge), after, func() {
			w.Supply(sagatest.Tee, 1)
			w.Again(c.ID)
		})
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusFailed, "out_of_stock")
		w.WantStock(sagatest.Tee, 1, 0, 0)
		w.WantCalls(psptest.OperationCreate, 0)
	}
}

func TestSchedule05AChargeDoesNotLeaveAfterTheTurn(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{})
	turned := false
	w.AtPorts(func() {
		if p := w.Payment(c.PaymentID); turned || !w.Checkout(c.ID).Reserved || p.Status != payment.StatusCreated {
			return
		}
		// The second execution is about to send, and the first turns back.
		turned = true
		if err := w.Saga.Charge(t.Context(), c.ID, "out_of_stock"); err == nil {
			t.Error("got nil, want to be led back")
		}
	})
	w.Settle()
	if !turned {
		t.Fatal("nobody turned back")
	}
	w.WantCheckout(c.ID, checkout.StatusFailed, "out_of_stock")
	w.WantCalls(psptest.OperationCreate, 0)
	w.WantStock(sagatest.Tee, 10, 0, 0)
}

func TestSchedule06NoOrderForRefundedMoney(t *testing.T) {
	t.Run("the merchant's refund waits", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		around(w, "create", false, func() {
			_, err := w.Refund("r", c.PaymentID, 0)
			wantCheckoutPending(t, err)
		})
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
	for _, at := range []struct {
		command string
		after   bool
	}{{"create", false}, {"create", true}, {string(checkout.CommandComplete), false}} {
		t.Run("a refund at the PSP fails the checkout", func(t *testing.T) {
			w := stocked(t)
			c := w.Ordered("k", sagatest.Basket{})
			around(w, at.command, at.after, func() {
				w.PSP.RefundDirect(string(c.PaymentID), sagatest.Price)
				w.Receive(w.PSP.Drain()...)
				w.Carry()
				w.RunNext() // woken by it
			})
			w.Settle()
			w.WantCheckout(c.ID, checkout.StatusFailed, checkout.FailureRefunded)
			w.WantStock(sagatest.Tee, 10, 0, 0)
		})
	}
	t.Run("past the pivot the order stands", func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		refunded := false
		w.AtPorts(func() {
			if refunded || w.Checkout(c.ID).OrderID == "" {
				return
			}
			refunded = true
			w.PSP.RefundDirect(string(c.PaymentID), sagatest.Price)
			w.Receive(w.PSP.Drain()...)
			w.Carry()
		})
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
		w.Want(c.PaymentID, payment.StatusRefunded)
	})
}

// closedStock sells nothing until it is opened.
type closedStock struct {
	checkout.Stock
	open *bool
}

func (s closedStock) Sell(ctx context.Context, merchantID, checkoutID string) error {
	if !*s.open {
		return errTimeout
	}
	return s.Stock.Sell(ctx, merchantID, checkoutID)
}

func TestSchedule06PastThePivotItIsFinishedHoweverOftenThatMustBeTried(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	open := false
	w.Saga.Stock = closedStock{w.Saga.Stock, &open}
	c := w.Bought("k", sagatest.Basket{})
	w.WantEvents(c.ID, words("created stock_reserved charged order_created")...)
	w.PSP.RefundDirect(string(c.PaymentID), sagatest.Price)
	w.Deliver(w.PSP.Drain()...)
	w.Pass(3 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusPending, "")
	open = true
	w.Pass(10 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	w.WantStock(sagatest.Tee, 9, 0, 1)
}

func TestSchedule07NobodyIsChargedHoursLater(t *testing.T) {
	w := stocked(t)
	w.OnStart = func(string) error { return errors.New("no answer") }
	w.Deaf = true
	c := w.Bought("k", sagatest.Basket{Reference: "order-42"})
	w.WantCheckout(c.ID, checkout.StatusPending, "")
	w.OnStart, w.Deaf = nil, false
	w.Clock.Advance(3 * time.Hour)
	w.Pass(3 * time.Minute)
	w.WantCheckout(c.ID, checkout.StatusFailed, payment.FailureExpired)
	w.WantCalls(psptest.OperationCreate, 0)
	w.WantStock(sagatest.Tee, 10, 0, 0)
	w.Bought("k2", sagatest.Basket{Reference: "order-42"}) // the buyer may try again
}

func TestSchedule07ACheckoutIsChargedAtNoInstantPastItsDeadline(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond} {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		w.Clock.Advance(flowtest.Durations.PaymentExpiry + late)
		w.Settle() // the execution starts only now
		w.WantCheckout(c.ID, checkout.StatusFailed, payment.FailureExpired)
		w.WantCalls(psptest.OperationCreate, 0)
	}
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{})
	w.Clock.Advance(flowtest.Durations.PaymentExpiry - time.Millisecond)
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
}

func TestASaleOfAnOrderThatIsGoneNeverTurnsBack(t *testing.T) {
	w := stocked(t)
	w.Rough = true
	c := w.Ordered("k", sagatest.Basket{})
	around(w, string(checkout.CommandComplete), false, func() {
		if err := w.Stock.Release(t.Context(), flowtest.Merchant, c.ID); err != nil {
			t.Error(err)
		}
	})
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusPending, "")
	w.Pass(24 * time.Hour)
	w.WantCheckout(c.ID, checkout.StatusNeedsReview, "") // a person has to look: sold and not held
	w.WantEvents(c.ID, words("created stock_reserved charged order_created needs_review")...)
	w.Want(c.PaymentID, payment.StatusCaptured)
}

// TestAChargeStepThatIsCutOffIsFoundOut: its time is up after the PSP captured, and
// its function goes on as a zombie.
func TestAChargeStepThatIsCutOffIsFoundOut(t *testing.T) {
	const step, zombie = 25 * time.Second, 40 * time.Second
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		c := w.Ordered("k", sagatest.Basket{})
		w.OnAnswer(psptest.OperationCreate, func() error {
			time.Sleep(zombie)
			return nil
		})
		began := time.Now()
		x := w.RunNext()
		if took := time.Since(began); took < step || took > zombie {
			t.Errorf("got an execution of %s, want it cut off after %s", took, step)
		}
		if got, want := x.States(), []string{"ReserveStock", "Charge", "Waiting"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v: nothing is undone", got, want)
		}
		w.WantCheckout(c.ID, checkout.StatusPending, "")
		time.Sleep(zombie)
		synctest.Wait()
		w.Want(c.PaymentID, payment.StatusCaptured)
		w.Pass(2 * time.Minute)
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
		w.WantCalls(psptest.OperationCreate, 1)
	})
}
