package api_test

import (
	"net/http"
	"testing"
)

func TestAPaymentIsMadeReadAndListed(t *testing.T) {
	w := newWorld(t)
	made := w.send(request{
		method: http.MethodPost, path: "/v1/payments", apiKey: alpha, key: "k1",
		body: `{"amount":5000,"currency":"JPY","payment_method":"tok_captured","reference":"order-42","metadata":{"k":"v"}}`,
	})
	w.want(made, http.StatusCreated, "")
	id := made.str("id")
	if got, want := made.header.Get("Location"), "/v1/payments/"+id; got != want {
		t.Errorf("got Location %q, want %q", got, want)
	}
	read := w.get("/v1/payments/" + id)
	w.want(read, http.StatusOK, "")
	if read.text != made.text {
		t.Errorf("got %s, want %s", read.text, made.text)
	}
	if rows := w.get("/v1/payments?reference=order-42").rows(t); len(rows) != 1 || rows[0]["id"] != id {
		t.Errorf("got %v, want the payment", rows)
	}
	if rows := w.get("/v1/payments/" + id + "/events").rows(t); len(rows) != 2 || rows[1]["type"] != "payment.captured" {
		t.Errorf("got %v, want two rows that end with payment.captured", rows)
	}
}
