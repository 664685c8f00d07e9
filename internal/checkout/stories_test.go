package checkout_test

import (
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// story is one checkout from its beginning to its end, which must be the same
// whatever fails on the way and whoever comes between.
type story struct {
	name   string
	basket sagatest.Basket
	then   func(w *sagatest.World, c checkout.Checkout) // what the world outside does, nil for nothing
	pass   time.Duration                                // until it has ended without any help
	status checkout.Status
	code   string
}

// stories are every kind of end.
var stories = []story{
	{"completed", sagatest.Basket{}, nil, 0, checkout.StatusCompleted, ""},
	{"declined", sagatest.Basket{Token: psptest.TokenDeclined}, nil, 0, checkout.StatusFailed, "card_declined"},
	{"out of stock", sagatest.Basket{Quantity: 11}, nil, 0, checkout.StatusFailed, "out_of_stock"},
	{"order refused", sagatest.Basket{SKU: rejected}, nil, 0, checkout.StatusFailed, "order_rejected"},
	{"approved", sagatest.Basket{Token: psptest.TokenRequiresAction}, approve, 0, checkout.StatusCompleted, ""},
	{"customer declines", sagatest.Basket{Token: psptest.TokenRequiresAction}, decline, 0, checkout.StatusFailed, "card_declined"},
	{"customer leaves", sagatest.Basket{Token: psptest.TokenRequiresAction}, nil, 32 * time.Minute, checkout.StatusFailed, "payment_expired"},
	{"no answer", sagatest.Basket{Token: psptest.TokenTimeoutCapturedSilent}, nil, 2 * time.Minute, checkout.StatusCompleted, ""},
	{
		"refund late",
		sagatest.Basket{SKU: rejected, Token: psptest.TokenRefundPendingFailed},
		func(w *sagatest.World, c checkout.Checkout) {
			w.PSP.SettleRefund(string(payment.CompensationRefundID(c.PaymentID, 0)), psp.RefundSucceeded)
		}, 0, checkout.StatusFailed, "order_rejected",
	},
}

// play takes the story's checkout to its end. With extra time, for what has to be
// swept after something went wrong.
func (s story) play(w *sagatest.World, extra time.Duration) checkout.Checkout {
	w.Helper()
	c := w.Ordered("k", s.basket)
	w.Settle()
	w.Pass(extra)
	if s.then != nil {
		s.then(w, c)
	}
	w.Deliver(w.PSP.Drain()...)
	w.Pass(s.pass + extra)
	return c
}

// ends holds a checkout to the story's end.
func (s story) ends(w *sagatest.World, c checkout.Checkout) {
	w.Helper()
	w.WantCheckout(c.ID, s.status, s.code)
	if n := w.Mail.Delivered(c.ID); s.status == checkout.StatusCompleted && n == 0 {
		w.Error("the buyer was not told")
	}
	if p := w.Payment(c.PaymentID); s.status == checkout.StatusCompleted && (p.Status != payment.StatusCaptured || len(p.Refunds) > 0) {
		w.Errorf("completed, and the payment is %s with refunds %+v", p.Status, p.Refunds)
	}
	if n := refunds(w, c); n > 1 {
		w.Errorf("got %d refunds, want one at most", n)
	}
}

func refunds(w *sagatest.World, c checkout.Checkout) int { return len(w.Payment(c.PaymentID).Refunds) }

func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w := stocked(t)
			s.ends(w, s.play(w, 0))
		})
	}
}
