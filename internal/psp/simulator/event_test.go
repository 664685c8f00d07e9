package simulator_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/psp"
)

func parse(t *testing.T, body string) (psp.Event, error) {
	t.Helper()
	return newReceiver(t, secret).Parse(psp.Notification{EventID: "evt_1", Type: "not looked at", Body: []byte(body)})
}

func event(kind, data string) string {
	return `{"id":"evt_1","type":"` + kind + `","created":1767322445,"data":` + data + `}`
}

// charge is a snapshot; extra starts with a comma.
func charge(status, extra string) string {
	return `{"id":"ch_1","reference":"pay_1","amount":5000,"currency":"JPY","status":"` + status + `"` + extra + `}`
}

func TestTheTypeOfAnEventIsTheFact(t *testing.T) {
	identity := psp.Charge{Reference: "ch_1", PaymentID: "pay_1", Amount: money.Amount{Minor: 5000, Currency: "JPY"}}
	with := func(status psp.Status, change func(*psp.Charge)) psp.Event {
		c := identity
		c.Status = status
		if change != nil {
			change(&c)
		}
		return psp.Event{Status: status, Charge: c}
	}
	captured := func(minor int64) psp.Event {
		return with(psp.StatusCaptured, func(c *psp.Charge) { c.Captured = minor })
	}
	tests := []struct {
		name, kind, charge string
		want               psp.Event
	}{
		{"authorized", "charge.authorized", charge("authorized", `,"captured":0`), with(psp.StatusAuthorized, nil)},
		{"authorized, snapshot captured", "charge.authorized", charge("captured", `,"captured":5000,"refunded":5000`), with(psp.StatusAuthorized, nil)},
		{"captured", "charge.captured", charge("captured", `,"captured":5000`), captured(5000)},
		{"captured in part", "charge.captured", charge("captured", `,"captured":4000`), captured(4000)},
		{"captured, no amount of it", "charge.captured", charge("captured", ``), captured(5000)},
		{"captured, null of it", "charge.captured", charge("captured", `,"captured":null`), captured(5000)},
		{"captured, snapshot authorized", "charge.captured", charge("authorized", `,"captured":0`), captured(5000)},
		{"captured, status unknown", "charge.captured", charge("settled", ``), captured(5000)},
		{"captured, more than the amount", "charge.captured", charge("captured", `,"captured":6000`), captured(6000)},
		{
			"failed", "charge.failed", charge("failed", `,"decline_code":"lost_card"`),
			with(psp.StatusFailed, func(c *psp.Charge) { c.Decline = &psp.Decline{Code: "lost_card"} }),
		},
		{
			"failed, no code", "charge.failed", charge("failed", ``),
			with(psp.StatusFailed, func(c *psp.Charge) { c.Decline = &psp.Decline{Code: "card_declined", Retryable: true} }),
		},
		{"canceled, snapshot captured late", "charge.canceled", charge("captured", `,"captured":5000`), with(psp.StatusCanceled, nil)},
		{"pending", "charge.pending", charge("pending", ``), with(psp.StatusPending, nil)},
		{
			"requires action", "charge.requires_action", charge("requires_action", `,"redirect_url":"https://psp.example/r"`),
			with(psp.StatusRequiresAction, func(c *psp.Charge) { c.RedirectURL = "https://psp.example/r" }),
		},
		{"requires action, over already", "charge.requires_action", charge("captured", `,"redirect_url":null`), with(psp.StatusRequiresAction, nil)},
		{"captured, a redirect of no use", "charge.captured", charge("captured", `,"captured":5000,"redirect_url":"https://psp.example/r"`), captured(5000)},
	}
	for _, tt := range tests {
		got, err := parse(t, event(tt.kind, `{"charge":`+tt.charge+`,"new":{}}`))
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestRefundEventsNameTheRefund(t *testing.T) {
	const refund = `{"id":"rf_1","charge":"ch_1","amount":3000,"status":"pending","reference":"re_1"}`
	got, err := parse(t, event("refund.succeeded", `{"charge":`+charge("captured", `,"captured":5000,"refunded":3000,"refunds":[`+refund+`]`)+`,"refund":`+refund+`}`))
	want := psp.Refund{Reference: "rf_1", RefundID: "re_1", Amount: 3000, Status: psp.RefundSucceeded}
	if err != nil || got.Status != "" || got.Refund == nil || *got.Refund != want || got.Dispute != nil {
		t.Errorf("got %+v %v, want %+v", got.Refund, err, want)
	}
	if c := got.Charge; c.Reference != "ch_1" || c.PaymentID != "pay_1" || c.Captured != 5000 || c.Refunded != 3000 || len(c.Refunds) != 1 {
		t.Errorf("got %+v, want the charge with its refund", c)
	}

	got, err = parse(t, event("refund.failed", `{"charge":`+charge("captured", ``)+`,"refund":{"id":"rf_1","amount":3000,"status":"succeeded","reference":null}}`))
	want = psp.Refund{Reference: "rf_1", Amount: 3000, Status: psp.RefundFailed}
	if err != nil || got.Refund == nil || *got.Refund != want {
		t.Errorf("got %+v %v, want %+v", got.Refund, err, want)
	}

	got, err = parse(t, event("refund.succeeded", `{"refund":`+refund+`}`))
	if err != nil || got.Charge.Reference != "ch_1" || got.Charge.PaymentID != "" || got.Refund == nil {
		t.Errorf("got %+v %v, want a refund that names its charge only", got, err)
	}
}

func TestDisputeEventsNameTheDispute(t *testing.T) {
	tests := []struct {
		kind, status string
		want         psp.Dispute
	}{
		{"dispute.opened", "open", psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeOpen}},
		{"dispute.opened", "lost", psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeOpen}},
		{"dispute.closed", "won", psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeClosed, Result: "won"}},
		{"dispute.closed", "", psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeClosed}},
		{"dispute.closed", "<b>", psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeClosed}},
	}
	for _, tt := range tests {
		got, err := parse(t, event(tt.kind, `{"charge":`+charge("captured", ``)+`,"dispute":{"id":"dp_1","amount":5000,"status":"`+tt.status+`"}}`))
		if err != nil || got.Dispute == nil || *got.Dispute != tt.want || got.Status != "" || got.Refund != nil || got.Charge.PaymentID != "pay_1" {
			t.Errorf("%s %s: got %+v %v, want %+v", tt.kind, tt.status, got, err, tt.want)
		}
	}
}

// F59: what is not known is ignored, what cannot be understood is told apart from it.
func TestEventsThatMeanNothingAreTold(t *testing.T) {
	good := charge("captured", `,"captured":5000`)
	edited := func(from, to string) string {
		return event("charge.captured", `{"charge":`+strings.Replace(good, from, to, 1)+`}`)
	}
	for name, body := range map[string]string{
		"unknown type":               event("customer.created", `{"customer":7}`),
		"unknown type, odd data":     event("customer.created", `"text"`),
		"unknown type of a charge":   event("charge.settled", `{"charge":`+good+`}`),
		"type in capitals":           event("CHARGE.CAPTURED", `{"charge":`+good+`}`),
		"unknown type, data missing": `{"type":"ping"}`,
	} {
		if _, err := parse(t, body); !errors.Is(err, psp.ErrEventIgnored) {
			t.Errorf("%s: got %v, want ErrEventIgnored", name, err)
		}
	}
	for name, body := range map[string]string{
		"no JSON":                       `<html>`,
		"nothing":                       ``,
		"null":                          `null`,
		"no type":                       `{"data":{"charge":` + good + `}}`,
		"numeric type":                  `{"type":7}`,
		"type twice":                    `{"type":"ping","type":"charge.captured","data":{"charge":` + good + `}}`,
		"data after the end":            event("charge.captured", `{"charge":`+good+`}`) + `{}`,
		"no data":                       `{"id":"evt_1","type":"charge.captured"}`,
		"null data":                     event("charge.captured", `null`),
		"data that is text":             event("charge.captured", `"charge"`),
		"no charge":                     event("charge.captured", `{}`),
		"null charge":                   event("charge.captured", `{"charge":null}`),
		"no id of the charge":           edited(`"id":"ch_1",`, ``),
		"no reference":                  edited(`"reference":"pay_1",`, ``),
		"null reference":                edited(`"pay_1"`, `null`),
		"empty reference":               edited(`"pay_1"`, `""`),
		"numeric reference":             edited(`"pay_1"`, `1`),
		"long reference":                edited(`"pay_1"`, `"`+strings.Repeat("p", 256)+`"`),
		"no amount":                     edited(`"amount":5000,`, ``),
		"null amount":                   edited(`"amount":5000`, `"amount":null`),
		"amount with a fraction":        edited(`"amount":5000`, `"amount":5000.0`),
		"amount with an exponent":       edited(`"amount":5000`, `"amount":5e3`),
		"amount as text":                edited(`"amount":5000`, `"amount":"5000"`),
		"negative amount":               edited(`"amount":5000`, `"amount":-5000`),
		"amount twice":                  edited(`"amount":5000`, `"amount":1,"amount":5000`),
		"amount beyond int64":           edited(`"amount":5000`, `"amount":99999999999999999999`),
		"no currency":                   edited(`"currency":"JPY",`, ``),
		"currency in small letters":     edited(`"JPY"`, `"jpy"`),
		"numeric currency":              edited(`"JPY"`, `392`),
		"negative captured":             edited(`"captured":5000`, `"captured":-1`),
		"captured with a fraction":      edited(`"captured":5000`, `"captured":0.5`),
		"refunds that are none":         edited(`"captured":5000`, `"refunds":[{}]`),
		"redirect to script":            event("charge.requires_action", `{"charge":`+charge("requires_action", `,"redirect_url":"javascript:x"`)+`}`),
		"refund without a refund":       event("refund.succeeded", `{"charge":`+good+`}`),
		"refund without an id":          event("refund.succeeded", `{"charge":`+good+`,"refund":{"amount":1}}`),
		"refund without an amount":      event("refund.succeeded", `{"charge":`+good+`,"refund":{"id":"rf_1"}}`),
		"refund of another charge":      event("refund.succeeded", `{"charge":`+good+`,"refund":{"id":"rf_1","amount":1,"charge":"ch_2"}}`),
		"refund of unknown status":      event("refund.succeeded", `{"charge":`+good+`,"refund":{"id":"rf_1","amount":1,"status":"maybe"}}`),
		"refund of no charge":           event("refund.succeeded", `{"refund":{"id":"rf_1","amount":1}}`),
		"refund of a charge of no form": event("refund.succeeded", `{"charge":{},"refund":{"id":"rf_1","amount":1,"charge":"ch_1"}}`),
		"dispute without a dispute":     event("dispute.opened", `{"charge":`+good+`}`),
		"dispute without an id":         event("dispute.opened", `{"charge":`+good+`,"dispute":{"amount":1}}`),
		"dispute without an amount":     event("dispute.opened", `{"charge":`+good+`,"dispute":{"id":"dp_1"}}`),
		"dispute without a charge":      event("dispute.opened", `{"dispute":{"id":"dp_1","amount":1}}`),
		"dispute, charge status odd":    event("dispute.opened", `{"charge":`+charge("settled", ``)+`,"dispute":{"id":"dp_1","amount":1}}`),
	} {
		got, err := parse(t, body)
		if !errors.Is(err, psp.ErrEventInvalid) || !reflect.DeepEqual(got, psp.Event{}) {
			t.Errorf("%s: got %+v %v, want ErrEventInvalid", name, got, err)
		}
	}
}
