package e2e

import (
	"net/http"
	"strings"
	"testing"
)

var operators = []claim{
	{"operator routes are closed to merchants", operatorOnly},
	{"a notification is listed by its status and read by its id", notificationRead},
	{"a replay of an applied notification has no effect", replayApplied},
	{"a replay drives a quarantined notification through again", replayQuarantined},
	{"an unknown notification is not found", unknownNotification},
}

// anyNotification is one that was applied.
func (s *stage) anyNotification(t *testing.T) notification {
	t.Helper()
	p := s.waiting(t, nil)
	e := s.captured(t, p)
	s.tell(t, e)
	return s.settles(t, e.id, "applied")
}

func operatorOnly(t *testing.T, s *stage) {
	n := s.anyNotification(t)
	for _, r := range []request{
		{method: http.MethodGet, path: "/v1/webhooks?status=applied"},
		{method: http.MethodGet, path: "/v1/webhooks/" + n.ID},
		post("/v1/webhooks/"+n.ID+"/replay", s.unique("key"), object{}),
		post("/v1/checkouts/chk_01ARZ3NDEKTSV4RRFFQ69G5FAV/resume", s.unique("key"), object{}),
	} {
		s.alpha.send(t, r).problem(t, http.StatusForbidden, "forbidden")
		s.nobody.send(t, r).want(t, http.StatusUnauthorized)
		client{s, s.API, "sk_test_operator2"}.send(t, r).want(t, http.StatusUnauthorized)
	}
}

func notificationRead(t *testing.T, s *stage) {
	n := s.anyNotification(t)
	a := s.operator.get(t, "/v1/webhooks/"+n.ID).want(t, http.StatusOK)
	var got notification
	a.decode(t, &got)
	if got.ID != n.ID || got.Status != "applied" || got.EventID != n.EventID {
		t.Errorf("got %s, want %+v", a, n)
	}
	members := a.members(t)
	for _, name := range []string{"id", "psp", "event_id", "type", "status", "payment_id", "received_at"} {
		if _, found := members[name]; !found {
			t.Errorf("%s: no %s", a, name)
		}
	}
	for _, status := range []string{"received", "applied", "ignored", "quarantined"} {
		for _, other := range wholeList[notification](t, s.operator, "/v1/webhooks?status="+status) {
			if other.Status != status {
				t.Errorf("got %+v in the list of %s", other, status)
			}
		}
	}
	s.operator.get(t, "/v1/webhooks?status=lost").problem(t, http.StatusBadRequest)
}

func replayApplied(t *testing.T, s *stage) {
	n := s.anyNotification(t)
	before := s.read(t, *n.PaymentID)
	key := s.unique("key")
	for range 2 {
		s.operator.postKey(t, "/v1/webhooks/"+n.ID+"/replay", key, object{}).want(t, http.StatusAccepted)
	}
	s.operator.post(t, "/v1/webhooks/"+n.ID+"/replay", nil).want(t, http.StatusAccepted)
	s.settles(t, n.EventID, "applied")
	if got := s.read(t, *n.PaymentID); got.Version != before.Version || got.Status != "captured" {
		t.Errorf("got %s version %d, want captured version %d", got.Status, got.Version, before.Version)
	}
}

func replayQuarantined(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	c := s.charge(t, p.ID)
	c.Status, c.Captured, c.RedirectURL, c.Currency = "captured", c.Amount, nil, "USD"
	e := s.event("charge.captured", c)
	s.tell(t, e)
	n := s.settles(t, e.id, "quarantined")
	s.operator.post(t, "/v1/webhooks/"+n.ID+"/replay", object{}).want(t, http.StatusAccepted)
	s.settles(t, e.id, "quarantined") // its content has not changed
	if got := s.read(t, p.ID); got.AmountCaptured != 0 {
		t.Errorf("got %+v, want nothing captured", got)
	}
}

func unknownNotification(t *testing.T, s *stage) {
	for _, id := range []string{"wh_unknown", "x", "wh_c2ltdWxhdG9yAGV2dF91bmtub3du", strings.Repeat("x", 600)} {
		s.operator.get(t, "/v1/webhooks/"+id).problem(t, http.StatusNotFound, "not_found")
		s.operator.post(t, "/v1/webhooks/"+id+"/replay", object{}).problem(t, http.StatusNotFound, "not_found")
	}
}
