package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/psp/psptest"
)

const absentID = "pay_01KDYAK348M9S346Q3D2ZZZZZZ"

// routes are all of them, with a path that names something that exists.
func routesOf(payment, hook string) []request {
	return []request{
		{method: http.MethodPost, path: "/v1/payments", body: order, apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments?reference=r", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments/" + payment, apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments/" + payment + "/events", apiKey: alpha},
		{method: http.MethodPost, path: "/v1/payments/" + payment + "/capture", apiKey: alpha},
		{method: http.MethodPost, path: "/v1/payments/" + payment + "/cancel", apiKey: alpha},
		{method: http.MethodPost, path: "/v1/payments/" + payment + "/refunds", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments/" + payment + "/refunds", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/webhooks?status=applied", apiKey: operator},
		{method: http.MethodGet, path: "/v1/webhooks/" + hook, apiKey: operator},
		{method: http.MethodPost, path: "/v1/webhooks/" + hook + "/replay", apiKey: operator},
		{method: http.MethodPost, path: "/v1/merchants", body: `{"name":"n"}`, apiKey: operator},
		{method: http.MethodGet, path: "/v1/merchants/alpha/keys", apiKey: operator},
		{method: http.MethodPost, path: "/v1/merchants/alpha/keys", apiKey: operator},
		{method: http.MethodDelete, path: "/v1/merchants/alpha/keys/sk_test_al", apiKey: operator},
	}
}

func (w *world) hook() string {
	w.t.Helper()
	r := w.send(request{method: http.MethodGet, path: "/v1/webhooks?status=applied", apiKey: operator})
	rows := r.rows(w.t)
	if len(rows) == 0 {
		w.t.Fatalf("got no applied notification")
	}
	return rows[0]["id"].(string)
}

func TestEveryRouteIsForItsRole(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	w.deliver()
	for _, r := range routesOf(id, w.hook()) {
		own := r.apiKey
		for _, nobody := range []string{"", "sk_test_unknown", "sk_test_", "alpha", strings.Repeat("k", 300)} {
			r.apiKey = nobody
			got := w.send(r)
			w.want(got, http.StatusUnauthorized, "unauthorized")
			if got.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("got no WWW-Authenticate")
			}
		}
		r.apiKey = map[string]string{alpha: operator, operator: alpha}[own]
		w.want(w.send(r), http.StatusForbidden, "forbidden")
		r.apiKey, r.key, r.body = own, "-", "not JSON"
		if r.method == http.MethodPost { // the key is judged before the body
			w.want(w.send(r), http.StatusBadRequest, "idempotency_key_required")
		}
	}
	if got := len(w.fake.Charges()); got != 1 {
		t.Errorf("got %d charges, want only the first", got)
	}
}

func TestUnknownPathsAndMethodsAreTold(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	for _, path := range []string{
		"/", "", "/v1", "/v1/", "/v1/payments/", "/v1/payments/" + id + "/", "/v1//payments", "/v2/payments", "/v1/payment", "/V1/payments",
		"/v1/payments/" + id + "/void", "/healthz/", "/v1/payments/" + id + "/refunds/re_1",
	} {
		r := request{method: http.MethodGet, path: path, apiKey: alpha, unchecked: true}
		w.want(w.send(r), http.StatusNotFound, "not_found")
		r.apiKey = ""
		w.want(w.send(r), http.StatusUnauthorized, "unauthorized")
	}
	for _, tt := range []struct{ method, path, allow string }{
		{http.MethodDelete, "/v1/payments", "GET, HEAD, POST"},
		{http.MethodOptions, "/v1/payments", "GET, HEAD, POST"},
		{http.MethodPatch, "/v1/payments/" + id, "GET, HEAD"},
		{http.MethodGet, "/v1/payments/" + id + "/capture", "POST"},
		{"get", "/v1/payments/" + id, "GET, HEAD"},
		{http.MethodPost, "/healthz", "GET, HEAD"},
	} {
		got := w.send(request{method: tt.method, path: tt.path, apiKey: alpha, unchecked: true})
		w.want(got, http.StatusMethodNotAllowed, "method_not_allowed")
		if got.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: got Allow %q, want %q", tt.method, tt.path, got.header.Get("Allow"), tt.allow)
		}
	}
}

func TestHEADIsGETWithoutTheBody(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	got := w.send(request{method: http.MethodHead, path: "/v1/payments/" + id, apiKey: alpha, unchecked: true})
	if got.status != http.StatusOK || got.text != "" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %q %v, want the headers of GET", got.status, got.text, got.header)
	}
	got = w.send(request{method: http.MethodHead, path: "/v1/payments/" + absentID, apiKey: alpha, unchecked: true})
	if got.status != http.StatusNotFound || got.text != "" {
		t.Errorf("got %d %q, want 404 without a body", got.status, got.text)
	}
}

// Another merchant's payment, one that does not exist and one that cannot exist
// are told apart by nobody.
func TestAForeignPaymentIsLikeNone(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	malformed := []string{
		"x", "pay_", "pay_" + strings.ToLower(id[4:]), id + "0", strings.Replace(id, "pay_", "re_", 1), "pay_01KDYAK348M9S346Q3D2ILOU00",
		"%00", "%2e%2e", "pay_%F0%9F%92%B3", "%zz", id + "%23STATE", strings.Repeat("9", 3000),
	}
	for _, r := range routesOf("{id}", "wh_x") {
		if !strings.Contains(r.path, "{id}") {
			continue
		}
		var first response
		for i, other := range append([]string{id, absentID}, malformed...) {
			q := r
			q.path, q.apiKey, q.unchecked = strings.Replace(r.path, "{id}", other, 1), beta, i > 1
			got := w.send(q)
			w.want(got, http.StatusNotFound, "not_found")
			if i == 0 {
				first = got
			}
			if got.text != first.text || fmt.Sprint(got.header) != fmt.Sprint(first.header) {
				t.Errorf("%s: got %v %s, want %v %s", q.path, got.header, got.text, first.header, first.text)
			}
		}
		if strings.HasSuffix(r.path, "{id}") || r.method == http.MethodGet {
			r.path = strings.Replace(r.path, "{id}", id, 1)
			w.want(w.send(r), http.StatusOK, "")
		}
	}
	if got := w.get("/v1/payments/" + id); got.str("status") != "captured" || got.field("version") != 2.0 {
		t.Errorf("got %s, want the payment untouched", got.text)
	}
}

func TestAQueryIsJudgedExactly(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	payment := "/v1/payments/" + id
	for _, path := range []string{
		payment + "?wait=21", payment + "?wait=-1", payment + "?wait=", payment + "?wait=x", payment + "?wait=1.5", payment + "?wait=%2B1", payment + "?wait=1&wait=2",
		payment + "?wait=99999999999999999999", payment + "?%zz=1", payment + "?wait=1;2",
		"/v1/payments", "/v1/payments?reference=", "/v1/payments?reference=a:b", "/v1/payments?reference=a&reference=b", "/v1/payments?reference=" + strings.Repeat("x", 65),
		"/v1/payments?reference=%ff",
		"/v1/payments?reference=r&limit=0", "/v1/payments?reference=r&limit=101", "/v1/payments?reference=r&limit=x", "/v1/payments?reference=r&cursor=",
		"/v1/payments?reference=r&cursor=x", "/v1/payments?reference=r&cursor=" + strings.Repeat("x", 1025), "/v1/payments?reference=r&cursor=a&cursor=b",
		payment + "/events?limit=0", payment + "/events?cursor=x", payment + "/refunds?limit=101", payment + "/refunds?cursor=x", payment + "/refunds?cursor=!",
	} {
		w.want(w.get(path), http.StatusBadRequest, "invalid_request")
	}
	for _, path := range []string{payment + "?wait=0", payment + "?wait=20", payment + "?wait=05", payment + "?other=1", "/v1/payments?reference=a%20b&limit=100", payment + "/events?limit=1"} {
		w.want(w.get(path), http.StatusOK, "")
	}
	for _, query := range []string{"", "?status=", "?status=failed", "?status=applied&status=ignored", "?status=applied&limit=0", "?status=applied&cursor=x"} {
		w.want(w.send(request{method: http.MethodGet, path: "/v1/webhooks" + query, apiKey: operator}), http.StatusBadRequest, "invalid_request")
	}
	// A cursor of one list means nothing in another.
	other := w.pay(psptest.TokenCaptured)
	for _, amount := range []string{`{"amount":1}`, `{"amount":2}`} {
		w.want(w.post("/v1/payments/"+other+"/refunds", amount), http.StatusCreated, "")
	}
	cursor := w.get("/v1/payments/" + other + "/refunds?limit=1").str("next_cursor")
	w.want(w.get(payment+"/refunds?cursor="+cursor), http.StatusBadRequest, "invalid_request")
	w.want(w.get(payment+"/events?cursor="+cursor), http.StatusBadRequest, "invalid_request")
}

func TestABodyIsReadStrictly(t *testing.T) {
	w := newWorld(t)
	const fields = `"amount":10000,"currency":"JPY","payment_method":"tok_captured"`
	nested := func(n int) string { return strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n) }
	for body, code := range map[string]string{
		`{` + fields + `,"amount":1}`:                   "invalid_json",
		`{` + fields + `,"\u0061mount":1}`:              "invalid_json",
		`{` + fields + `,"metadata":{"k":"1","k":"2"}}`: "invalid_json",
		`{` + fields + `}{}`:                            "invalid_json",
		`{` + fields + `} x`:                            "invalid_json",
		`{` + fields + `,}`:                             "invalid_json",
		`{` + fields + ``:                               "invalid_json",
		`[{` + fields + `}]`:                            "invalid_json",
		`"x"`:                                           "invalid_json",
		`null`:                                          "invalid_json",
		`1`:                                             "invalid_json",
		"\ufeff{" + fields + "}":                        "invalid_json",
		"{" + fields + ",\"reference\":\"\xff\"}":   "invalid_json",
		`{` + fields + `,"reference":"\ud800"}`:     "invalid_json",
		"{" + fields + ",\"reference\":\"\ufffd\"}": "invalid_json",
		`{'amount':1}`:                 "invalid_json",
		`{` + fields + `,"amount":01}`: "invalid_json",
		`{"amount":NaN}`:               "invalid_json",
		nested(17):                     "invalid_json",
		nested(10_000):                 "invalid_json",
		nested(16):                     "invalid_request",
		`{` + fields + `,"x":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`: "invalid_json",
		`{` + fields + `,"extra":1}`:  "invalid_request",
		`{` + fields + `,"AMOUNT":1}`: "invalid_request",
		``:                            "invalid_request",
		" \n":                         "invalid_request",
		`{}`:                          "invalid_request",
	} {
		r := w.post("/v1/payments", body)
		w.want(r, http.StatusBadRequest, code)
	}
	if got := len(w.fake.Calls()); got != 0 {
		t.Errorf("got %d calls to the PSP, want none", got)
	}
	whole := "{" + fields + "}"
	pad := strings.Repeat(" ", 65_536-len(whole))
	w.want(w.post("/v1/payments", whole+pad+" "), http.StatusBadRequest, "body_too_large")
	w.want(w.post("/v1/payments", whole+pad), http.StatusCreated, "")
}

func TestABodyIsTakenWhateverItsEncodingAndMediaType(t *testing.T) {
	w := newWorld(t)
	for _, mediaType := range []string{"application/json", "application/json; charset=utf-8", "", "application/x-www-form-urlencoded"} {
		event := events.APIGatewayV2HTTPRequest{
			RawPath: "/v1/payments", IsBase64Encoded: true,
			Body:    base64.StdEncoding.EncodeToString([]byte(`{"amount":1,"currency":"JPY","payment_method":"tok_captured"}`)),
			Headers: map[string]string{"Content-Type": mediaType, "idempotency-key": "k" + mediaType},
		}
		event.RequestContext.HTTP.Method = http.MethodPost
		event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"merchant": "alpha", "role": "merchant"}}
		got, err := w.api.Handle(t.Context(), event)
		if err != nil || got.StatusCode != http.StatusCreated {
			t.Errorf("%q: got %d %s, %v, want 201", mediaType, got.StatusCode, got.Body, err)
		}
		event.Body = "!"
		if got, _ := w.api.Handle(t.Context(), event); got.StatusCode != http.StatusBadRequest {
			t.Errorf("got %d %s, want 400 for what is no base64", got.StatusCode, got.Body)
		}
	}
}

// Whatever an authorizer's context holds that is no principal is nobody.
func TestAPrincipalComesFromTheAuthorizerOnly(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	event := events.APIGatewayV2HTTPRequest{RawPath: "/v1/payments/" + id, Headers: map[string]string{"authorization": "Bearer " + alpha}}
	event.RequestContext.HTTP.Method = http.MethodGet
	contexts := []map[string]any{
		nil,
		{},
		{"merchant": "alpha"},
		{"merchant": "alpha", "role": ""},
		{"merchant": "alpha", "role": "admin"},
		{"merchant": "", "role": "merchant"},
		{"merchant": "al#pha", "role": "merchant"},
		{"merchant": 1, "role": "merchant"},
		{"merchant": "alpha", "role": true},
	}
	for _, lambda := range contexts {
		event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: lambda}
		if got, _ := w.api.Handle(t.Context(), event); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v: got %d, want 401", lambda, got.StatusCode)
		}
	}
	event.RequestContext.Authorizer = nil
	if got, _ := w.api.Handle(t.Context(), event); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d, want 401", got.StatusCode)
	}
	event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"failure": "unavailable"}}
	if got, _ := w.api.Handle(t.Context(), event); got.StatusCode != http.StatusServiceUnavailable || got.Headers["Retry-After"] == "" {
		t.Errorf("got %d %v, want 503 with Retry-After", got.StatusCode, got.Headers)
	}
}
