package infra_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/orderedmap"
)

func TestTheRoutesAreExactlyThese(t *testing.T) {
	want := []string{
		"DELETE /v1/merchants/{id}/keys/{prefix} operator",
		"GET /console operator or nobody",
		"GET /healthz nobody",
		"GET /v1/checkouts/{id} merchant",
		"GET /v1/checkouts/{id}/events merchant",
		"GET /v1/events merchant",
		"GET /v1/events/resend operator",
		"GET /v1/events/{id} merchant",
		"GET /v1/merchants/{id}/keys operator",
		"GET /v1/notifications merchant",
		"GET /v1/orders merchant",
		"GET /v1/orders/{id} merchant",
		"GET /v1/payments merchant",
		"GET /v1/payments/{id} merchant",
		"GET /v1/payments/{id}/events merchant",
		"GET /v1/payments/{id}/refunds merchant",
		"GET /v1/reconciliations operator",
		"GET /v1/reconciliations/{id} operator",
		"GET /v1/reconciliations/{id}/findings operator",
		"GET /v1/stock/{sku} merchant",
		"GET /v1/webhook_endpoint merchant",
		"GET /v1/webhooks operator",
		"GET /v1/webhooks/{id} operator",
		"POST /v1/checkouts merchant",
		"POST /v1/checkouts/{id}/resume operator",
		"POST /v1/events/redeliver operator",
		"POST /v1/events/resend operator",
		"POST /v1/events/{id}/redeliver merchant",
		"POST /v1/merchants operator",
		"POST /v1/merchants/{id}/keys operator",
		"POST /v1/payments merchant",
		"POST /v1/payments/{id}/cancel merchant",
		"POST /v1/payments/{id}/capture merchant",
		"POST /v1/payments/{id}/refunds merchant",
		"POST /v1/reconciliations operator",
		"POST /v1/webhook_endpoint/rotate merchant",
		"POST /v1/webhook_endpoint/test merchant",
		"POST /v1/webhooks/{id}/replay operator",
		"POST /{psp} nobody",
		"PUT /v1/stock/{sku} merchant",
		"PUT /v1/webhook_endpoint merchant",
	}
	var got []string
	for o := range load(t).operations() {
		got = append(got, o.String()+" "+callers(o))
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// callers names who may call an operation.
func callers(o operation) string {
	if o.Security == nil {
		return "merchant" // the document's own
	}
	var who []string
	for _, s := range o.Security {
		if orderedmap.Len(s.Requirements) == 0 {
			who = append(who, "nobody")
		}
		for scheme := range s.Requirements.FromOldest() {
			who = append(who, strings.TrimSuffix(scheme, "Key"))
		}
	}
	if len(who) == 0 {
		return "nobody"
	}
	return strings.Join(who, " or ")
}

func TestEveryOperationIsDescribed(t *testing.T) {
	ids := map[string]bool{}
	for o := range load(t).operations() {
		if o.Summary == "" || o.Description == "" || len(o.Tags) != 1 {
			t.Errorf("%s: got no summary, description or single tag", o)
		}
		if o.OperationId == "" || ids[o.OperationId] {
			t.Errorf("%s: got operation id %q, want a unique one", o, o.OperationId)
		}
		ids[o.OperationId] = true
	}
}

func TestExactlyThePOSTsTakeAnIdempotencyKey(t *testing.T) {
	for o := range load(t).operations() {
		key := o.parameter("header", "Idempotency-Key")
		want := o.method == "post" && strings.HasPrefix(o.path, "/v1/")
		if (key != nil) != want {
			t.Errorf("%s: got key %t, want %t", o, key != nil, want)
		}
		if key != nil && (key.Required == nil || !*key.Required) {
			t.Errorf("%s: got an optional key, want a required one", o)
		}
	}
}

func TestAnIdempotencyKeyIsUpTo255PrintableCharacters(t *testing.T) {
	d := load(t)
	schema := d.Components.Parameters.GetOrZero("IdempotencyKey").Schema
	long := strings.Repeat("k", 255)
	for _, key := range []string{"k", "a b", "~", long, `"` + long + `"`, `"a\"b"`} {
		if err := d.allows(schema, key); err != nil {
			t.Error(err)
		}
	}
	for _, key := range []string{"", long + "k", "ü", "a\tb", `"` + long + `k"`} {
		if d.allows(schema, key) == nil {
			t.Errorf("key %q is allowed", key)
		}
	}
}

func TestEveryListIsPaged(t *testing.T) {
	for o := range load(t).operations() {
		ok := o.Responses.Codes.GetOrZero("200")
		if ok == nil || ok.Content.GetOrZero(jsonType) == nil {
			continue
		}
		list := strings.HasSuffix(ok.Content.GetOrZero(jsonType).Schema.GetReference(), "List")
		for _, name := range []string{"cursor", "limit"} {
			if got := o.parameter("query", name) != nil; got != list {
				t.Errorf("%s: got %s %t, want %t", o, name, got, list)
			}
		}
	}
}

func TestEveryUnknownOutcomeSaysWhereAndWhenToLook(t *testing.T) {
	for o := range load(t).operations() {
		accepted := o.Responses.Codes.GetOrZero("202")
		if accepted == nil {
			continue
		}
		for _, name := range []string{"Location", "Retry-After"} {
			if h := accepted.Headers.GetOrZero(name); h == nil || !h.Required {
				t.Errorf("%s: got a 202 without a required %s", o, name)
			}
		}
	}
}

func TestSecretsAreAllowedOnlyWhileTheCustomerMustAct(t *testing.T) {
	d := load(t)
	schema := d.Components.Schemas.GetOrZero("Payment")
	statuses := d.Components.Schemas.GetOrZero("PaymentStatus").Schema().Enum
	if len(statuses) != 8 {
		t.Fatalf("got %d statuses, want 8", len(statuses))
	}
	for _, node := range statuses {
		status := node.Value
		payment := exampleIn(t, d, status)
		if err := d.allows(schema, payment); err != nil {
			t.Errorf("%s: %v", status, err)
		}
		for field, secret := range map[string]any{
			"client_secret": "cs_1",
			"next_action":   map[string]any{"type": "redirect", "redirect_url": "https://psp.example/1"},
		} {
			p := maps.Clone(payment)
			p[field] = secret
			if got, want := d.allows(schema, p) == nil, status == "requires_action"; got != want {
				t.Errorf("%s in %s: got allowed %t, want %t", field, status, got, want)
			}
		}
	}
}

// exampleIn returns a payment in the status.
func exampleIn(t *testing.T, d document, status string) map[string]any {
	t.Helper()
	p := decoded(t, d.Components.Examples.GetOrZero("PaymentCaptured").Value).(map[string]any)
	p["status"] = status
	if status == "failed" {
		p["failure"] = map[string]any{"code": "card_declined", "decline_code": nil, "retryable": false}
	}
	return p
}

func TestOperatorsSeeNoSecretOfACheckout(t *testing.T) {
	d := load(t)
	for field, secret := range map[string]any{
		"next_action":   map[string]any{"type": "redirect", "redirect_url": "https://psp.example/1"},
		"client_secret": "cs_1",
	} {
		checkout := decoded(t, d.Components.Examples.GetOrZero("CheckoutRequiresAction").Value).(map[string]any)
		payment := checkout["payment"].(map[string]any)
		payment["next_action"], payment["client_secret"] = nil, nil
		if err := d.allows(d.Components.Schemas.GetOrZero("OperatorCheckout"), checkout); err != nil {
			t.Error(err)
		}
		payment[field] = secret
		if err := d.allows(d.Components.Schemas.GetOrZero("Checkout"), checkout); err != nil {
			t.Error(err)
		}
		if d.allows(d.Components.Schemas.GetOrZero("OperatorCheckout"), checkout) == nil {
			t.Errorf("%s is allowed in an operator's view", field)
		}
	}
}

func TestEveryProblemHasOneStatusAndCodesOfItsOwn(t *testing.T) {
	d := load(t)
	reached := map[string]bool{}
	for o := range d.operations() {
		for status, r := range o.Responses.Codes.FromOldest() {
			if orderedmap.Len(r.Content) == 0 || r.Content.GetOrZero(problemType) == nil {
				continue
			}
			own := r.Content.GetOrZero(problemType).Schema.Schema().AllOf[1].Schema().Properties
			if got := own.GetOrZero("status").Schema().Const.Value; got != status {
				t.Errorf("%s %s: got status %s inside, want the same", o, status, got)
			}
			for _, code := range own.GetOrZero("code").Schema().Enum {
				reached[code.Value] = true
			}
		}
	}
	codes := map[string]bool{}
	for _, code := range d.Components.Schemas.GetOrZero("ProblemCode").Schema().Enum {
		codes[code.Value] = true
	}
	if !maps.Equal(reached, codes) {
		t.Errorf("got codes %v in answers, want %v", slices.Sorted(maps.Keys(reached)), slices.Sorted(maps.Keys(codes)))
	}
}
