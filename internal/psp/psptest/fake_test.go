package psptest_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func request(id, token string, manual bool) psp.CreateRequest {
	return psp.CreateRequest{
		Key: id + "-create", PaymentID: id, Amount: money.Amount{Minor: 5000, Currency: "JPY"},
		PaymentMethod: payment.Secret(token), ManualCapture: manual,
	}
}

// told is the types of the pending events, oldest first.
func told(fake *psptest.Fake) []string {
	var types []string
	for _, e := range fake.Drain() {
		types = append(types, e.Type)
	}
	return types
}

func TestTokensChooseWhatHappens(t *testing.T) {
	tests := []struct {
		token   string
		outcome psp.Outcome
		err     bool
		status  psp.Status // at the provider, "" for no charge
		told    []string
	}{
		{token: psptest.TokenCaptured, status: psp.StatusCaptured, told: []string{"charge.captured"}},
		{token: psptest.TokenDeclined, status: psp.StatusFailed, told: []string{"charge.failed"}},
		{token: psptest.TokenInsufficientFunds, status: psp.StatusFailed, told: []string{"charge.failed"}},
		{token: psptest.TokenRequiresAction, status: psp.StatusRequiresAction, told: []string{"charge.requires_action"}},
		{token: psptest.TokenPending, status: psp.StatusPending, told: []string{"charge.pending"}},
		{token: psptest.TokenPendingSilent, status: psp.StatusPending},
		{token: psptest.TokenTimeoutCaptured, err: true, status: psp.StatusCaptured, told: []string{"charge.captured"}},
		{token: psptest.TokenTimeoutCapturedSilent, err: true, status: psp.StatusCaptured},
		{token: psptest.TokenTimeoutNothing, err: true},
		{token: psptest.TokenErrorCaptured, err: true, status: psp.StatusCaptured, told: []string{"charge.captured"}},
		{token: psptest.TokenErrorOnce, err: true},
		{token: psptest.TokenRateLimitedOnce, err: true, outcome: psp.OutcomeThrottled},
		{token: psptest.TokenWebhookFirst, status: psp.StatusCaptured, told: []string{"charge.captured"}},
		{token: psptest.TokenWebhookTwice, status: psp.StatusCaptured, told: []string{"charge.captured", "charge.captured", "charge.captured"}},
		{token: psptest.TokenWebhookReversed, status: psp.StatusCaptured, told: []string{"charge.captured", "charge.authorized"}},
		{token: psptest.TokenLateCaptured, status: psp.StatusPending, told: []string{"charge.pending"}},
		{token: psptest.TokenRefundPendingFailed, status: psp.StatusCaptured, told: []string{"charge.captured"}},
		{token: "tok_of_nobody", err: true, outcome: psp.OutcomeRejected},
	}
	for _, tt := range tests {
		fake := psptest.NewFake("simulator")
		_, err := fake.Create(t.Context(), request("pay_1", tt.token, false))
		if (err != nil) != tt.err || (err != nil && psp.OutcomeOf(err) != tt.outcome) {
			t.Errorf("%s: got %v, want an error %t with outcome %d", tt.token, err, tt.err, tt.outcome)
		}
		found, err := fake.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
		if errors.Is(err, psp.ErrNotFound) != (tt.status == "") || found.Status != tt.status {
			t.Errorf("%s: got %s %v, want %q", tt.token, found.Status, err, tt.status)
		}
		if got := told(fake); !slices.Equal(got, tt.told) {
			t.Errorf("%s: got events %v, want %v", tt.token, got, tt.told)
		}
	}
}

func TestOnceIsOncePerKey(t *testing.T) {
	for _, token := range []string{psptest.TokenErrorOnce, psptest.TokenRateLimitedOnce} {
		fake := psptest.NewFake("simulator")
		if _, err := fake.Create(t.Context(), request("pay_1", token, false)); err == nil {
			t.Errorf("%s: got no error the first time", token)
		}
		c, err := fake.Create(t.Context(), request("pay_1", token, false))
		if err != nil || c.Status != psp.StatusCaptured {
			t.Errorf("%s: got %+v %v the second time, want captured", token, c, err)
		}
	}
}

func TestAStoredErrorComesAgain(t *testing.T) {
	fake := psptest.NewFake("simulator")
	for range 3 {
		if _, err := fake.Create(t.Context(), request("pay_1", psptest.TokenErrorCaptured, false)); psp.OutcomeOf(err) != psp.OutcomeUnknown || err == nil {
			t.Errorf("got %v, want OutcomeUnknown every time", err)
		}
	}
	if got := fake.LiveCaptures("pay_1"); got != 1 {
		t.Errorf("got %d captures, want 1", got)
	}
}

func TestASecondKeyIsASecondCharge(t *testing.T) {
	fake := psptest.NewFake("simulator")
	for i := range 2 {
		r := request("pay_1", psptest.TokenCaptured, false)
		r.Key = fmt.Sprint(i)
		if _, err := fake.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if fake.LiveCaptures("pay_1") != 2 || fake.Net("pay_1") != 10000 {
		t.Errorf("got %d captures of %d, want 2 of 10000", fake.LiveCaptures("pay_1"), fake.Net("pay_1"))
	}
}

func TestAForgottenKeyChargesAgain(t *testing.T) {
	fake := psptest.NewFake("simulator")
	for range 2 {
		if _, err := fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false)); err != nil {
			t.Fatal(err)
		}
		fake.ForgetKeys()
	}
	if got := fake.LiveCaptures("pay_1"); got != 2 {
		t.Errorf("got %d captures, want 2", got)
	}
}

func TestAKeyBelongsToOneOperation(t *testing.T) {
	fake := psptest.NewFake("simulator")
	c, err := fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, true))
	if err != nil {
		t.Fatal(err)
	}
	_, err = fake.Cancel(t.Context(), psp.CancelRequest{Key: "pay_1-create", Reference: c.Reference})
	if psp.OutcomeOf(err) != psp.OutcomeKeyReused {
		t.Errorf("got %v, want OutcomeKeyReused", err)
	}
}

func TestTheCustomerDecidesOnce(t *testing.T) {
	for _, manual := range []bool{false, true} {
		want, events := psp.StatusCaptured, []string{"charge.requires_action", "charge.captured"}
		if manual {
			want, events = psp.StatusAuthorized, []string{"charge.requires_action", "charge.authorized"}
		}
		fake := psptest.NewFake("simulator")
		c, _ := fake.Create(t.Context(), request("pay_1", psptest.TokenRequiresAction, manual))
		if c.RedirectURL == "" {
			t.Error("got no redirect, want one")
		}
		if !fake.Approve("pay_1") || fake.Approve("pay_1") || fake.Decline("pay_1") {
			t.Error("want the first choice to count, and no other")
		}
		if got := fake.Charges()[0]; got.Status != want || got.RedirectURL != "" {
			t.Errorf("got %+v, want %s without redirect", got, want)
		}
		if got := told(fake); !slices.Equal(got, events) {
			t.Errorf("got %v, want %v", got, events)
		}
	}
	fake := psptest.NewFake("simulator")
	_, _ = fake.Create(t.Context(), request("pay_1", psptest.TokenPending, false))
	if !fake.Decline("pay_1") || fake.Charges()[0].Decline == nil || fake.Approve("pay_1") {
		t.Errorf("got %+v, want it declined for good", fake.Charges()[0])
	}
	if fake.Approve("pay_2") {
		t.Error("want nothing to happen to a payment that nobody knows")
	}
}

func TestMoneyComesLateAfterAConfirmedVoid(t *testing.T) {
	fake := psptest.NewFake("simulator")
	c, _ := fake.Create(t.Context(), request("pay_1", psptest.TokenLateCaptured, false))
	for range 2 {
		voided, err := fake.Cancel(t.Context(), psp.CancelRequest{Key: "k", Reference: c.Reference})
		if err != nil || voided.Status != psp.StatusCanceled {
			t.Fatalf("got %+v %v, want canceled", voided, err)
		}
	}
	if !fake.CaptureLate("pay_1") || fake.CaptureLate("pay_1") || fake.Net("pay_1") != 5000 {
		t.Errorf("got %+v, want it captured once", fake.Charges())
	}
	if got, want := told(fake), []string{"charge.pending", "charge.canceled", "charge.captured"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAHeldChargeLapses(t *testing.T) {
	fake := psptest.NewFake("simulator")
	c, _ := fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, true))
	if !fake.Lapse("pay_1") || fake.Lapse("pay_1") {
		t.Error("want it to lapse once")
	}
	_, err := fake.Capture(t.Context(), psp.CaptureRequest{Key: "k", Reference: c.Reference, Amount: c.Amount})
	if psp.OutcomeOf(err) != psp.OutcomeRejected {
		t.Errorf("got %v, want OutcomeRejected", err)
	}
}

// S-REFUND-BOUND: what is pending counts as returned, what failed does not.
func TestRefundsAreBoundedByWhatWasCaptured(t *testing.T) {
	fake := psptest.NewFake("simulator")
	c, _ := fake.Create(t.Context(), request("pay_1", psptest.TokenRefundPendingFailed, false))
	refund := func(id string, minor int64) error {
		_, err := fake.Refund(t.Context(), psp.RefundRequest{
			Key: id, Reference: c.Reference, RefundID: id, Amount: money.Amount{Minor: minor, Currency: "JPY"},
		})
		return err
	}
	if err := refund("re_1", 3000); err != nil {
		t.Fatal(err)
	}
	if err := refund("re_2", 2001); psp.OutcomeOf(err) != psp.OutcomeRejected {
		t.Errorf("got %v, want OutcomeRejected", err)
	}
	if !fake.SettleRefund("re_1", psp.RefundFailed) || fake.SettleRefund("re_1", psp.RefundSucceeded) {
		t.Error("want the refund to fail for good")
	}
	if err := refund("re_3", 5000); err != nil {
		t.Errorf("got %v, want the failed amount refundable again", err)
	}
	if !fake.SettleRefund("re_3", psp.RefundSucceeded) || fake.Net("pay_1") != 0 {
		t.Errorf("got net %d, want 0", fake.Net("pay_1"))
	}
	if fake.RefundDirect("pay_1", 1) {
		t.Error("want no refund beyond what was captured")
	}
	if !fake.SettleRefund("re_3", psp.RefundFailed) || fake.Net("pay_1") != 5000 {
		t.Errorf("got net %d, want 5000 after the money bounced", fake.Net("pay_1"))
	}
	if !fake.RefundDirect("pay_1", 1000) || fake.Net("pay_1") != 4000 {
		t.Errorf("got net %d, want 4000", fake.Net("pay_1"))
	}
	want := []string{"charge.captured", "refund.failed", "refund.succeeded", "refund.failed", "refund.succeeded"}
	events := fake.Drain()
	for i, e := range events {
		if e.Type != want[i] {
			t.Errorf("got %s, want %s", e.Type, want[i])
		}
	}
	if last := events[len(events)-1].Event; last.Refund.RefundID != "" || last.Refund.Amount != 1000 || last.Charge.Refunded != 1000 {
		t.Errorf("got %+v, want a refund without an id of ours", last)
	}
}

func TestDisputesOpenAndClose(t *testing.T) {
	fake := psptest.NewFake("simulator")
	_, _ = fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false))
	reference, ok := fake.DisputeOpen("pay_1")
	if !ok || !fake.DisputeClose(reference, "lost") || fake.DisputeClose(reference, "won") {
		t.Error("want the dispute to open and close once")
	}
	events := fake.Drain()
	opened, closed := events[1].Event.Dispute, events[2].Event.Dispute
	if opened.Status != psp.DisputeOpen || opened.Result != "" || closed.Status != psp.DisputeClosed || closed.Result != "lost" || opened.Reference != closed.Reference {
		t.Errorf("got %+v %+v, want one dispute opened and lost", opened, closed)
	}
	if _, ok := fake.DisputeOpen("pay_2"); ok {
		t.Error("want no dispute of a payment that nobody knows")
	}
}

func TestHooksLoseRequestsAndAnswers(t *testing.T) {
	fake := psptest.NewFake("simulator")
	lost := errors.New("lost")
	fake.Before(psptest.OperationCreate, psptest.Once(lost))
	_, err := fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false))
	if !errors.Is(err, lost) || psp.OutcomeOf(err) != psp.OutcomeUnknown || len(fake.Charges()) != 0 {
		t.Errorf("got %v with %d charges, want it unknown and none", err, len(fake.Charges()))
	}
	fake.After(psptest.OperationCreate, psptest.Once(lost))
	_, err = fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false))
	if !errors.Is(err, lost) || len(fake.Charges()) != 1 {
		t.Errorf("got %v with %d charges, want it lost and one", err, len(fake.Charges()))
	}
	if _, err = fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false)); err != nil || len(fake.Charges()) != 1 {
		t.Errorf("got %v with %d charges, want the answer to the first", err, len(fake.Charges()))
	}
	fake.Before(psptest.OperationLookup, func() error { return psp.ErrNotFound })
	if _, err = fake.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"}); !errors.Is(err, psp.ErrNotFound) {
		t.Errorf("got %v, want the look-up to lag behind", err)
	}
	var got []string
	for _, c := range fake.Calls() {
		got = append(got, fmt.Sprintf("%s %s %t %t %t", c.Operation, c.Key, c.Arrived, c.Replayed, c.Err == nil))
	}
	want := []string{
		"create pay_1-create false false false", "create pay_1-create true false false",
		"create pay_1-create true true true", "lookup  false false false",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A hook may use the fake: the webhook that comes before the answer.
func TestHooksMayCallTheFake(t *testing.T) {
	fake := psptest.NewFake("simulator")
	var before []string
	fake.After(psptest.OperationCreate, func() error {
		before = told(fake)
		_, err := fake.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
		return err
	})
	_, err := fake.Create(t.Context(), request("pay_1", psptest.TokenWebhookFirst, false))
	if err != nil || !slices.Equal(before, []string{"charge.captured"}) {
		t.Errorf("got %v %v, want the event before the answer", before, err)
	}
}

func TestADyingProcessLeavesTheFakeAsItWas(t *testing.T) {
	fake := psptest.NewFake("simulator")
	fake.After(psptest.OperationCreate, func() error { panic("killed") })
	func() {
		defer func() { _ = recover() }()
		_, _ = fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false))
	}()
	fake.After(psptest.OperationCreate, nil)
	if _, err := fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false)); err != nil || fake.LiveCaptures("pay_1") != 1 {
		t.Errorf("got %v with %d captures, want the answer and one", err, fake.LiveCaptures("pay_1"))
	}
}

func TestAnswersCanBeWrong(t *testing.T) {
	fake := psptest.NewFake("simulator")
	fake.Alter(psptest.OperationCreate, func(c *psp.Charge) { c.Amount.Minor = 1 })
	c, err := fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false))
	if err != nil || c.Amount.Minor != 1 || fake.Charges()[0].Amount.Minor != 5000 {
		t.Errorf("got %+v %v, want a wrong answer and a right charge", c, err)
	}
	fake.AlterRefund(func(r *psp.Refund) { r.Amount = 1 })
	r, err := fake.Refund(t.Context(), psp.RefundRequest{Key: "k", Reference: c.Reference, RefundID: "re_1", Amount: money.Amount{Minor: 9, Currency: "JPY"}})
	if err != nil || r.Amount != 1 || fake.Net("pay_1") != 4991 {
		t.Errorf("got %+v %v, want a wrong answer and a right refund", r, err)
	}
}

func TestEventsTravelAsSignedWebhooks(t *testing.T) {
	fake := psptest.NewFake("simulator")
	_, _ = fake.Create(t.Context(), request("pay_1", psptest.TokenCaptured, false))
	forged := fake.Push(psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{PaymentID: "pay_9"}})
	if pending := fake.Pending(); len(pending) != 2 || pending[1].ID != forged.ID || pending[0].ID == pending[1].ID {
		t.Fatalf("got %+v, want both events", pending)
	}
	at := time.Unix(1767322445, 0)
	for _, want := range []psptest.Event{fake.Take(1), fake.Take(0)} {
		for range 2 { // the same event again
			notifications, err := fake.Verify(fake.Delivery(want, at))
			if err != nil || len(notifications) != 1 || notifications[0].EventID != want.ID || notifications[0].Type != want.Type {
				t.Fatalf("got %+v %v, want %s", notifications, err, want.ID)
			}
			got, err := fake.Parse(notifications[0])
			if err != nil || got.Charge.PaymentID != want.Event.Charge.PaymentID || got.Status != psp.StatusCaptured {
				t.Errorf("got %+v %v, want %+v", got, err, want.Event)
			}
		}
	}
	if _, err := fake.Verify(psp.Delivery{Body: []byte(`{}`)}); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("got %v, want ErrSignature", err)
	}
	if _, err := fake.Parse(psp.Notification{EventID: "x", Type: "customer.created"}); !errors.Is(err, psp.ErrEventIgnored) {
		t.Errorf("got %v, want ErrEventIgnored", err)
	}
	if _, err := fake.Parse(psp.Notification{EventID: "x", Type: "charge.captured"}); !errors.Is(err, psp.ErrEventInvalid) {
		t.Errorf("got %v, want ErrEventInvalid", err)
	}
}

func TestTestsCannotChangeWhatTheFakeHolds(t *testing.T) {
	fake := psptest.NewFake("simulator")
	c, _ := fake.Create(t.Context(), request("pay_1", psptest.TokenDeclined, false))
	c.Decline.Code = "changed"
	e := fake.Pending()[0]
	e.Event.Charge.Decline.Code = "changed"
	fake.Charges()[0].Decline.Code = "changed"
	again, _ := fake.Create(t.Context(), request("pay_1", psptest.TokenDeclined, false))
	if got := fake.Take(0).Event.Charge.Decline.Code; got != "generic_decline" || again.Decline.Code != "generic_decline" {
		t.Errorf("got %s and %s, want generic_decline", got, again.Decline.Code)
	}
}

func TestTheSameCallsGiveTheSameEvents(t *testing.T) {
	play := func() string {
		fake := psptest.NewFake("simulator")
		for i, token := range []string{psptest.TokenCaptured, psptest.TokenWebhookTwice, psptest.TokenRequiresAction, psptest.TokenDeclined} {
			_, _ = fake.Create(t.Context(), request(fmt.Sprint("pay_", i), token, i%2 == 1))
		}
		fake.Approve("pay_2")
		fake.RefundDirect("pay_0", 7)
		return fmt.Sprintf("%+v %+v", fake.Drain(), fake.Calls())
	}
	// Pointers differ; everything else must not.
	if first := addresses.ReplaceAllString(play(), ""); first != addresses.ReplaceAllString(play(), "") {
		t.Error("got another history from the same calls")
	}
}

var addresses = regexp.MustCompile(`0x[0-9a-f]+`)
