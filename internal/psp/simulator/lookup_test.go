package simulator_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/psp"
)

// row is a charge of pay_1 in a list.
func row(id, status string, captured, refunded int) string {
	return fmt.Sprintf(`{"id":"%s","reference":"pay_1","amount":9,"currency":"JPY","status":"%s","captured":%d,"refunded":%d,"redirect_url":"https://psp.example/r"}`,
		id, status, captured, refunded)
}

func listOf(cursor string, rows ...string) string {
	return `{"object":"list","data":[` + strings.Join(rows, ",") + `],"next_cursor":` + cursor + `}`
}

// F61: only the provider's own word that there is no charge counts as that.
func TestOnlyTheProvidersWordIsNotFound(t *testing.T) {
	byID, byPayment := psp.LookupRequest{Reference: "ch_1"}, psp.LookupRequest{PaymentID: "pay_1"}
	tests := []struct {
		name     string
		request  psp.LookupRequest
		status   int
		body     string
		notFound bool
	}{
		{"its code", byID, 404, `{"error":{"code":"charge_not_found"}}`, true},
		{"an empty list", byPayment, 200, listOf("null"), true},
		{"an empty list that says nothing of pages", byPayment, 200, `{"data":[]}`, true},
		{"no such address", byID, 404, `{"error":{"code":"route_not_found"}}`, false},
		{"a 404 without a code", byID, 404, `{}`, false},
		{"its code with another status", byID, 400, `{"error":{"code":"charge_not_found"}}`, false},
		{"a 404 on a list", byPayment, 404, `{"error":{"code":"charge_not_found"}}`, false},
		{"an empty object", byPayment, 200, `{}`, false},
		{"a list of null", byPayment, 200, `{"data":null}`, false},
		{"an array", byPayment, 200, `[]`, false},
		{"an empty answer", byPayment, 200, ``, false},
		{"an empty charge", byID, 200, `{}`, false},
		{"an empty page with more to come", byPayment, 200, listOf(`"x"`), false},
	}
	for _, tt := range tests {
		_, err := answering(t, tt.status, tt.body).Lookup(t.Context(), tt.request)
		if errors.Is(err, psp.ErrNotFound) != tt.notFound {
			t.Errorf("%s: got %v, want not found %t", tt.name, err, tt.notFound)
		}
		e, ok := errors.AsType[*psp.Error](err)
		if !tt.notFound && (!ok || e.Operation != "lookup") {
			t.Errorf("%s: got %v, want an error of the look-up", tt.name, err)
		}
		if ok && tt.status == http.StatusNotFound && e.Outcome != psp.OutcomeUnknown {
			t.Errorf("%s: got outcome %d, want unknown", tt.name, e.Outcome)
		}
	}
}

func TestOfSeveralChargesTheOneWithMoneyIsFound(t *testing.T) {
	failed, canceled, returned := row("failed", "failed", 0, 0), row("canceled", "canceled", 0, 0), row("returned", "captured", 9, 9)
	pending, waiting := row("pending", "pending", 0, 0), row("waiting", "requires_action", 0, 0)
	held, taken, other := row("held", "authorized", 0, 0), row("taken", "captured", 9, 4), row("other", "captured", 9, 0)
	tests := []struct {
		rows []string
		want string
	}{
		{[]string{failed}, "failed"},
		{[]string{failed, canceled}, "canceled"},
		{[]string{canceled, returned, failed}, "returned"},
		{[]string{returned, pending}, "pending"},
		{[]string{waiting, pending}, "waiting"}, // the first of equals
		{[]string{pending, held, failed}, "held"},
		{[]string{held, taken, pending}, "taken"},
		{[]string{taken, other}, "taken"},
	}
	for _, tt := range tests {
		got, err := answering(t, 200, listOf("null", tt.rows...)).Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
		if err != nil || got.Reference != tt.want {
			t.Errorf("got %s %v, want %s", got.Reference, err, tt.want)
		}
	}
}

func TestEveryPageIsRead(t *testing.T) {
	var first, last string
	adapter := newAdapter(t, baseURL, &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		query := r.URL.Query()
		if query.Get("reference") != "pay_1" {
			t.Errorf("got %s, want the reference on every page", r.URL.RawQuery)
		}
		switch query.Get("cursor") {
		case "":
			return fixed(200, listOf(`"a&b"`, first))(r)
		case "a&b":
			return fixed(200, listOf(`"c"`))(r)
		}
		return fixed(200, listOf("null", last))(r)
	})})
	failed, taken := row("failed", "failed", 0, 0), row("taken", "captured", 9, 0)
	for _, order := range [][2]string{{failed, taken}, {taken, failed}} {
		first, last = order[0], order[1]
		got, err := adapter.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
		if err != nil || got.Reference != "taken" {
			t.Errorf("got %+v %v, want the charge with money of either page", got, err)
		}
	}
}

func TestAListThatDoesNotEndIsNoAnswer(t *testing.T) {
	requests := 0
	adapter := newAdapter(t, baseURL, &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		requests++
		return fixed(200, listOf(`"again"`, row("taken", "captured", 9, 0)))(r)
	})})
	_, err := adapter.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
	if err == nil || psp.OutcomeOf(err) != psp.OutcomeUnknown || requests > 10 {
		t.Errorf("got %v after %d requests, want OutcomeUnknown after a few", err, requests)
	}
}

// A server that ignores the filter must not give one payment another's charge.
func TestAnotherPaymentsChargeIsNoAnswer(t *testing.T) {
	for _, body := range []string{
		listOf("null", strings.Replace(row("taken", "captured", 9, 0), "pay_1", "pay_2", 1)),
		listOf("null", row("failed", "failed", 0, 0), strings.Replace(row("taken", "captured", 9, 0), `"pay_1"`, "null", 1)),
		listOf("null", row("failed", "failed", 0, 0), `{}`),
	} {
		_, err := answering(t, 200, body).Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
		if err == nil || psp.OutcomeOf(err) != psp.OutcomeUnknown {
			t.Errorf("%s: got %v, want OutcomeUnknown", body, err)
		}
	}
}
