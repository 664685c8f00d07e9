package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestAnOrderIsReadAndFoundByItsReference(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	made := s.buy(basket(psptest.TokenCaptured, `,"reference":"order 42/é"`))
	id := made.str("order_id")
	o := s.get("/v1/orders/" + id)
	s.want(o, http.StatusOK, "")
	if o.str("id") != id || o.str("checkout_id") != made.str("id") || o.str("payment_id") != made.object("payment")["id"] ||
		o.str("status") != "confirmed" || o.field("amount") != 5000.0 || o.object("customer")["email"] != "a@example.com" {
		t.Errorf("got %s, want the order of the checkout", o.text)
	}
	rows := s.get("/v1/orders?reference=order%2042%2F%C3%A9").rows(t)
	if len(rows) != 1 || rows[0]["id"] != id {
		t.Errorf("got %v, want the order", rows)
	}
	if rows := s.get("/v1/orders?reference=order-43").rows(t); len(rows) != 0 {
		t.Errorf("got %v, want none", rows)
	}
}

func TestTheOrdersOfAReferenceArePaged(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 100)
	var ids []string
	for range 3 { // a refunded payment frees its reference
		r := s.buy(basket(psptest.TokenCaptured, `,"reference":"order-42"`))
		ids = append([]string{r.str("order_id")}, ids...)
		s.want(s.post("/v1/payments/"+r.object("payment")["id"].(string)+"/refunds", ""), http.StatusCreated, "")
		s.clock.advance(time.Second)
	}
	var got []string
	path := "/v1/orders?reference=order-42&limit=2"
	for cursor := ""; ; {
		page := s.get(path + cursor)
		s.want(page, http.StatusOK, "")
		rows := page.rows(t)
		if len(rows) > 2 {
			t.Fatalf("got %d rows, want two at most", len(rows))
		}
		for _, r := range rows {
			got = append(got, r["id"].(string))
		}
		next := page.str("next_cursor")
		if next == "" {
			break
		}
		cursor = "&cursor=" + next
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		t.Errorf("got %v, want %v, newest first", got, ids)
	}
}

func TestOrdersOfAnotherMerchantAreNotThere(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	made := s.buy(basket(psptest.TokenCaptured, `,"reference":"order-42"`))
	want := s.send(request{method: http.MethodGet, path: "/v1/orders/ord_01KDYAK348M9S346Q3D2ZZZZZZ", apiKey: beta})
	s.want(want, http.StatusNotFound, "not_found")
	for _, id := range []string{made.str("order_id"), "ord_1", "ord%23", strings.Repeat("x", 3000)} {
		got := s.send(request{method: http.MethodGet, path: "/v1/orders/" + id, apiKey: beta})
		if got.status != want.status || got.text != want.text {
			t.Errorf("%s: got %d %s, want %s", id, got.status, got.text, want.text)
		}
	}
	if rows := s.send(request{method: http.MethodGet, path: "/v1/orders?reference=order-42", apiKey: beta}).rows(t); len(rows) != 0 {
		t.Errorf("got %v, want none of another merchant", rows)
	}
}

func TestAFailedCheckoutHasNoOrderAndNoNotification(t *testing.T) {
	s := newShop(t)
	s.supply("reject-tee", 10)
	r := s.buy(strings.Replace(basket(psptest.TokenCaptured, `,"reference":"order-42"`), `"tee"`, `"reject-tee"`, 1))
	if r.str("status") != "failed" || r.object("payment")["status"] != "refunded" {
		t.Fatalf("got %s, want it failed and the money back", r.text)
	}
	if rows := s.get("/v1/orders?reference=order-42").rows(t); len(rows) != 0 {
		t.Errorf("got orders %v, want none", rows)
	}
	s.want(s.get("/v1/orders/ord_"+strings.TrimPrefix(r.str("id"), "chk_")), http.StatusNotFound, "not_found")
	if rows := s.get("/v1/notifications?checkout=" + r.str("id")).rows(t); len(rows) != 0 {
		t.Errorf("got notifications %v, want none", rows)
	}
}

func TestAnOrderQueryIsJudged(t *testing.T) {
	s := newShop(t)
	for _, q := range []string{
		"", "?reference=", "?reference=a:b", "?reference=a&reference=b", "?reference=" + strings.Repeat("x", 65),
		"?reference=a&limit=0", "?reference=a&limit=101", "?reference=a&cursor=", "?reference=a&cursor=nonsense",
	} {
		s.want(s.get("/v1/orders"+q), http.StatusBadRequest, "invalid_request")
	}
}
