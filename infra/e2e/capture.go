package e2e

import (
	"net/http"
	"testing"
)

var captures = []claim{
	{"an authorized payment holds the money", authorizedHolds},
	{"a capture takes all of it", captureAll},
	{"a capture without a body takes all of it", captureWithoutBody},
	{"a partial capture releases the rest", capturePart},
	{"more than is held is not captured", captureTooMuch},
	{"only an authorized payment is captured", captureWrongStatus},
	{"a capture at the PSP's own desk counts", captureAtPSP},
}

func captureOf(p payment) string { return "/v1/payments/" + p.ID + "/capture" }

func authorizedHolds(t *testing.T, s *stage) {
	p := s.held(t, nil)
	if p.AmountCaptured != 0 || p.CaptureMethod != "manual" || p.InDoubt || p.Failure != nil {
		t.Errorf("got %+v", p)
	}
	if c := s.charge(t, p.ID); c.Status != "authorized" || c.Captured != 0 {
		t.Errorf("got charge %+v", c)
	}
}

func captureAll(t *testing.T, s *stage) {
	p := s.held(t, nil)
	a := s.alpha.post(t, captureOf(p), object{}).want(t, http.StatusOK)
	if got := a.payment(t); got.ID != p.ID || got.Status != "captured" || got.AmountCaptured != p.Amount || a.replayed(t) {
		t.Errorf("got %s", a)
	}
	if c := s.charge(t, p.ID); c.Status != "captured" || c.Captured != p.Amount {
		t.Errorf("got charge %+v", c)
	}
}

func captureWithoutBody(t *testing.T, s *stage) {
	p := s.held(t, nil)
	if got := s.alpha.post(t, captureOf(p), nil).want(t, http.StatusOK).payment(t); got.AmountCaptured != p.Amount {
		t.Errorf("got %+v", got)
	}
}

func capturePart(t *testing.T, s *stage) {
	p := s.held(t, object{"amount": 10000})
	got := s.alpha.post(t, captureOf(p), object{"amount": 4000}).want(t, http.StatusOK).payment(t)
	if got.Status != "captured" || got.Amount != 10000 || got.AmountCaptured != 4000 {
		t.Errorf("got %+v", got)
	}
	if c := s.charge(t, p.ID); c.Status != "captured" || c.Captured != 4000 {
		t.Errorf("got charge %+v, want the rest released", c)
	}
	s.alpha.post(t, captureOf(p), object{"amount": 6000}).problem(t, http.StatusConflict, "invalid_status")
	s.alpha.post(t, refundsOf(p), object{"amount": 4001}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.alpha.post(t, refundsOf(p), object{}).want(t, http.StatusCreated)
	if got := s.ends(t, p.ID, "refunded"); got.AmountRefunded != 4000 || got.AmountCaptured != 4000 {
		t.Errorf("got %+v", got)
	}
}

func captureTooMuch(t *testing.T, s *stage) {
	p := s.held(t, nil)
	s.alpha.post(t, captureOf(p), object{"amount": p.Amount + 1}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	if got := s.read(t, p.ID); got.Status != "authorized" {
		t.Errorf("got %s after a refused capture, want authorized", got.Status)
	}
	if n := len(s.posts(t, "/charges/"+*p.PSPReference+"/capture")); n != 0 {
		t.Errorf("the PSP was asked %d times, want none", n)
	}
}

func captureWrongStatus(t *testing.T, s *stage) {
	canceled := s.held(t, nil)
	s.cancel(t, canceled)
	for name, p := range map[string]payment{
		"captured": s.paid(t, nil), "failed": s.pay(t, object{"payment_method": "tok_declined"}, "failed"),
		"requires_action": s.waiting(t, object{"capture_method": "manual"}), "canceled": canceled,
		"processing": s.pay(t, object{"payment_method": "tok_late_captured"}, "processing"),
	} {
		a := s.alpha.post(t, captureOf(p), object{})
		if a.status != http.StatusConflict {
			t.Errorf("%s: got %s, want 409 invalid_status", name, a)
			continue
		}
		a.problem(t, http.StatusConflict, "invalid_status")
	}
}

func captureAtPSP(t *testing.T, s *stage) {
	p := s.held(t, nil)
	s.psp.post(t, "/charges/"+*p.PSPReference+"/capture", object{"amount": 3000}).want(t, http.StatusOK)
	if got := s.ends(t, p.ID, "captured"); got.AmountCaptured != 3000 {
		t.Errorf("got %+v, want 3000 captured", got)
	}
}

// captureFaults have the simulator's capture to themselves.
var captureFaults = []claim{
	{"a capture without an answer is in doubt until it is known", captureInDoubt},
	{"a repeat of a capture in flight waits", captureInFlight},
	{"a capture that the PSP refuses can be tried again with another PSP key", captureRefused},
}

func captureInDoubt(t *testing.T, s *stage) {
	for name, status := range map[string]int{"no answer": 0, "500": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			p, key := s.held(t, nil), s.unique("key")
			s.fault(t, "capture", 1, status)
			a := s.alpha.postKey(t, captureOf(p), key, object{}).want(t, http.StatusAccepted)
			a.location(t, "/v1/payments/"+p.ID)
			if got := a.payment(t); got.Status != "authorized" || !got.InDoubt || a.header.Get("Retry-After") == "" {
				t.Errorf("got %s, want authorized, in doubt", a)
			}
			if got := s.ends(t, p.ID, "captured"); got.InDoubt || got.AmountCaptured != p.Amount {
				t.Errorf("got %+v", got)
			}
			if got := keys(s.posts(t, "/charges/"+*p.PSPReference+"/capture")); len(got) != 1 {
				t.Errorf("got PSP keys %q, want one", got)
			}
			again := s.alpha.postKey(t, captureOf(p), key, object{}).want(t, http.StatusOK)
			if got := again.payment(t); got.Status != "captured" || !again.replayed(t) {
				t.Errorf("got %s, want a replay of the capture", again)
			}
		})
	}
}

func captureInFlight(t *testing.T, s *stage) {
	p := s.held(t, nil)
	s.fault(t, "capture", 1, 0)
	s.repeatInFlight(t, captureOf(p), "/charges/"+*p.PSPReference+"/capture")
	s.ends(t, p.ID, "captured")
}

// repeatInFlight sends a request that the PSP does not answer, and the same key
// again while it waits.
func (s *stage) repeatInFlight(t *testing.T, path, pspPath string) {
	t.Helper()
	key, first := s.unique("key"), make(chan answer, 1)
	go func() {
		a, _ := s.alpha.try(post(path, key, object{"amount": 1000}))
		first <- a
	}()
	s.eventually(t, "the PSP is called", func() (bool, any) {
		n := len(s.posts(t, pspPath))
		return n == 1, n
	})
	repeat := s.alpha.postKey(t, path, key, object{"amount": 1000})
	other := s.alpha.postKey(t, path, key, object{"amount": 1})
	(<-first).want(t, http.StatusAccepted, http.StatusCreated)
	repeat.problem(t, http.StatusConflict, "idempotency_in_progress")
	other.problem(t, http.StatusUnprocessableEntity, "idempotency_key_reused")
}

func captureRefused(t *testing.T, s *stage) {
	p := s.held(t, nil)
	s.fault(t, "capture", 1, http.StatusUnprocessableEntity)
	s.alpha.post(t, captureOf(p), object{"amount": 1000}).problem(t, http.StatusConflict, "capture_refused")
	if got := s.read(t, p.ID); got.Status != "authorized" || got.InDoubt {
		t.Errorf("got %s (in doubt: %t), want authorized", got.Status, got.InDoubt)
	}
	if got := s.alpha.post(t, captureOf(p), object{"amount": 1000}).want(t, http.StatusOK).payment(t); got.AmountCaptured != 1000 {
		t.Errorf("got %+v", got)
	}
	if got := keys(s.posts(t, "/charges/"+*p.PSPReference+"/capture")); len(got) != 2 {
		t.Errorf("got PSP keys %q, want two: one for each attempt", got)
	}
}
