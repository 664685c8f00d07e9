package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestARepeatedRequestFindsItsCheckout(t *testing.T) {
	w := stocked(t)
	first, err := w.Order("k", sagatest.Basket{Reference: "order-42"})
	if err != nil || first.Replayed || first.Payment.Status != payment.StatusCreated || first.Checkout.Version != 1 {
		t.Fatalf("got %+v %v, want a new checkout with a payment of which nothing was sent", first, err)
	}
	for range 2 {
		again, err := w.Order("k", sagatest.Basket{Reference: "order-42"})
		if err != nil || !again.Replayed || again.Checkout.ID != first.Checkout.ID {
			t.Fatalf("got %+v %v, want a replay of %s", again, err, first.Checkout.ID)
		}
		w.Settle()
	}
	if again, err := w.Order("k", sagatest.Basket{Reference: "order-42"}); err != nil || again.Checkout.Status != checkout.StatusCompleted || again.Payment.Status != payment.StatusCaptured {
		t.Errorf("got %+v %v, want it as it is now", again.Checkout, err)
	}
	if _, err := w.Order("k", sagatest.Basket{Reference: "order-43"}); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("got %v, want ErrKeyReused", err)
	}
	if n := len(w.Ended()); n != 1 {
		t.Errorf("got %d executions, want 1", n)
	}
	w.WantStock(sagatest.Tee, 9, 0, 1)
}

func TestAKeyIsForgottenOnlyWhenNobodyHasAnythingToDo(t *testing.T) {
	w := stocked(t)
	b := sagatest.Basket{SKU: rejected}
	w.OnCall(psptest.OperationRefund, refused)
	first := w.Bought("k", b)
	w.WantCheckout(first.ID, checkout.StatusNeedsReview, "order_rejected")
	w.Clock.Advance(25 * time.Hour)
	if again, err := w.Order("k", b); err != nil || again.Checkout.ID != first.ID {
		t.Fatalf("got %+v %v, want the checkout that a person must look at", again.Checkout, err)
	}
	if _, err := w.Resume("r", first.ID); err != nil {
		t.Fatal(err)
	}
	w.WantCheckout(first.ID, checkout.StatusFailed, "order_rejected")
	again, err := w.Order("k", b)
	if err != nil || again.Replayed || again.Checkout.ID == first.ID {
		t.Fatalf("got %+v %v, want a new checkout", again.Checkout, err)
	}
	w.Settle()
}

func TestACheckoutWhoseStartFailedIsBegunByTheRelay(t *testing.T) {
	w := stocked(t)
	w.OnStart = func(string) error { return errTimeout }
	c := w.Ordered("k", sagatest.Basket{})
	if got := w.Meter.Of(checkout.MetricNotStarted); got != 1 || !strings.Contains(w.Logs.Text(), "execution not started") {
		t.Errorf("got %d counted, want 1 and a line", got)
	}
	w.OnStart = nil
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	if err := w.Checkouts.Begin(t.Context(), c.ID); err != nil || w.Waiting() > 0 {
		t.Errorf("got %v and %d executions, want nothing to begin", err, w.Waiting())
	}
	for _, wake := range []error{w.Checkouts.Begin(t.Context(), "chk_none"), w.Checkouts.Wake(t.Context(), "chk_none"), w.Checkouts.Repair(t.Context(), "chk_none")} {
		if wake != nil {
			t.Errorf("got %v for a checkout that is not there, want nothing to do", wake)
		}
	}
}

func TestAStartIsGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		w.Checkouts.Starter = hanging{}
		began := time.Now()
		c := w.Ordered("k", sagatest.Basket{})
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("got an answer after %s, want five seconds", took)
		}
		w.Checkouts.Starter = w
		w.Settle()
		w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	})
}

// hanging is a starter that never answers.
type hanging struct{}

func (hanging) Start(ctx context.Context, _ string, _ checkout.Input) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestACheckoutIsItsMerchantsAlone(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{})
	for _, at := range [][2]string{{flowtest.OtherMerchant, c.ID}, {flowtest.Merchant, "chk_01KDYAK348M9S346Q3D2ZZZZZZ"}, {flowtest.Merchant, "chk_1"}, {flowtest.Merchant, ""}} {
		if r, err := w.Checkouts.Get(t.Context(), at[0], at[1]); !errors.Is(err, checkout.ErrNotFound) {
			t.Errorf("%v: got %+v %v, want ErrNotFound", at, r, err)
		}
	}
	for _, merchant := range []string{flowtest.Merchant, ""} { // "" is an operator's
		if r, err := w.Checkouts.Get(t.Context(), merchant, c.ID); err != nil || r.Checkout.ID != c.ID || r.Payment.ID != c.PaymentID {
			t.Errorf("%q: got %+v %v, want the checkout with its payment", merchant, r, err)
		}
	}
}

func TestWhatIsPrintedOfACheckoutHoldsNothingOfTheCustomer(t *testing.T) {
	w := stocked(t)
	c := w.Ordered("k", sagatest.Basket{})
	for _, text := range []string{fmt.Sprintf("%v %+v", c, c), c.LogValue().String()} {
		if strings.Contains(text, "a@example.com") {
			t.Errorf("got %s, want no address", text)
		}
	}
	w.Settle()
	if strings.Contains(w.Logs.Text(), "a@example.com") {
		t.Error("a log line holds the address")
	}
	for _, r := range w.CheckoutRows(c.ID) {
		if strings.Contains(fmt.Sprint(r.Data), "@") {
			t.Errorf("row %s holds the address: %v", r.Type, r.Data)
		}
	}
}
