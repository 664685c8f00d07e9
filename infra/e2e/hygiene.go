package e2e

import (
	"net/http"
	"strings"
	"testing"
)

var hygiene = []claim{
	{"health needs no key", healthOpen},
	{"the console is a login page to whoever has no key", consoleClosed},
	{"the console opens with the operator's key", consoleOpens},
}

func healthOpen(t *testing.T, s *stage) {
	s.nobody.get(t, "/healthz").want(t, http.StatusOK)
}

func consoleClosed(t *testing.T, s *stage) {
	p := s.paid(t, nil)
	for name, caller := range map[string]client{"nobody": s.nobody, "a merchant": s.alpha, "a guess": {s, s.API, "sk_test_operator2"}} {
		for _, path := range []string{"/console", "/console/", "/console/payments", "/console/payments/" + p.ID, "/console/webhooks"} {
			a := caller.send(t, request{method: http.MethodGet, path: path, undocumented: true})
			if a.status >= http.StatusInternalServerError {
				t.Errorf("%s: got %s", name, a)
			}
			holdNone(t, map[string]string{name + " at " + path: string(a.body)}, p.ID, *p.Reference, *p.PSPReference, s.KeyA, s.OperatorKey)
		}
		a := caller.get(t, "/console")
		if a.status == http.StatusSeeOther || a.status == http.StatusFound {
			a = caller.get(t, a.header.Get("Location"))
		}
		a.want(t, http.StatusOK, http.StatusUnauthorized, http.StatusForbidden)
		if !strings.Contains(a.header.Get("Content-Type"), "text/html") || !strings.Contains(strings.ToLower(string(a.body)), "<form") {
			t.Errorf("%s: got %s, want a login page", name, a)
		}
	}
}

func consoleOpens(t *testing.T, s *stage) {
	a := s.operator.get(t, "/console")
	if a.status == http.StatusSeeOther || a.status == http.StatusFound || a.status == http.StatusMovedPermanently || a.status == http.StatusPermanentRedirect || a.status == http.StatusTemporaryRedirect {
		a = s.operator.get(t, strings.TrimPrefix(a.header.Get("Location"), s.API))
	}
	a.want(t, http.StatusOK)
	if !strings.Contains(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("got Content-Type %q, want HTML", a.header.Get("Content-Type"))
	}
	holdNone(t, map[string]string{"the console": string(a.body)}, s.OperatorKey, s.KeyA, s.SimulatorSecret)
}
