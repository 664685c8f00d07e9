package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/kessai/kessai/internal/psp/psptest"
)

const order = `{"amount":10000,"currency":"JPY","payment_method":"tok_captured","reference":"order-1"}`

func create(key, body string) request {
	return request{method: http.MethodPost, path: "/v1/payments", apiKey: alpha, key: key, body: body}
}

func TestAnIdempotencyKeyIsNeededAndPrintable(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("k", 255)
	for key, code := range map[string]string{
		"-": "idempotency_key_required", `""`: "idempotency_key_required",
		long + "k": "idempotency_key_invalid", `"` + long + `k"`: "idempotency_key_invalid", "ü": "idempotency_key_invalid", "a\tb": "idempotency_key_invalid",
		`"a"b"`: "idempotency_key_invalid",
	} {
		w.want(w.send(create(key, order)), http.StatusBadRequest, code)
	}
	empty := create("-", order)
	empty.header = map[string]string{"idempotency-key": ""}
	w.want(w.send(empty), http.StatusBadRequest, "idempotency_key_required")
	if got := len(w.fake.Calls()); got != 0 {
		t.Errorf("got %d calls to the PSP, want none", got)
	}
	first := w.send(create(long, order))
	w.want(first, http.StatusCreated, "")
	quoted := create("-", order)
	quoted.header = map[string]string{"IDEMPOTENCY-KEY": `"` + long + `"`}
	if again := w.send(quoted); again.text != first.text || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want the replay of %s: a quoted key is its content, whatever the header's case", again.text, first.text)
	}
}

func TestARepeatIsComparedAfterDecoding(t *testing.T) {
	w := newWorld(t)
	first := w.send(create("k", `{"amount":10000,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"1","b":"2"}}`))
	w.want(first, http.StatusCreated, "")
	for _, same := range []string{
		"{ \"metadata\" : {\"b\":\"2\",\"a\":\"1\"},\n\"payment_method\":\"tok_captured\",\"currency\":\"JPY\",\"amount\":10000 }",
		`{"amount":10000,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"1","b":"2"},"capture_method":"automatic"}`,
		`{"\u0061mount":10000,"currency":"J\u0050Y","payment_method":"tok_captured","metadata":{"a":"1","b":"2"}}`,
	} {
		again := w.send(create("k", same))
		if again.status != http.StatusCreated || again.text != first.text || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: got %d %s, want the replay of the first", same, again.status, again.text)
		}
	}
	for _, other := range []string{
		`{"amount":10001,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"1","b":"2"}}`,
		`{"amount":10000,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"1"}}`,
		`{"amount":10000,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"2","b":"1"}}`,
		`{"amount":10000,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"1","b":"2"},"reference":"r"}`,
		`{"amount":10000,"currency":"JPY","payment_method":"tok_captured","metadata":{"a":"1","b":"2"},"capture_method":"manual"}`,
		`{"amount":10000,"currency":"JPY","payment_method":"tok_declined","metadata":{"a":"1","b":"2"}}`,
	} {
		w.want(w.send(create("k", other)), http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
	if got := len(w.fake.Charges()); got != 1 {
		t.Errorf("got %d charges, want 1", got)
	}
	// An invalid body is 400 and not 422: it is judged before the key.
	w.want(w.send(create("k", `{"amount":0}`)), http.StatusBadRequest, "invalid_request")
}

func TestAKeyCountsForOneMerchantAndOneRoute(t *testing.T) {
	w := newWorld(t)
	mine := w.send(create("k", order))
	w.want(mine, http.StatusCreated, "")
	theirs := create("k", order)
	theirs.apiKey = beta
	other := w.send(theirs)
	if other.status != http.StatusCreated || other.str("id") == mine.str("id") || other.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %d %s, want another merchant's own payment", other.status, other.text)
	}
	first, second := w.pay(psptest.TokenCaptured), w.pay(psptest.TokenCaptured)
	for _, path := range []string{"/v1/payments/" + first + "/refunds", "/v1/payments/" + second + "/refunds"} {
		r := w.send(request{method: http.MethodPost, path: path, apiKey: alpha, key: "k", body: `{"amount":1}`})
		if r.status != http.StatusCreated || r.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("got %d %s, want a refund of its own", r.status, r.text)
		}
	}
}

func TestARepeatWhileTheFirstIsInFlightIsAskedToWait(t *testing.T) {
	w := newWorld(t)
	var repeat, other, rival response
	w.fake.Before(psptest.OperationCreate, func() error {
		w.fake.Before(psptest.OperationCreate, nil)
		repeat = w.send(create("k", order))
		other = w.send(create("k", strings.Replace(order, "10000", "1", 1)))
		rival = w.send(create("k2", order))
		return nil
	})
	first := w.send(create("k", order))
	w.want(first, http.StatusCreated, "")
	w.want(repeat, http.StatusConflict, "idempotency_in_progress")
	if n, err := strconv.Atoi(repeat.header.Get("Retry-After")); err != nil || n < 1 || n > 30 {
		t.Errorf("got Retry-After %q, want 1 to 30", repeat.header.Get("Retry-After"))
	}
	w.want(other, http.StatusUnprocessableEntity, "idempotency_key_reused")
	w.want(rival, http.StatusConflict, "reference_in_use")
	if got, want := rival.str("payment_id"), first.str("id"); got != want {
		t.Errorf("got payment_id %q, want %q", got, want)
	}
}

func TestTheRequestOfADeadProcessIsTakenOverWithTheSamePSPKey(t *testing.T) {
	w := newWorld(t)
	died := func() error {
		w.fake.Before(psptest.OperationCreate, nil)
		panic("killed")
	}
	w.fake.Before(psptest.OperationCreate, died)
	w.want(w.send(create("k", order)), http.StatusInternalServerError, "internal")
	w.want(w.send(create("k", order)), http.StatusConflict, "idempotency_in_progress")
	w.clock.advance(inProgressTTL)
	again := w.send(create("k", order))
	if again.status != http.StatusCreated || again.str("status") != "captured" {
		t.Fatalf("got %d %s, want 201 captured", again.status, again.text)
	}
	calls := w.fake.Calls()
	if len(calls) != 2 || calls[0].Key != calls[1].Key {
		t.Errorf("got %v, want two calls with one key", calls)
	}
}

func TestARefusedRequestLeavesItsKeyFree(t *testing.T) {
	w := newWorld(t)
	w.want(w.send(create("k", `{"amount":0}`)), http.StatusBadRequest, "")
	live := w.send(create("live", order))
	w.want(w.send(create("k", order)), http.StatusConflict, "reference_in_use")
	w.want(w.send(request{method: http.MethodPost, path: "/v1/payments/" + live.str("id") + "/refunds", apiKey: alpha, key: "r", body: `{"amount":10001}`}),
		http.StatusUnprocessableEntity, "amount_too_large")
	refund := w.send(request{method: http.MethodPost, path: "/v1/payments/" + live.str("id") + "/refunds", apiKey: alpha, key: "r", body: `{"amount":10000}`})
	w.want(refund, http.StatusCreated, "")
	if refund.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got a replay, want a first use")
	}
	again := w.send(create("k", order))
	if again.status != http.StatusCreated || again.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %d %s, want a first use: a refunded payment frees its reference", again.status, again.text)
	}
}

func TestAKeyIsForgottenAfterItsTime(t *testing.T) {
	w := newWorld(t)
	first := w.send(create("k", strings.Replace(order, `,"reference":"order-1"`, "", 1)))
	w.clock.advance(idempotencyTTL)
	again := w.send(create("k", strings.Replace(order, `,"reference":"order-1"`, "", 1)))
	if again.str("id") == first.str("id") || again.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("got %s, want a payment of its own", again.text)
	}
}

func TestTwentyParallelRepeatsChargeOnce(t *testing.T) {
	w := newWorld(t)
	answers := make([]response, 20)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = w.send(create("k", order)) })
	}
	all.Wait()
	ids := map[string]bool{}
	for _, a := range answers {
		switch {
		case a.status == http.StatusCreated:
			ids[a.str("id")] = true
		case a.status == http.StatusConflict && a.str("code") == "idempotency_in_progress":
		default:
			t.Errorf("got %d %s, want the payment or 409", a.status, a.text)
		}
	}
	if got := len(w.fake.Charges()); got != 1 || len(ids) != 1 {
		t.Errorf("got %d charges and payments %v, want one", got, ids)
	}
}

func TestParallelRequestsForOneReferenceChargeOnce(t *testing.T) {
	w := newWorld(t)
	answers := make([]response, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = w.send(create(fmt.Sprint("k", i), order)) })
	}
	all.Wait()
	made, holder := 0, ""
	for _, a := range answers {
		if a.status == http.StatusCreated {
			made, holder = made+1, a.str("id")
		}
	}
	for _, a := range answers {
		if a.status != http.StatusCreated && (a.str("code") != "reference_in_use" || a.str("payment_id") != holder) {
			t.Errorf("got %d %s, want reference_in_use by %s", a.status, a.text, holder)
		}
	}
	if made != 1 || len(w.fake.Charges()) != 1 {
		t.Errorf("got %d payments and %d charges, want one", made, len(w.fake.Charges()))
	}
}
