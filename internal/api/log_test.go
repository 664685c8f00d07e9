package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/psp/psptest"
)

// logged are the lines of requests that were answered with a status.
func (w *world) logged(status int) (lines []map[string]any) {
	w.t.Helper()
	for _, line := range w.logs.lines(w.t, "request") {
		if line["status"] == float64(status) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestTheLineOfARefusalNamesThePaymentThatIsInTheWay(t *testing.T) {
	w := newWorld(t)
	w.fake.Before(psptest.OperationCreate, func() error {
		w.fake.Before(psptest.OperationCreate, nil)
		w.want(w.send(create("k", order)), http.StatusConflict, "idempotency_in_progress")
		w.want(w.send(create("k", strings.Replace(order, "10000", "1", 1))), http.StatusUnprocessableEntity, "idempotency_key_reused")
		w.want(w.send(create("k2", order)), http.StatusConflict, "reference_in_use")
		return nil
	})
	first := w.send(create("k", order))
	w.want(first, http.StatusCreated, "")
	refused := append(w.logged(http.StatusConflict), w.logged(http.StatusUnprocessableEntity)...)
	if len(refused) != 3 {
		t.Fatalf("got %d lines, want 3", len(refused))
	}
	for _, line := range refused {
		if line["payment_id"] != first.str("id") {
			t.Errorf("got %v, want payment %s", line, first.str("id"))
		}
	}
}

func TestTheLineOfACheckoutsRequestNamesItAndItsPayment(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	made := s.buy(basket(psptest.TokenCaptured, `,"reference":"order-42"`))
	id, paid := made.str("id"), made.object("payment")["id"]
	s.want(s.send(request{method: http.MethodPost, path: "/v1/checkouts", apiKey: alpha, key: "k2", body: basket(psptest.TokenCaptured, `,"reference":"order-42"`)}),
		http.StatusConflict, "reference_in_use")
	if lines := s.logged(http.StatusConflict); len(lines) != 1 || lines[0]["payment_id"] != paid {
		t.Errorf("got %v, want the payment that has the reference, %s", lines, paid)
	}
	s.want(s.send(request{method: http.MethodPost, path: "/v1/checkouts/" + id + "/resume", apiKey: operator, key: "k3"}), http.StatusConflict, "invalid_status")
	if lines := s.logged(http.StatusConflict); len(lines) != 2 || lines[1]["payment_id"] != paid || lines[1]["checkout_id"] != id {
		t.Errorf("got %v, want checkout %s and payment %s", lines, id, paid)
	}
	for _, line := range s.logs.lines(t, "request") {
		if line["route"] == "/v1/checkouts" && line["status"] != 409.0 && line["checkout_id"] != id {
			t.Errorf("got %v, want the new checkout named", line)
		}
	}
}
