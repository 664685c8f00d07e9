// Package body_test is apart from the other tests so that instrumenting it for
// fuzzing does not take in the OpenAPI validator.
package body_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// accepting takes every payment and remembers the last.
type accepting struct {
	api.Charges
	last *charge.CreateRequest
}

func (a accepting) Create(_ context.Context, r charge.CreateRequest) (charge.Result, error) {
	*a.last = r
	p, _ := payment.New(r.Terms, time.Unix(0, 0).UTC())
	return charge.Result{Payment: p}, nil
}

// FuzzBody holds the reader of bodies to what it promises: whatever comes, it is
// accepted or 400; what is accepted, a lenient reader understands in the same way.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"amount":10000,"currency":"JPY","payment_method":"tok_captured","reference":"order-1"}`, `{}`, ``, `{"amount":1,"amount":2}`, `{"amount":1e3}`, `{"amount":-0}`, `{"Amount":1}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `[[[[[[[[[[[[[[[[[[`,
		`{"amount":1,"currency":"JPY","payment_method":"t","metadata":{"k":null}}`, `{"amount":1,"currency":"JPY","payment_method":"t"}{}`,
		`{"amount":1,"currency":"JPY","payment_method":"t","metadata":{"4242424242424242":"v"}}`, "\ufeff{}", `{"":{"":{"":1}}}`,
		`{"amount":1,"currency":"JPY","payment_method":"t","return_url":"https://a@b","reference":"\u0000"}`,
	} {
		f.Add([]byte(seed))
	}
	var last charge.CreateRequest
	h := api.New(api.Config{
		Charges: accepting{last: &last}, Settings: api.Settings{DefaultPSP: "simulator", PSPs: []string{"simulator"}},
		Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	f.Fuzz(func(t *testing.T, body []byte) {
		event := events.APIGatewayV2HTTPRequest{RawPath: "/v1/payments", Headers: map[string]string{"idempotency-key": "k"}, Body: string(body)}
		event.RequestContext.HTTP.Method = http.MethodPost
		event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"merchant": "alpha", "role": "merchant"}}
		got, err := h.Handle(t.Context(), event)
		switch {
		case err != nil:
			t.Fatal(err)
		case got.StatusCode == http.StatusBadRequest:
			if !json.Valid([]byte(got.Body)) || got.Headers["Content-Type"] != "application/problem+json" {
				t.Errorf("got %v %q, want a problem", got.Headers, got.Body)
			}
			return
		case got.StatusCode != http.StatusAccepted: // a created payment is not decided
			t.Fatalf("got %d %s, want it accepted or 400", got.StatusCode, got.Body)
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		var lenient struct {
			Amount        json.Number       `json:"amount"`
			Currency      string            `json:"currency"`
			PaymentMethod string            `json:"payment_method"`
			CaptureMethod string            `json:"capture_method"`
			Reference     string            `json:"reference"`
			ReturnURL     string            `json:"return_url"`
			PSP           string            `json:"psp"`
			Metadata      map[string]string `json:"metadata"`
		}
		if err := d.Decode(&lenient); err != nil {
			t.Fatalf("got %q accepted, which a lenient reader refuses: %v", body, err)
		}
		terms := last.Terms
		amount, err := lenient.Amount.Int64()
		if err != nil || amount != terms.Amount.Minor || amount < 1 || amount > money.Max || lenient.Currency != string(terms.Amount.Currency) ||
			lenient.PaymentMethod != terms.PaymentMethod.Reveal() || lenient.Reference != terms.Reference || lenient.ReturnURL != terms.ReturnURL ||
			len(lenient.Metadata) != len(terms.Metadata) {
			t.Errorf("got %+v of %q, want the same as a lenient reader", terms, body)
		}
		if !utf8.Valid(body) || len(body) > 65_536 || d.More() {
			t.Errorf("got %q accepted", body)
		}
	})
}
