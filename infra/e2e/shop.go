package e2e

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// checkout is a checkout as merchants see it.
type checkout struct {
	ID, Object, Status, Currency string
	Amount                       int64
	Payment                      json.RawMessage
	OrderID                      *string `json:"order_id"`
	Failure                      *failure
	CreatedAt                    string `json:"created_at"`
	UpdatedAt                    string `json:"updated_at"`

	payment payment // what Payment holds
}

// stocked and sold pieces of a SKU.
type stock struct {
	SKU                       string
	Available, Reserved, Sold int64
}

type order struct {
	ID, Object, Currency string
	Amount               int64
	Reference            *string
	CheckoutID           string `json:"checkout_id"`
	PaymentID            string `json:"payment_id"`
}

type notice struct {
	ID, Type   string
	CheckoutID string `json:"checkout_id"`
}

func line(sku string, quantity, unitAmount int64) object {
	return object{"sku": sku, "quantity": quantity, "unit_amount": unitAmount}
}

// cart is a checkout request; its SKU has no stock.
func (s *stage) cart(members object) object {
	return object{
		"items": []object{line(s.unique("sku"), 2, 2500)}, "currency": "JPY", "payment_method": "tok_captured",
		"customer": object{"email": "a@example.com"}, "reference": s.unique("order"), "return_url": "https://shop.example/return",
	}.with(members)
}

// stocked is a new SKU with that many pieces.
func (s *stage) stocked(t *testing.T, available int64) string {
	t.Helper()
	return s.stockedAs(t, s.unique("sku"), available)
}

func (s *stage) stockedAs(t *testing.T, sku string, available int64) string {
	t.Helper()
	s.alpha.send(t, request{method: http.MethodPut, path: "/v1/stock/" + sku, body: object{"available": available}}).want(t, http.StatusOK, http.StatusCreated, http.StatusNoContent)
	return sku
}

func (s *stage) stock(t *testing.T, sku string) stock {
	t.Helper()
	var got stock
	a := s.alpha.get(t, "/v1/stock/"+sku).want(t, http.StatusOK)
	a.decode(t, &got)
	if got.SKU != sku {
		t.Errorf("%s: got SKU %q, want %s", a, got.SKU, sku)
	}
	return got
}

// hasStock waits until pieces are where they must be.
func (s *stage) hasStock(t *testing.T, want stock) {
	t.Helper()
	s.eventually(t, "stock of "+want.SKU+" settles", func() (bool, any) {
		got := s.stock(t, want.SKU)
		return got == want, got
	})
}

// checkout reads a checkout and checks what holds of every view of one.
func (a answer) checkout(t *testing.T) checkout {
	t.Helper()
	var c checkout
	a.decode(t, &c)
	members := a.members(t)
	for _, name := range []string{"id", "object", "status", "amount", "currency", "payment", "order_id", "failure", "created_at", "updated_at"} {
		if _, found := members[name]; !found {
			t.Errorf("%s: a checkout without %s", a, name)
		}
	}
	if !strings.HasPrefix(c.ID, "chk_") || c.Object != "checkout" ||
		!slices.Contains([]string{"pending", "requires_action", "completed", "failed", "needs_review"}, c.Status) {
		t.Errorf("%s: got id %q, object %q, status %q", a, c.ID, c.Object, c.Status)
	}
	if (c.Status == "completed") != (c.OrderID != nil) && c.Status != "pending" && c.Status != "needs_review" {
		t.Errorf("%s: got order %v in %s", a, c.OrderID, c.Status)
	}
	if c.Status == "failed" && c.Failure == nil || c.Status == "completed" && c.Failure != nil {
		t.Errorf("%s: got failure %+v in %s", a, c.Failure, c.Status)
	}
	c.payment = checkPayment(t, a.String(), c.Payment)
	if c.Status == "requires_action" && c.payment.NextAction == nil {
		t.Errorf("%s: no redirect for the customer", a)
	}
	return c
}

// buy starts a checkout and holds the answer until it is no longer pending.
func (s *stage) buy(t *testing.T, members object) checkout {
	t.Helper()
	r := post("/v1/checkouts", s.unique("key"), s.cart(members))
	r.header["Prefer"] = "wait=20"
	a := s.alpha.send(t, r).want(t, http.StatusCreated, http.StatusAccepted)
	c := a.checkout(t)
	if (a.status == http.StatusAccepted) != (c.Status == "pending") {
		t.Errorf("got %s, want 202 while pending, else 201", a)
	}
	a.location(t, "/v1/checkouts/"+c.ID)
	return c
}

func (s *stage) readCheckout(t *testing.T, id string) checkout {
	t.Helper()
	return s.alpha.get(t, "/v1/checkouts/"+id).want(t, http.StatusOK).checkout(t)
}

// concludes waits until the checkout has that status.
func (s *stage) concludes(t *testing.T, id, status string) checkout {
	t.Helper()
	var c checkout
	s.eventually(t, id+" becomes "+status, func() (bool, any) {
		c = s.readCheckout(t, id)
		if slices.Contains([]string{"completed", "failed"}, c.Status) && c.Status != status {
			t.Fatalf("got checkout %s %s (%+v), want %s", id, c.Status, c.Failure, status)
		}
		return c.Status == status, c.Status
	})
	return c
}

// failsWith waits until the checkout failed, checks why, and that nothing of it is left.
func (s *stage) failsWith(t *testing.T, id string, codes ...string) checkout {
	t.Helper()
	c := s.concludes(t, id, "failed")
	if !slices.Contains(codes, c.Failure.Code) {
		t.Errorf("got failure %+v, want %v", c.Failure, codes)
	}
	// Money may come late, after the checkout has failed; then it is on its way back.
	s.becomes(t, c.payment.ID, "without money of a failed checkout", func(p payment) bool { return p.AmountCaptured == p.AmountRefunded })
	s.noTrace(t, c)
	return c
}

// noTrace checks that there is no order and no notification of a checkout.
func (s *stage) noTrace(t *testing.T, c checkout) {
	t.Helper()
	if c.payment.Reference != nil {
		if all := wholeList[order](t, s.alpha, "/v1/orders?reference="+*c.payment.Reference); len(all) != 0 {
			t.Errorf("got orders %+v, want none", all)
		}
	}
	if all := wholeList[notice](t, s.alpha, "/v1/notifications?checkout="+c.ID); len(all) != 0 {
		t.Errorf("got notifications %+v, want none", all)
	}
}

// completed checks that a checkout came to its good end: paid once, ordered once,
// told once.
func (s *stage) completed(t *testing.T, id string) checkout {
	t.Helper()
	c := s.concludes(t, id, "completed")
	if c.payment.Status != "captured" || c.payment.AmountCaptured != c.Amount || c.payment.AmountRefunded != 0 {
		t.Errorf("got payment %+v of a completed checkout of %d", c.payment, c.Amount)
	}
	s.charge(t, c.payment.ID)
	var o order
	a := s.alpha.get(t, "/v1/orders/"+*c.OrderID).want(t, http.StatusOK)
	if a.decode(t, &o); o.ID != *c.OrderID || o.CheckoutID != id || o.PaymentID != c.payment.ID || o.Amount != c.Amount || o.Currency != c.Currency {
		t.Errorf("got %s, want the order of %s", a, id)
	}
	s.eventually(t, "the customer is told once", func() (bool, any) {
		all := wholeList[notice](t, s.alpha, "/v1/notifications?checkout="+id)
		return len(all) == 1 && all[0].CheckoutID == id, all
	})
	return c
}
