package apitest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/kessai/kessai/internal/api/apitest"
)

const (
	paymentID = "pay_01KDYAK348M9S346Q3D25VT4F5"
	payment   = `{"id":"pay_01KDYAK348M9S346Q3D25VT4F5","object":"payment","status":"captured","version":2,"amount":5000,"currency":"JPY",` +
		`"amount_captured":5000,"amount_refunded":0,"capture_method":"automatic","reference":"order-42","psp":"simulator",` +
		`"psp_reference":"ch_8sKq2","failure":null,"next_action":null,"client_secret":null,"in_doubt":false,"disputed":false,"disputes":[],` +
		`"refunds":[],"metadata":{},"created_at":"2026-01-02T03:04:05Z","updated_at":"2026-01-02T03:04:06Z"}`
	order   = `{"amount":5000,"currency":"JPY","payment_method":"tok_captured"}`
	listEnd = `],"next_cursor":null}`
	list    = `{"object":"list","data":[`
)

// exchange is one request and its answer.
type exchange struct {
	method, path string
	reqHeader    http.Header
	reqBody      string
	status       int
	header       http.Header
	body         string
}

// created is a first POST of a payment; the tests change one thing of it.
func created() exchange {
	return exchange{
		method: http.MethodPost, path: "/v1/payments",
		reqHeader: http.Header{"Authorization": {"Bearer sk_test_alpha"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k-1"}},
		reqBody:   order, status: http.StatusCreated,
		header: http.Header{"Content-Type": {"application/json"}, "Location": {"/v1/payments/" + paymentID}},
		body:   payment,
	}
}

// read is a GET of path that was answered 200.
func read(path, body string) exchange {
	return exchange{
		method: http.MethodGet, path: path, reqHeader: http.Header{"Authorization": {"Bearer sk_test_alpha"}},
		status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, body: body,
	}
}

// problem is a POST of a payment that was refused.
func problem(status int, code, more string) exchange {
	e := created()
	e.status, e.header = status, http.Header{"Content-Type": {"application/problem+json"}}
	e.body = fmt.Sprintf(`{"type":"urn:kessai:problem:%s","title":"t","status":%d,"detail":"d","code":%q%s}`, code, status, code, more)
	return e
}

func (e exchange) with(change func(*exchange)) exchange {
	change(&e)
	return e
}

func (e exchange) replacing(old, new string) exchange {
	if !strings.Contains(e.body, old) {
		panic("the body has no " + old)
	}
	e.body = strings.Replace(e.body, old, new, 1)
	return e
}

func (e exchange) check(v *apitest.Validator) {
	req := httptest.NewRequest(e.method, e.path, nil)
	req.Header = e.reqHeader
	v.Check(req, []byte(e.reqBody), &http.Response{StatusCode: e.status, Header: e.header}, []byte(e.body))
}

// recorder is a test that keeps its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestWhatTheDocumentAllowsPasses(t *testing.T) {
	tests := map[string]exchange{
		"a created payment": created(),
		"a replay":          created().with(func(e *exchange) { e.header.Set("Idempotent-Replayed", "true") }),
		"a payment in doubt": created().with(func(e *exchange) {
			e.status = http.StatusAccepted
			e.header.Set("Retry-After", "1")
			e.body = strings.NewReplacer(`"captured","version":2`, `"processing","version":1`, `"amount_captured":5000`, `"amount_captured":0`).Replace(payment)
		}),
		"a payment that waits for the customer": read("/v1/payments/"+paymentID+"?wait=5", payment).
			replacing(`"status":"captured"`, `"status":"requires_action"`).
			replacing(`"next_action":null`, `"next_action":{"type":"redirect","redirect_url":"http://127.0.0.1:3002/redirect/ch_1"}`).
			replacing(`"client_secret":null`, `"client_secret":"cs_1"`),
		"a quoted key": created().with(func(e *exchange) { e.reqHeader.Set("Idempotency-Key", `"8e03978e-40d5"`) }),
		"a list":       read("/v1/payments?reference=order-42&limit=2", list+payment+","+payment+listEnd),
		"an empty list with another page": read("/v1/orders?reference=order-42", list+listEnd).
			replacing("null", `"next"`),
		"an operation without a body": {
			method: http.MethodPost, path: "/v1/payments/" + paymentID + "/cancel",
			reqHeader: http.Header{"Authorization": {"Bearer sk_test_alpha"}, "Idempotency-Key": {"k-2"}},
			status:    http.StatusOK, header: http.Header{"Content-Type": {"application/json"}},
			body: strings.NewReplacer(`"captured"`, `"canceled"`, `"amount_captured":5000`, `"amount_captured":0`).Replace(payment),
		},
		"an answer without a body": {
			method: http.MethodDelete, path: "/v1/merchants/alpha/keys/sk_test_Example0",
			reqHeader: http.Header{"Authorization": {"Bearer sk_test_operator"}}, status: http.StatusNoContent, header: http.Header{},
		},
		"a refused request that is wrong": problem(http.StatusBadRequest, "invalid_request", `,"errors":[{"field":"amount","message":"m"}]`).
			with(func(e *exchange) { e.reqBody = `{"amount":"1"}` }),
		"a missing key":           problem(http.StatusBadRequest, "idempotency_key_required", "").with(func(e *exchange) { e.reqHeader.Del("Idempotency-Key") }),
		"a missing API key":       problem(http.StatusUnauthorized, "unauthorized", "").with(func(e *exchange) { e.reqHeader.Del("Authorization") }),
		"a reference in use":      problem(http.StatusConflict, "reference_in_use", `,"payment_id":"`+paymentID+`"`),
		"a request in progress":   problem(http.StatusConflict, "idempotency_in_progress", "").with(func(e *exchange) { e.header.Set("Retry-After", "1") }),
		"an id of the wrong form": problem(http.StatusNotFound, "not_found", "").with(func(e *exchange) { e.method, e.path = http.MethodGet, "/v1/payments/nonsense" }),
		"health":                  read("/healthz", `{"status":"ok"}`).with(func(e *exchange) { e.reqHeader = http.Header{} }),
		"the console's login page": read("/console", "<p>").with(func(e *exchange) {
			e.reqHeader = http.Header{}
			e.header.Set("Content-Type", "text/html; charset=utf-8")
		}),
		"a webhook of any kind of body": webhook("simulator", "nonsense"),
	}
	for name, e := range tests {
		t.Run(name, func(t *testing.T) {
			e.check(apitest.New(t))
		})
	}
}

func webhook(psp, body string) exchange {
	return exchange{
		method: http.MethodPost, path: "/" + psp, reqHeader: http.Header{"Content-Type": {"application/json"}}, reqBody: body,
		status: http.StatusOK, header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
	}
}

func TestWhatTheDocumentForbidsIsReported(t *testing.T) {
	tests := map[string]struct {
		exchange exchange
		want     string // part of the report
	}{
		"a field too many":           {created().replacing(`"metadata"`, `"extra":1,"metadata"`), "extra"},
		"a field too many in a row":  {read("/v1/payments?reference=r", list+payment+listEnd).replacing(`"metadata"`, `"extra":1,"metadata"`), "extra"},
		"a field too many in a list": {read("/v1/payments?reference=r", list+listEnd).replacing(`"object"`, `"total":0,"object"`), "total"},
		"a field too many in a nested object": {created().replacing(`"failure":null`, `"failure":{"code":"a","decline_code":null,"retryable":true,"raw":1}`).
			replacing(`"status":"captured"`, `"status":"canceled"`), "raw"},
		"a missing field":               {created().replacing(`"disputed":false,`, ``), "disputed"},
		"a string for a number":         {created().replacing(`"amount":5000`, `"amount":"5000"`), "$.amount"},
		"a number for a string":         {created().replacing(`"currency":"JPY"`, `"currency":392`), "$.currency"},
		"a fraction":                    {created().replacing(`"amount":5000`, `"amount":5000.5`), "$.amount"},
		"an integer written as decimal": {created().replacing(`"amount":5000`, `"amount":5000.0`), "5000.0"},
		"an amount that is too large":   {created().replacing(`"amount":5000`, `"amount":1000000000000`), "$.amount"},
		"an unknown status":             {created().replacing(`"status":"captured"`, `"status":"voided"`), "$.status"},
		"an id of another kind":         {created().replacing(`"id":"pay_`, `"id":"re_`), "$.id"},
		"a time that is none":           {created().replacing(`2026-01-02T03:04:05Z`, `2026-13-02T03:04:05Z`), "$.created_at"},
		"a time that is not UTC":        {created().replacing(`2026-01-02T03:04:05Z`, `2026-01-02T03:04:05+01:00`), "$.created_at"},
		"a secret in a terminal status": {created().replacing(`"client_secret":null`, `"client_secret":"cs_1"`), "$.client_secret"},
		"a redirect in a terminal status": {
			created().replacing(`"next_action":null`, `"next_action":{"type":"redirect","redirect_url":"https://psp.example/1"}`), "$.next_action",
		},
		"a name twice":              {created().replacing(`"metadata":{}`, `"metadata":{},"metadata":{}`), "duplicate"},
		"data after the object":     {created().with(func(e *exchange) { e.body += "{}" }), "goes on after"},
		"null for an object":        {created().with(func(e *exchange) { e.body = "null" }), "not a JSON object"},
		"an empty body":             {created().with(func(e *exchange) { e.body = "" }), "not a JSON object"},
		"another content type":      {created().with(func(e *exchange) { e.header.Set("Content-Type", "text/plain") }), "text/plain"},
		"no content type":           {created().with(func(e *exchange) { e.header.Del("Content-Type") }), "ontent"},
		"no Location":               {created().with(func(e *exchange) { e.header.Del("Location") }), "Location"},
		"no Retry-After on a 202":   {created().with(func(e *exchange) { e.status = http.StatusAccepted }), "Retry-After"},
		"a replay mark that is off": {created().with(func(e *exchange) { e.header.Set("Idempotent-Replayed", "false") }), "idempotent-replayed"},
		"a status that is not described": {
			created().with(func(e *exchange) { e.status = http.StatusOK }),
			"200",
		},
		"a method that is not described": {read("/v1/payments/"+paymentID, payment).with(func(e *exchange) { e.method = http.MethodPatch }), "PATCH"},
		"a path that is not described":   {read("/v1/refunds", list+listEnd), "/v1/refunds"},
		"a success without a key":        {created().with(func(e *exchange) { e.reqHeader.Del("Idempotency-Key") }), "Idempotency-Key"},
		"a success with a key that is too long": {
			created().with(func(e *exchange) { e.reqHeader.Set("Idempotency-Key", strings.Repeat("k", 256)) }),
			"Idempotency-Key",
		},
		"a success without an API key":      {created().with(func(e *exchange) { e.reqHeader.Del("Authorization") }), "request"},
		"a success of an unknown field":     {created().with(func(e *exchange) { e.reqBody = strings.Replace(order, `{`, `{"Amount":1,`, 1) }), "Amount"},
		"a success of a bad amount":         {created().with(func(e *exchange) { e.reqBody = strings.Replace(order, "5000", "0", 1) }), "$.amount"},
		"a success without a needed body":   {created().with(func(e *exchange) { e.reqBody = "" }), "request"},
		"a success of an over-long wait":    {read("/v1/payments/"+paymentID+"?wait=21", payment), "wait"},
		"a success without a needed filter": {read("/v1/payments", list+listEnd), "reference"},
		"a problem as plain JSON": {problem(http.StatusNotFound, "not_found", "").with(func(e *exchange) {
			e.path, e.method = "/v1/payments/"+paymentID, http.MethodGet
			e.header.Set("Content-Type", "application/json")
		}), "application/json"},
		"a problem with a field too many":         {problem(http.StatusInternalServerError, "internal", `,"error":"dial tcp"`), "error"},
		"a code that is not of this status":       {problem(http.StatusBadRequest, "not_found", ""), "$.code"},
		"a code that is not of this operation":    {problem(http.StatusConflict, "payment_captured", ""), "$.code"},
		"a problem with another status inside":    {problem(http.StatusUnauthorized, "unauthorized", "").replacing("401", "403"), "$.status"},
		"a problem's status written as a decimal": {problem(http.StatusUnauthorized, "unauthorized", "").replacing("401", "401.0"), "401.0"},
		"a type that is not the code's":           {problem(http.StatusUnauthorized, "unauthorized", "").replacing("problem:unauthorized", "problem:other"), "type"},
		"a held reference without its payment":    {problem(http.StatusConflict, "reference_in_use", ""), "payment_id"},
		"a payment named without need":            {problem(http.StatusUnauthorized, "unauthorized", `,"payment_id":"`+paymentID+`"`), "not"},
		"an invalid request without its fields":   {problem(http.StatusBadRequest, "invalid_request", ""), "errors"},
		"a request in progress without a time":    {problem(http.StatusConflict, "idempotency_in_progress", ""), "Retry-After"},
		"another conflict with a time": {problem(http.StatusConflict, "reference_in_use", `,"payment_id":"`+paymentID+`"`).
			with(func(e *exchange) { e.header.Set("Retry-After", "1") }), "Retry-After"},
		"unavailable without a time": {problem(http.StatusServiceUnavailable, "unavailable", ""), "Retry-After"},
		"a journal row with a secret": {read("/v1/payments/"+paymentID+"/events",
			list+`{"id":"e.1","type":"payment.captured","version":1,"at":"2026-01-02T03:04:05Z","source":"api","data":{"client_secret":"cs_1"}}`+listEnd), "data"},
		"a journal row of an unknown source": {read("/v1/payments/"+paymentID+"/events",
			list+`{"id":"e.1","type":"payment.captured","version":1,"at":"2026-01-02T03:04:05Z","source":"psp","data":{}}`+listEnd), "source"},
		"a checkout's row in a payment's journal": {read("/v1/payments/"+paymentID+"/events",
			list+`{"id":"e.1","type":"checkout.created","version":1,"at":"2026-01-02T03:04:05Z","source":"api","data":{}}`+listEnd), "type"},
		"a body on a 204": {exchange{
			method: http.MethodDelete, path: "/v1/merchants/alpha/keys/sk_test_Example0",
			reqHeader: http.Header{"Authorization": {"Bearer sk_test_operator"}}, status: http.StatusNoContent, header: http.Header{}, body: "{}",
		}, "204"},
		"a webhook of an unknown PSP": {webhook("paypal", "{}"), "psp"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			tt.exchange.check(apitest.New(r))
			if len(r.errors) != 1 || !strings.Contains(r.errors[0], tt.want) {
				t.Errorf("got %q, want one report that names %q", r.errors, tt.want)
			}
		})
	}
}

func TestCheckLeavesTheRequestAsItIs(t *testing.T) {
	req := httptest.NewRequest(http.MethodPost, "/v1/payments", strings.NewReader("unread"))
	req.Header = created().reqHeader
	body := req.Body
	apitest.New(t).Check(req, []byte(order), &http.Response{StatusCode: http.StatusCreated, Header: created().header}, []byte(payment))
	if req.Body != body || req.ContentLength != int64(len("unread")) {
		t.Errorf("got another body, want the caller's own")
	}
}

func TestCheckMayRunConcurrently(t *testing.T) {
	v := apitest.New(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				created().check(v)
			}
		})
	}
	all.Wait()
}

func BenchmarkCheck(b *testing.B) {
	v := apitest.New(b)
	e := created()
	for b.Loop() {
		e.check(v)
	}
}
