package console_test

import (
	"net/url"
	"strings"
	"testing"
)

// line is the log line of the last request.
func (w *world) line() string {
	lines := strings.Split(strings.TrimSpace(w.log.String()), "\n")
	return lines[len(lines)-1]
}

func TestTheLineOfARequestNamesItsRouteAndWhatItIsAbout(t *testing.T) {
	w := newWorld(t)
	w.reviewed()
	it := w.quarantine()
	cookie := w.login()
	token := tokenOf.FindStringSubmatch(w.visit(visit{method: "GET", path: "/console", cookie: cookie}).Body)[1]
	form := url.Values{"token": {token}, "key": {"k"}}.Encode()
	for _, c := range []struct {
		method, path string
		want         []string
	}{
		{"GET", "/console", []string{`"route":"/console"`}},
		{"GET", "/console/webhooks", []string{`"route":"/console/webhooks"`}},
		{"GET", "/console/payments/" + string(paymentID), []string{`"route":"/console/payments/{id}"`, `"payment_id":"` + string(paymentID)}},
		{"GET", "/console/checkouts/" + checkoutID, []string{`"checkout_id":"` + checkoutID, `"payment_id":"` + string(paymentID)}},
		{"POST", "/console/checkouts/" + checkoutID + "/resume", []string{`"route":"/console/checkouts/{id}/resume"`, `"status":303`, `"checkout_id":"` + checkoutID, `"payment_id":"` + string(paymentID)}},
		{"POST", "/console/webhooks/" + it.ID() + "/replay", []string{`"route":"/console/webhooks/{id}/replay"`, `"status":303`, `"webhook_id":"` + it.ID()}},
		{"POST", "/console/logout", []string{`"route":"/console/logout"`}},
		{"GET", "/console/canary/canary", []string{`"route":"none"`, `"status":404`}},
		{"GET", "/console/payments/canary", []string{`"route":"/console/payments/{id}"`, `"status":404`}},
	} {
		v := visit{method: c.method, path: c.path, cookie: cookie}
		if c.method == "POST" {
			v.body = form
		}
		w.visit(v)
		for _, part := range c.want {
			if !strings.Contains(w.line(), part) {
				t.Errorf("%s %s: got line %s, want %s in it", c.method, c.path, w.line(), part)
			}
		}
	}
	if strings.Contains(w.log.String(), "canary") {
		t.Error("a path that is no page's is in the log")
	}
}

func TestWithoutTheKeyNoIDIsLogged(t *testing.T) {
	w := newWorld(t)
	w.visit(visit{method: "GET", path: "/console/payments/" + string(paymentID)})
	if strings.Contains(w.line(), string(paymentID)) || !strings.Contains(w.line(), `"route":"/console/payments/{id}"`) {
		t.Errorf("got line %s, want its route and no id", w.line())
	}
}
