package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func newAPI(s *shop) *api.Handler { return api.New(s.config) }

func (s *shop) put(path, body string) response {
	s.t.Helper()
	return s.send(request{method: http.MethodPut, path: path, apiKey: alpha, body: body})
}

func TestStockIsSetAndRead(t *testing.T) {
	s := newShop(t)
	for _, available := range []int{10, 10, 0, 999_999_999} { // a PUT needs no key, and may be repeated
		want := fmt.Sprintf(`{"sku":"tee","available":%d,"reserved":0,"sold":0}`, available)
		for _, r := range []response{s.put("/v1/stock/tee", fmt.Sprintf(`{"available":%d}`, available)), s.get("/v1/stock/tee")} {
			s.want(r, http.StatusOK, "")
			if r.text != want {
				t.Errorf("got %s, want %s", r.text, want)
			}
		}
	}
	for _, sku := range []string{"a.b-c_d", "%23hash", "a%3Fb", "tee%25", strings.Repeat("x", 64)} {
		s.want(s.put("/v1/stock/"+sku, `{"available":1}`), http.StatusOK, "")
		s.want(s.get("/v1/stock/"+sku), http.StatusOK, "")
	}
}

func TestWhatIsNoStockIsRefused(t *testing.T) {
	s := newShop(t)
	for _, body := range []string{``, `{}`, `{"available":-1}`, `{"available":1000000000}`, `{"available":1.0}`, `{"available":"1"}`, `{"available":null}`, `{"available":1,"sold":0}`} {
		s.want(s.put("/v1/stock/tee", body), http.StatusBadRequest, "invalid_request")
	}
	s.want(s.put("/v1/stock/tee", `[]`), http.StatusBadRequest, "invalid_json")
	for _, sku := range []string{"%20", "a%20b", "%C3%A9", strings.Repeat("x", 65), "a%2Fb", "%00"} {
		s.want(s.put("/v1/stock/"+sku, `{"available":1}`), http.StatusBadRequest, "invalid_request")
		s.want(s.get("/v1/stock/"+sku), http.StatusNotFound, "not_found")
	}
	s.want(s.put("/v1/stock/4111111111111111", `{"available":1}`), http.StatusBadRequest, "card_data_rejected")
	s.want(s.get("/v1/stock/tee"), http.StatusNotFound, "not_found")
}

func TestStockBelongsToAMerchant(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	other := request{method: http.MethodGet, path: "/v1/stock/tee", apiKey: beta}
	s.want(s.send(other), http.StatusNotFound, "not_found")
	other.method, other.body = http.MethodPut, `{"available":1}`
	s.want(s.send(other), http.StatusOK, "")
	if got := s.get("/v1/stock/tee").field("available"); got != 10.0 {
		t.Errorf("got %v, want the merchant's own 10", got)
	}
}

func TestSettingStockLeavesReservedAndSold(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	s.buy(basket(psptest.TokenCaptured, ""))
	s.buy(basket(psptest.TokenRequiresAction, ""))
	got := s.put("/v1/stock/tee", `{"available":50}`)
	if want := `{"sku":"tee","available":50,"reserved":2,"sold":2}`; got.text != want {
		t.Errorf("got %s, want %s", got.text, want)
	}
}
