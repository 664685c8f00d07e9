package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestABuyerIsToldOnceAndTheMerchantSeesIt(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	made := s.buy(basket(psptest.TokenCaptured, ""))
	s.wake(made.str("id")) // one more execution tells nobody again
	rows := s.get("/v1/notifications?checkout=" + made.str("id")).rows(t)
	if len(rows) != 1 {
		t.Fatalf("got %v, want one", rows)
	}
	want := map[string]any{
		"object": "notification", "type": "order_confirmation", "status": "sent", "checkout_id": made.str("id"),
		"order_id": made.str("order_id"), "recipient": "a@example.com",
	}
	for name, value := range want {
		if rows[0][name] != value {
			t.Errorf("%s: got %v, want %v", name, rows[0][name], value)
		}
	}
	if other := s.send(request{method: http.MethodGet, path: "/v1/notifications?checkout=" + made.str("id"), apiKey: beta}).rows(t); len(other) != 0 {
		t.Errorf("got %v, want none of another merchant", other)
	}
	if strings.Contains(s.logs.text(), "a@example.com") {
		t.Error("a log line holds the address")
	}
}

func TestABuyerWithoutAnAddressIsNotTold(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	made := s.buy(`{"items":[{"sku":"tee","quantity":1,"unit_amount":100}],"currency":"JPY","payment_method":"tok_captured"}`)
	if rows := s.get("/v1/notifications?checkout=" + made.str("id")).rows(t); len(rows) != 0 {
		t.Errorf("got %v, want none", rows)
	}
	if o := s.get("/v1/orders/" + made.str("order_id")); o.field("customer") != nil {
		t.Errorf("got %s, want no customer", o.text)
	}
}

func TestANotificationQueryIsJudged(t *testing.T) {
	s := newShop(t)
	absent := "checkout=chk_01KDYAK348M9S346Q3D2ZZZZZZ"
	if rows := s.get("/v1/notifications?" + absent).rows(t); len(rows) != 0 {
		t.Errorf("got %v, want none", rows)
	}
	for _, q := range []string{
		"", "?checkout=", "?checkout=chk_1", "?checkout=pay_01KDYAK348M9S346Q3D2ZZZZZZ", "?" + absent + "&" + absent,
		"?" + absent + "&limit=0", "?" + absent + "&cursor=c",
	} {
		s.want(s.get("/v1/notifications"+q), http.StatusBadRequest, "invalid_request")
	}
}
