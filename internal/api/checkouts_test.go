package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestACheckoutIsMadeReadAndExplained(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	made := s.buy(basket(psptest.TokenCaptured, `,"reference":"order-42","return_url":"https://shop.example/return"`))
	id := made.str("id")
	if got, want := made.header.Get("Location"), "/v1/checkouts/"+id; got != want {
		t.Errorf("got Location %q, want %q", got, want)
	}
	if got := made.header.Get("Preference-Applied"); got != "wait=10" {
		t.Errorf("got Preference-Applied %q, want wait=10", got)
	}
	p := made.object("payment")
	if made.str("status") != "completed" || p["status"] != "captured" || p["reference"] != "order-42" || made.field("amount") != 5000.0 {
		t.Errorf("got %s, want it completed and captured", made.text)
	}
	read := s.get("/v1/checkouts/" + id)
	s.want(read, http.StatusOK, "")
	if read.text != made.text {
		t.Errorf("got %s, want %s", read.text, made.text)
	}
	rows := s.get("/v1/checkouts/" + id + "/events").rows(t)
	var types []any
	for i, r := range rows {
		types = append(types, r["type"])
		if r["version"] != float64(i+1) || r["id"] != fmt.Sprintf("evt_%s_%d", id, i+1) {
			t.Errorf("got row %v, want version %d", r, i+1)
		}
	}
	want := []any{"checkout.created", "checkout.stock_reserved", "checkout.charged", "checkout.order_created", "checkout.completed"}
	if !slices.Equal(types, want) {
		t.Errorf("got %v, want %v", types, want)
	}
	if page := s.get("/v1/checkouts/" + id + "/events?limit=2"); len(page.rows(t)) != 2 || page.str("next_cursor") == "" {
		t.Errorf("got %s, want a page of two", page.text)
	}
	s.want(s.get("/v1/payments/"+p["id"].(string)), http.StatusOK, "")
}

func TestEachEndOfACheckoutIs201WhenItIsWaitedFor(t *testing.T) {
	tests := []struct{ token, sku, status, code string }{
		{psptest.TokenCaptured, "tee", "completed", ""},
		{psptest.TokenDeclined, "tee", "failed", "card_declined"},
		{psptest.TokenCaptured, "none", "failed", "out_of_stock"},
		{psptest.TokenCaptured, "reject-tee", "failed", "order_rejected"},
		{psptest.TokenRequiresAction, "tee", "requires_action", ""},
	}
	for _, tt := range tests {
		t.Run(tt.status+" "+tt.code, func(t *testing.T) {
			s := newShop(t)
			s.supply("tee", 10)
			s.supply("reject-tee", 10)
			r := s.buy(strings.Replace(basket(tt.token, ""), `"tee"`, `"`+tt.sku+`"`, 1))
			code, _ := r.object("failure")["code"].(string)
			if r.str("status") != tt.status || code != tt.code {
				t.Errorf("got %s, want %s %s", r.text, tt.status, tt.code)
			}
			next, _ := r.object("payment")["next_action"].(map[string]any)
			if (next != nil) != (tt.status == "requires_action") {
				t.Errorf("got next action %v of a checkout %s", next, tt.status)
			}
		})
	}
}

func TestTheCustomerComesBack(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	r := s.buy(basket(psptest.TokenRequiresAction, ""))
	id, payment := r.str("id"), r.object("payment")["id"].(string)
	s.fake.Approve(payment)
	s.wake(id)
	got := s.get("/v1/checkouts/" + id)
	if got.str("status") != "completed" || strings.Contains(got.text, "redirect_url") || strings.Contains(s.get("/v1/checkouts/"+id+"/events").text, "redirect") {
		t.Errorf("got %s, want it completed without a redirect anywhere", got.text)
	}
}

func TestACheckoutIsAcceptedAtOnceAndHeldOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.supply("tee", 10)
		s.asleep = true
		tests := []struct {
			prefer, applied string
			takes           time.Duration
		}{
			{"", "", 0},
			{"wait=0", "wait=0", 0},
			{"wait=3", "wait=3", 3 * time.Second},
			{`respond-async, Wait = "2"; x="a,b"`, "wait=2", 2 * time.Second},
			{"wait=1, wait=9", "wait=1", time.Second},
			{"wait=99", "wait=20", 20 * time.Second},
			{"wait=99999999999999999999", "wait=20", 20 * time.Second},
			{"wait", "", 0},
			{"wait=", "", 0},
			{"wait=-1", "", 0},
			{"wait=1.5", "", 0},
			{"wait=soon", "", 0},
			{`x="wait=5, wait=6"`, "", 0},
			{"waiting=5", "", 0},
		}
		for i, tt := range tests {
			r := request{method: http.MethodPost, path: "/v1/checkouts", apiKey: alpha, body: basket(psptest.TokenCaptured, ""), key: fmt.Sprint(i), header: map[string]string{}}
			if tt.prefer != "" {
				r.header["Prefer"] = tt.prefer
			}
			began := time.Now()
			got := s.send(r)
			if took := time.Since(began); took != tt.takes {
				t.Errorf("%q: took %s, want %s", tt.prefer, took, tt.takes)
			}
			s.want(got, http.StatusAccepted, "")
			if got.str("status") != "pending" || got.header.Get("Retry-After") != "1" || got.header.Get("Location") != "/v1/checkouts/"+got.str("id") {
				t.Errorf("%q: got %s %v, want it pending, where to look and when", tt.prefer, got.text, got.header)
			}
			if applied := got.header.Get("Preference-Applied"); applied != tt.applied {
				t.Errorf("%q: got Preference-Applied %q, want %q", tt.prefer, applied, tt.applied)
			}
		}
	})
}

func TestAnAnswerIsHeldOnlyUntilThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.supply("tee", 10)
		s.asleep = true
		id := s.post("/v1/checkouts", basket(psptest.TokenCaptured, "")).str("id")
		time.AfterFunc(3*time.Second, func() {
			s.asleep = false
			s.wake(id)
		})
		began := time.Now()
		got := s.get("/v1/checkouts/" + id + "?wait=20")
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second || got.str("status") != "completed" {
			t.Errorf("got %s after %s, want it completed after three seconds", got.text, took)
		}
		for _, wait := range []string{"21", "-1", "1.5", "x", ""} {
			s.want(s.get("/v1/checkouts/"+id+"?wait="+wait), http.StatusBadRequest, "invalid_request")
		}
	})
}

func TestARepeatedCheckoutIsTheSameCheckout(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	r := request{method: http.MethodPost, path: "/v1/checkouts", apiKey: alpha, key: "k", body: basket(psptest.TokenCaptured, `,"reference":"order-42"`)}
	first := s.send(r)
	s.want(first, http.StatusAccepted, "")
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is a repeat")
	}
	r.body = ` {"reference" : "order-42", "customer":{"email":"a@example.com"}, "payment_method":"tok_captured", "currency":"JPY",
		"items":[{"unit_amount":2500,"quantity":2,"sku":"tee"}]}`
	again := s.send(r)
	s.want(again, http.StatusCreated, "")
	if again.str("id") != first.str("id") || again.str("status") != "completed" || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %s, want the same checkout as it is now", again.text)
	}
	r.body = basket(psptest.TokenCaptured, `,"reference":"order-43"`)
	s.want(s.send(r), http.StatusUnprocessableEntity, "idempotency_key_reused")
	r.key, r.body = "k2", basket(psptest.TokenCaptured, `,"reference":"order-42"`)
	refused := s.send(r)
	s.want(refused, http.StatusConflict, "reference_in_use")
	if got, want := refused.str("payment_id"), first.object("payment")["id"]; got != want {
		t.Errorf("got %s, want the live payment %s", got, want)
	}
	r.apiKey = beta // the key and the reference of another merchant
	s.want(s.send(r), http.StatusAccepted, "")
}

func TestEqualSKUsAreMergedByPrice(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	r := s.buy(`{"items":[{"sku":"tee","quantity":1,"unit_amount":100},{"sku":"tee","quantity":2,"unit_amount":90},
		{"sku":"tee","quantity":3,"unit_amount":100}],"currency":"JPY","payment_method":"tok_captured"}`)
	if r.str("status") != "completed" || r.field("amount") != 580.0 {
		t.Fatalf("got %s, want it completed for 580", r.text)
	}
	items, _ := s.get("/v1/orders/" + r.str("order_id")).field("items").([]any)
	want := "[map[quantity:4 sku:tee unit_amount:100] map[quantity:2 sku:tee unit_amount:90]]"
	if got := fmt.Sprint(items); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.get("/v1/stock/tee").text; got != `{"sku":"tee","available":4,"reserved":0,"sold":6}` {
		t.Errorf("got %s, want six sold", got)
	}
}

func TestABasketIsJudgedBeforeAnythingIsDone(t *testing.T) {
	item := func(sku, quantity, amount string) string {
		return fmt.Sprintf(`{"sku":%s,"quantity":%s,"unit_amount":%s}`, sku, quantity, amount)
	}
	good := item(`"tee"`, "1", "100")
	body := func(items, more string) string {
		return fmt.Sprintf(`{"items":%s,"currency":"JPY","payment_method":"tok_captured"%s}`, items, more)
	}
	tests := map[string]struct{ body, field string }{
		"no items":               {`{"currency":"JPY","payment_method":"tok_captured"}`, "items"},
		"an empty basket":        {body(`[]`, ""), "items"},
		"items that are none":    {body(`{}`, ""), "items"},
		"items of null":          {body(`null`, ""), "items"},
		"51 items":               {body("["+strings.Repeat(good+",", 50)+good+"]", ""), "items"},
		"an item that is none":   {body(`[`+good+`,7]`, ""), "items[1]"},
		"an item without a SKU":  {body(`[{"quantity":1,"unit_amount":1}]`, ""), "items[0].sku"},
		"an empty SKU":           {body(`[`+item(`""`, "1", "1")+`]`, ""), "items[0].sku"},
		"a SKU of 65":            {body(`[`+item(`"`+strings.Repeat("x", 65)+`"`, "1", "1")+`]`, ""), "items[0].sku"},
		"a SKU with a slash":     {body(`[`+item(`"a/b"`, "1", "1")+`]`, ""), "items[0].sku"},
		"a SKU with a space":     {body(`[`+item(`"a b"`, "1", "1")+`]`, ""), "items[0].sku"},
		"a SKU beyond ASCII":     {body(`[`+item(`"é"`, "1", "1")+`]`, ""), "items[0].sku"},
		"quantity 0":             {body(`[`+item(`"tee"`, "0", "1")+`]`, ""), "items[0].quantity"},
		"quantity -1":            {body(`[`+item(`"tee"`, "-1", "1")+`]`, ""), "items[0].quantity"},
		"quantity 10000":         {body(`[`+item(`"tee"`, "10000", "1")+`]`, ""), "items[0].quantity"},
		"quantity 1.5":           {body(`[`+item(`"tee"`, "1.5", "1")+`]`, ""), "items[0].quantity"},
		"quantity 1e3":           {body(`[`+item(`"tee"`, "1e3", "1")+`]`, ""), "items[0].quantity"},
		"a text for a quantity":  {body(`[`+item(`"tee"`, `"1"`, "1")+`]`, ""), "items[0].quantity"},
		"no quantity":            {body(`[{"sku":"tee","unit_amount":1}]`, ""), "items[0].quantity"},
		"a negative price":       {body(`[`+item(`"tee"`, "1", "-1")+`]`, ""), "items[0].unit_amount"},
		"too high a price":       {body(`[`+item(`"tee"`, "1", "1000000000000")+`]`, ""), "items[0].unit_amount"},
		"a price out of range":   {body(`[`+item(`"tee"`, "1", "9223372036854775808")+`]`, ""), "items[0].unit_amount"},
		"no price":               {body(`[{"sku":"tee","quantity":1}]`, ""), "items[0].unit_amount"},
		"a total of 0":           {body(`[`+item(`"tee"`, "1", "0")+`]`, ""), "items"},
		"a total too high":       {body(`[`+item(`"tee"`, "2", "500000000000")+`]`, ""), "items"},
		"a total that overflows": {body("["+strings.Repeat(item(`"tee"`, "9999", "999999999999")+",", 49)+good+"]", ""), "items"},
		"an unknown item field":  {body(`[{"sku":"tee","quantity":1,"unit_amount":1,"price":2}]`, ""), "items[0].price"},
		"an unknown field":       {body(`[`+good+`]`, `,"amount":100`), "amount"},
		"a metadata field":       {body(`[`+good+`]`, `,"metadata":{}`), "metadata"},
		"a customer of null":     {body(`[`+good+`]`, `,"customer":null`), "customer"},
		"a customer of text":     {body(`[`+good+`]`, `,"customer":"a@example.com"`), "customer"},
		"a customer of nothing":  {body(`[`+good+`]`, `,"customer":{}`), "customer.email"},
		"an address that isn't":  {body(`[`+good+`]`, `,"customer":{"email":"a"}`), "customer.email"},
		"an address with a name": {body(`[`+good+`]`, `,"customer":{"email":"A <a@example.com>"}`), "customer.email"},
		"another customer field": {body(`[`+good+`]`, `,"customer":{"email":"a@example.com","name":"A"}`), "customer.name"},
		"a reference with a :":   {body(`[`+good+`]`, `,"reference":"a:b"`), "reference"},
		"an open return address": {body(`[`+good+`]`, `,"return_url":"http://shop.example"`), "return_url"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.supply("tee", 10)
			r := s.post("/v1/checkouts", tt.body)
			s.want(r, http.StatusBadRequest, "invalid_request")
			errors, _ := r.field("errors").([]any)
			if len(errors) != 1 || errors[0].(map[string]any)["field"] != tt.field {
				t.Errorf("got %v, want one about %s", errors, tt.field)
			}
			if s.starts != 0 || s.get("/v1/stock/tee").field("available") != 10.0 {
				t.Error("something was done")
			}
		})
	}
	s := newShop(t)
	s.want(s.post("/v1/checkouts", body(`[`+item(`"4111111111111111"`, "1", "1")+`]`, "")), http.StatusBadRequest, "card_data_rejected")
	s.want(s.post("/v1/checkouts", body(`[`+good+`]`, `,"currency":"JPY"`)), http.StatusBadRequest, "invalid_json")
}

func TestTheLargestBasketsAreAccepted(t *testing.T) {
	s := newShop(t)
	for i := range 50 {
		s.supply(fmt.Sprintf("sku-%d", i), 9999)
	}
	var items []string
	for i := range 50 {
		items = append(items, fmt.Sprintf(`{"sku":"sku-%d","quantity":9999,"unit_amount":2}`, i))
	}
	body := func(items string) string {
		return `{"items":[` + items + `],"currency":"JPY","payment_method":"tok_captured"}`
	}
	if r := s.buy(body(strings.Join(items, ","))); r.str("status") != "completed" || r.field("amount") != 50*9999*2.0 {
		t.Errorf("got %s, want all of it", r.text)
	}
	s.supply("gold", 1)
	if r := s.buy(body(`{"sku":"gold","quantity":1,"unit_amount":999999999999}`)); r.str("status") != "completed" {
		t.Errorf("got %s, want the largest amount", r.text)
	}
	s.supply("tee", 499_950)
	same := strings.TrimSuffix(strings.Repeat(`{"sku":"tee","quantity":9999,"unit_amount":1},`, 50), ",")
	if r := s.buy(body(same)); r.str("status") != "completed" || r.field("amount") != 499_950.0 {
		t.Errorf("got %s, want fifty equal items as one", r.text)
	}
}

func TestACheckoutOfAnotherMerchantIsNotThere(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	id := s.buy(basket(psptest.TokenCaptured, "")).str("id")
	absent := "chk_01KDYAK348M9S346Q3D2ZZZZZZ"
	for _, more := range []string{"", "/events", "?wait=5"} {
		want := s.send(request{method: http.MethodGet, path: "/v1/checkouts/" + absent + more, apiKey: beta})
		s.want(want, http.StatusNotFound, "not_found")
		for _, other := range []string{id, "chk_1", "pay_01KDYAK348M9S346Q3D2ZZZZZZ", strings.Repeat("x", 3000), "chk_%23"} {
			got := s.send(request{method: http.MethodGet, path: "/v1/checkouts/" + other + more, apiKey: beta})
			if got.status != want.status || got.text != want.text {
				t.Errorf("%s: got %d %s, want %s", other, got.status, got.text, want.text)
			}
		}
	}
}

func TestAnOperatorDrivesACheckoutOn(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	r := s.buy(basket(psptest.TokenRequiresAction, ""))
	id := r.str("id")
	resume := request{method: http.MethodPost, path: "/v1/checkouts/" + id + "/resume", apiKey: operator, key: "k"}
	for _, replayed := range []string{"", "true"} {
		got := s.send(resume)
		s.want(got, http.StatusAccepted, "")
		if got.str("id") != id || got.header.Get("Location") != "/v1/checkouts/"+id || got.header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %s %v, want the checkout", got.text, got.header)
		}
		if strings.Contains(got.text, "redirect_url") {
			t.Errorf("got %s, want no redirect for an operator", got.text)
		}
	}
	resume.body = `{"force":true}`
	s.want(s.send(resume), http.StatusBadRequest, "invalid_request")
	resume.body, resume.apiKey = "", alpha
	s.want(s.send(resume), http.StatusForbidden, "forbidden")
	resume.apiKey, resume.path = operator, "/v1/checkouts/chk_01KDYAK348M9S346Q3D2ZZZZZZ/resume"
	s.want(s.send(resume), http.StatusNotFound, "not_found")

	s.fake.Approve(r.object("payment")["id"].(string))
	s.wake(id)
	resume.path, resume.key = "/v1/checkouts/"+id+"/resume", "k2"
	s.want(s.send(resume), http.StatusConflict, "invalid_status")
}

func TestARefundWaitsForTheCheckout(t *testing.T) {
	s := newShop(t)
	s.supply("tee", 10)
	s.asleep = true
	r := s.post("/v1/checkouts", basket(psptest.TokenCaptured, ""))
	payment := r.object("payment")["id"].(string)
	s.want(s.post("/v1/payments/"+payment+"/refunds", ""), http.StatusConflict, "checkout_pending")
	s.asleep = false
	s.wake(r.str("id"))
	s.want(s.post("/v1/payments/"+payment+"/refunds", ""), http.StatusCreated, "")
}

func TestACheckoutNeedsAPSPThatIsThere(t *testing.T) {
	s := newShop(t)
	s.config.Settings.PSPs = nil
	s.api = newAPI(s)
	s.want(s.post("/v1/checkouts", basket(psptest.TokenCaptured, "")), http.StatusBadRequest, "invalid_request")
}
