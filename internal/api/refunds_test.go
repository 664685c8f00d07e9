package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestARefundGivesBackWhatIsAskedAndThenTheRest(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	path := "/v1/payments/" + id + "/refunds"
	part := w.post(path, `{"amount":4000,"reason":"One shirt came back"}`)
	w.want(part, http.StatusCreated, "")
	if part.str("status") != "succeeded" || part.str("reason") != "One shirt came back" || part.header.Get("Location") != path {
		t.Errorf("got %s at %q, want a succeeded refund with its reason and Location", part.text, part.header.Get("Location"))
	}
	w.want(w.post(path, `{"amount":6001}`), http.StatusUnprocessableEntity, "amount_too_large")
	rest := w.post(path, "")
	if rest.field("amount") != 6000.0 {
		t.Errorf("got %s, want the rest of 6000", rest.text)
	}
	if got := w.get("/v1/payments/" + id); got.str("status") != "refunded" || got.field("amount_refunded") != 10000.0 {
		t.Errorf("got %s, want refunded 10000", got.text)
	}
	w.want(w.post(path, ""), http.StatusUnprocessableEntity, "amount_too_large")
	w.want(w.post(path, `{"amount":1}`), http.StatusUnprocessableEntity, "amount_too_large")
	if got := w.get(path).rows(t); len(got) != 2 || got[0]["id"] != part.str("id") {
		t.Errorf("got %v, want both refunds, oldest first", got)
	}
}

func TestARepeatedRefundShowsTheRefundAsItIsNow(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenRefundPendingFailed)
	r := request{method: http.MethodPost, path: "/v1/payments/" + id + "/refunds", apiKey: alpha, key: "k"}
	first := w.send(r)
	if first.status != http.StatusCreated || first.str("status") != "pending" {
		t.Fatalf("got %d %s, want 201 pending", first.status, first.text)
	}
	w.want(w.post(r.path, ""), http.StatusUnprocessableEntity, "amount_too_large")
	w.fake.SettleRefund(first.str("id"), psp.RefundFailed)
	w.deliver()
	again := w.send(r)
	if again.status != http.StatusCreated || again.str("status") != "failed" || again.str("id") != first.str("id") ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %s, want the same refund, failed", again.status, again.text)
	}
	if got := w.get("/v1/payments/" + id).str("status"); got != "captured" {
		t.Errorf("got %s, want captured", got)
	}
}

func TestARefundIsRefusedWhereThereIsNothingToGiveBack(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{w.pay(psptest.TokenDeclined), w.pay(psptest.TokenCaptured, manual), w.pay(psptest.TokenPending)} {
		w.want(w.post("/v1/payments/"+id+"/refunds", ""), http.StatusConflict, "invalid_status")
	}
	id := w.pay(psptest.TokenCaptured)
	reference, _ := w.fake.DisputeOpen(id)
	w.deliver()
	w.want(w.post("/v1/payments/"+id+"/refunds", ""), http.StatusConflict, "payment_disputed")
	if got := w.get("/v1/payments/" + id); got.field("disputed") != true {
		t.Errorf("got %s, want disputed", got.text)
	}
	w.fake.DisputeClose(reference, "won")
	w.deliver()
	w.want(w.post("/v1/payments/"+id+"/refunds", ""), http.StatusCreated, "")
}

func TestRefundsOfARaceNeverExceedWhatWasCaptured(t *testing.T) {
	for range 10 {
		w := newWorld(t)
		id := w.pay(psptest.TokenCaptured)
		answers := make([]response, 2)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				answers[i] = w.send(request{
					method: http.MethodPost, path: "/v1/payments/" + id + "/refunds", apiKey: alpha,
					key: fmt.Sprint("k", i), body: `{"amount":6000}`,
				})
			})
		}
		all.Wait()
		a, b := answers[0].status, answers[1].status
		if a+b != http.StatusCreated+http.StatusUnprocessableEntity {
			t.Errorf("got %d and %d, want one 201 and one 422", a, b)
		}
		if got := w.fake.Net(id); got != 4000 {
			t.Errorf("got %d left at the PSP, want 4000", got)
		}
	}
}
