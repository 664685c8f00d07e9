package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/psp/psptest"
)

// A number that wraps around to one that is allowed is not allowed.
func TestANumberInAQueryDoesNotOverflow(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured)
	w.want(w.get("/v1/payments/"+id+"?wait=5"), http.StatusOK, "")
	w.want(w.get("/v1/payments/"+id+"?wait=18446744073709551621"), http.StatusBadRequest, "invalid_request")
}

// Whoever sends a card number is told so, also when the body is malformed besides.
func TestACardNumberInAMalformedBodyIsStillToldAsOne(t *testing.T) {
	w := newWorld(t)
	card := "4242" + "424242424242"
	for _, body := range []string{`{"a":"` + card + `","a":1}`, `{"a":"` + card + `"`, `["` + card + `"]`, `{"a":"` + card + `"} {}`} {
		w.want(w.send(create("k", body)), http.StatusBadRequest, "card_data_rejected")
	}
}

// However many fields are wrong, an answer names a bounded number and says how many.
func TestAnAnswerNamesABoundedNumberOfFaults(t *testing.T) {
	w := newWorld(t)
	var fields []string
	for n := range 150 {
		fields = append(fields, fmt.Sprintf(`"f%d":1`, n))
	}
	got := w.send(create("k", `{"amount":1,"currency":"JPY","payment_method":"t",`+strings.Join(fields, ",")+"}"))
	w.want(got, http.StatusBadRequest, "invalid_request")
	named, _ := got.field("errors").([]any)
	if len(named) != 100 || got.str("detail") != "150 fields are not valid." {
		t.Errorf("got %d faults and %q, want 100 of 150", len(named), got.str("detail"))
	}
}

// Whether everything is ready anybody may ask, and anybody is told how.
func TestAnOpenPathTellsItsMethodsToAnybody(t *testing.T) {
	w := newWorld(t)
	got := w.send(request{method: http.MethodDelete, path: "/healthz", unchecked: true})
	w.want(got, http.StatusMethodNotAllowed, "method_not_allowed")
	if allow := got.header.Get("Allow"); allow != "GET, HEAD" {
		t.Errorf("got Allow %q, want the methods that there are", allow)
	}
	w.want(w.send(request{method: http.MethodDelete, path: "/v1/payments", unchecked: true}), http.StatusUnauthorized, "unauthorized")
}
