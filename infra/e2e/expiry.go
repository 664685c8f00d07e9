package e2e

import (
	"testing"
)

var expiry = []claim{
	{"an abandoned payment expires, an authorized one does not", abandonedExpires},
	{"a charge that never arrived expires", nothingExpires},
}

func abandonedExpires(t *testing.T, s *stage) {
	s.shortExpiry(t)
	held, p := s.held(t, nil), s.waiting(t, nil)
	got := s.ends(t, p.ID, "canceled")
	if got.Failure == nil || got.Failure.Code != "payment_expired" || got.NextAction != nil {
		t.Errorf("got %+v, want payment_expired", got)
	}
	if c := s.charge(t, p.ID); c.Status != "canceled" {
		t.Errorf("got charge %+v, want it canceled", c)
	}
	s.chooseAt(t, p.NextAction.RedirectURL, "approve").want(t, 409)
	s.paid(t, object{"reference": *p.Reference}) // the reference is free
	if got := s.read(t, held.ID); got.Status != "authorized" {
		t.Errorf("got %s for the authorized payment, want authorized", got.Status)
	}
}

func nothingExpires(t *testing.T, s *stage) {
	s.shortExpiry(t)
	p := s.pay(t, object{"payment_method": "tok_timeout_nothing"}, "processing")
	got := s.ends(t, p.ID, "canceled")
	if got.Failure == nil || got.Failure.Code != "payment_expired" || got.InDoubt {
		t.Errorf("got %+v, want payment_expired", got)
	}
	if got := keys(s.creates(t, p.ID)); len(got) != 1 {
		t.Errorf("got PSP keys %q, want one", got)
	}
}

// heldWebhooks hold all webhooks of the simulator back.
var heldWebhooks = []claim{
	{"what was paid in time is captured without its webhook", paidInTime},
	{"an answer does not wait for webhooks, and they change nothing later", answerWithoutWebhooks},
}

func (s *stage) holdWebhooks(t *testing.T) (release func()) {
	t.Helper()
	s.control(t, "webhooks/pause", nil)
	released := false
	release = func() {
		if !released {
			released = true
			s.control(t, "webhooks/resume", nil)
		}
	}
	t.Cleanup(release)
	return release
}

func paidInTime(t *testing.T, s *stage) {
	s.shortExpiry(t)
	release := s.holdWebhooks(t)
	p := s.waiting(t, nil)
	s.choose(t, p, "approve")
	p = s.ends(t, p.ID, "captured")
	release()
	s.eventually(t, "its webhook arrives", func() (bool, any) {
		for _, n := range wholeList[notification](t, s.operator, "/v1/webhooks?status=applied") {
			if n.PaymentID != nil && *n.PaymentID == p.ID && n.Type != nil && *n.Type == "charge.captured" {
				return true, n
			}
		}
		return false, nil
	})
	if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
		t.Errorf("got %d payment.captured, want one", n)
	}
}

func answerWithoutWebhooks(t *testing.T, s *stage) {
	release := s.holdWebhooks(t)
	first, usual := s.paid(t, object{"payment_method": "tok_webhook_first"}), s.paid(t, nil)
	release()
	for _, p := range []payment{first, usual} {
		s.eventually(t, "its webhook arrives", func() (bool, any) {
			for _, status := range []string{"applied", "ignored"} {
				for _, n := range wholeList[notification](t, s.operator, "/v1/webhooks?status="+status) {
					if n.PaymentID != nil && *n.PaymentID == p.ID {
						return true, n
					}
				}
			}
			return false, nil
		})
		if got := s.read(t, p.ID); got.Status != "captured" || got.Version != p.Version {
			t.Errorf("got %s version %d after the webhook, want captured version %d", got.Status, got.Version, p.Version)
		}
	}
}
