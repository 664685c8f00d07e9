package infra_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/datamodel/high/base"
)

// object is a JSON object in a table of values.
type object = map[string]any

const ulid = "01KDYAK348M9S346Q3D25VT4F5"

func text(n int) string { return strings.Repeat("x", n) }

// ids allows prefix and a ULID, and refuses what only looks like one.
func ids(prefix string) (allowed, refused []any) {
	return []any{prefix + ulid}, []any{
		"", ulid, prefix, prefix + ulid[1:], prefix + ulid + "0", prefix + strings.ToLower(ulid),
		prefix + "8" + ulid[1:], prefix + ulid[:25] + "U", "x" + prefix + ulid, prefix + ulid + "\n",
	}
}

func notes(n int) object {
	m := object{}
	for i := range n {
		m[fmt.Sprint("name", i)] = "value"
	}
	return m
}

func TestTheLimitsAreExact(t *testing.T) {
	tests := map[string]struct{ allowed, refused []any }{
		"Amount":    {[]any{1, 999999999999}, []any{0, -1, 1000000000000, 1.5, "100"}},
		"Total":     {[]any{0, 999999999999}, []any{-1, 1000000000000, 0.5}},
		"Currency":  {[]any{"JPY"}, []any{"jpy", "JP", "JPYX", "", 392}},
		"Reference": {[]any{"o", "order 42/é", text(64)}, []any{"", "a:b", text(65)}},
		"SKU":       {[]any{"a", "tee-black.m", text(64)}, []any{"", "a b", "a/b", "é", text(65)}},
		"Quantity":  {[]any{1, 9999}, []any{0, 10000, 1.5}},
		"Pieces":    {[]any{0, 999999999}, []any{-1, 1000000000, 0.5, "1"}},
		"Time": {
			[]any{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456Z"},
			[]any{"2026-01-02T03:04:05", "2026-01-02T03:04:05+00:00", "2026-02-30T03:04:05Z", 1767323045},
		},
		"PSP":           {[]any{"simulator", "stripe", "adyen"}, []any{"Stripe", "", "paypal"}},
		"PSPReference":  {[]any{"c", text(255)}, []any{"", text(256)}},
		"PaymentMethod": {[]any{"t", text(255)}, []any{"", "a b", "é", text(256)}},
		"ReturnURL": {
			[]any{"https://shop.example/return?x=1", "http://localhost:8080/r", "http://127.0.0.1", "http://[::1]:3000/"},
			[]any{
				"http://shop.example/", "javascript:alert(1)", "//shop.example", "https://", "http://localhost.evil.example/", "/return", "",
				"https://shop.example/" + text(2048),
			},
		},
		"Reason":         {[]any{"r", text(255)}, []any{"", text(256)}},
		"Metadata":       {[]any{object{}, notes(20), object{text(40): text(500)}}, []any{notes(21), object{"": "v"}, object{text(41): "v"}, object{"k": text(501)}, object{"k": nil}, object{"k": 1}}},
		"CaptureMethod":  {[]any{"automatic", "manual"}, []any{"auto", ""}},
		"Version":        {[]any{1, 1 << 40}, []any{0, 1.5}},
		"WebhookID":      {[]any{"simulator:evt_1", text(512)}, []any{"", "a/b", "a b", "a#b", text(513)}},
		"MerchantID":     {[]any{"alpha", text(64)}, []any{"", "a/b", text(65)}},
		"KeyPrefix":      {[]any{"sk_test_alph", "sk_live_" + text(16)}, []any{"sk_test_", "alpha", "sk_prod_x", "sk_live_" + text(17)}},
		"WebhookStatus":  {[]any{"received", "applied", "ignored", "quarantined"}, []any{"failed", ""}},
		"CheckoutStatus": {[]any{"pending", "requires_action", "completed", "failed", "needs_review"}, []any{"processing", ""}},
		"Failure": {
			[]any{object{"code": "a_1", "decline_code": nil, "retryable": true}, object{"code": text(64), "decline_code": text(255), "retryable": false}},
			[]any{
				object{"code": "A", "decline_code": nil, "retryable": true},
				object{"code": text(65), "decline_code": nil, "retryable": true},
				object{"code": "a", "decline_code": "", "retryable": true},
				object{"code": "a", "decline_code": text(256), "retryable": true},
				object{"code": "a", "decline_code": nil, "retryable": "yes"},
			},
		},
		"NextAction": {
			[]any{object{"type": "redirect", "redirect_url": "https://psp.example/1"}},
			[]any{object{"type": "qr", "redirect_url": "https://psp.example/1"}, object{"type": "redirect", "redirect_url": "/1"}, object{"type": "redirect", "redirect_url": ""}, object{"type": "redirect", "redirect_url": "https://psp.example/" + text(8192)}},
		},
		"NewCheckout": {[]any{basket(1), basket(50)}, []any{basket(0), basket(51)}},
		"NewMerchant": {[]any{object{"name": "m"}, object{"name": text(100)}}, []any{object{}, object{"name": ""}, object{"name": text(101)}}},
		"NewKey":      {[]any{object{}, object{"expires_old_in": 0}, object{"expires_old_in": 604800}}, []any{object{"expires_old_in": -1}, object{"expires_old_in": 604801}}},
		"Customer":    {[]any{object{"email": "a@example.com"}}, []any{object{"email": "a"}, object{"email": "a@" + strings.Repeat(text(50)+".", 5) + "com"}, object{}}},
		"Health":      {[]any{object{"status": "ok"}}, []any{object{"status": "up"}}},
		"NewPayment":  {[]any{without(payment())}, []any{without(payment(), "amount"), without(payment(), "currency"), without(payment(), "payment_method")}},
		"NewStock":    {[]any{object{"available": 0}}, []any{object{}}},
		"Item":        {[]any{item(1)}, []any{item(0), item(10000), without(item(1), "sku"), without(item(1), "quantity"), without(item(1), "unit_amount")}},
		"OrderItem":   {[]any{item(1), item(499950)}, []any{item(0), item(499951)}},
		"Problem": {
			[]any{invalid(400, 1), invalid(599, 100), held("pay_" + ulid)},
			[]any{invalid(399, 1), invalid(600, 1), invalid(400, 0), invalid(400, 101), held("re_" + ulid)},
		},
		"List": {[]any{rows(0), rows(100)}, []any{rows(101)}},
		"FieldError": {
			[]any{object{"field": "amount", "message": "m"}},
			[]any{object{"field": "", "message": "m"}, object{"field": "f", "message": ""}, object{"field": text(201), "message": "m"}, object{"field": "f", "message": text(501)}},
		},
	}
	for name, prefix := range map[string]string{
		"PaymentID": "pay_", "RefundID": "re_", "CheckoutID": "chk_", "OrderID": "ord_", "NotificationID": "ntf_",
	} {
		tt := tests[name]
		tt.allowed, tt.refused = ids(prefix)
		tests[name] = tt
	}
	d := load(t)
	for name, tt := range tests {
		d.checkLimits(t, name, d.Components.Schemas.GetOrZero(name), tt.allowed, tt.refused)
	}
}

func (d document) checkLimits(t *testing.T, name string, schema *base.SchemaProxy, allowed, refused []any) {
	t.Helper()
	for _, value := range allowed {
		if err := d.allows(schema, value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, value := range refused {
		if d.allows(schema, value) == nil {
			t.Errorf("%s: %.80q is allowed", name, fmt.Sprint(value))
		}
	}
}

// basket is a checkout of n items.
func basket(n int) object {
	return object{"items": slices.Repeat([]any{item(1)}, n), "currency": "JPY", "payment_method": "tok_captured"}
}

func item(quantity int) object {
	return object{"sku": "tee-black-m", "quantity": quantity, "unit_amount": 0}
}

func payment() object {
	return object{"amount": 1, "currency": "JPY", "payment_method": "tok_captured"}
}

// rows is a list of n rows of no kind.
func rows(n int) object {
	return object{"object": "list", "data": slices.Repeat([]any{object{}}, n), "next_cursor": nil}
}

// invalid is a problem of n fields.
func invalid(status, n int) object {
	return object{
		"type": "urn:kessai:problem:invalid_request", "title": "t", "status": status, "detail": "d", "code": "invalid_request",
		"errors": slices.Repeat([]any{object{"field": "f", "message": "m"}}, n),
	}
}

// held is the problem of a reference that another payment holds.
func held(payment string) object {
	return object{
		"type": "urn:kessai:problem:reference_in_use", "title": "t", "status": 409, "detail": "d", "code": "reference_in_use", "payment_id": payment,
	}
}

func without(value object, fields ...string) object {
	less := maps.Clone(value)
	for _, field := range fields {
		delete(less, field)
	}
	return less
}

func TestTheLimitsOfParametersAreExact(t *testing.T) {
	d := load(t)
	for name, tt := range map[string]struct{ allowed, refused []any }{
		"Wait":   {[]any{0, 20}, []any{-1, 21, 0.5}},
		"Limit":  {[]any{1, 100}, []any{0, 101}},
		"Cursor": {[]any{"c", text(1024)}, []any{"", text(1025)}},
	} {
		d.checkLimits(t, name, d.Components.Parameters.GetOrZero(name).Schema, tt.allowed, tt.refused)
	}
	for name, tt := range map[string]struct{ allowed, refused []any }{
		"Location":             {[]any{"/v1/payments/pay_1", "https://api.example/v1/payments/pay_1"}, []any{"", "%zz"}},
		"RetryAfter":           {[]any{1, 3600}, []any{0, 3601, 0.5}},
		"RetryAfterInProgress": {[]any{1, 3600}, []any{0, 3601, 0.5}},
		"IdempotentReplayed":   {[]any{"true"}, []any{"false", "True"}},
		"PreferenceApplied":    {[]any{"wait=0", "wait=20"}, []any{"wait=21", "wait"}},
		"WWWAuthenticate":      {[]any{"Bearer", `Bearer error="invalid_token"`}, []any{"Basic"}},
	} {
		d.checkLimits(t, name, d.Components.Headers.GetOrZero(name).Schema, tt.allowed, tt.refused)
	}
}

// TestOneFieldDecides changes one field of an example that is allowed.
func TestOneFieldDecides(t *testing.T) {
	declined := object{"code": "card_declined", "decline_code": nil, "retryable": false}
	tests := []struct {
		schema, example, field string
		value                  any
		allowed                bool
	}{
		{"Payment", "PaymentCaptured", "object", "charge", false},
		{"Payment", "PaymentCaptured", "failure", declined, false},
		{"Payment", "PaymentCaptured", "amount_captured", 0, false},
		{"Payment", "PaymentCaptured", "disputed", true, true},
		{"Payment", "PaymentCaptured", "metadata", object{"k": "v"}, true},
		{"Payment", "PaymentCaptured", "psp_reference", nil, true},
		{"Payment", "PaymentRefunded", "amount_captured", 0, false},
		{"Payment", "PaymentRefunded", "failure", declined, true}, // late money
		{"Payment", "PaymentInDoubt", "failure", declined, false},
		{"Payment", "PaymentDeclined", "failure", nil, false},
		{"Payment", "PaymentDeclined", "amount_captured", 5000, true}, // late money, not given back yet
		{"Payment", "PaymentCanceled", "failure", declined, true},
		{"Payment", "PaymentRequiresAction", "client_secret", text(1024), true},
		{"Payment", "PaymentRequiresAction", "client_secret", text(1025), false},
		{"Payment", "PaymentRequiresAction", "client_secret", "", false},
		{"Payment", "PaymentRequiresAction", "next_action", nil, true},
		{"Refund", "RefundSucceeded", "object", "payment", false},
		{"Refund", "RefundSucceeded", "status", "canceled", false},
		{"Refund", "RefundSucceeded", "failure", declined, false},
		{"Refund", "RefundPending", "failure", declined, false},
		{"Refund", "RefundPending", "reason", nil, true},
		{"Checkout", "CheckoutCompleted", "object", "order", false},
		{"Checkout", "CheckoutCompleted", "order_id", nil, false},
		{"Checkout", "CheckoutCompleted", "failure", declined, false},
		{"Checkout", "CheckoutFailed", "failure", nil, false},
		{"Checkout", "CheckoutFailed", "order_id", "ord_" + ulid, false},
		{"Checkout", "CheckoutRequiresAction", "order_id", "ord_" + ulid, false},
		{"Checkout", "CheckoutRequiresAction", "failure", declined, false},
		{"Checkout", "CheckoutPending", "failure", declined, true}, // on its way back
		{"Checkout", "CheckoutPending", "payment", nil, false},
		{"Webhook", "WebhookQuarantined", "payment_id", "pay_" + ulid, true},
		{"Webhook", "WebhookQuarantined", "type", nil, true},
		{"Webhook", "WebhookQuarantined", "type", "", false},
		{"Webhook", "WebhookQuarantined", "type", text(256), false},
		{"Webhook", "WebhookQuarantined", "event_id", "", false},
		{"Webhook", "WebhookQuarantined", "event_id", text(513), false},
		{"PaymentList", "PaymentsOne", "object", "page", false},
		{"PaymentList", "PaymentsOne", "next_cursor", "c", true},
		{"PaymentList", "PaymentsOne", "next_cursor", "", false},
		{"PaymentList", "PaymentsOne", "next_cursor", text(1025), false},
		{"PaymentList", "PaymentsOne", "data", nil, false},
		{"Problem", "InvalidStatus", "type", "about:blank", false},
		{"Problem", "InvalidStatus", "title", "", false},
		{"Problem", "InvalidStatus", "title", text(101), false},
		{"Problem", "InvalidStatus", "detail", "", false},
		{"Problem", "InvalidStatus", "detail", text(501), false},
		{"Problem", "InvalidStatus", "code", "other", false},
		{"Problem", "InvalidStatus", "payment_id", "pay_" + ulid, false},
		{"Problem", "InvalidStatus", "errors", []any{object{"field": "f", "message": "m"}}, false},
	}
	d := load(t)
	for _, tt := range tests {
		value := maps.Clone(decoded(t, d.Components.Examples.GetOrZero(tt.example).Value).(object))
		value[tt.field] = tt.value
		err := d.allows(d.Components.Schemas.GetOrZero(tt.schema), value)
		if (err == nil) != tt.allowed {
			t.Errorf("%s with %s %.40v: got %v, want allowed %t", tt.example, tt.field, tt.value, err, tt.allowed)
		}
	}
}

// TestOneFieldOfAnAnswerDecides changes one field of an example that an operation shows.
func TestOneFieldOfAnAnswerDecides(t *testing.T) {
	notification := func(field string, value any) object {
		row := object{
			"id": "ntf_" + ulid, "object": "notification", "type": "order_confirmation", "status": "sent", "checkout_id": "chk_" + ulid,
			"order_id": "ord_" + ulid, "recipient": "a@example.com", "created_at": "2026-01-02T03:04:05Z",
		}
		row[field] = value
		return object{"object": "list", "data": []any{row}, "next_cursor": nil}
	}
	tests := []struct {
		operation, field string
		value            any
		allowed          bool
	}{
		{"getStock", "reserved", 0, true},
		{"getStock", "reserved", -1, false},
		{"getStock", "sold", 0, true},
		{"getStock", "sold", -1, false},
		{"getOrder", "object", "checkout", false},
		{"getOrder", "reference", nil, true},
		{"getOrder", "customer", nil, true},
		{"getOrder", "status", "canceled", true},
		{"getOrder", "status", "rejected", false},
		{"getOrder", "items", slices.Repeat([]any{item(1)}, 50), true},
		{"getOrder", "items", slices.Repeat([]any{item(1)}, 51), false},
		{"getOrder", "items", []any{}, false},
		{"createMerchant", "object", "shop", false},
		{"createMerchant", "name", text(100), true},
		{"createMerchant", "name", text(101), false},
		{"createMerchant", "name", "", false},
		{"rotateKey", "object", "key", false},
		{"rotateKey", "key", nil, true},
		{"rotateKey", "key", "whsec_" + text(32), false},
		{"rotateKey", "key", "sk_live_" + text(31), false},
		{"listNotifications", "data", notification("recipient", nil)["data"], false},
		{"listNotifications", "data", notification("status", "pending")["data"], true},
		{"listNotifications", "data", notification("status", "delivered")["data"], false},
		{"listNotifications", "data", notification("recipient", "nobody")["data"], false},
		{"listNotifications", "data", notification("type", "order_canceled")["data"], false},
		{"listNotifications", "data", notification("object", "mail")["data"], false},
	}
	d := load(t)
	for _, tt := range tests {
		for o := range d.operations() {
			if o.OperationId != tt.operation {
				continue
			}
			answer := o.Responses.Codes.GetOrZero(map[bool]string{true: "201", false: "200"}[o.method == "post"]).Content.GetOrZero(jsonType)
			value := maps.Clone(decoded(t, answer.Examples.First().Value().Value).(object))
			value[tt.field] = tt.value
			err := d.allows(answer.Schema, value)
			if (err == nil) != tt.allowed {
				t.Errorf("%s with %s %.40v: got %v, want allowed %t", tt.operation, tt.field, tt.value, err, tt.allowed)
			}
		}
	}
}

// TestAJournalRowIsStrict changes one field of a row.
func TestAJournalRowIsStrict(t *testing.T) {
	d := load(t)
	schema := d.Components.Schemas.GetOrZero("Event")
	row := object{"id": "pay_1.1", "type": "payment.captured", "version": 1, "at": "2026-01-02T03:04:05Z", "source": "webhook", "data": object{"amount": 1}}
	if err := d.allows(schema, row); err != nil {
		t.Error(err)
	}
	for field, values := range map[string][]any{
		"id":     {"", "a b", text(129)},
		"type":   {"captured", "order.created", "payment.", "payment." + text(64)},
		"source": {"psp", ""},
		"data":   {nil, []any{}, object{"client_secret": "c"}, object{"redirect_url": "https://psp.example"}, object{"next_action": object{}}},
	} {
		for _, value := range values {
			changed := maps.Clone(row)
			changed[field] = value
			if d.allows(schema, changed) == nil {
				t.Errorf("%s %.80q is allowed", field, fmt.Sprint(value))
			}
		}
	}
}
