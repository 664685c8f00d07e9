package sagatest

import (
	"errors"
	"slices"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
)

// Check fails the test unless everything that must always hold of checkouts does:
// a direction that never turns back, stock that is conserved, an order exactly for
// a completed checkout, nobody notified of another, no money kept for a failed one.
func (w *World) Check() {
	w.Helper()
	held := map[string]int64{}
	for _, id := range w.made {
		c := w.Checkout(id)
		w.checkRows(c)
		w.checkEnd(c)
		status, err := w.Stock.Held(w.Context(), c.MerchantID, id)
		if err != nil {
			w.Errorf("reservation of %s: %v", id, err)
		}
		if status == inventory.Reserved {
			held[c.Items[0].SKU] += c.Items[0].Quantity
		}
	}
	for sku, total := range w.supply {
		s, err := w.Stock.Get(w.Context(), flowtest.Merchant, sku)
		if err != nil || s.Available+s.Reserved+s.Sold != total || min(s.Available, s.Reserved, s.Sold) < 0 {
			w.Errorf("stock of %s: got %+v %v, want %d in all", sku, s, err, total)
		}
		if s.Reserved != held[sku] {
			w.Errorf("stock of %s: got %d reserved, want %d, what checkouts hold", sku, s.Reserved, held[sku])
		}
	}
}

// checkRows holds the journal of a checkout to its state.
func (w *World) checkRows(c checkout.Checkout) {
	w.Helper()
	rows := w.CheckoutRows(c.ID)
	if int64(len(rows)) != c.Version {
		w.Errorf("%s: got %d rows, want %d, its version", c.ID, len(rows), c.Version)
	}
	backward, over, ordered := false, false, false
	for i, r := range rows {
		if r.Version != int64(i+1) {
			w.Errorf("%s: got version %d in row %d", c.ID, r.Version, i+1)
		}
		turned := r.Data["direction"] == string(checkout.Backward)
		if backward && !turned {
			w.Errorf("%s: row %d, %s, goes forward again", c.ID, r.Version, r.Type)
		}
		if over {
			w.Errorf("%s: row %d, %s, comes after the end", c.ID, r.Version, r.Type)
		}
		ordered = ordered || r.Type == string(checkout.EventOrderCreated)
		if ordered && turned {
			w.Errorf("%s: row %d, %s, undoes what has an order", c.ID, r.Version, r.Type)
		}
		backward = turned
		over = r.Data["status"] == string(checkout.StatusCompleted) || r.Data["status"] == string(checkout.StatusFailed)
	}
}

// checkEnd compares a checkout that has ended with its effects.
func (w *World) checkEnd(c checkout.Checkout) {
	w.Helper()
	p := w.Payment(c.PaymentID)
	o, err := w.Orders.Get(w.Context(), c.MerchantID, order.ID(c.ID))
	if err != nil && !errors.Is(err, order.ErrNotFound) {
		w.Errorf("order of %s: %v", c.ID, err)
	}
	confirmed := err == nil && o.Status == order.Confirmed
	reservation, err := w.Stock.Held(w.Context(), c.MerchantID, c.ID)
	if err != nil {
		w.Errorf("reservation of %s: %v", c.ID, err)
	}
	if w.Mail.Delivered(c.ID) > 0 && c.Status != checkout.StatusCompleted {
		w.Errorf("%s is %s, and its buyer was told of an order", c.ID, c.Status)
	}
	if confirmed && p.AmountCaptured == 0 {
		w.Errorf("%s has an order, and its payment is %s", c.ID, p.Status)
	}
	switch c.Status {
	case checkout.StatusCompleted:
		if !confirmed || c.OrderID != o.ID || reservation != inventory.Sold {
			w.Errorf("%s is completed: got order %+v, stock %s, want both", c.ID, o, reservation)
		}
	case checkout.StatusFailed:
		if confirmed || reservation == inventory.Reserved || reservation == inventory.Sold || c.OrderID != "" {
			w.Errorf("%s failed: got order %+v, stock %s, want none", c.ID, o, reservation)
		}
		w.checkReturned(c, p)
	case checkout.StatusPending, checkout.StatusRequiresAction, checkout.StatusNeedsReview:
	}
}

// checkReturned holds a failed checkout to what it promises: nothing was taken, or
// all of it is on its way back.
func (w *World) checkReturned(c checkout.Checkout, p payment.Payment) {
	w.Helper()
	if p.Status == payment.StatusCaptured || p.Status.Open() || p.HoldsReference {
		w.Errorf("%s failed, and its payment is %s", c.ID, p.Status)
	}
	onItsWay := slices.ContainsFunc(p.Refunds, func(r payment.Refund) bool { return r.Status != payment.RefundSucceeded })
	if net := w.PSP.Net(string(p.ID)); net != 0 && !onItsWay {
		w.Errorf("%s failed, and the provider holds %d", c.ID, net)
	}
}
