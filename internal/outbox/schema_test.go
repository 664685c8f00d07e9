package outbox_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/pb33f/jsonschema/v6"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// schema is the published form of an event.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := os.Open("../../infra/events/event.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	document, err := jsonschema.UnmarshalJSON(raw)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("event.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("event.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, body []byte) error {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// What leaves is what was published, and no secret fits in it.
func TestTheBodyOfAnEventHasItsPublishedForm(t *testing.T) {
	s := schema(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	_, row := payment.NewSent(payment.Terms{
		ID: "pay_01M8NMNTP8PBAY5NFWEAWXN6KQ", MerchantID: "alpha", Amount: money.Amount{Minor: 500, Currency: "JPY"},
		CaptureMethod: payment.CaptureAutomatic, PSP: "simulator", ExpiresAt: at.Add(time.Hour),
	}, at)
	raw, err := json.Marshal(row.Data)
	if err != nil {
		t.Fatal(err)
	}
	e := outbox.Event{
		ID: outbox.EventID("pay_01M8NMNTP8PBAY5NFWEAWXN6KQ", 1), Type: string(row.Type), Subject: "pay_01M8NMNTP8PBAY5NFWEAWXN6KQ",
		Version: 1, At: at, Source: "api", MerchantID: "alpha",
	}
	if err := json.Unmarshal(raw, &e.Data); err != nil {
		t.Fatal(err)
	}
	body, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	if err := valid(t, s, body); err != nil {
		t.Errorf("got %v for\n%s", err, body)
	}
	e.Data["redirect_url"] = "https://psp.example"
	if body, err = e.Body(); err != nil {
		t.Fatal(err)
	}
	if valid(t, s, body) == nil {
		t.Error("an event with a redirect address is valid, want it refused")
	}
	if _, ok := payments.RowChange(store.Change{}); ok {
		t.Error("an empty change is an event")
	}
}
