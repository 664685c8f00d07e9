package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

var simulators = []claim{
	{"a charge needs a key, and a key used again gets the stored answer", simulatorKeys},
	{"a charge has its form", simulatorCharge},
	{"tokens answer as the table says", simulatorTokens},
	{"silent tokens never answer, and a look-up tells the truth", simulatorSilence},
	{"captures, voids and refunds follow the charge's status", simulatorOperations},
	{"the redirect page has three ways out", simulatorPage},
	{"every list has the form of a list", simulatorLists},
	{"a webhook of control is sent with the event's id", simulatorWebhook},
	{"what makes no sense is refused", simulatorRefuses},
}

// direct is a request to the simulator for a charge that no payment has.
func (s *stage) direct(members object) object {
	return object{"reference": "pay_" + s.unique("direct"), "amount": 5000, "currency": "JPY", "payment_method": "tok_captured"}.with(members)
}

func (a answer) charge(t *testing.T) charge {
	t.Helper()
	var c charge
	a.decode(t, &c)
	members := a.members(t)
	for _, name := range []string{"id", "reference", "amount", "currency", "status", "captured", "refunded", "redirect_url", "decline_code", "refunds"} {
		if _, found := members[name]; !found {
			t.Errorf("%s: a charge without %s", a, name)
		}
	}
	return c
}

func (s *stage) charged(t *testing.T, members object) charge {
	t.Helper()
	return s.psp.post(t, "/charges", s.direct(members)).want(t, http.StatusOK, http.StatusCreated).charge(t)
}

func simulatorKeys(t *testing.T, s *stage) {
	body, key := s.direct(nil), s.unique("key")
	if a := s.psp.send(t, request{method: http.MethodPost, path: "/charges", body: body}); a.status/100 != 4 {
		t.Errorf("got %s without a key, want 4xx", a)
	}
	first := s.psp.postKey(t, "/charges", key, body).want(t, http.StatusOK, http.StatusCreated)
	again := s.psp.postKey(t, "/charges", key, body).want(t, first.status)
	if first.charge(t).ID != again.charge(t).ID {
		t.Errorf("got %s, then %s for one key", first, again)
	}
	s.psp.postKey(t, "/charges", key, body.with(object{"amount": 1})).want(t, http.StatusUnprocessableEntity)
	if n := len(s.charges(t, body["reference"].(string))); n != 1 {
		t.Errorf("got %d charges, want one", n)
	}
	c := first.charge(t)
	refunds := "/charges/" + c.ID + "/refunds"
	one, two := s.psp.postKey(t, refunds, key, object{"amount": 100}), s.psp.postKey(t, refunds, key, object{"amount": 100})
	if string(one.body) != string(two.body) || one.status != two.status {
		t.Errorf("got %s, then %s for one key", one, two)
	}
}

func simulatorCharge(t *testing.T, s *stage) {
	body := s.direct(nil)
	c := s.psp.post(t, "/charges", body).charge(t)
	if !strings.HasPrefix(c.ID, "ch_") || c.Reference == nil || *c.Reference != body["reference"] || c.Amount != 5000 || c.Currency != "JPY" ||
		c.Status != "captured" || c.Captured != 5000 || c.Refunded != 0 || c.RedirectURL != nil || c.DeclineCode != nil || c.Refunds == nil {
		t.Errorf("got %+v", c)
	}
	if got := s.psp.get(t, "/charges/"+c.ID).want(t, http.StatusOK).charge(t); got.ID != c.ID || got.Status != "captured" {
		t.Errorf("got %+v when looked up", got)
	}
	s.psp.get(t, "/charges/ch_unknown").want(t, http.StatusNotFound)
}

func simulatorTokens(t *testing.T, s *stage) {
	for token, want := range map[string]string{
		"tok_captured": "captured", "tok_declined": "failed", "tok_insufficient_funds": "failed", "tok_requires_action": "requires_action",
		"tok_pending": "pending", "tok_pending_silent": "pending", "tok_webhook_first": "captured", "tok_webhook_twice": "captured",
		"tok_webhook_reversed": "captured", "tok_late_captured": "pending", "tok_refund_pending_failed": "captured",
	} {
		c := s.charged(t, object{"payment_method": token})
		if c.Status != want {
			t.Errorf("%s: got %s, want %s", token, c.Status, want)
		}
		if (c.DeclineCode != nil) != (want == "failed") || (c.RedirectURL != nil) != (want == "requires_action") {
			t.Errorf("%s: got %+v", token, c)
		}
	}
	if c := s.charged(t, object{"capture_method": "manual"}); c.Status != "authorized" || c.Captured != 0 {
		t.Errorf("got %+v, want it authorized", c)
	}
	for token, status := range map[string]int{"tok_error_once": http.StatusServiceUnavailable, "tok_rate_limited_once": http.StatusTooManyRequests} {
		body, key := s.direct(object{"payment_method": token}), s.unique("key")
		first := s.psp.postKey(t, "/charges", key, body).want(t, status)
		if token == "tok_rate_limited_once" && first.header.Get("Retry-After") != "1" {
			t.Errorf("got Retry-After %q, want 1", first.header.Get("Retry-After"))
		}
		if n := len(s.charges(t, body["reference"].(string))); n != 0 {
			t.Errorf("%s: got %d charges after the refusal, want none", token, n)
		}
		s.psp.postKey(t, "/charges", key, body).want(t, http.StatusOK, http.StatusCreated)
	}
	body, key := s.direct(object{"payment_method": "tok_error_captured"}), s.unique("key")
	for range 2 {
		s.psp.postKey(t, "/charges", key, body).want(t, http.StatusInternalServerError)
	}
	if all := s.charges(t, body["reference"].(string)); len(all) != 1 || all[0].Status != "captured" {
		t.Errorf("tok_error_captured: got charges %+v, want one captured", all)
	}
	pending := s.charged(t, object{"payment_method": "tok_pending_silent"})
	s.eventually(t, "a pending charge is captured", func() (bool, any) {
		got := s.psp.get(t, "/charges/"+pending.ID).charge(t)
		return got.Status == "captured", got
	})
}

// unanswered is long enough for an answer that is coming.
const unanswered = 500 * time.Millisecond

func simulatorSilence(t *testing.T, s *stage) {
	impatient := client{&stage{http: &http.Client{Timeout: unanswered}}, s.PSP, ""}
	for token, charges := range map[string]int{"tok_timeout_captured": 1, "tok_timeout_captured_silent": 1, "tok_timeout_nothing": 0} {
		body, key := s.direct(object{"payment_method": token}), s.unique("key")
		for range 2 {
			if a, err := impatient.try(post("/charges", key, body)); err == nil {
				t.Errorf("%s: got %s, want no answer", token, a)
			}
		}
		if n := len(s.charges(t, body["reference"].(string))); n != charges {
			t.Errorf("%s: got %d charges, want %d", token, n, charges)
		}
	}
}

func simulatorOperations(t *testing.T, s *stage) {
	held := s.charged(t, object{"capture_method": "manual"})
	s.psp.post(t, "/charges/"+held.ID+"/capture", object{"amount": 5001}).want(t, http.StatusUnprocessableEntity)
	if c := s.psp.post(t, "/charges/"+held.ID+"/capture", object{"amount": 4000}).want(t, http.StatusOK).charge(t); c.Status != "captured" || c.Captured != 4000 {
		t.Errorf("got %+v, want 4000 captured", c)
	}
	s.psp.post(t, "/charges/"+held.ID+"/capture", object{}).want(t, http.StatusConflict)
	s.psp.post(t, "/charges/"+held.ID+"/cancel", object{}).want(t, http.StatusConflict)
	var r pspRefund
	s.psp.post(t, "/charges/"+held.ID+"/refunds", object{"amount": 1000}).want(t, http.StatusOK, http.StatusCreated).decode(t, &r)
	if r.Charge != held.ID || r.Amount != 1000 || r.Status != "succeeded" || r.Reference != nil || r.ID == "" {
		t.Errorf("got refund %+v", r)
	}
	s.psp.post(t, "/charges/"+held.ID+"/refunds", object{"amount": 3001}).want(t, http.StatusUnprocessableEntity)
	if c := s.psp.get(t, "/charges/"+held.ID).charge(t); c.Refunded != 1000 || len(c.Refunds) != 1 || c.Refunds[0] != r {
		t.Errorf("got %+v, want the one refund %+v", c, r)
	}
	voided := s.charged(t, object{"capture_method": "manual"})
	if c := s.psp.post(t, "/charges/"+voided.ID+"/cancel", object{}).want(t, http.StatusOK).charge(t); c.Status != "canceled" {
		t.Errorf("got %+v, want it canceled", c)
	}
	failing := s.charged(t, object{"payment_method": "tok_refund_pending_failed"})
	s.psp.post(t, "/charges/"+failing.ID+"/refunds", object{"amount": 1000}).decode(t, &r)
	if r.Status != "pending" {
		t.Errorf("got refund %+v, want it pending", r)
	}
	s.eventually(t, "the refund fails", func() (bool, any) {
		c := s.psp.get(t, "/charges/"+failing.ID).charge(t)
		return len(c.Refunds) == 1 && c.Refunds[0].Status == "failed" && c.Refunded == 0, c
	})
}

func simulatorPage(t *testing.T, s *stage) {
	c := s.charged(t, object{"payment_method": "tok_requires_action"})
	if c.RedirectURL == nil || !strings.HasPrefix(*c.RedirectURL, s.PSP+"/redirect/") {
		t.Fatalf("got %+v, want a page at %s/redirect/", c, s.PSP)
	}
	page := client{s, "", ""}.get(t, *c.RedirectURL).want(t, http.StatusOK)
	for _, way := range []string{"Approve", "Decline", "Abandon"} {
		if !strings.Contains(string(page.body), way) {
			t.Errorf("the page has no %s", way)
		}
	}
	s.chooseAt(t, *c.RedirectURL, "maybe").want(t, http.StatusBadRequest, http.StatusUnprocessableEntity)
	s.chooseAt(t, *c.RedirectURL, "approve").want(t, http.StatusOK, http.StatusNoContent, http.StatusSeeOther)
	s.chooseAt(t, *c.RedirectURL, "approve").want(t, http.StatusConflict)
	s.chooseAt(t, *c.RedirectURL, "decline").want(t, http.StatusConflict)
	if got := s.psp.get(t, "/charges/"+c.ID).charge(t); got.Status != "captured" || got.RedirectURL != nil {
		t.Errorf("got %+v, want it captured", got)
	}
	byForm := s.charged(t, object{"payment_method": "tok_requires_action"})
	form := request{method: http.MethodPost, path: *byForm.RedirectURL, body: raw("outcome=decline"), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}
	client{s, "", ""}.send(t, form).want(t, http.StatusOK, http.StatusNoContent, http.StatusSeeOther)
	if got := s.psp.get(t, "/charges/"+byForm.ID).charge(t); got.Status != "failed" || got.DeclineCode == nil {
		t.Errorf("got %+v, want it declined", got)
	}
	voided := s.charged(t, object{"payment_method": "tok_requires_action"})
	s.psp.post(t, "/charges/"+voided.ID+"/cancel", object{}).want(t, http.StatusOK)
	s.chooseAt(t, *voided.RedirectURL, "approve").want(t, http.StatusConflict)
}

func simulatorLists(t *testing.T, s *stage) {
	c := s.charged(t, nil)
	for _, path := range []string{"/charges", "/charges?reference=" + *c.Reference, "/_control/charges", "/_control/calls", "/charges?reference=pay_nobody"} {
		list[map[string]any](t, s.psp.get(t, path))
	}
	if all := s.charges(t, *c.Reference); len(all) != 1 || all[0].ID != c.ID {
		t.Errorf("got %+v, want %s", all, c.ID)
	}
	calls := s.creates(t, *c.Reference)
	if len(calls) != 1 || calls[0].At == "" || calls[0].IdempotencyKey == nil || calls[0].Status == nil || *calls[0].Status/100 != 2 {
		t.Errorf("got calls %+v, want the one that made %s", calls, c.ID)
	}
}

func simulatorWebhook(t *testing.T, s *stage) {
	id := s.unique("evt")
	s.control(t, "webhooks", object{"event": object{"id": id, "type": "something.new", "created": 1767322445, "data": object{}}, "sign": true, "delay_ms": 0})
	s.settles(t, id, "ignored")
	p := s.waiting(t, nil)
	e := s.captured(t, p)
	s.control(t, "webhooks", object{"event": object{"id": e.id, "type": e.kind, "created": 1767322445, "data": e.data}})
	s.ends(t, p.ID, "captured")
	s.settles(t, e.id, "applied")
}

func simulatorRefuses(t *testing.T, s *stage) {
	for _, members := range []object{
		{"payment_method": "tok_unheard_of"}, {"amount": 0}, {"amount": absent}, {"currency": "yen"}, {"payment_method": absent}, {"capture_method": "later"},
	} {
		if a := s.psp.post(t, "/charges", s.direct(members)); a.status/100 != 4 {
			t.Errorf("%v: got %s, want 4xx", members, a)
		}
	}
}

// resetForgets is the last of all: whatever the simulator knew is gone.
func resetForgets(t *testing.T, s *stage) {
	s.charged(t, nil)
	s.control(t, "reset", nil)
	// A payment that is still looked after may have asked again, but has no charge.
	if all := list[charge](t, s.psp.get(t, "/_control/charges")); len(all.Data) != 0 {
		t.Errorf("got charges %+v after a reset, want none", all.Data)
	}
	p := s.paid(t, nil)
	s.charge(t, p.ID)
}
