package psptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
)

// checkFault makes one call fail, and then the same call succeed.
func (s *suite) checkFault(t *testing.T, operation Operation, fault Fault) {
	request := s.prepare(t, operation)
	if !s.Break(operation, fault) {
		t.Skip("this provider cannot fail so")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := request(ctx)
	s.expect(t, err, operation, fault.Outcome())
	if errors.Is(err, psp.ErrNotFound) {
		t.Errorf("got %v, want no word on whether there is a charge", err)
	}
	if ctx.Err() != nil {
		t.Errorf("got no answer in %s, want the provider to give up by itself", patience)
	}
	if e, ok := errors.AsType[*psp.Error](err); ok {
		if bounds := retryAfter[fault]; e.RetryAfter < bounds[0] || e.RetryAfter > bounds[1] {
			t.Errorf("got RetryAfter %s, want %s to %s", e.RetryAfter, bounds[0], bounds[1])
		}
	}
	s.expectEffect(t, operation, fault.Effect())

	s.Heal()
	if _, err := request(t.Context()); err != nil {
		t.Errorf("got %v on the same request again, want its answer", err)
	}
	s.expectEffect(t, operation, true)
	s.expectSameBytes(t)
}

// retryAfter is how long a provider may say to wait, from and to; HTTP dates are
// in seconds.
var retryAfter = map[Fault][2]time.Duration{
	FaultThrottled:        {7 * time.Second, 7 * time.Second},
	FaultThrottledUntil:   {6 * time.Second, 8 * time.Second},
	FaultThrottledForever: {time.Second, 24 * time.Hour},
}

// prepare is the state that a call of the operation needs, and the call. Its
// text is what the answer says; two calls with the same answer have the same.
func (s *suite) prepare(t *testing.T, operation Operation) func(context.Context) (string, error) {
	t.Helper()
	switch operation {
	case OperationCreate:
		request := createRequest(TokenCaptured)
		about := psp.Charge{PaymentID: request.PaymentID, Amount: request.Amount, Captured: request.Amount.Minor}
		return func(ctx context.Context) (string, error) {
			answer, err := s.Provider.Create(ctx, request)
			return chargeText(t, about, answer, err)
		}
	case OperationCapture:
		c := s.create(t, "capture", true)
		request := psp.CaptureRequest{Key: "key-capture", Reference: c.Reference, Amount: amount(4000)}
		c.Captured = request.Amount.Minor
		return func(ctx context.Context) (string, error) {
			answer, err := s.Provider.Capture(ctx, request)
			return chargeText(t, c, answer, err)
		}
	case OperationCancel:
		c := s.create(t, "cancel", true)
		request := psp.CancelRequest{Key: "key-cancel", Reference: c.Reference}
		return func(ctx context.Context) (string, error) {
			answer, err := s.Provider.Cancel(ctx, request)
			return chargeText(t, c, answer, err)
		}
	case OperationRefund:
		c := s.create(t, "refund", false)
		request := psp.RefundRequest{Key: "key-refund", Reference: c.Reference, RefundID: "re_1", Amount: amount(2000)}
		return func(ctx context.Context) (string, error) {
			r, err := s.Provider.Refund(ctx, request)
			if err == nil && (r.RefundID != request.RefundID || r.Amount != request.Amount.Minor || r.Reference == "") {
				t.Errorf("got an answer about refund %+v, want one about %s of %s", r, request.RefundID, request.Amount)
			}
			return fmt.Sprintf("%+v", r), err
		}
	case OperationLookup:
		c := s.create(t, "lookup", false)
		request := psp.LookupRequest{PaymentID: paymentID + "lookup"}
		return func(ctx context.Context) (string, error) {
			answer, err := s.Provider.Lookup(ctx, request)
			return chargeText(t, c, answer, err)
		}
	}
	t.Fatalf("unknown operation %q", operation)
	return nil
}

// chargeText is what an answer says. One without error must be about the charge that
// was asked for, and about its money; a new charge has no reference before.
func chargeText(t *testing.T, about, c psp.Charge, err error) (string, error) {
	t.Helper()
	foreign := c.PaymentID != about.PaymentID || c.Reference == "" || (about.Reference != "" && c.Reference != about.Reference)
	if err == nil && (foreign || c.Amount != about.Amount || c.Captured != about.Captured) {
		t.Errorf("got an answer about %+v, want one about %+v", c, about)
	}
	return fmt.Sprintf("%s %s %s %s %d %d", c.Reference, c.PaymentID, c.Status, c.Amount, c.Captured, c.Refunded), err
}

// create makes the charge of createRequest, or that of a payment of its own with
// the suffix.
func (s *suite) create(t *testing.T, suffix string, manual bool) psp.Charge {
	t.Helper()
	request := createRequest(TokenCaptured)
	request.PaymentID += suffix
	request.Key += suffix
	request.ManualCapture = manual
	c, err := s.Provider.Create(t.Context(), request)
	if err != nil {
		t.Fatalf("got %v, want a charge", err)
	}
	return c
}

// expect checks the outcome, and that the error is named and tells nothing.
func (s *suite) expect(t *testing.T, err error, operation Operation, want psp.Outcome) {
	t.Helper()
	e, ok := errors.AsType[*psp.Error](err)
	if !ok {
		t.Errorf("%s: got %v, want a *psp.Error", operation, err)
		return
	}
	if e.Outcome != want || e.Operation != string(operation) {
		t.Errorf("%s: got %v with outcome %d, want outcome %d", operation, e, e.Outcome, want)
	}
	hidden := append([]string{Canary, TokenCaptured, TokenDeclined, paymentID, "https://", "http://"}, s.Hidden...)
	for err != nil {
		for _, text := range hidden {
			if strings.Contains(fmt.Sprintf("%v %+v", err, err), text) {
				t.Errorf("%s: the error %q shows %q", operation, err, text)
			}
		}
		err = errors.Unwrap(err)
	}
}

// expectEffect checks what the other side did.
func (s *suite) expectEffect(t *testing.T, operation Operation, done bool) {
	t.Helper()
	var charges []psp.Charge
	switch operation {
	case OperationCreate:
		charges = s.Charges(paymentID)
		want := 0
		if done {
			want = 1
		}
		if len(charges) != want {
			t.Errorf("got %d charges, want %d", len(charges), want)
		}
		return
	case OperationCapture, OperationCancel, OperationRefund:
		charges = s.Charges(paymentID + string(operation))
	case OperationLookup:
		return
	}
	if len(charges) != 1 {
		t.Fatalf("got %d charges, want 1", len(charges))
	}
	got := fmt.Sprintf("%s %d %d", charges[0].Status, charges[0].Captured, len(charges[0].Refunds))
	want := map[Operation][2]string{
		OperationCapture: {"authorized 0 0", "captured 4000 0"},
		OperationCancel:  {"authorized 0 0", "canceled 0 0"},
		OperationRefund:  {"captured 5000 0", "captured 5000 1"},
	}[operation]
	if (done && got != want[1]) || (!done && got != want[0]) {
		t.Errorf("got %s, want effect %t of %v", got, done, want)
	}
}

func (s *suite) expectCharges(t *testing.T, want int) {
	t.Helper()
	if got := len(s.Charges(paymentID)); got != want {
		t.Errorf("got %d charges, want %d", got, want)
	}
}

// expectSameBytes checks that one key was only ever sent with one request.
func (s *suite) expectSameBytes(t *testing.T) {
	t.Helper()
	first := map[string]Sent{}
	for _, sent := range s.Sent() {
		if sent.Key == "" {
			continue
		}
		if before, found := first[sent.Key]; found && before != sent {
			t.Errorf("key %s: got %v, want the same bytes as before, %v", sent.Key, sent, before)
		}
		first[sent.Key] = sent
	}
}
