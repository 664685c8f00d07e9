package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/psp/psptest"
)

// cards are numbers that issuers publish for tests.
var cards = []string{
	"4242424242424242", "4111111111111111", "4222222222222", "5555555555554444", "2223003122003222", "378282246310005",
	"30569309025904", "6011111111111117", "3566002020360505", "6205500000000000004", "6304000000000000",
}

func TestWhatLooksLikeACardNumberIsRejectedInAnyFieldAndNeverRepeated(t *testing.T) {
	w := newWorld(t)
	wide := func(s string) string {
		return strings.Map(func(r rune) rune { return r - '0' + '０' }, s)
	}
	grouped := func(s, by string) string {
		var parts []string
		for len(s) > 4 {
			parts, s = append(parts, s[:4]), s[4:]
		}
		return strings.Join(append(parts, s), by)
	}
	for _, card := range cards {
		for _, written := range []string{
			card, grouped(card, " "), grouped(card, "-"), grouped(card, "\u00a0"), grouped(card, "–"), grouped(card, "\u200b"), grouped(card, " - "),
			grouped(card, "."), grouped(card, "_"),
			wide(card), strings.Map(func(r rune) rune { return r - '0' + '٠' }, card), strings.Map(func(r rune) rune { return r - '0' + '𝟘' }, card),
			"card " + card + " please", "tok_" + card, "no. 42 " + grouped(card, " ") + " 12/30", strings.Join(strings.Split(card, ""), " "),
			"pan=" + card + ";", "x" + card, card + "x",
		} {
			for _, field := range []string{
				`"payment_method":%q`, `"payment_method":"t","reference":%q`, `"payment_method":"t","metadata":{"note":%q}`, `"payment_method":"t","metadata":{%q:"v"}`,
				`"payment_method":"t",%q:1`, `"payment_method":"t","return_url":%q`, `"payment_method":"t","psp":%q`, `"payment_method":"t","extra":[{"deep":%q}]`,
			} {
				r := w.post("/v1/payments", `{"amount":1,"currency":"JPY",`+fmt.Sprintf(field, written)+`}`)
				w.want(r, http.StatusBadRequest, "card_data_rejected")
				if strings.Contains(r.text, written) || strings.Contains(r.text, card) {
					t.Errorf("got %s, want the value not repeated", r.text)
				}
			}
		}
		number := w.post("/v1/payments", `{"amount":`+card+`,"currency":"JPY","payment_method":"t"}`)
		w.want(number, http.StatusBadRequest, "card_data_rejected")
		if strings.Contains(w.logs.text(), card) {
			t.Fatalf("got the number in a log line")
		}
	}
	id := w.pay(psptest.TokenCaptured)
	for path, body := range map[string]string{"/refunds": `{"reason":"to 4111 1111 1111 1111"}`, "/cancel": `{"reason":"4111-1111-1111-1111"}`, "/capture": `{"amount":4111111111111111}`} {
		w.want(w.post("/v1/payments/"+id+path, body), http.StatusBadRequest, "card_data_rejected")
	}
	r := w.send(request{method: http.MethodPost, path: "/v1/merchants", apiKey: operator, body: `{"name":"4111111111111111"}`})
	w.want(r, http.StatusBadRequest, "card_data_rejected")
}

// What is no point in time and no UUID after all gets no such excuse.
func TestWhatOnlyResemblesATimeOrAUUIDIsRejected(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{"20261302030402", "42424242-4242-4242-0000-000000000000"} {
		r := w.post("/v1/payments", `{"amount":1,"currency":"JPY","payment_method":"t","reference":"`+text+`"}`)
		w.want(r, http.StatusBadRequest, "card_data_rejected")
	}
}

func TestWhatOnlyResemblesACardNumberIsTaken(t *testing.T) {
	w := newWorld(t)
	for _, text := range []string{
		"4242424242424241",                     // a digit is wrong
		"424242424242",                         // too short
		"42424242424242424242",                 // too long, and no part of it stands alone
		"9901.1234.5678.9016",                  // dots, and no issuer has such numbers
		"0042123456789015",                     // no card's number begins so
		"1767322445126",                        // milliseconds since 1970
		"1767322445123457",                     // microseconds
		"1767322445123456783",                  // nanoseconds
		"20260102030406",                       // a point in time
		"20260102030405002",                    // and with milliseconds
		"order-1767322445126",                  // within a reference
		"2026-01-02 03:04:05",                  // written for people
		"01KDYAK348M9S346Q3D25VT4F5",           // a ULID
		"a1b2c3d4-e5f6-4a7b-4242-424242424242", // a UUID
		"deadbeef42424242424242",
		"+81 3-1234-5678",
	} {
		for _, field := range []string{`"metadata":{"k":%q}`, `"metadata":{%q:"v"}`} {
			r := w.post("/v1/payments", `{"amount":1,"currency":"JPY","payment_method":"tok_captured",`+fmt.Sprintf(field, text)+`}`)
			if r.status != http.StatusCreated {
				t.Errorf("%q: got %d %s, want 201", text, r.status, r.text)
			}
		}
	}
}

// In whatever script and grouping, a number that checks is rejected and one whose
// last digit is off by one is not.
func TestTheLastDigitDecides(t *testing.T) {
	w := newWorld(t)
	var zeros []rune
	for r := rune(0); r < unicode.MaxRune; r++ {
		if unicode.IsDigit(r) {
			zeros, r = append(zeros, r), r+9
		}
	}
	if len(zeros) < 60 {
		t.Fatalf("got %d scripts, want all that have digits", len(zeros))
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(13, 19).Draw(t, "length")
		digits := []int{rapid.IntRange(2, 9).Draw(t, "first")}
		for len(digits) < n {
			digits = append(digits, rapid.IntRange(0, 9).Draw(t, "digit"))
		}
		if digits[0] == 2 && digits[1] == 0 {
			digits[1] = 1 // else it may be a point in time
		}
		sum := 0
		for i := range n - 1 {
			d := digits[n-2-i]
			if i%2 == 0 {
				d = d*2/10 + d*2%10
			}
			sum += d
		}
		digits[n-1] = (10 - sum%10) % 10
		zero := rapid.SampledFrom(zeros).Draw(t, "zero")
		write := func() string {
			var b strings.Builder
			for _, d := range digits {
				b.WriteRune(zero + rune(d))
			}
			return b.String()
		}
		body := func() string {
			return `{"amount":1,"currency":"JPY","payment_method":"tok_captured","metadata":{"k":"` + write() + `"}}`
		}
		if r := w.post("/v1/payments", body()); r.status != http.StatusBadRequest || r.str("code") != "card_data_rejected" {
			t.Errorf("%s: got %d %s, want card_data_rejected", write(), r.status, r.text)
		}
		digits[n-1] = (digits[n-1] + 1) % 10
		if r := w.post("/v1/payments", body()); r.status != http.StatusCreated {
			t.Errorf("%s: got %d %s, want 201", write(), r.status, r.text)
		}
	})
}
