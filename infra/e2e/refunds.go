package e2e

import (
	"net/http"
	"testing"
)

var refunds = []claim{
	{"a refund without an amount gives all of it back", refundAll},
	{"a partial refund leaves the payment captured", refundPart},
	{"refunds never exceed what was captured", refundTooMuch},
	{"only a captured payment is refunded", refundWrongStatus},
	{"a refund that fails later counts as pending until then", refundPendingFails},
	{"a refund that fails after the payment was refunded may be made again", refundFailsAfterwards},
	{"a refund at the PSP's own desk counts", refundAtPSP},
	{"the list of refunds has them all", refundList},
}

func refundsOf(p payment) string { return "/v1/payments/" + p.ID + "/refunds" }

// refund reads a refund and checks its form.
func (a answer) refund(t *testing.T) refund {
	t.Helper()
	var r refund
	a.decode(t, &r)
	if !refundID.MatchString(r.ID) || r.Object != "refund" || r.Amount < 1 ||
		r.Status != "pending" && r.Status != "succeeded" && r.Status != "failed" {
		t.Errorf("%s: got refund %+v", a, r)
	}
	return r
}

func refundAll(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	a := s.alpha.post(t, refundsOf(p), object{"reason": "came back"}).want(t, http.StatusCreated)
	r := a.refund(t)
	if r.Amount != p.Amount || r.Reason == nil || *r.Reason != "came back" || a.replayed(t) {
		t.Errorf("got %s", a)
	}
	got := s.ends(t, p.ID, "refunded")
	if got.AmountCaptured != p.Amount || got.AmountRefunded != p.Amount || len(got.Refunds) != 1 ||
		got.Refunds[0].ID != r.ID || got.Refunds[0].Status != "succeeded" {
		t.Errorf("got %+v", got)
	}
	c := s.charge(t, p.ID)
	if c.Refunded != p.Amount || len(c.Refunds) != 1 || c.Refunds[0].Reference == nil || *c.Refunds[0].Reference != r.ID {
		t.Errorf("got charge %+v, want one refund with reference %s", c, r.ID)
	}
	s.alpha.post(t, refundsOf(p), object{}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.alpha.post(t, refundsOf(p), object{"amount": 1}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.alpha.post(t, cancelOf(p), object{}).problem(t, http.StatusConflict)
}

func refundPart(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	s.alpha.post(t, refundsOf(p), object{"amount": 2000}).want(t, http.StatusCreated)
	got := s.becomes(t, p.ID, "partly refunded", func(p payment) bool { return p.AmountRefunded == 2000 })
	if got.Status != "captured" || got.AmountCaptured != p.Amount {
		t.Errorf("got %+v", got)
	}
	rest := s.alpha.post(t, refundsOf(p), nil).want(t, http.StatusCreated).refund(t)
	if rest.Amount != 3000 || rest.Reason != nil {
		t.Errorf("got %+v, want the rest, 3000, without a reason", rest)
	}
	if got := s.ends(t, p.ID, "refunded"); got.AmountRefunded != p.Amount || len(got.Refunds) != 2 {
		t.Errorf("got %+v", got)
	}
}

func refundTooMuch(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	s.alpha.post(t, refundsOf(p), object{"amount": 5001}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.alpha.post(t, refundsOf(p), object{"amount": 3000}).want(t, http.StatusCreated)
	s.alpha.post(t, refundsOf(p), object{"amount": 2001}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.alpha.post(t, refundsOf(p), object{"amount": 2000}).want(t, http.StatusCreated)
	if c := s.charge(t, p.ID); c.Refunded != 5000 {
		t.Errorf("got %d refunded at the PSP, want 5000", c.Refunded)
	}
}

func refundWrongStatus(t *testing.T, s *stage) {
	canceled := s.held(t, nil)
	s.cancel(t, canceled)
	for name, p := range map[string]payment{
		"failed": s.pay(t, object{"payment_method": "tok_declined"}, "failed"), "requires_action": s.waiting(t, nil),
		"authorized": s.held(t, nil), "canceled": canceled,
		"processing": s.pay(t, object{"payment_method": "tok_late_captured"}, "processing"),
	} {
		a := s.alpha.post(t, refundsOf(p), object{})
		if a.status != http.StatusConflict {
			t.Errorf("%s: got %s, want 409 invalid_status", name, a)
			continue
		}
		a.problem(t, http.StatusConflict, "invalid_status")
	}
}

func refundPendingFails(t *testing.T, s *stage) {
	p := s.paid(t, object{"payment_method": "tok_refund_pending_failed"})
	key := s.unique("key")
	r := s.alpha.postKey(t, refundsOf(p), key, object{}).want(t, http.StatusCreated).refund(t)
	if r.Status == "succeeded" {
		t.Errorf("got %+v, want it pending", r)
	}
	if r.Status == "pending" {
		if a := s.alpha.post(t, refundsOf(p), object{"amount": 1}); a.status != http.StatusCreated { // it may have failed meanwhile
			a.problem(t, http.StatusUnprocessableEntity, "amount_too_large")
		}
	}
	got := s.becomes(t, p.ID, "one whose refunds failed", func(p payment) bool {
		if p.Status != "captured" || p.AmountRefunded != 0 {
			t.Fatalf("got %s with %d refunded, want captured with none", p.Status, p.AmountRefunded)
		}
		return count(p.Refunds, func(r refund) bool { return r.Status != "failed" }) == 0
	})
	if len(got.Refunds) == 0 {
		t.Errorf("got no refunds in %+v", got)
	}
	again := s.alpha.postKey(t, refundsOf(p), key, object{}).want(t, http.StatusCreated)
	if replay := again.refund(t); replay.ID != r.ID || replay.Status != "failed" || !again.replayed(t) {
		t.Errorf("got %s, want a replay of %s failed", again, r.ID)
	}
	s.alpha.post(t, refundsOf(p), object{}).want(t, http.StatusCreated) // the amount is free again
}

func refundFailsAfterwards(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	r := s.alpha.post(t, refundsOf(p), object{}).want(t, http.StatusCreated).refund(t)
	p = s.ends(t, p.ID, "refunded")
	c := s.charge(t, p.ID)
	made := c.Refunds[0]
	c.Refunded, c.Refunds[0].Status, made.Status = 0, "failed", "failed"
	bad := s.event("refund.failed", c)
	bad.data["refund"] = made
	s.tell(t, bad)
	got := s.becomes(t, p.ID, "refunded with nothing given back", func(p payment) bool { return p.AmountRefunded == 0 })
	if got.Status != "refunded" || got.Refunds[0].ID != r.ID || got.Refunds[0].Status != "failed" {
		t.Errorf("got %+v", got)
	}
	second := s.alpha.post(t, refundsOf(p), object{"amount": p.Amount}).want(t, http.StatusCreated).refund(t)
	if second.ID == r.ID {
		t.Errorf("got the failed refund %s again", r.ID)
	}
}

func refundAtPSP(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	s.psp.post(t, "/charges/"+*p.PSPReference+"/refunds", object{"amount": 2000}).want(t, http.StatusCreated)
	got := s.becomes(t, p.ID, "partly refunded", func(p payment) bool { return p.AmountRefunded == 2000 })
	if got.Status != "captured" || len(got.Refunds) != 1 || got.Refunds[0].Amount != 2000 || got.Refunds[0].Status != "succeeded" {
		t.Errorf("got %+v", got)
	}
	s.alpha.post(t, refundsOf(p), object{"amount": 3001}).problem(t, http.StatusUnprocessableEntity, "amount_too_large")
	s.psp.post(t, "/charges/"+*p.PSPReference+"/refunds", object{"amount": 3000}).want(t, http.StatusCreated)
	if got := s.ends(t, p.ID, "refunded"); got.AmountRefunded != p.Amount {
		t.Errorf("got %+v", got)
	}
}

func refundList(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	if all := list[refund](t, s.alpha.get(t, refundsOf(p))); len(all.Data) != 0 {
		t.Errorf("got %+v, want an empty list", all)
	}
	first := s.alpha.post(t, refundsOf(p), object{"amount": 1000}).want(t, http.StatusCreated).refund(t)
	second := s.alpha.post(t, refundsOf(p), object{"amount": 2000}).want(t, http.StatusCreated).refund(t)
	amounts := map[string]int64{}
	for _, r := range wholeList[refund](t, s.alpha, refundsOf(p)) {
		amounts[r.ID] = r.Amount
	}
	if len(amounts) != 2 || amounts[first.ID] != 1000 || amounts[second.ID] != 2000 {
		t.Errorf("got %v, want %s and %s", amounts, first.ID, second.ID)
	}
}

// refundFaults have the simulator's refund to themselves.
var refundFaults = []claim{
	{"a refund without an answer is pending until it is known", refundUnanswered},
	{"a repeat of a refund in flight waits", refundInFlight},
}

func refundUnanswered(t *testing.T, s *stage) {
	for name, status := range map[string]int{"no answer": 0, "500": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			p := s.paid(t, nil)
			s.fault(t, "refund", 1, status)
			r := s.alpha.post(t, refundsOf(p), object{"amount": 1000}).want(t, http.StatusCreated, http.StatusAccepted).refund(t)
			if r.Status != "pending" {
				t.Errorf("got refund %+v, want it pending", r)
			}
			got := s.becomes(t, p.ID, "partly refunded", func(p payment) bool { return p.AmountRefunded == 1000 })
			if len(got.Refunds) != 1 || got.Refunds[0].ID != r.ID || got.Status != "captured" {
				t.Errorf("got %+v", got)
			}
			if c := s.charge(t, p.ID); len(c.Refunds) != 1 || c.Refunded != 1000 {
				t.Errorf("got charge %+v, want one refund of 1000", c)
			}
		})
	}
}

func refundInFlight(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	s.fault(t, "refund", 1, 0)
	s.repeatInFlight(t, refundsOf(p), "/charges/"+*p.PSPReference+"/refunds")
	s.becomes(t, p.ID, "partly refunded", func(p payment) bool { return p.AmountRefunded == 1000 })
	if c := s.charge(t, p.ID); len(c.Refunds) != 1 {
		t.Errorf("got charge %+v, want one refund", c)
	}
}

var disputes = []claim{
	{"while disputed nothing is refunded", disputedNoRefund},
	{"a dispute that is closed stays closed whatever arrives late", disputeOrder},
}

// dispute is news of a dispute about a charge.
func (s *stage) dispute(kind, id, status string, c charge) event {
	e := s.event(kind, c)
	e.data["dispute"] = object{"id": id, "amount": c.Amount, "status": status}
	return e
}

func disputedNoRefund(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	c, id := s.charge(t, p.ID), s.unique("dp")
	s.tell(t, s.dispute("dispute.opened", id, "open", c))
	if got := s.becomes(t, p.ID, "disputed", func(p payment) bool { return p.Disputed }); got.Status != "captured" {
		t.Errorf("got %s while disputed, want captured", got.Status)
	}
	s.alpha.post(t, refundsOf(p), object{}).problem(t, http.StatusConflict, "payment_disputed")
	s.tell(t, s.dispute("dispute.closed", id, "lost", c))
	s.becomes(t, p.ID, "undisputed", func(p payment) bool { return !p.Disputed })
	s.alpha.post(t, refundsOf(p), object{}).want(t, http.StatusCreated)
}

func disputeOrder(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	c, id := s.charge(t, p.ID), s.unique("dp")
	opened, closed := s.dispute("dispute.opened", id, "open", c), s.dispute("dispute.closed", id, "won", c)
	s.tell(t, closed)
	s.settles(t, closed.id, "applied")
	s.tell(t, opened)
	s.awaited(func() bool {
		_, waits := s.inbox(t, "received", opened.id)
		return !waits
	})
	if got := s.read(t, p.ID); got.Disputed {
		t.Errorf("got a disputed payment, want the dispute closed")
	}
	other := s.dispute("dispute.opened", s.unique("dp"), "open", c)
	s.tell(t, other)
	s.becomes(t, p.ID, "disputed by another dispute", func(p payment) bool { return p.Disputed })
}
