package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func (w *world) createMerchant(key string) response {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: "/v1/merchants", apiKey: operator, key: key, body: `{"name":"The Black Shirt Shop"}`})
}

// issued is a field of the answer's api_key.
func issued(r response, name string) any {
	key, _ := r.field("api_key").(map[string]any)
	return key[name]
}

func TestAMerchantGetsAKeyThatIsShownOnce(t *testing.T) {
	w := newWorld(t)
	first := w.createMerchant("k")
	w.want(first, http.StatusCreated, "")
	key, _ := issued(first, "key").(string)
	if len(key) != 60 || !strings.HasPrefix(key, "sk_test_") || issued(first, "prefix") != key[:12] {
		t.Errorf("got %s, want a key of 60 characters and its first 12 as prefix", first.text)
	}
	again := w.createMerchant("k")
	if again.status != http.StatusCreated || issued(again, "key") != nil || again.str("id") != first.str("id") ||
		issued(again, "prefix") != key[:12] || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d %s, want the merchant again without its key", again.status, again.text)
	}
	paid := w.send(request{method: http.MethodPost, path: "/v1/payments", apiKey: key, body: order})
	w.want(paid, http.StatusCreated, "")
	for _, listed := range []response{
		w.operate(http.MethodGet, "/v1/merchants/"+first.str("id")+"/keys", ""),
		w.operate(http.MethodGet, "/v1/merchants/beta/keys", ""),
	} {
		w.want(listed, http.StatusOK, "")
		if len(listed.rows(t)) != 1 || strings.Contains(listed.text, key) || strings.Contains(listed.text, beta) {
			t.Errorf("got %s, want one key without the key itself", listed.text)
		}
	}
	if strings.Contains(w.logs.text(), key) {
		t.Error("got the key in a log line")
	}
	other := w.send(request{method: http.MethodPost, path: "/v1/merchants", apiKey: operator, key: "k", body: `{"name":"Another"}`})
	w.want(other, http.StatusUnprocessableEntity, "idempotency_key_reused")
	for _, body := range []string{``, `{"name":""}`, `{"name":1}`, `{"name":"` + strings.Repeat("x", 101) + `"}`, `{"name":"n","x":1}`} {
		w.want(w.send(request{method: http.MethodPost, path: "/v1/merchants", apiKey: operator, body: body}), http.StatusBadRequest, "invalid_request")
	}
}

func TestARotationLetsBothKeysWorkForAWhile(t *testing.T) {
	w := newWorld(t)
	w.clock.advance(time.Second)
	rotate := request{method: http.MethodPost, path: "/v1/merchants/alpha/keys", apiKey: operator, key: "k", body: `{"expires_old_in":3600}`}
	got := w.send(rotate)
	w.want(got, http.StatusCreated, "")
	fresh := got.str("key")
	again := w.send(rotate)
	if again.status != http.StatusCreated || again.field("key") != nil || again.str("prefix") != got.str("prefix") {
		t.Errorf("got %d %s, want the same key, not shown again", again.status, again.text)
	}
	reads := func(key string) int {
		return w.send(request{method: http.MethodGet, path: "/v1/payments?reference=r", apiKey: key}).status
	}
	if a, b := reads(alpha), reads(fresh); a != 200 || b != 200 {
		t.Errorf("got %d and %d, want both keys to work", a, b)
	}
	rows := w.operate(http.MethodGet, "/v1/merchants/alpha/keys", "").rows(t)
	if len(rows) != 2 || rows[0]["expires_at"] != nil || rows[1]["expires_at"] != "2026-01-02T04:04:06Z" {
		t.Errorf("got %v, want the new key without an end, then the old one with its end", rows)
	}
	w.clock.advance(time.Hour)
	if a, b := reads(alpha), reads(fresh); a != 401 || b != 200 {
		t.Errorf("got %d and %d, want only the new key to work", a, b)
	}
	if rows := w.operate(http.MethodGet, "/v1/merchants/alpha/keys", "").rows(t); len(rows) != 1 {
		t.Errorf("got %v, want the key that works", rows)
	}
	w.want(w.send(request{method: http.MethodPost, path: rotate.path, apiKey: operator, body: `{"expires_old_in":0}`}), http.StatusCreated, "")
	if got := reads(fresh); got != 401 {
		t.Errorf("got %d, want the old key to end at once", got)
	}
	for _, body := range []string{`{"expires_old_in":-1}`, `{"expires_old_in":604801}`, `{"expires_old_in":"1"}`, `{"expires_old_in":null}`, `{"x":1}`} {
		w.want(w.send(request{method: http.MethodPost, path: rotate.path, apiKey: operator, body: body}), http.StatusBadRequest, "invalid_request")
	}
	for _, id := range []string{"gamma", "al%23pha", "%20"} {
		w.want(w.send(request{method: http.MethodPost, path: "/v1/merchants/" + id + "/keys", apiKey: operator, unchecked: true}), http.StatusNotFound, "not_found")
	}
}

func TestARevokedKeyEndsAtOnce(t *testing.T) {
	w := newWorld(t)
	second := w.send(request{method: http.MethodPost, path: "/v1/merchants/alpha/keys", apiKey: operator})
	path := "/v1/merchants/alpha/keys/" + second.str("prefix")
	for range 2 {
		w.want(w.operate(http.MethodDelete, path, ""), http.StatusNoContent, "")
	}
	w.want(w.send(request{method: http.MethodGet, path: "/v1/payments?reference=r", apiKey: second.str("key")}), http.StatusUnauthorized, "unauthorized")
	w.want(w.get("/v1/payments?reference=r"), http.StatusOK, "")
	w.want(w.operate(http.MethodDelete, "/v1/merchants/beta/keys/"+second.str("prefix"), ""), http.StatusNotFound, "not_found")
	w.want(w.operate(http.MethodDelete, "/v1/merchants/gamma/keys/"+second.str("prefix"), ""), http.StatusNotFound, "not_found")
}

func TestAMerchantHasABoundedNumberOfKeys(t *testing.T) {
	w := newWorld(t)
	r := request{method: http.MethodPost, path: "/v1/merchants/alpha/keys", apiKey: operator}
	for range 19 {
		w.clock.advance(time.Millisecond)
		w.want(w.send(r), http.StatusCreated, "")
	}
	w.want(w.send(r), http.StatusConflict, "too_many_keys")
	prefix := w.operate(http.MethodGet, "/v1/merchants/alpha/keys", "").rows(t)[0]["prefix"].(string)
	w.want(w.operate(http.MethodDelete, r.path+"/"+prefix, ""), http.StatusNoContent, "")
	w.want(w.send(r), http.StatusCreated, "")
}
