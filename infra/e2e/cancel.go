package e2e

import (
	"net/http"
	"slices"
	"testing"
)

// cancel cancels a payment and waits until it is canceled. 202 is for a void that
// is on its way already, which can happen to any cancel that meets the sweep.
func (s *stage) cancel(t *testing.T, p payment) {
	t.Helper()
	a := s.alpha.post(t, cancelOf(p), nil).want(t, http.StatusOK, http.StatusAccepted)
	if got := a.payment(t); (a.status == http.StatusOK) != (got.Status == "canceled") {
		t.Errorf("got %s, want 202 until it is canceled", a)
	}
	s.becomes(t, p.ID, "canceled", func(p payment) bool { return p.Status == "canceled" || p.Status == "refunded" })
}

var cancels = []claim{
	{"a cancel voids what is held, waits or is pending", cancelVoids},
	{"a captured payment is not canceled", cancelCaptured},
	{"a dead payment is not canceled again", cancelDead},
	{"after a cancel the customer can't pay", cancelClosesPage},
	{"in doubt the PSP is asked before a cancel", cancelInDoubt},
	{"a cancel while the charge may be on its way takes effect when the PSP answers", cancelInFlight},
	{"a charge that never arrived is canceled", cancelNothing},
}

func cancelOf(p payment) string { return "/v1/payments/" + p.ID + "/cancel" }

func cancelVoids(t *testing.T, s *stage) {
	for name, p := range map[string]payment{
		"authorized": s.held(t, nil), "requires_action": s.waiting(t, nil),
		"pending": s.pay(t, object{"payment_method": "tok_late_captured"}, "processing"),
	} {
		a := s.alpha.post(t, cancelOf(p), object{"reason": "changed their mind"}).want(t, http.StatusOK, http.StatusAccepted)
		if a.replayed(t) {
			t.Errorf("%s: got %s, a replay", name, a)
		}
		got := s.becomes(t, p.ID, "canceled", func(p payment) bool { return p.Status == "canceled" || p.Status == "refunded" })
		if got.NextAction != nil || name != "pending" && (got.Status != "canceled" || got.AmountCaptured != 0) {
			t.Errorf("%s: got %+v", name, got)
		}
		if c := s.charge(t, p.ID); c.Status != "canceled" && name != "pending" { // which captures all the same, later
			t.Errorf("%s: got charge %+v, want it canceled", name, c)
		}
		s.paid(t, object{"reference": *p.Reference}) // the reference is free
	}
}

func cancelCaptured(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	s.alpha.post(t, cancelOf(p), object{}).problem(t, http.StatusConflict, "payment_captured")
	if got := s.read(t, p.ID); got.Status != "captured" || got.Version != p.Version {
		t.Errorf("got %s version %d, want captured version %d", got.Status, got.Version, p.Version)
	}
}

func cancelDead(t *testing.T, s *stage) {
	failed, held := s.pay(t, object{"payment_method": "tok_declined"}, "failed"), s.held(t, nil)
	s.alpha.post(t, cancelOf(failed), object{}).problem(t, http.StatusConflict, "invalid_status")
	s.cancel(t, held)
	s.alpha.post(t, cancelOf(held), object{}).problem(t, http.StatusConflict, "invalid_status")
}

func cancelClosesPage(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	s.cancel(t, p)
	s.chooseAt(t, p.NextAction.RedirectURL, "approve").want(t, http.StatusConflict)
	if got := s.read(t, p.ID); got.Status != "canceled" {
		t.Errorf("got %s, want canceled", got.Status)
	}
}

func cancelInDoubt(t *testing.T, s *stage) {
	p := s.pay(t, object{"payment_method": "tok_timeout_captured_silent"}, "processing", "captured")
	s.alpha.post(t, cancelOf(p), object{}).problem(t, http.StatusConflict, "payment_captured")
	if got := s.ends(t, p.ID, "captured"); got.AmountCaptured != p.Amount {
		t.Errorf("got %+v", got)
	}
}

func cancelInFlight(t *testing.T, s *stage) {
	for token, outcomes := range map[string][]string{
		"tok_timeout_captured_silent": {"captured"}, "tok_timeout_nothing": {"canceled"},
	} {
		t.Run(token, func(t *testing.T) {
			t.Parallel()
			basket := s.basket(object{"payment_method": token})
			first := make(chan error, 1)
			go func() {
				_, err := s.alpha.try(post("/v1/payments", s.unique("key"), basket))
				first <- err
			}()
			var p payment
			s.eventually(t, "the payment of a request in flight", func() (bool, any) {
				all := s.byReference(t, basket["reference"].(string))
				if len(all) == 1 {
					p = all[0]
				}
				return len(all) == 1, all
			})
			a := s.alpha.post(t, cancelOf(p), object{})
			if a.status == http.StatusConflict {
				a.problem(t, http.StatusConflict, "payment_captured", "invalid_status")
			} else if a.want(t, http.StatusOK, http.StatusAccepted).status == http.StatusAccepted {
				a.location(t, "/v1/payments/"+p.ID)
			}
			if err := <-first; err != nil {
				t.Errorf("the first request: %v", err)
			}
			got := s.becomes(t, p.ID, "one that has ended", func(p payment) bool { return terminal(p.Status) })
			if !slices.Contains(outcomes, got.Status) {
				t.Errorf("got %s, want one of %v", got.Status, outcomes)
			}
			if got.Status == "captured" {
				s.charge(t, p.ID)
			}
		})
	}
}

func cancelNothing(t *testing.T, s *stage) {
	p := s.pay(t, object{"payment_method": "tok_timeout_nothing"}, "processing")
	if !p.InDoubt {
		t.Errorf("got %+v, want it in doubt", p)
	}
	a := s.alpha.post(t, cancelOf(p), object{}).want(t, http.StatusOK, http.StatusAccepted)
	if got := a.payment(t); (a.status == http.StatusOK) != (got.Status == "canceled") {
		t.Errorf("got %s", a)
	}
	s.ends(t, p.ID, "canceled")
	if got := s.charges(t, p.ID); len(got) != 0 {
		t.Errorf("got charges %+v, want none", got)
	}
}

// cancelFaults have the simulator's cancel to themselves.
var cancelFaults = []claim{
	{"a cancel without an answer takes effect all the same", cancelUnanswered},
}

func cancelUnanswered(t *testing.T, s *stage) {
	for name, status := range map[string]int{"no answer": 0, "500": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			p, key := s.held(t, nil), s.unique("key")
			s.fault(t, "cancel", 1, status)
			a := s.alpha.postKey(t, cancelOf(p), key, object{}).want(t, http.StatusOK, http.StatusAccepted)
			if got := a.payment(t); (a.status == http.StatusOK) != (got.Status == "canceled") {
				t.Errorf("got %s, want 202 until it is canceled", a)
			}
			if a.status == http.StatusAccepted {
				a.location(t, "/v1/payments/"+p.ID)
			}
			s.ends(t, p.ID, "canceled")
			if c := s.charge(t, p.ID); c.Status != "canceled" {
				t.Errorf("got charge %+v, want it canceled", c)
			}
			again := s.alpha.postKey(t, cancelOf(p), key, object{}).want(t, http.StatusOK)
			if got := again.payment(t); got.Status != "canceled" || !again.replayed(t) {
				t.Errorf("got %s, want a replay of the cancel", again)
			}
		})
	}
}
