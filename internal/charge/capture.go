package charge

import (
	"context"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

// CaptureRequest takes funds that are held for a manual payment.
type CaptureRequest struct {
	Request
	PaymentID payment.ID
	Amount    int64 // minor units, 0 for the whole; the rest is released
}

// Capture takes held funds. The payment is captured, or still authorized and in
// doubt when no usable answer came. Errors: ErrNotFound, ErrInvalidStatus,
// payment.ErrAmountTooLarge, ErrCaptureRefused, idempotency.ErrKeyReused,
// *InProgressError.
func (s *Service) Capture(ctx context.Context, r CaptureRequest) (Result, error) {
	for n := 1; s.again(ctx, n); n++ {
		f, err := s.find(ctx, r.Request, r.PaymentID)
		if err != nil {
			return Result{}, err
		}
		result, err := s.capture(ctx, r, f)
		if !lost(err) {
			return result, err
		}
	}
	return Result{}, journal.ErrBusy
}

func (s *Service) capture(ctx context.Context, r CaptureRequest, f found) (Result, error) {
	p := f.payment
	claim := s.claim(r.Request, p.ID, "", f.expired)
	amount := r.Amount
	if f.record != nil {
		switch {
		case p.Status != payment.StatusAuthorized:
			return Result{Payment: p, Replayed: true}, nil
		case captureRefused(p, f.record.Attempt):
			return Result{}, ErrCaptureRefused
		}
		if err := s.inFlight(p.Capture, *f.record); err != nil {
			return Result{}, err
		}
		if !s.resendable(p.Capture) || !p.CaptureSendable(s.Now(), s.Policy(p.PSP)) {
			return Result{Payment: p, Replayed: true}, nil
		}
		claim, amount = s.takeover(*f.record), p.Capture.Amount
	} else {
		if err := p.CheckCapture(amount); err != nil {
			return Result{}, refusal(err)
		}
		if amount == 0 {
			amount = p.Amount.Minor
		}
		claim.Record.Attempt = p.Capture.Attempt + 1
	}
	sent, err := s.Journal.Change(ctx, p, payment.Event{Type: payment.EventCaptureRequested, Captured: amount},
		journal.Change{Source: journal.SourceAPI, Claim: claim})
	if err != nil {
		return Result{}, refusal(err)
	}
	next, err := s.sendCapture(ctx, sent, sending{source: journal.SourceAPI})
	return Result{Payment: next, Replayed: f.record != nil}, err
}

// captureRefused reports whether the PSP refused that attempt at p's capture.
// Another attempt is made only after the former was refused.
func captureRefused(p payment.Payment, attempt int) bool {
	return p.Capture.State == payment.OperationRefused || p.Capture.Attempt != attempt
}

// refusal turns the domain's refusal into the caller's.
func refusal(err error) error {
	if te, ok := errors.AsType[*payment.TransitionError](err); ok {
		return fmt.Errorf("%w: %s", ErrInvalidStatus, te.From)
	}
	return err
}
