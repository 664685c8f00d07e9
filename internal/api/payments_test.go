package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp/psptest"
)

const manual = `,"capture_method":"manual"`

func TestAPaymentIsMadeReadAndListed(t *testing.T) {
	w := newWorld(t)
	made := w.send(request{
		method: http.MethodPost, path: "/v1/payments", apiKey: alpha, key: "k1",
		body: `{"amount":5000,"currency":"JPY","payment_method":"tok_captured","reference":"order-42","metadata":{"k":"v"},
			"return_url":"https://shop.example/return","psp":"simulator","capture_method":"automatic"}`,
	})
	w.want(made, http.StatusCreated, "")
	id := made.str("id")
	if got, want := made.header.Get("Location"), "/v1/payments/"+id; got != want {
		t.Errorf("got Location %q, want %q", got, want)
	}
	read := w.get("/v1/payments/" + id)
	w.want(read, http.StatusOK, "")
	if read.text != made.text {
		t.Errorf("got %s, want %s", read.text, made.text)
	}
	if rows := w.get("/v1/payments?reference=order-42").rows(t); len(rows) != 1 || rows[0]["id"] != id {
		t.Errorf("got %v, want the payment", rows)
	}
	rows := w.get("/v1/payments/" + id + "/events").rows(t)
	if len(rows) != 2 || rows[0]["type"] != "payment.created" || rows[1]["type"] != "payment.captured" {
		t.Fatalf("got %v, want payment.created and payment.captured", rows)
	}
	if got, want := rows[1]["id"], "evt_"+id+"_2"; got != want {
		t.Errorf("got row id %v, want %v", got, want)
	}
	if got, want := rows[1]["version"], read.field("version"); got != want {
		t.Errorf("got last version %v, want the payment's %v", got, want)
	}
}

func TestEachOutcomeOfAChargeHasItsStatus(t *testing.T) {
	tests := []struct {
		token, more string
		code        int
		status      string
		doubt       bool
	}{
		{psptest.TokenCaptured, "", 201, "captured", false},
		{psptest.TokenCaptured, manual, 201, "authorized", false},
		{psptest.TokenDeclined, "", 201, "failed", false},
		{psptest.TokenRequiresAction, "", 201, "requires_action", false},
		{psptest.TokenPending, "", 202, "processing", false},
		{psptest.TokenRateLimitedOnce, "", 202, "processing", false},
		{psptest.TokenTimeoutCaptured, "", 202, "processing", true},
		{psptest.TokenTimeoutNothing, "", 202, "processing", true},
		{psptest.TokenErrorCaptured, "", 202, "processing", true},
	}
	for _, tt := range tests {
		t.Run(tt.token+tt.more, func(t *testing.T) {
			w := newWorld(t)
			r := request{
				method: http.MethodPost, path: "/v1/payments", apiKey: alpha, key: "k",
				body: fmt.Sprintf(`{"amount":1,"currency":"JPY","payment_method":%q%s}`, tt.token, tt.more),
			}
			for _, replayed := range []string{"", "true"} {
				got := w.send(r)
				if got.status != tt.code || got.str("status") != tt.status || got.field("in_doubt") != tt.doubt {
					t.Errorf("got %d %s, want %d %s, in doubt %t", got.status, got.text, tt.code, tt.status, tt.doubt)
				}
				if tt.code == 202 && got.header.Get("Retry-After") != "1" {
					t.Errorf("got Retry-After %q, want 1", got.header.Get("Retry-After"))
				}
				if got.header.Get("Idempotent-Replayed") != replayed {
					t.Errorf("got Idempotent-Replayed %q, want %q", got.header.Get("Idempotent-Replayed"), replayed)
				}
			}
		})
	}
}

func TestADeclineSaysWhy(t *testing.T) {
	w := newWorld(t)
	got, _ := json.Marshal(w.get("/v1/payments/" + w.pay(psptest.TokenInsufficientFunds)).field("failure"))
	if want := `{"code":"card_declined","decline_code":"insufficient_funds","retryable":true}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestACaptureTakesWhatIsHeldWhollyOrInPart(t *testing.T) {
	for body, want := range map[string]float64{``: 10000, `{}`: 10000, `{"amount":4000}`: 4000, `{"amount":10000}`: 10000} {
		w := newWorld(t)
		path := "/v1/payments/" + w.pay(psptest.TokenCaptured, manual) + "/capture"
		r := request{method: http.MethodPost, path: path, apiKey: alpha, key: "k", body: body}
		for range 2 {
			got := w.send(r)
			if got.status != http.StatusOK || got.str("status") != "captured" || got.field("amount_captured") != want {
				t.Errorf("%s: got %d %s, want 200 captured %v", body, got.status, got.text, want)
			}
		}
		w.want(w.post(path, body), http.StatusConflict, "invalid_status")
	}
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured, manual)
	w.want(w.post("/v1/payments/"+id+"/capture", `{"amount":10001}`), http.StatusUnprocessableEntity, "amount_too_large")
	w.want(w.get("/v1/payments/"+id), http.StatusOK, "")
}

func TestACaptureWithoutAnAnswerIsAccepted(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured, manual)
	w.fake.After(psptest.OperationCapture, psptest.Once(errSilence))
	r := request{method: http.MethodPost, path: "/v1/payments/" + id + "/capture", apiKey: alpha, key: "k"}
	for range 2 {
		got := w.send(r)
		w.want(got, http.StatusAccepted, "")
		if got.field("in_doubt") != true || got.str("status") != "authorized" || got.header.Get("Location") != "/v1/payments/"+id {
			t.Errorf("got %s at %q, want in doubt, authorized, with its Location", got.text, got.header.Get("Location"))
		}
	}
	w.deliver()
	got := w.send(r)
	if got.status != http.StatusOK || got.str("status") != "captured" {
		t.Errorf("got %d %s, want 200 captured", got.status, got.text)
	}
}

func TestACaptureThatDidNotRunIsAccepted(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured, manual)
	w.fake.Before(psptest.OperationCapture, psptest.Once(errThrottled))
	got := w.post("/v1/payments/"+id+"/capture", "")
	w.want(got, http.StatusAccepted, "")
	if got.field("in_doubt") != false {
		t.Errorf("got %s, want no doubt: it did not run", got.text)
	}
}

func TestACaptureThatIsOnItsWayIsAccepted(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured, manual)
	r := request{method: http.MethodPost, path: "/v1/payments/" + id + "/capture", apiKey: alpha, key: "k"}
	w.fake.Before(psptest.OperationCapture, func() error {
		w.clock.advance(13 * time.Hour) // its key is too old to be sent again
		w.want(w.send(r), http.StatusAccepted, "")
		return nil
	})
	w.want(w.send(r), http.StatusOK, "")
}

func TestARefusedCaptureIsToldAndANewKeyTriesAgain(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenCaptured, manual)
	w.fake.Before(psptest.OperationCapture, psptest.Once(errRefused))
	r := request{method: http.MethodPost, path: "/v1/payments/" + id + "/capture", apiKey: alpha, key: "k"}
	w.want(w.send(r), http.StatusConflict, "capture_refused")
	w.want(w.send(r), http.StatusConflict, "capture_refused")
	again := w.post("/v1/payments/"+id+"/capture", "")
	if again.status != http.StatusOK || again.str("status") != "captured" {
		t.Errorf("got %d %s, want 200 captured", again.status, again.text)
	}
	used := map[string]bool{}
	for _, call := range w.fake.Calls() {
		if call.Operation == psptest.OperationCapture {
			used[call.Key] = true
		}
	}
	if len(used) != 2 {
		t.Errorf("got %d keys at the PSP, want one for each attempt", len(used))
	}
}

func TestACancelEndsWhatIsNotCaptured(t *testing.T) {
	for token, more := range map[string]string{
		psptest.TokenCaptured: manual, psptest.TokenRequiresAction: "", psptest.TokenPending: "",
	} {
		w := newWorld(t)
		r := request{method: http.MethodPost, path: "/v1/payments/" + w.pay(token, more) + "/cancel", apiKey: alpha, key: "k", body: `{"reason":"no stock"}`}
		for range 2 {
			got := w.send(r)
			if got.status != http.StatusOK || got.str("status") != "canceled" {
				t.Errorf("%s: got %d %s, want 200 canceled", token, got.status, got.text)
			}
		}
		w.want(w.post(r.path, ""), http.StatusConflict, "invalid_status")
	}
	w := newWorld(t)
	w.want(w.post("/v1/payments/"+w.pay(psptest.TokenCaptured)+"/cancel", ""), http.StatusConflict, "payment_captured")
	w.want(w.post("/v1/payments/"+w.pay(psptest.TokenDeclined)+"/cancel", ""), http.StatusConflict, "invalid_status")
	w.want(w.post("/v1/payments/"+w.pay(psptest.TokenTimeoutCaptured)+"/cancel", ""), http.StatusConflict, "payment_captured")
}

func TestTheReasonOfACancelIsInTheJournal(t *testing.T) {
	w := newWorld(t)
	path := "/v1/payments/" + w.pay(psptest.TokenCaptured, manual)
	w.want(w.send(request{method: http.MethodPost, path: path + "/cancel", apiKey: alpha, key: "k", body: `{"reason":"no stock"}`}), http.StatusOK, "")
	events := w.get(path + "/events").text
	if n := strings.Count(events, `"reason":"no stock"`); n != 1 {
		t.Errorf("got the reason %d times, want it once, of the cancel alone: %s", n, events)
	}
}

func TestACancelWhileACallMayBeOnItsWayIsAcceptedAndItsRepeatTellsTheEnd(t *testing.T) {
	w := newWorld(t)
	id := w.pay(psptest.TokenTimeoutNothing)
	w.fake.Before(psptest.OperationLookup, func() error { return errSilence })
	r := request{method: http.MethodPost, path: "/v1/payments/" + id + "/cancel", apiKey: alpha, key: "k"}
	for range 2 {
		got := w.send(r)
		w.want(got, http.StatusAccepted, "")
		if got.header.Get("Location") != "/v1/payments/"+id || got.header.Get("Retry-After") == "" {
			t.Errorf("got %v, want Location and Retry-After", got.header)
		}
	}
	w.fake.Before(psptest.OperationLookup, nil)
	w.clock.advance(2 * time.Minute)
	if _, err := w.charges.Drive(t.Context(), paymentID(id), "reconciler"); err != nil {
		t.Fatal(err)
	}
	if got := w.send(r); got.status != http.StatusOK || got.str("status") != "canceled" {
		t.Errorf("got %d %s, want 200 canceled", got.status, got.text)
	}
}

func TestAnInvalidFieldIsNamedAndAllOfThemAtOnce(t *testing.T) {
	w := newWorld(t)
	got := w.post("/v1/payments", `{"amount":0,"currency":"jpy","payment_method":"","capture_method":"auto","reference":"a:b",
		"return_url":"http://shop.example","psp":"paypal","metadata":{"k":null},"Amount":1}`)
	w.want(got, http.StatusBadRequest, "invalid_request")
	var problem struct {
		Errors []struct{ Field, Message string } `json:"errors"`
	}
	if err := json.Unmarshal([]byte(got.text), &problem); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, e := range problem.Errors {
		fields = append(fields, e.Field)
	}
	want := "amount currency payment_method capture_method reference return_url metadata.k psp Amount"
	if strings.Join(fields, " ") != want {
		t.Errorf("got %v, want %s", fields, want)
	}
}

func TestAFieldIsJudgedExactly(t *testing.T) {
	const fields = `"amount":1,"currency":"JPY","payment_method":"t"`
	with := func(replaced, by string) string { return "{" + strings.Replace(fields, replaced, by, 1) + "}" }
	and := func(more string) string { return "{" + fields + "," + more + "}" }
	many := func(n int) string {
		var pairs []string
		for i := range n {
			pairs = append(pairs, fmt.Sprintf(`"k%d":"v"`, i))
		}
		return `"metadata":{` + strings.Join(pairs, ",") + `}`
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct {
		field string
		ok    []string
		bad   []string
	}{
		{
			"amount",
			[]string{with("1", "999999999999")},
			[]string{
				with("1", "0"), with("1", "-1"), with("1", "1000000000000"), with("1", "1.0"), with("1", "1e3"), with("1", `"1"`), with("1", "null"), with("1", "true"),
				with("1", "99999999999999999999999"), with("1", "[1]"), `{"currency":"JPY","payment_method":"t"}`,
			},
		},
		{
			"currency",
			[]string{with("JPY", "KWD"), with("JPY", "USD")},
			[]string{with("JPY", "jpy"), with("JPY", "XXX"), with("JPY", "JP"), with("JPY", "JPYX"), with("JPY", ""), with(`"JPY"`, "392"), with(`"JPY"`, "null")},
		},
		{
			"payment_method",
			[]string{with(`"t"`, `"`+x(255)+`"`)},
			[]string{with(`"t"`, `""`), with(`"t"`, `"`+x(256)+`"`), with(`"t"`, `"a b"`), with(`"t"`, `"é"`), with(`"t"`, "null"), with(`"t"`, "1")},
		},
		{
			"capture_method",
			[]string{and(`"capture_method":"automatic"`), and(`"capture_method":"manual"`)},
			[]string{and(`"capture_method":""`), and(`"capture_method":"Manual"`), and(`"capture_method":null`)},
		},
		{
			"reference",
			[]string{and(`"reference":"o"`), and(`"reference":"` + strings.Repeat("é", 64) + `"`), and(`"reference":"a#b/c d"`)},
			[]string{and(`"reference":""`), and(`"reference":"` + x(65) + `"`), and(`"reference":"a:b"`), and(`"reference":null`), and(`"reference":1`)},
		},
		{
			"return_url",
			[]string{and(`"return_url":"https://shop.example/r?x=1#top"`), and(`"return_url":"http://localhost:8080/r"`), and(`"return_url":"http://127.0.0.1"`), and(`"return_url":"http://[::1]:3000/"`)},
			[]string{
				and(`"return_url":"http://shop.example/"`), and(`"return_url":"javascript:alert(1)"`), and(`"return_url":"//shop.example"`), and(`"return_url":"https://"`),
				and(`"return_url":"https://user@shop.example/"`), and(`"return_url":"https://user:pw@shop.example/"`), and(`"return_url":"http://localhost.evil.example/"`), and(`"return_url":"http://localhost@evil.example/"`),
				and(`"return_url":"/return"`), and(`"return_url":""`), and(`"return_url":null`), and(`"return_url":"https://shop.example/ x"`), and(`"return_url":"https://shop.example:99999/"`), and(`"return_url":"https://shop.example:/"`),
				and(`"return_url":"https://münchen.example/"`), and(`"return_url":"https:\\\\evil.example"`), and(`"return_url":"https:shop.example"`), and(`"return_url":"data:text/html,x"`), and(`"return_url":"HTTP://shop.example/"`),
				and(`"return_url":"https://shop.example/` + x(2048) + `"`),
			},
		},
		{"psp", []string{and(`"psp":"simulator"`)}, []string{and(`"psp":""`), and(`"psp":"paypal"`), and(`"psp":"Simulator"`), and(`"psp":null`)}},
		{
			"metadata",
			[]string{and(`"metadata":{}`), and(many(20)), and(`"metadata":{"` + x(40) + `":"` + x(500) + `"}`), and(`"metadata":{"k":""}`)},
			[]string{and(many(21)), and(`"metadata":null`), and(`"metadata":[]`), and(`"metadata":"x"`)},
		},
		{"metadata.k", nil, []string{and(`"metadata":{"k":null}`), and(`"metadata":{"k":1}`), and(`"metadata":{"k":{}}`), and(`"metadata":{"k":"` + x(501) + `"}`)}},
		{"metadata." + x(41), nil, []string{and(`"metadata":{"` + x(41) + `":"v"}`)}},
		{"metadata.", nil, []string{and(`"metadata":{"":"v"}`)}},
		{"Currency", nil, []string{and(`"Currency":"JPY"`)}},
		{"", nil, []string{and(`"":1`)}},
	}
	for _, tt := range tests {
		w := newWorld(t)
		for _, body := range tt.ok {
			if r := w.post("/v1/payments", strings.Replace(body, `"t"`, `"tok_captured"`, 1)); r.status != http.StatusCreated {
				t.Errorf("%.120s: got %d %s, want 201", body, r.status, r.text)
			}
		}
		for _, body := range tt.bad {
			r := w.post("/v1/payments", body)
			name := tt.field
			if name == "" {
				name = `\"\"`
			}
			if r.status != http.StatusBadRequest || r.field("code") != "invalid_request" || !strings.Contains(r.text, `"field":"`+name+`"`) {
				t.Errorf("%.120s: got %d %s, want 400 that names %s", body, r.status, r.text, tt.field)
			}
		}
		if len(w.fake.Charges()) != len(tt.ok) && tt.field != "payment_method" {
			t.Errorf("%s: got %d charges, want %d", tt.field, len(w.fake.Charges()), len(tt.ok))
		}
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	w := newWorld(t)
	var made []string
	for range 5 {
		made = append(made, w.pay(psptest.TokenDeclined, `,"reference":"o"`))
	}
	id := w.pay(psptest.TokenCaptured)
	for range 4 {
		w.want(w.post("/v1/payments/"+id+"/refunds", `{"amount":100}`), http.StatusCreated, "")
	}
	rows := func(path, field string) []string {
		var all []string
		for cursor, pages := "", 0; pages < 10; pages++ {
			r := w.get(path + cursor)
			for _, row := range r.rows(t) {
				all = append(all, fmt.Sprint(row[field]))
			}
			next := r.str("next_cursor")
			if next == "" {
				return all
			}
			cursor = "&cursor=" + next
		}
		t.Fatalf("%s: got no end", path)
		return nil
	}
	got := rows("/v1/payments?reference=o&limit=2", "id")
	for i, want := range []string{made[4], made[3], made[2], made[1], made[0]} {
		if i >= len(got) || got[i] != want {
			t.Fatalf("got %v, want the newest first of %v", got, made)
		}
	}
	if got := rows("/v1/payments/"+id+"/refunds?limit=3", "amount"); len(got) != 4 {
		t.Errorf("got %v, want four refunds", got)
	}
	versions := rows("/v1/payments/"+id+"/events?limit=3", "version")
	for i, v := range versions {
		if v != fmt.Sprint(i+1) {
			t.Errorf("got versions %v, want them to rise by one", versions)
		}
	}
	if got, want := len(versions), int(w.get("/v1/payments/"+id).field("version").(float64)); got != want {
		t.Errorf("got %d rows, want %d", got, want)
	}
	if got := w.get("/v1/payments?reference=never").rows(t); len(got) != 0 {
		t.Errorf("got %v, want an empty list", got)
	}
	if got := w.send(request{method: http.MethodGet, path: "/v1/payments?reference=o", apiKey: beta}).rows(t); len(got) != 0 {
		t.Errorf("got %v of another merchant, want an empty list", got)
	}
}
