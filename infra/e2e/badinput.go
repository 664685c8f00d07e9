package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

var badInput = []claim{
	{"a field that is not valid is 400 and does nothing", invalidFields},
	{"odd amounts of captures and refunds are 400", oddAmounts},
	{"a body that is not one plain JSON object is 400", invalidBodies},
	{"names are case-sensitive, unknown and doubled ones are refused", invalidNames},
	{"the largest body is taken, a larger one is not", bodySizes},
	{"a card number in any field is refused and never repeated", cardNumbers},
	{"checkouts and stock are judged as strictly", invalidCheckouts},
}

// rejected sends a payment that must be refused, and checks that nothing was done.
func (s *stage) rejected(t *testing.T, why string, body any) {
	t.Helper()
	if a := s.alpha.post(t, "/v1/payments", body); a.status != http.StatusBadRequest {
		t.Errorf("%s: got %s, want 400", why, a)
	} else {
		a.problem(t, http.StatusBadRequest)
	}
}

func invalidFields(t *testing.T, s *stage) {
	many := object{}
	for i := range 21 {
		many[fmt.Sprint(i)] = "v"
	}
	basket := s.basket(nil)
	for field, values := range map[string][]any{
		"amount": {
			0, -1, 1000000000000, json.Number("1.5"), json.Number("5000.0"), json.Number("1e3"), json.Number("9223372036854775808"),
			json.Number("-0"), json.Number("1E2"), "5000", "", nil, true,
			object{},
			[]int{5000},
			absent,
		},
		"currency":       {"", "jpy", "Jpy", "JP", "JPYY", "J1Y", "ＪＰＹ", 392, nil, absent, "JPY "},
		"payment_method": {"", nil, 1, absent, strings.Repeat("x", 5000), []string{"tok_captured"}},
		"capture_method": {"", "Manual", "MANUAL", "later", 1, true},
		"reference":      {"", "a:b", ":", strings.Repeat("x", 65), strings.Repeat("é", 65), 42, object{}},
		"return_url": {
			"", "http://shop.example/", "ftp://shop.example/", "javascript:alert(1)", "//shop.example", "/back", "shop.example", "https://",
			"http://localhost.evil.example/", 1, "https://" + strings.Repeat("x", 5000), "http://localhost@evil.example/",
		},
		"psp": {"", "nobody", "Simulator", 1},
		"metadata": {
			[]string{"k"},
			"k", 1,
			object{"k": nil},
			object{"k": 1},
			object{"k": true},
			object{"k": object{}},
			object{"k": []string{}},
			object{strings.Repeat("k", 41): "v"},
			object{"k": strings.Repeat("v", 501)},
			many,
		},
	} {
		for _, value := range values {
			text := fmt.Sprintf("%.60v", value)
			s.rejected(t, field+" "+text, basket.with(object{field: value}))
		}
	}
	s.hasNoPayment(t, basket)
}

func oddAmounts(t *testing.T, s *stage) {
	held, paid := s.held(t, nil), s.paid(t, nil)
	for _, amount := range []string{"-1", "0", "1.5", "100.0", `"100"`, "1e3", "true", "[]", "1000000000000", "99999999999999999999"} {
		for _, path := range []string{captureOf(held), refundsOf(paid)} {
			s.alpha.post(t, path, raw(`{"amount":`+amount+`}`)).problem(t, http.StatusBadRequest)
		}
	}
	for _, path := range []string{captureOf(held), refundsOf(paid), cancelOf(held)} {
		for _, body := range []string{
			`{"unknown":1}`, `{"amount":1,"amount":1}`, `{"Amount":1}`, `{"reason":""}`, `{"reason":1}`, `[]`, `null`, `{} {}`, `{`,
			`{"reason":"` + strings.Repeat("x", 5000) + `"}`, "{\"reason\":\"\xff\"}",
		} {
			if strings.Contains(path, "/capture") && strings.Contains(body, `"reason"`) { // an unknown field there
				continue
			}
			s.alpha.post(t, path, raw(body)).problem(t, http.StatusBadRequest)
		}
	}
	if got := s.read(t, held.ID); got.Status != "authorized" || got.Version != held.Version {
		t.Errorf("got %s version %d, want authorized version %d", got.Status, got.Version, held.Version)
	}
	if got := s.read(t, paid.ID); len(got.Refunds) != 0 {
		t.Errorf("got refunds %+v, want none", got.Refunds)
	}
}

func text(t *testing.T, o object) string {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func invalidBodies(t *testing.T, s *stage) {
	basket := s.basket(nil)
	good := text(t, basket)
	for why, body := range map[string]string{
		"nothing": "", "white space": " \n", "null": "null", "an array": "[" + good + "]", "a string": `"x"`, "a number": "1", "no JSON": "amount=5000",
		"cut off": good[:len(good)-1], "trailing data": good + "x", "two objects": good + good, "a second value": good + " null",
		"not UTF-8": strings.Replace(good, "tok_captured", "tok_\xff", 1), "a lone surrogate": strings.Replace(good, "tok_captured", `tok_\ud800`, 1),
		"a comment": "/**/" + good, "a trailing comma": good[:len(good)-1] + ",}", "single quotes": strings.ReplaceAll(good, `"`, `'`),
		"byte order mark": "\ufeff" + good, "a control character": strings.Replace(good, "tok_captured", "tok_\x01", 1),
		"deep": strings.Replace(good, "{", `{"metadata":`+strings.Repeat("[", 30000)+",", 1),
		"NaN":  strings.Replace(good, "5000", "NaN", 1), "leading zero": strings.Replace(good, "5000", "05000", 1), "plus": strings.Replace(good, "5000", "+5000", 1),
	} {
		s.rejected(t, why, raw(body))
	}
	s.hasNoPayment(t, basket)
}

func invalidNames(t *testing.T, s *stage) {
	basket := s.basket(nil)
	good := text(t, basket)
	for why, extra := range map[string]string{
		"unknown": `"unknown":1`, "another case": `"Amount":5000`, "upper case": `"CURRENCY":"JPY"`, "doubled": `"amount":5000`,
		"doubled by an escape": `"\u0061mount":5000`, "doubled with another value": `"amount":1`, "empty": `"":1`, "doubled metadata": `"metadata":{"a":"1","a":"1"}`,
		"a field of the answer": `"status":"captured"`, "an id": `"id":"pay_01ARZ3NDEKTSV4RRFFQ69G5FAV"`, "white space": `"amount ":1`,
	} {
		s.rejected(t, why, raw(good[:len(good)-1]+","+extra+"}"))
		s.rejected(t, why+", first", raw("{"+extra+","+good[1:]))
	}
	s.rejected(t, "only another case", raw(strings.Replace(good, "amount", "AMOUNT", 1)))
	s.hasNoPayment(t, basket)
}

func bodySizes(t *testing.T, s *stage) {
	basket := s.basket(nil)
	good := text(t, basket)
	padded := func(size int) raw { return raw(good + strings.Repeat(" ", size-len(good))) }
	s.rejected(t, "one byte too many", padded(maxRequest+1))
	s.rejected(t, "far too many", padded(20*maxRequest))
	s.hasNoPayment(t, basket)
	s.alpha.post(t, "/v1/payments", padded(maxRequest)).want(t, http.StatusCreated)
}

// card is a card number as tests of the whole trade use it, in parts, so that no
// scanner finds one here.
const card = "4242" + "4242" + "4242" + "4242"

func cardNumbers(t *testing.T, s *stage) {
	spaced, dashed := card[:4]+" "+card[4:8]+" "+card[8:12]+" "+card[12:], card[:4]+"-"+card[4:8]+"-"+card[8:12]+"-"+card[12:]
	fullWidth := strings.Map(func(digit rune) rune { return digit - '0' + '０' }, card)
	amex := "3782" + "822463" + "10005"
	basket := s.basket(nil)
	for _, members := range []object{
		{"payment_method": card},
		{"payment_method": "tok_" + card},
		{"reference": card},
		{"reference": "order " + spaced},
		{"reference": dashed},
		{"metadata": object{"k": card}},
		{"metadata": object{"note": "card " + dashed + " please"}},
		{"metadata": object{card: "v"}},
		{"metadata": object{"k": fullWidth}},
		{"metadata": object{"k": amex}},
		{"return_url": "https://shop.example/?n=" + card},
		{"return_url": "https://shop.example/" + dashed},
	} {
		a := s.alpha.post(t, "/v1/payments", basket.with(members))
		if a.status != http.StatusBadRequest {
			t.Errorf("%v: got %s, want 400", members, a)
			continue
		}
		a.problem(t, http.StatusBadRequest)
		holdNone(t, map[string]string{"the refusal": string(a.body)}, card, spaced, dashed, amex)
	}
	s.hasNoPayment(t, basket)
	p := s.held(t, nil)
	s.alpha.post(t, cancelOf(p), object{"reason": "card " + spaced}).problem(t, http.StatusBadRequest)
	s.alpha.post(t, "/v1/payments", basket.with(object{"metadata": object{"order": card[:15] + "1"}})).want(t, http.StatusCreated) // no card: its check digit is wrong
	paid := s.paid(t, nil)
	s.alpha.post(t, refundsOf(paid), object{"reason": card}).problem(t, http.StatusBadRequest)
	s.alpha.post(t, "/v1/checkouts", s.cart(object{"customer": object{"email": card + "@example.com"}})).problem(t, http.StatusBadRequest)
	s.alpha.post(t, "/v1/checkouts", s.cart(object{"items": []object{line(card, 1, 1)}})).problem(t, http.StatusBadRequest)
}

func invalidCheckouts(t *testing.T, s *stage) {
	sku := s.stocked(t, 10000)
	many := make([]object, 51)
	for i := range many {
		many[i] = line(sku, 1, 1)
	}
	cart := s.cart(nil)
	for field, values := range map[string][]any{
		"items": {
			absent, nil,
			[]object{},
			many,
			object{},
			[]string{sku},
			[]object{line(sku, 0, 1)},
			[]object{line(sku, -1, 1)},
			[]object{line(sku, 10000, 1)},
			[]object{line(sku, 1, -1)},
			[]object{line(sku, 1, 0)},
			[]object{line(sku, 2, 999999999999)},
			[]object{line("", 1, 1)},
			[]object{line(sku, 1, 1).with(object{"unknown": 1})},
			[]object{line(sku, 1, 1).with(object{"quantity": "1"})},
			[]object{line(sku, 1, 1).with(object{"quantity": json.Number("1.0")})},
			[]object{line(sku, 1, 1).with(object{"quantity": absent})},
			[]object{line(sku, 1, 1).with(object{"Sku": sku})},
			[]object{line(sku, 9999, 9223372036854775807)},
		},
		"currency": {absent, "jpy", ""}, "payment_method": {absent, ""}, "reference": {"", "a:b", strings.Repeat("x", 65)},
		"customer":   {object{"email": "nobody"}, object{"email": 1}, "a@example.com", object{"email": "a@example.com", "name": "x"}},
		"return_url": {"http://shop.example/"}, "amount": {5000}, "metadata": {object{}},
	} {
		for _, value := range values {
			if a := s.alpha.post(t, "/v1/checkouts", cart.with(object{field: value})); a.status != http.StatusBadRequest {
				t.Errorf("%s %.60v: got %s, want 400", field, value, a)
			}
		}
	}
	for _, body := range []string{
		`{}`, `{"available":-1}`, `{"available":1.5}`, `{"available":"1"}`, `{"available":null}`, `{"Available":1}`,
		`{"available":1,"available":1}`, `{"available":1,"sold":0}`, `null`, `{"available":1}x`, ``,
	} {
		s.alpha.send(t, request{method: http.MethodPut, path: "/v1/stock/" + sku, body: raw(body)}).problem(t, http.StatusBadRequest)
	}
	if got := s.stock(t, sku); got.Available != 10000 || got.Reserved != 0 || got.Sold != 0 {
		t.Errorf("got stock %+v after refused requests, want it untouched", got)
	}
}
