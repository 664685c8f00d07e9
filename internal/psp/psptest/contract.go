package psptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Harness is a provider under test, with what a test needs to know of the other
// side and to do to it. The other side knows the Tokens of this package.
type Harness struct {
	Provider psp.Provider
	// Break makes every call of the operation fail that way until Heal. It is
	// false where the provider cannot fail so.
	Break func(Operation, Fault) bool
	Heal  func()
	// Sent is every request that reached the other side, oldest first.
	Sent func() []Sent
	// Charges are the charges of a payment at the other side.
	Charges func(paymentID string) []psp.Charge
	// Hidden is text that no error may show, such as the provider's address.
	Hidden []string
}

// Sent is a request as it reached the other side. Body is "" where requests have
// no bytes.
type Sent struct {
	Operation Operation
	Key       string
	Body      string
}

// patience bounds every call of the contract, in the bubble's time. A provider
// gives up by itself before.
const patience = time.Minute

// Run checks the contract of psp.Provider. Each part runs in a bubble of its own
// (testing/synctest) with a fresh harness, which the bubble must be able to hold:
// nothing of it may wait for a real network.
func Run(t *testing.T, harness func(t *testing.T) Harness) {
	part := func(name string, check func(*testing.T, *suite)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, &suite{Harness: harness(t)}) })
		})
	}
	part("answers", checkAnswers)
	part("refusals", checkRefusals)
	part("look-ups", checkLookups)
	part("a key belongs to one request", checkKeyReuse)
	part("a repeat is the same bytes and the same answer", checkRepeat)
	part("nothing is sent without a key", checkNoKey)
	part("nothing is sent when the caller has gone", checkCanceled)
	part("the caller's deadline ends a call", checkDeadline)
	part("one key from many at once", checkConcurrentKey)
	part("many payments at once", checkConcurrentPayments)
	for _, operation := range Operations() {
		for _, fault := range Faults() {
			part(fmt.Sprintf("%s/%s", operation, fault), func(t *testing.T, s *suite) { s.checkFault(t, operation, fault) })
		}
	}
}

// suite is one part of the contract at work.
type suite struct{ Harness }

const paymentID = "pay_01JXCONTRACT"

func amount(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "JPY"} }

func createRequest(token string) psp.CreateRequest {
	return psp.CreateRequest{
		Key: "key-create", PaymentID: paymentID, Amount: amount(5000), PaymentMethod: payment.Secret(token),
		ReturnURL: "https://shop.example/return?" + Canary, Metadata: map[string]string{"b": "2", "a": Canary, "c": "3"},
	}
}

func checkAnswers(t *testing.T, s *suite) {
	tests := []struct {
		token    string
		manual   bool
		status   psp.Status
		captured int64
		decline  string
	}{
		{TokenCaptured, false, psp.StatusCaptured, 5000, ""},
		{TokenCaptured, true, psp.StatusAuthorized, 0, ""},
		{TokenDeclined, false, psp.StatusFailed, 0, "generic_decline"},
		{TokenInsufficientFunds, false, psp.StatusFailed, 0, "insufficient_funds"},
		{TokenRequiresAction, false, psp.StatusRequiresAction, 0, ""},
		{TokenPending, false, psp.StatusPending, 0, ""},
	}
	for i, tt := range tests {
		request := createRequest(tt.token)
		request.PaymentID = fmt.Sprintf("%s%d", paymentID, i)
		request.Key, request.ManualCapture = request.PaymentID, tt.manual
		c, err := s.Provider.Create(t.Context(), request)
		if err != nil {
			t.Errorf("%s: got %v, want a charge", tt.token, err)
			continue
		}
		if c.Status != tt.status || c.Captured != tt.captured || c.Amount != request.Amount ||
			c.PaymentID != request.PaymentID || c.Reference == "" || c.Refunded != 0 {
			t.Errorf("%s: got %+v, want %s of %s with %d captured", tt.token, c, tt.status, request.PaymentID, tt.captured)
		}
		if got := c.Decline; (got == nil) != (tt.decline == "") || (got != nil && got.Code != tt.decline) {
			t.Errorf("%s: got decline %v, want %q", tt.token, got, tt.decline)
		}
		if (c.RedirectURL != "") != (tt.status == psp.StatusRequiresAction) {
			t.Errorf("%s: got redirect %t, want it only in requires_action", tt.token, c.RedirectURL != "")
		}
	}
}

func checkRefusals(t *testing.T, s *suite) {
	held := s.create(t, "", true)
	tooMuch := psp.CaptureRequest{Key: "k1", Reference: held.Reference, Amount: amount(5001)}
	_, err := s.Provider.Capture(t.Context(), tooMuch)
	s.expect(t, err, OperationCapture, psp.OutcomeRejected)

	taken, err := s.Provider.Capture(t.Context(), psp.CaptureRequest{Key: "k2", Reference: held.Reference, Amount: amount(4000)})
	if err != nil || taken.Status != psp.StatusCaptured || taken.Captured != 4000 {
		t.Fatalf("got %+v %v, want 4000 captured", taken, err)
	}
	_, err = s.Provider.Capture(t.Context(), psp.CaptureRequest{Key: "k3", Reference: held.Reference, Amount: amount(1000)})
	s.expect(t, err, OperationCapture, psp.OutcomeRejected)
	_, err = s.Provider.Cancel(t.Context(), psp.CancelRequest{Key: "k4", Reference: held.Reference})
	s.expect(t, err, OperationCancel, psp.OutcomeRejected)
	if e, ok := errors.AsType[*psp.Error](err); ok && e.Code != "charge_captured" {
		t.Errorf("got code %q, want charge_captured", e.Code)
	}

	refund := psp.RefundRequest{Key: "k5", Reference: held.Reference, RefundID: "re_1", Amount: amount(3000)}
	r, err := s.Provider.Refund(t.Context(), refund)
	if err != nil || r.Status != psp.RefundSucceeded || r.Amount != 3000 || r.RefundID != "re_1" || r.Reference == "" {
		t.Fatalf("got %+v %v, want a refund of 3000", r, err)
	}
	_, err = s.Provider.Refund(t.Context(), psp.RefundRequest{Key: "k6", Reference: held.Reference, RefundID: "re_2", Amount: amount(1001)})
	s.expect(t, err, OperationRefund, psp.OutcomeRejected)
	found, err := s.Provider.Lookup(t.Context(), psp.LookupRequest{Reference: held.Reference})
	if err != nil || found.Captured != 4000 || found.Refunded != 3000 || len(found.Refunds) != 1 {
		t.Errorf("got %+v %v, want 4000 captured, 3000 refunded by one refund", found, err)
	}
}

func checkLookups(t *testing.T, s *suite) {
	for _, request := range []psp.LookupRequest{{PaymentID: paymentID}, {Reference: "ch_nobody"}} {
		if _, err := s.Provider.Lookup(t.Context(), request); !errors.Is(err, psp.ErrNotFound) {
			t.Errorf("%+v: got %v, want ErrNotFound", request, err)
		}
	}
	want := s.create(t, "", false)
	for _, request := range []psp.LookupRequest{{PaymentID: paymentID}, {Reference: want.Reference}} {
		got, err := s.Provider.Lookup(t.Context(), request)
		if err != nil || got.Reference != want.Reference || got.Status != psp.StatusCaptured {
			t.Errorf("%+v: got %+v %v, want the charge", request, got, err)
		}
	}
	if _, err := s.Provider.Lookup(t.Context(), psp.LookupRequest{}); psp.OutcomeOf(err) != psp.OutcomeNotSent {
		t.Errorf("got %v, want OutcomeNotSent for a look-up of nothing", err)
	}
	other := createRequest(TokenDeclined) // a later attempt that was declined
	other.Key = "key-other"
	if _, err := s.Provider.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	got, err := s.Provider.Lookup(t.Context(), psp.LookupRequest{PaymentID: paymentID})
	if err != nil || got.Reference != want.Reference {
		t.Errorf("got %+v %v, want the charge with money", got, err)
	}
}

func checkKeyReuse(t *testing.T, s *suite) {
	s.create(t, "", false)
	request := createRequest(TokenCaptured)
	request.Amount = amount(5001)
	_, err := s.Provider.Create(t.Context(), request)
	s.expect(t, err, OperationCreate, psp.OutcomeKeyReused)
	s.expectCharges(t, 1)
}

func checkRepeat(t *testing.T, s *suite) {
	for _, operation := range Operations() {
		request := s.prepare(t, operation)
		first, err := request(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", operation, err)
		}
		for range 3 {
			again, err := request(t.Context())
			if err != nil || again != first {
				t.Errorf("%s: got %s %v, want %s again", operation, again, err, first)
			}
		}
	}
	s.expectSameBytes(t)
}

func checkNoKey(t *testing.T, s *suite) {
	held := s.create(t, "", true)
	before := len(s.Sent())
	request := createRequest(TokenCaptured)
	for _, key := range []string{"", strings.Repeat("k", 65)} {
		request.Key = key
		_, err := s.Provider.Create(t.Context(), request)
		s.expect(t, err, OperationCreate, psp.OutcomeNotSent)
		_, err = s.Provider.Capture(t.Context(), psp.CaptureRequest{Key: key, Reference: held.Reference, Amount: amount(1)})
		s.expect(t, err, OperationCapture, psp.OutcomeNotSent)
		_, err = s.Provider.Cancel(t.Context(), psp.CancelRequest{Key: key, Reference: held.Reference})
		s.expect(t, err, OperationCancel, psp.OutcomeNotSent)
		_, err = s.Provider.Refund(t.Context(), psp.RefundRequest{Key: key, Reference: held.Reference, RefundID: "re_1", Amount: amount(1)})
		s.expect(t, err, OperationRefund, psp.OutcomeNotSent)
	}
	if got := len(s.Sent()); got != before {
		t.Errorf("got %d requests, want none", got-before)
	}
}

func checkCanceled(t *testing.T, s *suite) {
	requests := map[Operation]func(context.Context) (string, error){}
	for _, operation := range Operations() {
		requests[operation] = s.prepare(t, operation)
	}
	before := len(s.Sent())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for operation, request := range requests {
		_, err := request(ctx)
		s.expect(t, err, operation, psp.OutcomeNotSent)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled inside", operation, err)
		}
	}
	if got := len(s.Sent()); got != before {
		t.Errorf("got %d requests, want none", got-before)
	}
}

func checkDeadline(t *testing.T, s *suite) {
	request := s.prepare(t, OperationCreate)
	if !s.Break(OperationCreate, FaultSilenceAfter) {
		t.Skip("this provider always answers")
	}
	const deadline = 10 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	start := time.Now() //nolint:forbidigo // the bubble's clock
	_, err := request(ctx)
	s.expect(t, err, OperationCreate, psp.OutcomeUnknown)
	if took := time.Since(start); took > deadline {
		t.Errorf("got an answer after %s, want it after %s", took, deadline)
	}
}

func checkConcurrentKey(t *testing.T, s *suite) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			c, err := s.Provider.Create(t.Context(), createRequest(TokenCaptured))
			if err != nil && psp.OutcomeOf(err) != psp.OutcomeInProgress {
				t.Errorf("got %v, want the charge, or that it is in progress", err)
			}
			if err == nil && c.Status != psp.StatusCaptured {
				t.Errorf("got %s, want captured", c.Status)
			}
		})
	}
	all.Wait()
	s.expectCharges(t, 1)
	s.expectSameBytes(t)
}

func checkConcurrentPayments(t *testing.T, s *suite) {
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			request := createRequest(TokenCaptured)
			request.PaymentID = fmt.Sprintf("pay_%d", i)
			request.Key, request.Amount = request.PaymentID, amount(int64(i+1))
			c, err := s.Provider.Create(t.Context(), request)
			if err != nil || c.PaymentID != request.PaymentID || c.Amount != request.Amount {
				t.Errorf("got %+v %v, want the charge of %s", c, err, request.PaymentID)
			}
		})
	}
	all.Wait()
}
