package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

var webhooks = []claim{
	{"an event is applied once however often it comes", appliedOnce},
	{"the same event with another timestamp or text is the same event", sameEvent},
	{"many deliveries of one event at once make one transition", deliveriesAtOnce},
	{"an unknown type is ignored", unknownType},
	{"signed nonsense is quarantined", signedNonsense},
	{"another amount, currency or PSP reference is quarantined and never captures", disagreeing},
	{"news of an unknown payment waits, then is quarantined", unknownPayment},
	{"a failure after the capture leaves the payment", failureAfterCapture},
	{"news of a dead charge comes as news", newsBecomesStatus},
}

// captured is news that a payment's charge was captured, which the simulator's
// own charge may not be.
func (s *stage) captured(t *testing.T, p payment) event {
	t.Helper()
	c := s.charge(t, p.ID)
	c.Status, c.Captured, c.RedirectURL = "captured", c.Amount, nil
	return s.event("charge.captured", c)
}

func appliedOnce(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	e := s.captured(t, p)
	body := e.body(t)
	for range 3 {
		s.deliver(t, e.id, body).want(t, http.StatusOK)
	}
	got := s.ends(t, p.ID, "captured")
	n := s.settles(t, e.id, "applied")
	if n.PSP != "simulator" || n.Type == nil || *n.Type != "charge.captured" || n.PaymentID == nil || *n.PaymentID != p.ID {
		t.Errorf("got notification %+v", n)
	}
	s.deliver(t, e.id, body).want(t, http.StatusOK)
	if now := s.read(t, p.ID); now.Version != got.Version {
		t.Errorf("got version %d after a duplicate, want %d", now.Version, got.Version)
	}
	if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
		t.Errorf("got %d payment.captured, want one", n)
	}
}

func sameEvent(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	e := s.captured(t, p)
	body := e.body(t)
	s.deliver(t, e.id, body).want(t, http.StatusOK)
	s.ends(t, p.ID, "captured")
	s.knock(t, "simulator", body, standard(s.SimulatorSecret, e.id, time.Now().Add(-time.Minute), body)).want(t, http.StatusOK)
	spaced := append([]byte(" \r\n"), body...)
	s.deliver(t, e.id, spaced).want(t, http.StatusOK)
	s.settles(t, e.id, "applied")
	if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
		t.Errorf("got %d payment.captured, want one", n)
	}
}

func deliveriesAtOnce(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	e := s.captured(t, p)
	body := e.body(t)
	psp := client{s, s.Webhook, ""}
	header := standard(s.SimulatorSecret, e.id, time.Now(), body)
	for _, got := range atOnce(s.Crowd, func(int) answer {
		a, _ := psp.try(request{method: http.MethodPost, path: "/simulator", body: body, header: header})
		return a
	}) {
		if got.status != http.StatusOK {
			t.Errorf("got %s, want 200", got)
		}
	}
	got := s.ends(t, p.ID, "captured")
	s.settles(t, e.id, "applied")
	if now := s.read(t, p.ID); now.Version != got.Version {
		t.Errorf("got version %d, then %d, want one transition", got.Version, now.Version)
	}
	if n := ofType(s.journal(t, p.ID), "payment.captured"); n != 1 {
		t.Errorf("got %d payment.captured, want one", n)
	}
}

func unknownType(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	e := s.event("charge.exploded", s.charge(t, p.ID))
	s.tell(t, e)
	s.settles(t, e.id, "ignored")
	if got := s.read(t, p.ID); got.Version != p.Version {
		t.Errorf("got version %d, want %d", got.Version, p.Version)
	}
	id := s.unique("evt")
	s.deliver(t, id, strangeEvent(id, "x")).want(t, http.StatusOK)
	s.settles(t, id, "ignored")
}

func signedNonsense(t *testing.T, s *stage) {
	for name, content := range map[string]string{
		"no JSON": "hello", "cut off": `{"id":"$","type":"charge.captured","data":{"char`, "an array": "[]", "null": "null",
		"no data": `{"id":"$","type":"charge.captured"}`, "data of a wrong type": `{"id":"$","type":"charge.captured","created":1,"data":[]}`,
		"an amount with a fraction": `{"id":"$","type":"charge.captured","created":1,"data":{"charge":{"id":"ch_1","amount":1.5}}}`,
		"not UTF-8":                 "\xff\xfe", "duplicate names": `{"id":"$","id":"$","type":"charge.captured","created":1,"data":{}}`,
		"deep": strings.Repeat("[", 20000),
	} {
		id := s.unique("evt")
		body := []byte(strings.ReplaceAll(content, "$", id))
		header := standard(s.SimulatorSecret, id, time.Now(), body)
		header["Content-Type"] = "application/octet-stream" // AWS alters a text that is none
		if a := s.knock(t, "simulator", body, header); a.status != http.StatusOK {
			t.Errorf("%s: got %s, want 200", name, a)
			continue
		}
		if strings.Contains(content, "$") {
			s.settles(t, id, "quarantined")
		}
	}
}

func disagreeing(t *testing.T, s *stage) {
	for name, change := range map[string]func(*charge){
		"amount 1":              func(c *charge) { c.Amount, c.Captured = 1, 1 },
		"amount 5000000":        func(c *charge) { c.Amount, c.Captured = 5000000, 5000000 },
		"another currency":      func(c *charge) { c.Currency = "USD" },
		"another PSP reference": func(c *charge) { c.ID = "ch_" + strings.Repeat("X", 26) },
	} {
		p := s.waiting(t, nil)
		c := s.charge(t, p.ID)
		c.Status, c.Captured, c.RedirectURL = "captured", c.Amount, nil
		change(&c)
		e := s.event("charge.captured", c)
		s.tell(t, e)
		s.settles(t, e.id, "quarantined")
		if got := s.read(t, p.ID); got.Status != "requires_action" && got.Status != "canceled" || got.AmountCaptured != 0 {
			t.Errorf("%s: got %s with %d captured, want nothing captured", name, got.Status, got.AmountCaptured)
		}
		for _, r := range s.journal(t, p.ID) {
			if strings.HasSuffix(r.Type, "captured") {
				t.Errorf("%s: got a row %s", name, r.Type)
			}
		}
	}
}

func unknownPayment(t *testing.T, s *stage) {
	reference := "pay_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	e := s.event("charge.captured", charge{
		ID: "ch_" + s.unique("X"), Reference: &reference, Amount: 5000, Captured: 5000, Currency: "JPY", Status: "captured", Refunds: []pspRefund{},
	})
	s.tell(t, e)
	n := s.settles(t, e.id, "received")
	if n.Status != "received" {
		t.Errorf("got %+v, want received", n)
	}
	s.shortExpiry(t)
	s.settles(t, e.id, "quarantined")
}

func failureAfterCapture(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	c := s.charge(t, p.ID)
	code := "generic_decline"
	for kind, change := range map[string]func(*charge){
		"charge.failed":   func(c *charge) { c.Status, c.DeclineCode = "failed", &code },
		"charge.canceled": func(c *charge) { c.Status = "canceled" },
	} {
		about := c
		about.Captured = 0
		change(&about)
		e := s.event(kind, about)
		s.tell(t, e)
		s.eventually(t, kind+" is dealt with", func() (bool, any) {
			_, waits := s.inbox(t, "received", e.id)
			return !waits, "received"
		})
		if got := s.read(t, p.ID); got.Status != "captured" || got.Version != p.Version || got.InDoubt {
			t.Errorf("%s: got %s version %d, want captured version %d", kind, got.Status, got.Version, p.Version)
		}
	}
}

func newsBecomesStatus(t *testing.T, s *stage) {
	p := s.held(t, nil)
	s.psp.post(t, "/charges/"+*p.PSPReference+"/cancel", object{}).want(t, http.StatusOK)
	s.ends(t, p.ID, "canceled")
}
