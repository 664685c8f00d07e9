package e2e

import (
	"net/http"
	"testing"
)

var compensation = []claim{
	{"without stock nothing is charged", outOfStock},
	{"one line without stock gives the others back", partlyOutOfStock},
	{"a decline gives the stock back", declinedCheckout},
	{"the customer's refusal gives the stock back", refusedCheckout},
	{"an abandoned redirect gives the stock back", abandonedCheckout},
	{"a charge that never arrived gives the stock back", nothingCheckout},
	{"late money of a failed checkout goes back", lateCheckout},
	{"a cancel of the payment fails the checkout", canceledCheckout},
	{"a cancel while the PSP is pending fails the checkout, and late money goes back", canceledPending},
	{"a rejected order is refunded, released and told to nobody", rejectedOrder},
	{"a rejected order of a pending payment is undone too", rejectedPending},
	{"a compensation that can't finish needs review, and can be resumed", needsReview},
}

func (s *stage) neverCharged(t *testing.T, c checkout) {
	t.Helper()
	if got := s.creates(t, c.payment.ID); len(got) != 0 {
		t.Errorf("the PSP was called for %s: %+v", c.payment.ID, got)
	}
	if c.payment.Status != "canceled" && c.payment.Status != "failed" {
		t.Errorf("got payment %s of a checkout without stock, want it canceled", c.payment.Status)
	}
}

func outOfStock(t *testing.T, s *stage) {
	few := s.stocked(t, 1)
	c := s.buy(t, object{"items": []object{line(few, 2, 2500)}})
	s.neverCharged(t, s.failsWith(t, c.ID, "out_of_stock"))
	s.hasStock(t, stock{few, 1, 0, 0})
	unknown := s.buy(t, nil)
	s.neverCharged(t, s.failsWith(t, unknown.ID, "out_of_stock"))
	s.paid(t, object{"reference": *unknown.payment.Reference}) // the reference is free
}

func partlyOutOfStock(t *testing.T, s *stage) {
	enough, few := s.stocked(t, 5), s.stocked(t, 1)
	c := s.buy(t, object{"items": []object{line(enough, 2, 100), line(few, 2, 100), line(s.unique("sku"), 1, 1)}})
	s.neverCharged(t, s.failsWith(t, c.ID, "out_of_stock"))
	s.hasStock(t, stock{enough, 5, 0, 0})
	s.hasStock(t, stock{few, 1, 0, 0})
}

func declinedCheckout(t *testing.T, s *stage) {
	sku := s.stocked(t, 2)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_insufficient_funds"})
	got := s.failsWith(t, c.ID, "card_declined")
	if got.payment.Status != "failed" {
		t.Errorf("got payment %s, want failed", got.payment.Status)
	}
	s.hasStock(t, stock{sku, 2, 0, 0})
}

func refusedCheckout(t *testing.T, s *stage) {
	sku := s.stocked(t, 2)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_requires_action"})
	c = s.concludes(t, c.ID, "requires_action")
	s.choose(t, c.payment, "decline")
	s.failsWith(t, c.ID, "card_declined")
	s.hasStock(t, stock{sku, 2, 0, 0})
}

func abandonedCheckout(t *testing.T, s *stage) {
	s.shortExpiry(t)
	sku := s.stocked(t, 2)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_requires_action"})
	s.failsWith(t, c.ID, "payment_expired")
	s.hasStock(t, stock{sku, 2, 0, 0})
}

func nothingCheckout(t *testing.T, s *stage) {
	s.shortExpiry(t)
	sku := s.stocked(t, 2)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_timeout_nothing"})
	s.failsWith(t, c.ID, "payment_expired")
	s.hasStock(t, stock{sku, 2, 0, 0})
}

func lateCheckout(t *testing.T, s *stage) {
	s.shortExpiry(t)
	sku := s.stocked(t, 2)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_late_captured"})
	c = s.failsWith(t, c.ID, "payment_expired")
	s.hasStock(t, stock{sku, 2, 0, 0})
	s.wentBack(t, c.payment.ID)
	s.noTrace(t, c)
	if got := s.readCheckout(t, c.ID); got.Status != "failed" || got.payment.Status != "refunded" {
		t.Errorf("got %s with a payment %s, want failed with one refunded", got.Status, got.payment.Status)
	}
	s.hasStock(t, stock{sku, 2, 0, 0})
}

func canceledCheckout(t *testing.T, s *stage) {
	sku := s.stocked(t, 2)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_requires_action"})
	c = s.concludes(t, c.ID, "requires_action")
	s.cancel(t, c.payment)
	s.failsWith(t, c.ID, "payment_canceled")
	s.hasStock(t, stock{sku, 2, 0, 0})
}

func canceledPending(t *testing.T, s *stage) {
	sku := s.stocked(t, 2)
	c := s.alpha.post(t, "/v1/checkouts", s.cart(object{"items": []object{line(sku, 2, 2500)}, "payment_method": "tok_late_captured"})).
		want(t, http.StatusAccepted).checkout(t)
	p := s.becomes(t, c.payment.ID, "pending at the PSP", func(p payment) bool { return p.Status == "processing" && p.PSPReference != nil })
	s.cancel(t, p)
	s.failsWith(t, c.ID, "payment_canceled")
	s.wentBack(t, p.ID)
	s.noTrace(t, s.readCheckout(t, c.ID))
	s.hasStock(t, stock{sku, 2, 0, 0})
}

// rejects is a SKU with pieces, of which no order can be made.
func (s *stage) rejects(t *testing.T, available int64) string {
	t.Helper()
	return s.stockedAs(t, "reject-"+s.unique("sku"), available)
}

func rejectedOrder(t *testing.T, s *stage) {
	sku, other := s.rejects(t, 3), s.stocked(t, 3)
	c := s.buy(t, object{"items": []object{line(sku, 2, 2500), line(other, 1, 100)}})
	got := s.failsWith(t, c.ID, "order_rejected")
	if got.payment.Status != "refunded" || got.payment.AmountRefunded != 5100 || len(got.payment.Refunds) != 1 {
		t.Errorf("got payment %+v, want it refunded", got.payment)
	}
	if c := s.charge(t, got.payment.ID); c.Refunded != 5100 || len(c.Refunds) != 1 {
		t.Errorf("got charge %+v, want one refund", c)
	}
	s.hasStock(t, stock{sku, 3, 0, 0})
	s.hasStock(t, stock{other, 3, 0, 0})
	rows := wholeList[row](t, s.alpha, "/v1/checkouts/"+c.ID+"/events")
	checkJournal(t, c.ID, rows)
	if n := ofType(rows, "checkout.failed"); n != 1 {
		t.Errorf("got %d checkout.failed in %+v, want one", n, rows)
	}
}

func rejectedPending(t *testing.T, s *stage) {
	sku := s.rejects(t, 3)
	c := s.buy(t, object{"items": []object{line(sku, 1, 2500)}, "payment_method": "tok_pending"})
	if got := s.failsWith(t, c.ID, "order_rejected"); got.payment.Status != "refunded" {
		t.Errorf("got payment %+v, want it refunded", got.payment)
	}
	s.hasStock(t, stock{sku, 3, 0, 0})
}

func needsReview(t *testing.T, s *stage) {
	sku := s.rejects(t, 3)
	c := s.alpha.post(t, "/v1/checkouts", s.cart(object{
		"items": []object{line(sku, 1, 2500)}, "payment_method": "tok_refund_pending_failed",
	})).want(t, http.StatusAccepted).checkout(t)
	resume := "/v1/checkouts/" + c.ID + "/resume"
	s.alpha.post(t, resume, object{}).problem(t, http.StatusForbidden, "forbidden")
	s.eventually(t, c.ID+" needs review", func() (bool, any) {
		got := s.readCheckout(t, c.ID)
		if got.Status == "failed" || got.Status == "completed" || got.payment.AmountRefunded != 0 {
			t.Fatalf("got %+v, want it pending or in need of review", got)
		}
		if got.Status == "pending" && got.payment.Status == "captured" {
			if a := s.alpha.post(t, refundsOf(got.payment), object{"amount": 1}); a.status != http.StatusCreated {
				a.problem(t, http.StatusConflict, "checkout_pending")
			} else if s.readCheckout(t, c.ID).Status == "pending" {
				t.Errorf("got %s while the checkout is pending, want 409 checkout_pending", a)
			}
		}
		return got.Status == "needs_review", got
	})
	s.operator.send(t, request{method: http.MethodPost, path: resume}).problem(t, http.StatusBadRequest, "idempotency_key_required")
	key := s.unique("key")
	for range 2 {
		a := s.operator.postKey(t, resume, key, object{})
		if a.status != http.StatusOK && a.status != http.StatusAccepted {
			t.Fatalf("got %s, want 200 or 202", a)
		}
		holdNone(t, map[string]string{"the answer": string(a.body)}, "/redirect/")
	}
	s.operator.post(t, "/v1/checkouts/chk_01ARZ3NDEKTSV4RRFFQ69G5FAV/resume", object{}).problem(t, http.StatusNotFound, "not_found")
	s.concludes(t, c.ID, "needs_review") // this PSP never gives back
	s.noTrace(t, s.readCheckout(t, c.ID))
}
