package simulator_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/kessai/kessai/internal/psp"
)

// Nobody without the secret gets anything through, whatever the headers.
func FuzzVerify(f *testing.F) {
	f.Add("evt_1", "1767322445", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", []byte(`{"id":"evt_1"}`))
	f.Add("", "", "", []byte{})
	f.Add("evt_1.1767322445", "1767322445", "v1, v1,, v2,= v1a,", []byte("."))
	f.Add("\x00", "-9223372036854775808", "v1,\n\r", []byte("\xff"))
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		d := psp.Delivery{Body: body, ReceivedAt: arrival, Header: http.Header{
			"webhook-id": {id}, "Webhook-Timestamp": {timestamp}, "WEBHOOK-SIGNATURE": {signature},
		}}
		if got, err := newReceiver(t, secret).Verify(d); !errors.Is(err, psp.ErrSignature) || got != nil {
			t.Errorf("got %+v %v, want ErrSignature", got, err)
		}
	})
}

// A signed body is an event whose references and money can be relied on, or one
// of two errors.
func FuzzParse(f *testing.F) {
	f.Add([]byte(event("charge.captured", `{"charge":`+charge("captured", `,"captured":5000`)+`}`)))
	f.Add([]byte(event("charge.failed", `{"charge":`+charge("failed", `,"decline_code":"lost_card"`)+`}`)))
	f.Add([]byte(event("charge.requires_action", `{"charge":`+charge("requires_action", `,"redirect_url":"https://psp.example/r"`)+`}`)))
	f.Add([]byte(event("refund.succeeded", `{"charge":`+charge("captured", ``)+`,"refund":{"id":"rf_1","charge":"ch_1","amount":1,"status":"pending","reference":null}}`)))
	f.Add([]byte(event("refund.failed", `{"refund":{"id":"rf_1","charge":"ch_1","amount":1,"reference":"re_1"}}`)))
	f.Add([]byte(event("dispute.closed", `{"charge":`+charge("captured", ``)+`,"dispute":{"id":"dp_1","amount":5,"status":"won"}}`)))
	f.Add([]byte(`{"type":"charge.captured","data":{"charge":{"id":"ch_1","reference":"pay_1","amount":1e3,"currency":"JPY"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := newReceiver(t, secret).Parse(psp.Notification{Body: body})
		if err != nil {
			if !errors.Is(err, psp.ErrEventIgnored) && !errors.Is(err, psp.ErrEventInvalid) {
				t.Errorf("got %v, want one of the port's errors", err)
			}
			return
		}
		kinds := 0
		for _, set := range []bool{e.Status != "", e.Refund != nil, e.Dispute != nil} {
			if set {
				kinds++
			}
		}
		thin := e.Refund != nil && e.Charge.PaymentID == "" && e.Charge.Amount.Currency == ""
		if kinds != 1 || e.Charge.Reference == "" || (!thin && !sound(e.Charge)) {
			t.Errorf("got %+v, want one kind of event about a sound charge", e)
		}
		if e.Refund != nil && (e.Refund.Reference == "" || e.Refund.Amount < 0) ||
			e.Dispute != nil && (e.Dispute.Reference == "" || e.Dispute.Amount < 0) {
			t.Errorf("got %+v %+v, want a reference and an amount", e.Refund, e.Dispute)
		}
	})
}

// sound reports a charge that a payment can be found and compared by.
func sound(c psp.Charge) bool {
	return c.Reference != "" && c.PaymentID != "" && c.Amount.Minor >= 0 && c.Captured >= 0 && c.Refunded >= 0 && len(c.Amount.Currency) == 3
}

// An answer is a whole charge or says nothing of what became of it; only what is
// classified by name is more than unknown.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(chargeBody))
	f.Add(201, []byte(redirecting(`"https://psp.example/r"`)))
	f.Add(404, []byte(`{"error":{"code":"charge_not_found"}}`))
	f.Add(409, []byte(`{"error":{"code":"idempotency_in_progress"}}`))
	f.Add(422, []byte(`{"error":{"code":"amount_too_large","message":"…"},"charge":`+chargeBody+`}`))
	f.Add(200, []byte(listOf("null", row("taken", "captured", 9, 0))))
	f.Add(200, []byte(`{"id":"rf","charge":"ch_1","amount":500,"status":"succeeded","reference":"re_1"}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		adapter := answering(t, status, string(body))
		c, err := adapter.Create(t.Context(), createRequest())
		fuzzed(t, c, status, err)
		c, err = adapter.Lookup(t.Context(), psp.LookupRequest{Reference: "ch_1"})
		fuzzed(t, c, status, err)
		c, err = adapter.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
		fuzzed(t, c, status, err)
		if err == nil && c.PaymentID != "pay_1" {
			t.Errorf("got %+v, want a charge of pay_1", c)
		}
		request := psp.RefundRequest{Key: "k", Reference: "ch_1", RefundID: "re_1", Amount: createRequest().Amount}
		if r, err := adapter.Refund(t.Context(), request); err == nil && (r.Reference == "" || r.Amount < 0 || r.Status == "" || status > 299) {
			t.Errorf("got %+v, want a whole refund", r)
		}
	})
}

func fuzzed(t *testing.T, c psp.Charge, status int, err error) {
	t.Helper()
	if err == nil {
		if c.Reference == "" || c.Amount.Minor < 0 || c.Captured < 0 || len(c.Amount.Currency) != 3 || c.Status == "" || status > 299 ||
			(c.Decline != nil) != (c.Status == psp.StatusFailed) || (c.RedirectURL != "") != (c.Status == psp.StatusRequiresAction) {
			t.Errorf("got %+v with status %d, want a whole charge", c, status)
		}
		return
	}
	if errors.Is(err, psp.ErrNotFound) {
		if status != 404 && status/100 != 2 {
			t.Errorf("got %v with status %d", err, status)
		}
		return
	}
	if outcome := psp.OutcomeOf(err); outcome == psp.OutcomeNotSent || (outcome != psp.OutcomeUnknown && status/100 != 4) {
		t.Errorf("got outcome %d with status %d, want unknown", outcome, status)
	}
}
