package checkout_test

import (
	"testing"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestLateMoneyThatCameAndWentIsNotWhyACheckoutFailed(t *testing.T) {
	w := stocked(t)
	c := w.Bought("k", sagatest.Basket{Token: psptest.TokenRequiresAction})
	if _, err := w.Cancel("c", c.PaymentID); err != nil {
		t.Fatal(err)
	}
	w.PSP.CaptureLate(string(c.PaymentID))
	w.Receive(w.PSP.Drain()...)
	w.Stream() // the money comes and goes before the saga hears of the cancel
	w.Want(c.PaymentID, payment.StatusRefunded)
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusFailed, checkout.FailureCanceled)
	w.WantStock(sagatest.Tee, 10, 0, 0)
}
