package simulator_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/simulator"
)

// answering is an adapter that gets that answer to everything.
func answering(t testing.TB, status int, body string) *simulator.Adapter {
	return newAdapter(t, baseURL, &http.Client{Transport: fixed(status, body)})
}

func TestRefusalsAreClassifiedByStatusAndCode(t *testing.T) {
	coded := func(code string) string { return `{"error":{"code":"` + code + `","message":"…"},"more":1}` }
	tests := []struct {
		status   int
		body     string
		create   psp.Outcome
		capture  psp.Outcome
		wantCode string
	}{
		{400, coded("parameter_invalid"), psp.OutcomeRejected, psp.OutcomeRejected, "parameter_invalid"},
		{404, coded("charge_not_found"), psp.OutcomeRejected, psp.OutcomeRejected, "charge_not_found"},
		{409, coded("charge_captured"), psp.OutcomeUnknown, psp.OutcomeRejected, "charge_captured"},
		{409, coded("idempotency_in_progress"), psp.OutcomeInProgress, psp.OutcomeInProgress, "idempotency_in_progress"},
		{422, coded("amount_too_large"), psp.OutcomeRejected, psp.OutcomeRejected, "amount_too_large"},
		{422, coded("idempotency_key_reused"), psp.OutcomeKeyReused, psp.OutcomeKeyReused, "idempotency_key_reused"},
		{401, coded("unauthorized"), psp.OutcomeUnknown, psp.OutcomeUnknown, "unauthorized"},
		{402, coded("card_declined"), psp.OutcomeUnknown, psp.OutcomeUnknown, "card_declined"},
		{403, coded("forbidden"), psp.OutcomeUnknown, psp.OutcomeUnknown, "forbidden"},
		{408, coded("timeout"), psp.OutcomeUnknown, psp.OutcomeUnknown, "timeout"},
		{418, coded("teapot"), psp.OutcomeUnknown, psp.OutcomeUnknown, "teapot"},
		{302, coded("moved"), psp.OutcomeUnknown, psp.OutcomeUnknown, "moved"},
		{500, coded("internal_error"), psp.OutcomeUnknown, psp.OutcomeUnknown, "internal_error"},
		{503, coded("idempotency_in_progress"), psp.OutcomeUnknown, psp.OutcomeUnknown, "idempotency_in_progress"},
		// Without a code it is not the provider who refused.
		{400, `{}`, psp.OutcomeUnknown, psp.OutcomeUnknown, ""},
		{404, `{"message":"no Route matched"}`, psp.OutcomeUnknown, psp.OutcomeUnknown, ""},
		{409, coded("Not A Code"), psp.OutcomeUnknown, psp.OutcomeUnknown, ""},
		{422, coded(strings.Repeat("a", 65)), psp.OutcomeUnknown, psp.OutcomeUnknown, ""},
		{422, `{"error":{"code":1}}`, psp.OutcomeUnknown, psp.OutcomeUnknown, ""},
		{422, `{"error":"idempotency_key_reused"`, psp.OutcomeUnknown, psp.OutcomeUnknown, ""},
	}
	for _, tt := range tests {
		adapter := answering(t, tt.status, tt.body)
		_, created := adapter.Create(t.Context(), createRequest())
		_, captured := adapter.Capture(t.Context(), psp.CaptureRequest{
			Key: "k", Reference: "ch_1", Amount: money.Amount{Minor: 1, Currency: "JPY"},
		})
		for name, got := range map[string]struct {
			err  error
			want psp.Outcome
		}{"create": {created, tt.create}, "capture": {captured, tt.capture}} {
			e, ok := errors.AsType[*psp.Error](got.err)
			if !ok || e.Outcome != got.want || e.Code != tt.wantCode || e.HTTPStatus != tt.status {
				t.Errorf("%d %s on %s: got %+v, want outcome %d with code %q", tt.status, tt.body, name, got.err, got.want, tt.wantCode)
			}
		}
	}
}

func TestThrottlingIsBounded(t *testing.T) {
	const date = "Fri, 02 Jan 2026 03:04:05 GMT"
	tests := []struct {
		retryAfter, date string
		want             time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"1", "", time.Second},
		{"3600", "", time.Hour},
		{"3601", "", time.Hour},
		{"18446744073709551615", "", time.Hour},
		{"18446744073709551616", "", 0},
		{"-5", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"Fri, 02 Jan 2026 03:04:35 GMT", date, 30 * time.Second},
		{"Fri, 02 Jan 2026 03:04:00 GMT", date, 0},
		{"Sat, 02 Jan 2027 03:04:05 GMT", date, time.Hour},
		{"Fri, 02 Jan 2026 03:04:35 GMT", "", 0}, // against which clock?
	}
	for _, tt := range tests {
		adapter := newAdapter(t, baseURL, &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			response, err := fixed(429, "not even JSON")(r)
			response.Header = http.Header{"Retry-After": {tt.retryAfter}, "Date": {tt.date}}
			return response, err
		})})
		_, err := adapter.Create(t.Context(), createRequest())
		e, ok := errors.AsType[*psp.Error](err)
		if !ok || e.Outcome != psp.OutcomeThrottled || e.RetryAfter != tt.want {
			t.Errorf("%q at %q: got %+v, want %s", tt.retryAfter, tt.date, err, tt.want)
		}
	}
}

func TestChargesAreReadWholeOrNotAtAll(t *testing.T) {
	right := func(from, to string) string {
		if !strings.Contains(chargeBody, from) {
			t.Fatalf("no %s in the charge", from)
		}
		return strings.Replace(chargeBody, from, to, 1)
	}
	wrong := map[string]string{
		"no object":                    `[]`,
		"null":                         `null`,
		"a number":                     `1`,
		"empty id":                     right(`"ch_1"`, `""`),
		"id with a slash":              right(`"ch_1"`, `"ch_1/x"`),
		"id of dots":                   right(`"ch_1"`, `".."`),
		"id with a space":              right(`"ch_1"`, `"ch 1"`),
		"long id":                      right(`"ch_1"`, `"`+strings.Repeat("c", 256)+`"`),
		"numeric id":                   right(`"ch_1"`, `1`),
		"long reference":               right(`"pay_1"`, `"`+strings.Repeat("p", 256)+`"`),
		"no amount":                    right(`"amount":18600,`, ``),
		"amount above int64":           right(`"amount":18600`, `"amount":9223372036854775808`),
		"no currency":                  right(`"currency":"KWD",`, ``),
		"currency in small letters":    right(`"KWD"`, `"kwd"`),
		"currency of four":             right(`"KWD"`, `"KWDX"`),
		"status in capitals":           right(`"captured","captured"`, `"Captured","captured"`),
		"no status":                    right(`"status":"captured",`, ``),
		"no captured":                  right(`"captured":18600,`, ``),
		"null captured":                right(`"captured":18600`, `"captured":null`),
		"negative captured":            right(`"captured":18600`, `"captured":-1`),
		"no refunded":                  right(`"refunded":0,`, ``),
		"negative refunded":            right(`"refunded":0`, `"refunded":-1`),
		"refunds that are none":        right(`"refunds":[]`, `"refunds":{}`),
		"refund without id":            right(`"refunds":[]`, `"refunds":[{"amount":1,"status":"pending"}]`),
		"refund without amount":        right(`"refunds":[]`, `"refunds":[{"id":"r","status":"pending"}]`),
		"refund of unknown status":     right(`"refunds":[]`, `"refunds":[{"id":"r","amount":1,"status":"maybe"}]`),
		"refund of another charge":     right(`"refunds":[]`, `"refunds":[{"id":"r","amount":1,"status":"pending","charge":"ch_2"}]`),
		"requires action, no redirect": right(`"captured","captured":18600`, `"requires_action","captured":0`),
		"redirect to script":           redirecting(`"javascript:alert(1)"`),
		"redirect to data":             redirecting(`"data:text/html,x"`),
		"relative redirect":            redirecting(`"/redirect/ch_1"`),
		"redirect without scheme":      redirecting(`"//evil.example/x"`),
		"redirect with a name":         redirecting(`"https://psp.example@evil.example/"`),
		"empty redirect":               redirecting(`""`),
		"invalid UTF-8":                right(`"pay_1"`, "\"pay_\xff\""),
		"amount in capitals too":       `{"AMOUNT":1` + right(`"amount":18600,`, `"x":1,`)[1:],
	}
	for name, body := range wrong {
		_, err := answering(t, 200, body).Create(t.Context(), createRequest())
		if psp.OutcomeOf(err) != psp.OutcomeUnknown || err == nil {
			t.Errorf("%s: got %v, want OutcomeUnknown", name, err)
		}
	}
	for name, body := range map[string]string{
		"as it is":              chargeBody,
		"unknown members":       right(`"id"`, `"new":[1.5,{"id":null}],"id"`),
		"no refunds":            right(`,"refunds":[]`, ``),
		"null refunds":          right(`"refunds":[]`, `"refunds":null`),
		"members in capitals":   right(`"id"`, `"AMOUNT":1,"id"`),
		"escaped text":          right(`"pay_1"`, `"\u0070ay_1"`),
		"a redirect of no use":  right(`"redirect_url":null`, `"redirect_url":"javascript:alert(1)"`),
		"a decline of no use":   right(`"decline_code":null`, `"decline_code":"x"`),
		"white space around it": "\n " + chargeBody + "\r\n",
	} {
		for _, status := range []int{200, 201, 202} {
			got, err := answering(t, status, body).Create(t.Context(), createRequest())
			if err != nil || got.Reference != "ch_1" || got.PaymentID != "pay_1" || got.Status != psp.StatusCaptured ||
				got.Amount != createRequest().Amount || got.Captured != 18600 || got.RedirectURL != "" || got.Decline != nil {
				t.Errorf("%s: got %+v %v, want the charge", name, got, err)
			}
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	const most = 1 << 20
	for size, ok := range map[int]bool{most: true, most + 1: false, 2 * most: false} {
		body := chargeBody + strings.Repeat(" ", size-len(chargeBody))
		_, err := answering(t, 200, body).Create(t.Context(), createRequest())
		if (err == nil) != ok || (err != nil && psp.OutcomeOf(err) != psp.OutcomeUnknown) {
			t.Errorf("%d bytes: got %v, want accepted %t", size, err, ok)
		}
	}
}

func redirecting(address string) string {
	return `{"id":"ch_1","reference":"pay_1","amount":1,"currency":"JPY","status":"requires_action","captured":0,"refunded":0,` +
		`"redirect_url":` + address + `}`
}

func TestAMissingReferenceIsTheCallersToCompare(t *testing.T) {
	for _, reference := range []string{`null`, `""`, `"pay_2"`} {
		body := strings.Replace(chargeBody, `"pay_1"`, reference, 1)
		got, err := answering(t, 200, body).Create(t.Context(), createRequest())
		if err != nil || got.PaymentID == "pay_1" {
			t.Errorf("%s: got %+v %v, want the charge with what the provider said", reference, got, err)
		}
	}
}

func TestDeclinesSayWhetherAnotherAttemptMakesSense(t *testing.T) {
	tests := []struct {
		wire, code string
		retryable  bool
	}{
		{`"insufficient_funds"`, "insufficient_funds", true},
		{`"do_not_honor"`, "do_not_honor", true},
		{`"generic_decline"`, "generic_decline", true},
		{`"card_declined"`, "card_declined", true},
		{`"authentication_failed"`, "authentication_failed", true},
		{`"a_code_of_next_year"`, "a_code_of_next_year", true},
		{`null`, "card_declined", true},
		{`""`, "card_declined", true},
		{`"No Code At All"`, "card_declined", true},
		{`"` + strings.Repeat("x", 65) + `"`, "card_declined", true},
		{`"lost_card"`, "lost_card", false},
		{`"stolen_card"`, "stolen_card", false},
		{`"expired_card"`, "expired_card", false},
		{`"pickup_card"`, "pickup_card", false},
		{`"fraudulent"`, "fraudulent", false},
	}
	for _, tt := range tests {
		body := fmt.Sprintf(`{"id":"ch_1","reference":"pay_1","amount":1,"currency":"JPY","status":"failed","captured":0,"refunded":0,"decline_code":%s}`, tt.wire)
		got, err := answering(t, 200, body).Create(t.Context(), createRequest())
		if err != nil || got.Decline == nil || *got.Decline != (psp.Decline{Code: tt.code, Retryable: tt.retryable}) {
			t.Errorf("%s: got %+v %v, want %s %t", tt.wire, got.Decline, err, tt.code, tt.retryable)
		}
	}
}

func TestRefundsAreReadWholeOrNotAtAll(t *testing.T) {
	request := psp.RefundRequest{Key: "k", Reference: "ch_1", RefundID: "re_1", Amount: money.Amount{Minor: 500, Currency: "JPY"}}
	tests := []struct {
		body string
		want psp.Refund
		ok   bool
	}{
		{`{"id":"rf","charge":"ch_1","amount":500,"status":"succeeded","reference":"re_1"}`, psp.Refund{Reference: "rf", RefundID: "re_1", Amount: 500, Status: psp.RefundSucceeded}, true},
		{`{"id":"rf","charge":"ch_1","amount":500,"status":"pending","reference":null}`, psp.Refund{Reference: "rf", Amount: 500, Status: psp.RefundPending}, true},
		{`{"id":"rf","amount":7,"status":"failed","reference":"re_2"}`, psp.Refund{Reference: "rf", RefundID: "re_2", Amount: 7, Status: psp.RefundFailed}, true},
		{`{"id":"rf","charge":"ch_2","amount":500,"status":"succeeded","reference":"re_1"}`, psp.Refund{}, false},
		{`{"charge":"ch_1","amount":500,"status":"succeeded"}`, psp.Refund{}, false},
		{`{"id":"rf","amount":500,"status":"canceled"}`, psp.Refund{}, false},
		{`{"id":"rf","amount":500}`, psp.Refund{}, false},
		{`{"id":"rf","status":"succeeded"}`, psp.Refund{}, false},
		{chargeBody, psp.Refund{}, false},
		{``, psp.Refund{}, false},
	}
	for _, tt := range tests {
		got, err := answering(t, 201, tt.body).Refund(t.Context(), request)
		if tt.ok && (err != nil || got != tt.want) {
			t.Errorf("%s: got %+v %v, want %+v", tt.body, got, err, tt.want)
		}
		if !tt.ok && (err == nil || psp.OutcomeOf(err) != psp.OutcomeUnknown) {
			t.Errorf("%s: got %+v %v, want OutcomeUnknown", tt.body, got, err)
		}
	}
}
