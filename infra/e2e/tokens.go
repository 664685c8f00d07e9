package e2e

import (
	"net/http"
	"slices"
	"testing"
)

var tokens = []claim{
	{"a decline is an outcome", declines},
	{"the customer's approval captures", approval},
	{"the customer's refusal fails the payment", refusal},
	{"a pending payment is not in doubt and becomes captured", pendingPayment},
	{"without an answer the payment is in doubt until it is found captured", foundCaptured},
	{"a refusal before any effect is tried again with the same key", triedAgain},
	{"webhooks before the answer, doubled or swapped make one capture", oneCapture},
	{"a manual capture follows webhooks of any order", manualOrders},
}

func declines(t *testing.T, s *stage) {
	for token, want := range map[string]string{"tok_insufficient_funds": "insufficient_funds", "tok_declined": ""} {
		a := s.alpha.post(t, "/v1/payments", s.basket(object{"payment_method": token})).want(t, http.StatusCreated)
		p := a.payment(t)
		a.location(t, "/v1/payments/"+p.ID)
		if p.Status != "failed" || p.Failure == nil || p.Failure.Code != "card_declined" || p.AmountCaptured != 0 || p.InDoubt {
			t.Errorf("%s: got %s", token, a)
		}
		if want != "" && (p.Failure.DeclineCode == nil || *p.Failure.DeclineCode != want || !p.Failure.Retryable) {
			t.Errorf("%s: got failure %+v, want %s, retryable", token, p.Failure, want)
		}
		if c := s.charge(t, p.ID); c.Status != "failed" || c.Captured != 0 {
			t.Errorf("%s: got charge %+v", token, c)
		}
	}
}

func approval(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	c := s.charge(t, p.ID)
	if c.RedirectURL == nil || *c.RedirectURL != p.NextAction.RedirectURL || p.ClientSecret != nil || p.InDoubt || p.AmountCaptured != 0 {
		t.Errorf("got %+v of charge %+v", p, c)
	}
	s.choose(t, p, "approve")
	if got := s.ends(t, p.ID, "captured"); got.AmountCaptured != p.Amount {
		t.Errorf("got %+v", got)
	}
}

func refusal(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	s.choose(t, p, "decline")
	if got := s.ends(t, p.ID, "failed"); got.Failure.Code != "card_declined" {
		t.Errorf("got failure %+v, want card_declined", got.Failure)
	}
	s.chooseAt(t, p.NextAction.RedirectURL, "approve").want(t, http.StatusConflict)
}

func pendingPayment(t *testing.T, s *stage) {
	for _, token := range []string{"tok_pending", "tok_pending_silent"} {
		a := s.alpha.post(t, "/v1/payments", s.basket(object{"payment_method": token})).want(t, http.StatusAccepted)
		p := a.payment(t)
		a.location(t, "/v1/payments/"+p.ID)
		if p.Status != "processing" || p.InDoubt || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: got %s (Retry-After: %q), want processing, not in doubt", token, a, a.header.Get("Retry-After"))
		}
		s.ends(t, p.ID, "captured")
		if got := s.charge(t, p.ID); got.Captured != p.Amount {
			t.Errorf("%s: got charge %+v", token, got)
		}
	}
}

func foundCaptured(t *testing.T, s *stage) {
	for _, token := range []string{"tok_timeout_captured", "tok_timeout_captured_silent", "tok_error_captured"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			a := s.alpha.post(t, "/v1/payments", s.basket(object{"payment_method": token})).want(t, http.StatusAccepted, http.StatusCreated)
			p := a.payment(t)
			if a.status == http.StatusAccepted {
				if a.location(t, "/v1/payments/"+p.ID); p.Status != "processing" || !p.InDoubt || a.header.Get("Retry-After") == "" {
					t.Errorf("got %s, want processing, in doubt", a)
				}
			} else if p.Status != "captured" { // its webhook may be faster than our patience with the PSP
				t.Errorf("got %s, want captured", a)
			}
			if got := s.ends(t, p.ID, "captured"); got.InDoubt || got.AmountCaptured != p.Amount {
				t.Errorf("got %+v", got)
			}
			s.charge(t, p.ID)
			if got := keys(s.creates(t, p.ID)); len(got) != 1 {
				t.Errorf("got PSP keys %q, want one", got)
			}
			if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
				t.Errorf("got %d payment.captured, want one", n)
			}
		})
	}
}

func triedAgain(t *testing.T, s *stage) {
	for token, doubt := range map[string]bool{"tok_error_once": true, "tok_rate_limited_once": false} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			a := s.alpha.post(t, "/v1/payments", s.basket(object{"payment_method": token})).want(t, http.StatusAccepted, http.StatusCreated)
			p := a.payment(t)
			if a.status == http.StatusAccepted && (p.Status != "processing" || p.InDoubt != doubt) {
				t.Errorf("got %s, want processing, in doubt: %t", a, doubt)
			}
			s.ends(t, p.ID, "captured")
			s.charge(t, p.ID)
			calls := s.creates(t, p.ID)
			if got := keys(calls); len(got) != 1 || len(calls) != 2 {
				t.Errorf("got %d calls with PSP keys %q, want two with one", len(calls), got)
			}
		})
	}
}

func oneCapture(t *testing.T, s *stage) {
	for _, token := range []string{"tok_captured", "tok_webhook_first", "tok_webhook_twice", "tok_webhook_reversed"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			p := s.paid(t, object{"payment_method": token})
			s.charge(t, p.ID)
			// All its news is in once the inbox has what the PSP tells.
			s.eventually(t, "its notification is applied", func() (bool, any) {
				all := wholeList[notification](t, s.operator, "/v1/webhooks?status=applied")
				return slices.ContainsFunc(all, func(n notification) bool { return n.PaymentID != nil && *n.PaymentID == p.ID }), p.ID
			})
			if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
				t.Errorf("got %d payment.captured, want one", n)
			}
			if got := s.read(t, p.ID); got.Status != "captured" || got.AmountCaptured != p.Amount {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// chargeFaults have the simulator's create and look-up to themselves.
var chargeFaults = []claim{
	{"a charge that failed is sent again with the same key", chargeFails},
	{"a look-up that fails is asked again", lookUpFails},
}

func chargeFails(t *testing.T, s *stage) {
	s.fault(t, "charge", 1, http.StatusInternalServerError)
	p := s.pay(t, nil, "processing")
	if !p.InDoubt {
		t.Errorf("got %+v, want it in doubt", p)
	}
	s.ends(t, p.ID, "captured")
	s.charge(t, p.ID)
	if got := keys(s.creates(t, p.ID)); len(got) != 1 {
		t.Errorf("got PSP keys %q, want one", got)
	}
}

func lookUpFails(t *testing.T, s *stage) {
	s.fault(t, "lookup", 2, http.StatusInternalServerError)
	p := s.pay(t, object{"payment_method": "tok_timeout_captured_silent"}, "processing", "captured")
	s.ends(t, p.ID, "captured")
	s.charge(t, p.ID)
}

func manualOrders(t *testing.T, s *stage) {
	for _, token := range []string{"tok_captured", "tok_webhook_first", "tok_webhook_twice", "tok_webhook_reversed", "tok_error_captured"} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			p := s.pay(t, object{"payment_method": token, "capture_method": "manual"}, "authorized", "processing")
			p = s.becomes(t, p.ID, "authorized", func(p payment) bool { return p.Status == "authorized" })
			if p.AmountCaptured != 0 {
				t.Errorf("got amount_captured %d before the capture", p.AmountCaptured)
			}
			s.alpha.post(t, "/v1/payments/"+p.ID+"/capture", object{}).want(t, http.StatusOK)
			s.ends(t, p.ID, "captured")
			if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
				t.Errorf("got %d payment.captured, want one", n)
			}
		})
	}
}
