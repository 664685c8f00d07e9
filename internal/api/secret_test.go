package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

const (
	redirect = "https://psp.example/redirect/"
	secret   = "cs_canary_secret"
)

// everyView is every way in which a merchant or an operator can see a payment.
func (w *world) everyView(create request, id string) string {
	var all strings.Builder
	for _, r := range []request{
		create,
		{method: http.MethodGet, path: "/v1/payments/" + id, apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments/" + id + "?wait=1", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments?reference=order-1", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments/" + id + "/events", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/payments/" + id + "/refunds", apiKey: alpha},
		{method: http.MethodGet, path: "/v1/webhooks?status=applied", apiKey: operator},
	} {
		answer := w.send(r)
		all.WriteString(answer.text)
		for _, values := range answer.header {
			all.WriteString(strings.Join(values, " "))
		}
	}
	return all.String()
}

func TestASecretIsShownOnlyWhileTheCustomerMustAct(t *testing.T) {
	ends := map[string]func(w *world, id string){
		"captured": func(w *world, id string) { w.fake.Approve(id) },
		"failed":   func(w *world, id string) { w.fake.Decline(id) },
		"canceled": func(w *world, id string) { w.want(w.post("/v1/payments/"+id+"/cancel", ""), http.StatusOK, "") },
		"refunded": func(w *world, id string) {
			w.fake.Approve(id)
			w.deliver()
			w.want(w.post("/v1/payments/"+id+"/refunds", ""), http.StatusCreated, "")
		},
	}
	for status, end := range ends {
		t.Run(status, func(t *testing.T) {
			w := newWorld(t)
			w.fake.Alter(psptest.OperationCreate, func(c *psp.Charge) { c.ClientSecret = payment.Secret(secret) })
			r := create("k", strings.Replace(order, "tok_captured", "tok_requires_action", 1))
			first := w.send(r)
			id := first.str("id")
			if first.str("client_secret") != secret || !strings.Contains(first.text, redirect) {
				t.Fatalf("got %s, want the redirect and the secret while the customer must act", first.text)
			}
			if again := w.send(r); again.text != first.text {
				t.Errorf("got %s, want the same as first", again.text)
			}
			end(w, id)
			w.deliver()
			views := w.everyView(r, id)
			if !strings.Contains(views, `"status":"`+status+`"`) {
				t.Fatalf("got %s, want %s", views, status)
			}
			for _, hidden := range []string{redirect, secret, "tok_requires_action"} {
				if strings.Contains(views, hidden) {
					t.Errorf("got %q in a view of a %s payment: %s", hidden, status, views)
				}
			}
			for _, hidden := range []string{redirect, secret, "tok_requires_action", alpha, operator} {
				if strings.Contains(w.logs.text(), hidden) {
					t.Errorf("got %q in a log line", hidden)
				}
			}
		})
	}
}

func TestAJournalRowHoldsNoSecretWhileTheCustomerMustAct(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenRequiresAction)
	if got := w.get("/v1/payments/" + id + "/events").text; strings.Contains(got, redirect) {
		t.Errorf("got %s, want no redirect", got)
	}
}
