package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// failing is a flow whose every call ends as it is told.
type failing struct {
	api.Charges
	err error
	// panics instead, when it is not nil
	panics any
	result charge.Result
}

func (f failing) end() (charge.Result, error) {
	if f.panics != nil {
		panic(f.panics)
	}
	return f.result, f.err
}

func (f failing) Create(context.Context, charge.CreateRequest) (charge.Result, error) { return f.end() }
func (f failing) Refund(context.Context, charge.RefundRequest) (charge.Result, error) { return f.end() }
func (f failing) Cancel(context.Context, charge.CancelRequest) (charge.Result, error) { return f.end() }
func (f failing) Capture(context.Context, charge.CaptureRequest) (charge.Result, error) {
	return f.end()
}

func (f failing) Payment(context.Context, string, payment.ID) (payment.Payment, error) {
	r, err := f.end()
	return r.Payment, err
}

func (w *world) withCharges(c api.Charges) {
	config := w.config
	config.Charges = c
	w.api = api.New(config)
}

func TestAFlowsErrorIsTold(t *testing.T) {
	const holder = "pay_01KDYAK348M9S346Q3D25VT4F5"
	tests := []struct {
		err    error
		path   string
		status int
		code   string
		retry  string
	}{
		{idempotency.ErrKeyReused, "", 422, "idempotency_key_reused", ""},
		{&charge.InProgressError{RetryAfter: 1200 * time.Millisecond}, "", 409, "idempotency_in_progress", "2"},
		{&charge.InProgressError{RetryAfter: time.Nanosecond}, "", 409, "idempotency_in_progress", "1"},
		{&charge.InProgressError{}, "", 409, "idempotency_in_progress", "1"},
		{&charge.ReferenceInUseError{PaymentID: holder}, "", 409, "reference_in_use", ""},
		{charge.ErrUnknownPSP, "", 400, "invalid_request", ""},
		{charge.ErrNotFound, "/" + absentID + "/refunds", 404, "not_found", ""},
		{fmt.Errorf("%w: created", charge.ErrInvalidStatus), "/" + absentID + "/capture", 409, "invalid_status", ""},
		{charge.ErrCaptured, "/" + absentID + "/cancel", 409, "payment_captured", ""},
		{charge.ErrCaptureRefused, "/" + absentID + "/capture", 409, "capture_refused", ""},
		{charge.ErrCheckoutPending, "/" + absentID + "/refunds", 409, "checkout_pending", ""},
		{fmt.Errorf("change: %w", payment.ErrAmountTooLarge), "/" + absentID + "/refunds", 422, "amount_too_large", ""},
		{fmt.Errorf("change: %w", payment.ErrDisputed), "/" + absentID + "/refunds", 409, "payment_disputed", ""},
		{journal.ErrBusy, "", 503, "unavailable", "1"},
		{fmt.Errorf("write: %w", store.ErrUnavailable), "", 503, "unavailable", "1"},
		{context.DeadlineExceeded, "", 503, "unavailable", "1"},
		{errors.New("canary: dial tcp 10.0.0.1"), "", 503, "unavailable", "1"},
		{&payment.MismatchError{}, "/" + absentID + "/capture", 503, "unavailable", "1"},
	}
	for _, tt := range tests {
		t.Run(tt.err.Error(), func(t *testing.T) {
			w := newWorld(t)
			w.withCharges(failing{err: tt.err, result: charge.Result{Payment: payment.Payment{ID: absentID}}})
			body := ""
			if tt.path == "" {
				body = order
			}
			got := w.post("/v1/payments"+tt.path, body)
			w.want(got, tt.status, tt.code)
			if got.header.Get("Retry-After") != tt.retry {
				t.Errorf("got Retry-After %q, want %q", got.header.Get("Retry-After"), tt.retry)
			}
			if strings.Contains(got.text, "canary") || strings.Contains(got.text, "10.0.0.1") {
				t.Errorf("got %s, want no internal error", got.text)
			}
			lines := w.logs.lines(t, "request failed")
			if logged := len(lines) == 1; logged != (tt.status == 503) {
				t.Errorf("got %d lines, want one for what no client may hear of", len(lines))
			}
			if len(lines) == 1 && lines[0]["payment_id"] != absentID {
				t.Errorf("got %v, want its payment_id", lines[0])
			}
		})
	}
}

func TestAPanicIsAnInternalErrorAndLogged(t *testing.T) {
	w := newWorld(t)
	for _, cause := range []any{"text", errors.New("error"), struct{ canary string }{"canary"}} {
		w.withCharges(failing{panics: cause})
		got := w.get("/v1/payments/" + absentID)
		w.want(got, http.StatusInternalServerError, "internal")
	}
	lines := w.logs.lines(t, "request panicked")
	if len(lines) != 3 || lines[0]["payment_id"] != absentID || lines[0]["stack"] == "" {
		t.Errorf("got %v, want three lines with payment and stack", lines)
	}
	if strings.Contains(w.logs.text(), "canary") {
		t.Errorf("got the value of a panic in a log line")
	}
}

func TestEachRequestIsOneLine(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured, `,"reference":"canary-reference","metadata":{"canary-name":"canary-value"}`)
	w.get("/v1/payments/" + id + "?canary=1")
	w.send(request{method: http.MethodGet, path: "/canary", apiKey: "sk_test_canary", unchecked: true})
	w.send(request{method: http.MethodPost, path: "/v1/payments", apiKey: alpha, key: "canary-key", body: `{"canary":1}`})
	lines := w.logs.lines(t, "request")
	want := []map[string]any{
		{"method": "POST", "route": "/v1/payments", "status": 201.0, "merchant_id": "alpha", "payment_id": id},
		{"method": "GET", "route": "/v1/payments/{id}", "status": 200.0, "merchant_id": "alpha", "payment_id": id},
		{"method": "GET", "route": "none", "status": 401.0, "merchant_id": nil, "payment_id": nil},
		{"method": "POST", "route": "/v1/payments", "status": 400.0, "merchant_id": "alpha", "payment_id": nil},
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d", len(lines), len(want))
	}
	for i := range want {
		for name, value := range want[i] {
			if lines[i][name] != value {
				t.Errorf("line %d: got %s %v, want %v", i, name, lines[i][name], value)
			}
		}
		if _, ok := lines[i]["duration_ms"].(float64); !ok {
			t.Errorf("line %d: got no duration_ms", i)
		}
	}
	if strings.Contains(w.logs.text(), "canary") {
		t.Errorf("got something of a request in a log line: %s", w.logs.text())
	}
}

func TestHealthIsOpenAndSaysWhenItIsNotReady(t *testing.T) {
	w := newWorld(t)
	health := request{method: http.MethodGet, path: "/healthz"}
	got := w.send(health)
	w.want(got, http.StatusOK, "")
	if got.str("status") != "ok" {
		t.Errorf("got %s, want ok", got.text)
	}
	config := w.config
	config.Ready = func(context.Context) error { return errors.New("canary") }
	w.api = api.New(config)
	w.want(w.send(health), http.StatusServiceUnavailable, "unavailable")
	event := events.APIGatewayV2HTTPRequest{RawPath: "/healthz"} // the route has no authorizer
	event.RequestContext.HTTP.Method = http.MethodHead
	if got, _ := w.api.Handle(t.Context(), event); got.StatusCode != http.StatusServiceUnavailable || got.Body != "" {
		t.Errorf("got %d %q, want 503 without a body", got.StatusCode, got.Body)
	}
}
