package e2e

import (
	"net/http"
	"strings"
	"testing"
)

var checkouts = []claim{
	{"a checkout starts pending and completes", checkoutCompletes},
	{"a preference to wait holds the answer", checkoutWaits},
	{"equal SKUs are one line", equalSKUs},
	{"fifty items and the largest amounts are within reach", checkoutLimits},
	{"whatever the PSP's way of answering, it completes with one charge", checkoutTokens},
	{"the customer's approval completes it", checkoutApproved},
	{"the journal tells each step", checkoutJournal},
	{"a repeat with the same key is the same checkout", checkoutReplay},
	{"a second checkout for a live or captured reference is refused", checkoutReference},
	{"a checkout is nothing to another merchant", checkoutForeign},
	{"a completed checkout's payment can be refunded", checkoutRefund},
	{"a redirect is shown only while the customer must act", checkoutSecrets},
}

func checkoutCompletes(t *testing.T, s *stage) {
	sku := s.stocked(t, 10)
	cart := s.cart(object{"items": []object{line(sku, 2, 2500)}})
	a := s.alpha.post(t, "/v1/checkouts", cart).want(t, http.StatusAccepted)
	c := a.checkout(t)
	a.location(t, "/v1/checkouts/"+c.ID)
	if c.Status != "pending" || c.Amount != 5000 || c.Currency != "JPY" || c.OrderID != nil || c.Failure != nil ||
		c.payment.Amount != 5000 || c.payment.Reference == nil || *c.payment.Reference != cart["reference"] {
		t.Errorf("got %s", a)
	}
	if got := s.alpha.get(t, "/v1/checkouts/"+c.ID+"?wait=20").want(t, http.StatusOK).checkout(t); got.Status != "completed" && got.Status != "pending" {
		t.Errorf("got %s after the wait, want completed", got.Status)
	}
	done := s.completed(t, c.ID)
	if done.payment.ID != c.payment.ID {
		t.Errorf("got payment %s, then %s", c.payment.ID, done.payment.ID)
	}
	s.hasStock(t, stock{sku, 8, 0, 2})
	orders := wholeList[order](t, s.alpha, "/v1/orders?reference="+cart["reference"].(string))
	if len(orders) != 1 || orders[0].ID != *done.OrderID {
		t.Errorf("got orders %+v, want %s", orders, *done.OrderID)
	}
}

func checkoutWaits(t *testing.T, s *stage) {
	for token, status := range map[string]string{"tok_captured": "completed", "tok_requires_action": "requires_action", "tok_declined": "failed"} {
		c := s.buy(t, object{"items": []object{line(s.stocked(t, 1), 1, 100)}, "payment_method": token})
		if c.Status == "pending" { // the limit of the wait was reached
			s.concludes(t, c.ID, status)
		} else if c.Status != status {
			t.Errorf("%s: got %s, want %s", token, c.Status, status)
		}
	}
	r := post("/v1/checkouts", s.unique("key"), s.cart(nil))
	r.header["Prefer"] = "respond-async, wait=20; x=y"
	s.alpha.send(t, r).want(t, http.StatusCreated, http.StatusAccepted)
}

func equalSKUs(t *testing.T, s *stage) {
	sku := s.stocked(t, 5)
	c := s.buy(t, object{"items": []object{line(sku, 2, 100), line(sku, 3, 100)}})
	if got := s.completed(t, c.ID); got.Amount != 500 {
		t.Errorf("got amount %d, want 500", got.Amount)
	}
	s.hasStock(t, stock{sku, 0, 0, 5})
	few := s.stocked(t, 4)
	c = s.buy(t, object{"items": []object{line(few, 2, 100), line(few, 3, 100)}})
	s.failsWith(t, c.ID, "out_of_stock")
	s.hasStock(t, stock{few, 4, 0, 0})
}

func checkoutLimits(t *testing.T, s *stage) {
	sku := s.stocked(t, 20000)
	items := make([]object, 50)
	for i := range items {
		items[i] = line(sku, 1, 1)
	}
	for _, basket := range [][]object{items, {line(sku, 9999, 1)}, {line(sku, 1, 999999999999)}, {line(sku, 1, 1)}} {
		s.completed(t, s.buy(t, object{"items": basket}).ID)
	}
	s.hasStock(t, stock{sku, 20000 - 50 - 9999 - 2, 0, 50 + 9999 + 2})
	c := s.buy(t, object{"items": []object{line(sku, 1, 1)}, "customer": absent, "reference": absent, "return_url": absent})
	s.concludes(t, c.ID, "completed")
}

func checkoutTokens(t *testing.T, s *stage) {
	for _, token := range []string{
		"tok_pending", "tok_pending_silent", "tok_timeout_captured", "tok_timeout_captured_silent", "tok_error_captured", "tok_error_once",
		"tok_rate_limited_once", "tok_webhook_first", "tok_webhook_twice", "tok_webhook_reversed",
	} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			sku := s.stocked(t, 3)
			c := s.buy(t, object{"items": []object{line(sku, 1, 2500)}, "payment_method": token})
			c = s.completed(t, c.ID)
			if got := keys(s.creates(t, c.payment.ID)); len(got) != 1 {
				t.Errorf("got PSP keys %q, want one", got)
			}
			s.hasStock(t, stock{sku, 2, 0, 1})
		})
	}
}

func checkoutApproved(t *testing.T, s *stage) {
	sku := s.stocked(t, 3)
	c := s.buy(t, object{"items": []object{line(sku, 1, 2500)}, "payment_method": "tok_requires_action"})
	c = s.concludes(t, c.ID, "requires_action")
	if c.OrderID != nil {
		t.Errorf("got order %s before the customer paid", *c.OrderID)
	}
	s.hasStock(t, stock{sku, 2, 1, 0})
	s.alpha.post(t, refundsOf(c.payment), object{}).problem(t, http.StatusConflict, "checkout_pending")
	s.noTrace(t, c)
	s.choose(t, c.payment, "approve")
	s.completed(t, c.ID)
	s.hasStock(t, stock{sku, 2, 0, 1})
}

func checkoutJournal(t *testing.T, s *stage) {
	c := s.buy(t, object{"items": []object{line(s.stocked(t, 1), 1, 100)}})
	s.completed(t, c.ID)
	rows := wholeList[row](t, s.alpha, "/v1/checkouts/"+c.ID+"/events")
	checkJournal(t, c.ID, rows)
	if len(rows) < 3 {
		t.Errorf("got %d rows, want one for each step", len(rows))
	}
	for _, r := range rows {
		if !strings.HasPrefix(r.Type, "checkout.") {
			t.Errorf("got type %q, want checkout.<word>", r.Type)
		}
	}
	if n := ofType(rows, "checkout.completed"); n != 1 {
		t.Errorf("got %d checkout.completed, want one", n)
	}
}

func checkoutReplay(t *testing.T, s *stage) {
	sku, key := s.stocked(t, 5), s.unique("key")
	cart := s.cart(object{"items": []object{line(sku, 1, 2500)}})
	first := s.alpha.postKey(t, "/v1/checkouts", key, cart).want(t, http.StatusAccepted).checkout(t)
	again := s.alpha.postKey(t, "/v1/checkouts", key, cart).want(t, http.StatusAccepted, http.StatusCreated)
	if got := again.checkout(t); got.ID != first.ID || !again.replayed(t) {
		t.Errorf("got %s, want a replay of %s", again, first.ID)
	}
	s.alpha.postKey(t, "/v1/checkouts", key, cart.with(object{"payment_method": "tok_declined"})).
		problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
	s.completed(t, first.ID)
	again = s.alpha.postKey(t, "/v1/checkouts", key, cart).want(t, http.StatusCreated)
	if got := again.checkout(t); got.ID != first.ID || got.Status != "completed" || !again.replayed(t) {
		t.Errorf("got %s, want %s completed", again, first.ID)
	}
	s.hasStock(t, stock{sku, 4, 0, 1})
}

func checkoutReference(t *testing.T, s *stage) {
	sku := s.stocked(t, 9)
	items := []object{line(sku, 1, 2500)}
	waiting := s.buy(t, object{"items": items, "payment_method": "tok_requires_action"})
	done := s.buy(t, object{"items": items})
	s.completed(t, done.ID)
	for _, p := range []payment{waiting.payment, done.payment, s.paid(t, nil)} {
		got := s.alpha.post(t, "/v1/checkouts", s.cart(object{"items": items, "reference": *p.Reference})).
			problem(t, http.StatusConflict, "reference_in_use")
		if got.PaymentID != p.ID {
			t.Errorf("got payment_id %q, want %s", got.PaymentID, p.ID)
		}
		s.alpha.post(t, "/v1/payments", s.basket(object{"reference": *p.Reference})).problem(t, http.StatusConflict, "reference_in_use")
	}
	declined := s.buy(t, object{"items": items, "payment_method": "tok_declined"})
	s.failsWith(t, declined.ID, "card_declined")
	second := s.buy(t, object{"items": items, "reference": *declined.payment.Reference})
	s.completed(t, second.ID)
}

func checkoutForeign(t *testing.T, s *stage) {
	sku := s.stocked(t, 1)
	c := s.completed(t, s.buy(t, object{"items": []object{line(sku, 1, 100)}}).ID)
	for _, path := range []string{
		"/v1/checkouts/" + c.ID, "/v1/checkouts/" + c.ID + "/events", "/v1/orders/" + *c.OrderID, "/v1/stock/" + sku, "/v1/payments/" + c.payment.ID,
		"/v1/checkouts/chk_01ARZ3NDEKTSV4RRFFQ69G5FAV", "/v1/checkouts/x", "/v1/orders/x",
	} {
		s.beta.get(t, path).problem(t, http.StatusNotFound, "not_found")
	}
	if all := wholeList[order](t, s.beta, "/v1/orders?reference="+*c.payment.Reference); len(all) != 0 {
		t.Errorf("another merchant got orders %+v", all)
	}
	a := s.beta.get(t, "/v1/notifications?checkout="+c.ID)
	if a.status != http.StatusNotFound && len(list[notice](t, a).Data) != 0 {
		t.Errorf("another merchant got %s", a)
	}
	theirs := s.cart(object{"items": []object{line(sku, 1, 100)}})
	r := post("/v1/checkouts", s.unique("key"), theirs)
	r.header["Prefer"] = "wait=20"
	other := s.beta.send(t, r).want(t, http.StatusCreated, http.StatusAccepted).checkout(t)
	s.eventually(t, "a SKU of another merchant is out of stock", func() (bool, any) {
		got := s.beta.get(t, "/v1/checkouts/"+other.ID).want(t, http.StatusOK).checkout(t)
		return got.Status == "failed" && got.Failure.Code == "out_of_stock", got.Status
	})
}

func checkoutRefund(t *testing.T, s *stage) {
	c := s.completed(t, s.buy(t, object{"items": []object{line(s.stocked(t, 1), 1, 100)}}).ID)
	s.alpha.post(t, refundsOf(c.payment), object{}).want(t, http.StatusCreated)
	s.ends(t, c.payment.ID, "refunded")
	if got := s.readCheckout(t, c.ID); got.Status != "completed" || got.payment.Status != "refunded" {
		t.Errorf("got %s with a payment %s, want completed with one refunded", got.Status, got.payment.Status)
	}
	s.alpha.post(t, cancelOf(c.payment), object{}).problem(t, http.StatusConflict)
}

func checkoutSecrets(t *testing.T, s *stage) {
	key, cart := s.unique("key"), s.cart(object{"items": []object{line(s.stocked(t, 1), 1, 100)}, "payment_method": "tok_requires_action"})
	c := s.alpha.postKey(t, "/v1/checkouts", key, cart).want(t, http.StatusAccepted).checkout(t)
	c = s.concludes(t, c.ID, "requires_action")
	address := c.payment.NextAction.RedirectURL
	events := "/v1/checkouts/" + c.ID + "/events"
	holdNone(t, map[string]string{events: string(s.alpha.get(t, events).body)}, address, "/redirect/", "next_action", "client_secret")
	s.choose(t, c.payment, "approve")
	c = s.completed(t, c.ID)
	views := map[string]string{"replay": string(s.alpha.postKey(t, "/v1/checkouts", key, cart).want(t, http.StatusCreated).body)}
	for _, path := range []string{
		"/v1/checkouts/" + c.ID, events, "/v1/payments/" + c.payment.ID, "/v1/payments/" + c.payment.ID + "/events", "/v1/orders/" + *c.OrderID,
		"/v1/orders?reference=" + *c.payment.Reference, "/v1/notifications?checkout=" + c.ID,
	} {
		views[path] = string(s.alpha.get(t, path).want(t, http.StatusOK).body)
	}
	holdNone(t, views, address, "/redirect/", `"client_secret":"`)
}
