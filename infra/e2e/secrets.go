package e2e

import (
	"net/http"
	"strings"
	"testing"
)

var secrets = []claim{
	{"a redirect is shown only while the customer must act", redirectsEnd},
	{"no journal and no operator's view has a redirect", redirectsNowhere},
	{"no answer holds a key", noKeys},
}

// views is every text about a payment that anybody can read.
func (s *stage) views(t *testing.T, p payment) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{
		"/v1/payments/" + p.ID, "/v1/payments?reference=" + *p.Reference, "/v1/payments/" + p.ID + "/events", "/v1/payments/" + p.ID + "/refunds",
	} {
		all[path] = string(s.alpha.get(t, path).want(t, http.StatusOK).body)
	}
	return all
}

func (s *stage) operatorViews(t *testing.T, p payment) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, status := range []string{"received", "applied", "ignored", "quarantined"} {
		for _, n := range wholeList[notification](t, s.operator, "/v1/webhooks?status="+status) {
			if n.PaymentID != nil && *n.PaymentID == p.ID {
				all[n.ID] = string(s.operator.get(t, "/v1/webhooks/"+n.ID).want(t, http.StatusOK).body)
			}
		}
	}
	return all
}

// hold none of the texts.
func holdNone(t *testing.T, views map[string]string, texts ...string) {
	t.Helper()
	for name, view := range views {
		for _, text := range texts {
			if strings.Contains(view, text) {
				t.Errorf("%s holds %q: %s", name, text, view)
			}
		}
	}
}

func redirectsEnd(t *testing.T, s *stage) {
	endings := map[string]func(payment){
		"captured": func(p payment) { s.choose(t, p, "approve") },
		"failed":   func(p payment) { s.choose(t, p, "decline") },
		"canceled": func(p payment) { s.cancel(t, p) },
	}
	for status, end := range endings {
		key, basket := s.unique("key"), s.basket(object{"payment_method": "tok_requires_action"})
		p := s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated).payment(t)
		address := p.NextAction.RedirectURL
		end(p)
		s.ends(t, p.ID, status)
		views := s.views(t, p)
		views["replay"] = string(s.alpha.postKey(t, "/v1/payments", key, basket).want(t, http.StatusCreated).body)
		for name, view := range s.operatorViews(t, p) {
			views[name] = view
		}
		holdNone(t, views, address, "/redirect/", `"client_secret":"`)
	}
}

func redirectsNowhere(t *testing.T, s *stage) {
	p := s.waiting(t, nil)
	s.eventually(t, "its notification is stored", func() (bool, any) { return len(s.operatorViews(t, p)) > 0, p.ID })
	views := s.operatorViews(t, p)
	events := "/v1/payments/" + p.ID + "/events"
	views[events] = string(s.alpha.get(t, events).want(t, http.StatusOK).body)
	holdNone(t, views, p.NextAction.RedirectURL, "/redirect/", "redirect_url", "next_action", "client_secret")
}

func noKeys(t *testing.T, s *stage) {
	p := s.paid(t, object{"metadata": object{"k": "v"}})
	views := s.views(t, p)
	for name, a := range map[string]answer{
		"healthz": s.nobody.get(t, "/healthz"), "console": s.nobody.get(t, "/console"), "unknown path": s.alpha.send(t, request{method: http.MethodGet, path: "/v1/nowhere", undocumented: true}),
		"unauthorized": client{s, s.API, "sk_test_secretive"}.get(t, "/v1/payments/"+p.ID),
	} {
		views[name] = string(a.body)
	}
	holdNone(t, views, s.KeyA, s.KeyB, s.OperatorKey, s.SimulatorSecret, s.StripeSecret, s.AdyenKey, "sk_test_secretive")
}
