package ingress_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/api/apitest"
	"github.com/kessai/kessai/internal/ingress"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/adyen"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type meter struct{}

func (meter) Count(string, int64) {}

// world is the ingress on the real flow and a store in memory.
type world struct {
	t       *testing.T
	fake    *psptest.Fake
	table   *payments.Table
	handler *ingress.Handler
	logs    bytes.Buffer
	checker *apitest.Validator
}

const adyenKey = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := func() time.Time { return now }
	w := &world{t: t, fake: psptest.NewFake("simulator"), table: payments.New(memory.New(memory.Options{Now: clock})), checker: apitest.New(t)}
	batch, err := adyen.New(adyen.Config{Keys: []string{adyenKey}, MerchantAccount: "KessaiTest"})
	if err != nil {
		t.Fatal(err)
	}
	w.serve(&webhook.Ingest{
		Providers: map[string]psp.Webhooks{"simulator": w.fake, "adyen": batch, "stripe": nil}, Inbox: w.table,
		Settings: webhook.Settings{ReconcileAfter: time.Minute, Wait: time.Hour}, Now: clock, Meter: meter{},
	})
	return w
}

func (w *world) serve(r ingress.Receiver) {
	w.handler = ingress.New(ingress.Config{
		Receiver: r, Now: func() time.Time { return now }, Log: slog.New(slog.NewJSONHandler(&w.logs, nil)),
	})
}

// delivery is one request to the function URL.
func delivery(name string, d psp.Delivery) events.LambdaFunctionURLRequest {
	request := events.LambdaFunctionURLRequest{RawPath: "/" + name, Headers: map[string]string{"content-type": "application/json"}, Body: string(d.Body)}
	for n, values := range d.Header {
		request.Headers[strings.ToLower(n)] = strings.Join(values, ",")
	}
	request.RequestContext.HTTP.Method = http.MethodPost
	return request
}

func (w *world) send(r events.LambdaFunctionURLRequest) events.LambdaFunctionURLResponse {
	w.t.Helper()
	got, err := w.handler.Handle(w.t.Context(), r)
	if err != nil {
		w.t.Fatalf("got error %v, want an answer", err)
	}
	if r.RequestContext.HTTP.Method == http.MethodPost && strings.Count(r.RawPath, "/") == 1 && len(r.RawPath) > 1 {
		req := httptest.NewRequest(http.MethodPost, r.RawPath, nil)
		for n, value := range r.Headers {
			req.Header.Set(n, value)
		}
		answer := &http.Response{StatusCode: got.StatusCode, Header: http.Header{}}
		for n, value := range got.Headers {
			answer.Header.Set(n, value)
		}
		w.checker.Check(req, []byte(r.Body), answer, []byte(got.Body))
	}
	return got
}

func (w *world) event(id string) psp.Delivery {
	return w.fake.Delivery(psptest.Event{ID: id, Type: "charge.captured"}, now)
}

func (w *world) stored(name, id string) bool {
	_, err := w.table.Item(w.t.Context(), name, id)
	return err == nil
}

func TestADeliveryIsStoredAndAcknowledged(t *testing.T) {
	w := newWorld(t)
	r := delivery("simulator", w.event("evt_1"))
	for range 2 { // a second time it was there already
		got := w.send(r)
		if got.StatusCode != http.StatusOK || got.Body != "{}" || got.Headers["Content-Type"] != "application/json" {
			t.Errorf("got %d %q %v, want 200 {}", got.StatusCode, got.Body, got.Headers)
		}
	}
	if !w.stored("simulator", "evt_1") {
		t.Error("got nothing stored")
	}
}

func TestADeliveryInBase64IsDecodedBeforeItsSignatureIsChecked(t *testing.T) {
	w := newWorld(t)
	body := psptest.SignAdyen(adyenKey, psptest.AdyenItem{PSPReference: "ref-1", MerchantAccountCode: "KessaiTest", MerchantReference: "pay_1", Value: 1, Currency: "JPY", EventCode: "CAPTURE", Success: true})
	r := delivery("adyen", psp.Delivery{Header: http.Header{"Content-Type": {"application/json"}}, Body: body})
	r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	got, err := w.handler.Handle(t.Context(), r)
	if err != nil || got.StatusCode != http.StatusOK || got.Body != "[accepted]" {
		t.Errorf("got %d %q, %v, want 200 [accepted]", got.StatusCode, got.Body, err)
	}
	r.Body = "!"
	if got, _ := w.handler.Handle(t.Context(), r); got.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d, want 401 for what is no base64", got.StatusCode)
	}
}

func TestADeliveryThatIsNotThePSPsIsRefused(t *testing.T) {
	w := newWorld(t)
	unsigned := w.event("evt_1")
	unsigned.Header = http.Header{"Content-Type": {"application/json"}}
	wrong := w.event("evt_1")
	wrong.Header = http.Header{"Fake-Signature": {"canary-signature"}}
	for name, r := range map[string]events.LambdaFunctionURLRequest{
		"no signature": delivery("simulator", unsigned), "another signature": delivery("simulator", wrong), "no secret": delivery("stripe", w.event("evt_1")),
	} {
		got := w.send(r)
		if got.StatusCode != http.StatusUnauthorized || !strings.Contains(got.Body, `"code":"unauthorized"`) {
			t.Errorf("%s: got %d %s, want 401", name, got.StatusCode, got.Body)
		}
	}
	if w.stored("simulator", "evt_1") || w.stored("stripe", "evt_1") {
		t.Error("got something stored")
	}
	if logs := w.logs.String(); strings.Contains(logs, "evt_1") || strings.Contains(logs, "canary") {
		t.Errorf("got something of the delivery in %s", logs)
	}
}

func TestADeliveryThatHasNoPlaceIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/paypal", "/", "", "/simulator/", "/simulator/x", "/Simulator", "/canary"} {
		r := delivery("", w.event("evt_1"))
		r.RawPath = path
		if got := w.send(r); got.StatusCode != http.StatusNotFound || !strings.Contains(got.Body, `"code":"not_found"`) {
			t.Errorf("%q: got %d %s, want 404", path, got.StatusCode, got.Body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions} {
		r := delivery("simulator", w.event("evt_1"))
		r.RequestContext.HTTP.Method = method
		if got := w.send(r); got.StatusCode != http.StatusMethodNotAllowed || got.Headers["Allow"] != "POST" {
			t.Errorf("%s: got %d %v, want 405 that allows POST", method, got.StatusCode, got.Headers)
		}
	}
	if strings.Contains(w.logs.String(), "canary") {
		t.Errorf("got an unknown path in %s", w.logs.String())
	}
}

func TestADeliveryMayBe262144Bytes(t *testing.T) {
	w := newWorld(t)
	whole := w.event("evt_1")
	whole.Body = append(whole.Body, bytes.Repeat([]byte(" "), 262_144-len(whole.Body))...)
	if got := w.send(delivery("simulator", whole)); got.StatusCode != http.StatusOK {
		t.Errorf("got %d %s, want 200", got.StatusCode, got.Body)
	}
	larger := w.event("evt_2")
	larger.Body = append(larger.Body, bytes.Repeat([]byte(" "), 262_145-len(larger.Body))...)
	if got := w.send(delivery("simulator", larger)); got.StatusCode != http.StatusRequestEntityTooLarge || w.stored("simulator", "evt_2") {
		t.Errorf("got %d %s, want 413 and nothing stored", got.StatusCode, got.Body)
	}
	r := delivery("simulator", larger)
	r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString(whole.Body), true
	got, err := w.handler.Handle(t.Context(), r)
	if err != nil || got.StatusCode != http.StatusOK {
		t.Errorf("got %d, %v, want the decoded body measured", got.StatusCode, err)
	}
}

// receiver ends every delivery as it is told.
type receiver func() error

func (r receiver) Receive(context.Context, string, psp.Delivery) (psp.Acknowledgement, error) {
	return psp.Acknowledgement{}, r()
}

func TestADeliveryThatCannotBeStoredIsToComeAgain(t *testing.T) {
	w := newWorld(t)
	w.serve(receiver(func() error { return errors.Join(store.ErrUnavailable, errors.New("canary")) }))
	got := w.send(delivery("simulator", w.event("evt_1")))
	if got.StatusCode != http.StatusServiceUnavailable || got.Headers["Retry-After"] == "" || strings.Contains(got.Body, "canary") {
		t.Errorf("got %d %s %v, want 503 with Retry-After and no internal error", got.StatusCode, got.Body, got.Headers)
	}
	if strings.Count(w.logs.String(), "delivery not stored") != 1 {
		t.Errorf("got %s, want the error once", w.logs.String())
	}
	w.serve(receiver(func() error { panic("canary") }))
	if got := w.send(delivery("simulator", w.event("evt_1"))); got.StatusCode != http.StatusInternalServerError {
		t.Errorf("got %d, want 500", got.StatusCode)
	}
}
