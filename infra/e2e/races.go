package e2e

import (
	"net/http"
	"testing"
)

var races = []claim{
	{"many requests with one key are one payment", oneKeyManyRequests},
	{"one key with two bodies is one payment and refusals", oneKeyTwoBodies},
	{"many payments for one reference are one payment", oneReference},
	{"refunds at once never exceed the capture", refundsAtOnce},
	{"cancel and capture at once agree with the PSP", cancelAgainstCapture},
	{"captures at once are one capture", capturesAtOnce},
	{"cancels at once are one cancel", cancelsAtOnce},
	{"cancel and approval at once agree with the PSP", cancelAgainstApproval},
	{"the answer and webhooks at once are one capture", answerAgainstWebhooks},
}

// answers counts answers by status, those of another status are errors.
func answers(t *testing.T, all []answer, allowed ...int) map[int][]answer {
	t.Helper()
	by := map[int][]answer{}
	for _, a := range all {
		known := false
		for _, status := range allowed {
			known = known || a.status == status
		}
		if !known {
			t.Errorf("got %s, want a status of %v", a, allowed)
		}
		by[a.status] = append(by[a.status], a)
	}
	return by
}

// race sends requests at once.
func (c client) race(t *testing.T, requests []request) []answer {
	t.Helper()
	type result struct {
		answer
		err error
	}
	var all []answer
	for _, r := range atOnce(len(requests), func(i int) result {
		a, err := c.try(requests[i])
		return result{a, err}
	}) {
		if r.err != nil {
			t.Errorf("%s: %v", r.request, r.err)
		}
		all = append(all, r.answer)
	}
	return all
}

func repeat(n int, r func() request) []request {
	all := make([]request, n)
	for i := range all {
		all[i] = r()
	}
	return all
}

func oneKeyManyRequests(t *testing.T, s *stage) {
	for _, token := range []string{"tok_captured", "tok_webhook_first", "tok_error_once"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			key, basket := s.unique("key"), s.basket(object{"payment_method": token})
			by := answers(t, s.alpha.race(t, repeat(s.Crowd, func() request { return post("/v1/payments", key, basket) })),
				http.StatusCreated, http.StatusAccepted, http.StatusConflict)
			for _, a := range by[http.StatusConflict] {
				a.problem(t, http.StatusConflict, "idempotency_in_progress")
			}
			ids, firsts := map[string]bool{}, 0
			for _, a := range append(by[http.StatusCreated], by[http.StatusAccepted]...) {
				ids[a.payment(t).ID] = true
				if !a.replayed(t) {
					firsts++
				}
			}
			if len(ids) != 1 || firsts != 1 {
				t.Fatalf("got %d payments, %d of them first uses, want one and one", len(ids), firsts)
			}
			for id := range ids {
				s.ends(t, id, "captured")
				s.charge(t, id)
				if got := keys(s.creates(t, id)); len(got) != 1 {
					t.Errorf("got PSP keys %q, want one", got)
				}
			}
			if n := len(s.byReference(t, basket["reference"].(string))); n != 1 {
				t.Errorf("got %d payments, want one", n)
			}
		})
	}
}

func oneKeyTwoBodies(t *testing.T, s *stage) {
	key, basket := s.unique("key"), s.basket(nil)
	amounts := []int{1000, 2000}
	requests := make([]request, s.Crowd)
	for i := range requests {
		requests[i] = post("/v1/payments", key, basket.with(object{"amount": amounts[i%2]}))
	}
	by := answers(t, s.alpha.race(t, requests), http.StatusCreated, http.StatusAccepted, http.StatusConflict, http.StatusUnprocessableEntity)
	if n := len(by[http.StatusUnprocessableEntity]); n != s.Crowd/2 {
		t.Errorf("got %d refusals of the other body, want %d", n, s.Crowd/2)
	}
	if n := len(s.byReference(t, basket["reference"].(string))); n != 1 {
		t.Errorf("got %d payments, want one", n)
	}
}

func oneReference(t *testing.T, s *stage) {
	basket := s.basket(nil)
	by := answers(t, s.alpha.race(t, repeat(s.Crowd, func() request { return post("/v1/payments", s.unique("key"), basket) })),
		http.StatusCreated, http.StatusConflict)
	if n := len(by[http.StatusCreated]); n != 1 {
		t.Fatalf("got %d payments for one reference, want one", n)
	}
	p := by[http.StatusCreated][0].payment(t)
	for _, a := range by[http.StatusConflict] {
		if got := a.problem(t, http.StatusConflict, "reference_in_use"); got.PaymentID != p.ID {
			t.Errorf("got payment_id %q, want %s", got.PaymentID, p.ID)
		}
	}
}

func refundsAtOnce(t *testing.T, s *stage) {
	p := s.paid(t, object{"amount": 10000})
	by := answers(t, s.alpha.race(t, repeat(max(4, s.Crowd/2), func() request {
		return post(refundsOf(p), s.unique("key"), object{"amount": 3000})
	})), http.StatusCreated, http.StatusUnprocessableEntity)
	if n := len(by[http.StatusCreated]); n != 3 {
		t.Errorf("got %d refunds of 3000 from 10000, want 3", n)
	}
	for _, a := range by[http.StatusUnprocessableEntity] {
		a.problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	}
	s.becomes(t, p.ID, "refunded by 9000", func(p payment) bool { return p.AmountRefunded == 9000 })
	if c := s.charge(t, p.ID); c.Refunded != 9000 || len(c.Refunds) != 3 {
		t.Errorf("got charge %+v, want three refunds", c)
	}
	whole := s.paid(t, nil)
	by = answers(t, s.alpha.race(t, repeat(4, func() request { return post(refundsOf(whole), s.unique("key"), object{}) })),
		http.StatusCreated, http.StatusUnprocessableEntity)
	if n := len(by[http.StatusCreated]); n != 1 {
		t.Errorf("got %d full refunds, want one", n)
	}
	s.ends(t, whole.ID, "refunded")
	if c := s.charge(t, whole.ID); c.Refunded != whole.Amount {
		t.Errorf("got charge %+v, want %d refunded", c, whole.Amount)
	}
}

func cancelAgainstCapture(t *testing.T, s *stage) {
	for range 3 {
		p := s.held(t, nil)
		both := s.alpha.race(t, []request{post(cancelOf(p), s.unique("key"), object{}), post(captureOf(p), s.unique("key"), object{})})
		cancel, capture := both[0], both[1]
		cancel.want(t, http.StatusOK, http.StatusAccepted, http.StatusConflict)
		capture.want(t, http.StatusOK, http.StatusAccepted, http.StatusConflict)
		got := s.becomes(t, p.ID, "one that has ended", func(p payment) bool { return terminal(p.Status) && !p.InDoubt })
		c := s.charge(t, p.ID)
		if got.Status != c.Status || got.Status != "captured" && got.Status != "canceled" || got.AmountCaptured != c.Captured {
			t.Errorf("got %s, want what the PSP has: %s", got.Status, c.Status)
		}
		for want, a := range map[string]answer{"canceled": cancel, "captured": capture} {
			if a.status == http.StatusOK && got.Status != want {
				t.Errorf("got %s, then the payment was %s", a, got.Status)
			}
		}
	}
}

func capturesAtOnce(t *testing.T, s *stage) {
	p := s.held(t, object{"amount": 10000})
	answers(t, s.alpha.race(t, repeat(max(4, s.Crowd/4), func() request {
		return post(captureOf(p), s.unique("key"), object{"amount": 4000})
	})), http.StatusOK, http.StatusAccepted, http.StatusConflict)
	if got := s.ends(t, p.ID, "captured"); got.AmountCaptured != 4000 {
		t.Errorf("got %+v, want 4000 captured", got)
	}
	if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
		t.Errorf("got %d payment.captured, want one", n)
	}
	if n := len(s.posts(t, "/charges/"+*p.PSPReference+"/capture")); n != 1 {
		t.Errorf("the PSP was asked %d times to capture, want once", n)
	}
}

func cancelsAtOnce(t *testing.T, s *stage) {
	p := s.held(t, nil)
	answers(t, s.alpha.race(t, repeat(max(4, s.Crowd/4), func() request {
		return post(cancelOf(p), s.unique("key"), object{})
	})), http.StatusOK, http.StatusAccepted, http.StatusConflict)
	s.ends(t, p.ID, "canceled")
	if n := ofType(s.journal(t, p.ID), "payment.canceled"); n != 1 {
		t.Errorf("got %d payment.canceled, want one", n)
	}
	if got := keys(s.posts(t, "/charges/"+*p.PSPReference+"/cancel")); len(got) != 1 {
		t.Errorf("got PSP keys %q for the void, want one", got)
	}
}

func cancelAgainstApproval(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	requests := []request{post(cancelOf(p), s.unique("key"), object{}), {method: http.MethodPost, path: p.NextAction.RedirectURL, body: object{"outcome": "approve"}}}
	both := atOnce(2, func(i int) answer {
		caller := s.alpha
		if i == 1 {
			caller = client{s, "", ""}
		}
		a, _ := caller.try(requests[i])
		return a
	})
	both[0].want(t, http.StatusOK, http.StatusAccepted, http.StatusConflict)
	got := s.becomes(t, p.ID, "one that has ended", func(p payment) bool { return terminal(p.Status) })
	if c := s.charge(t, p.ID); got.Status != c.Status || got.AmountCaptured != c.Captured {
		t.Errorf("got %s with %d captured, want what the PSP has: %+v", got.Status, got.AmountCaptured, c)
	}
}

func answerAgainstWebhooks(t *testing.T, s *stage) {
	for _, token := range []string{"tok_webhook_first", "tok_webhook_twice"} {
		all := s.alpha.race(t, repeat(max(3, s.Crowd/4), func() request {
			return post("/v1/payments", s.unique("key"), s.basket(object{"payment_method": token}))
		}))
		for _, a := range answers(t, all, http.StatusCreated)[http.StatusCreated] {
			p := a.payment(t)
			if p.Status != "captured" {
				t.Errorf("got %s, want captured", a)
			}
			if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
				t.Errorf("got %d payment.captured, want one", n)
			}
		}
	}
}
