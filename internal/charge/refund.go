package charge

import (
	"context"
	"errors"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

// RefundRequest returns captured funds.
type RefundRequest struct {
	Request
	PaymentID payment.ID
	Amount    int64 // minor units, 0 for all that is left
	Reason    string
}

// Refund returns captured funds once. The refund is pending until the PSP says
// how it ended. Errors: ErrNotFound, ErrInvalidStatus, ErrCheckoutPending,
// payment.ErrDisputed, payment.ErrAmountTooLarge, idempotency.ErrKeyReused,
// *InProgressError.
func (s *Service) Refund(ctx context.Context, r RefundRequest) (Result, error) {
	id := payment.RefundID(payment.RefundIDPrefix + s.NewULID())
	for n := 1; s.again(ctx, n); n++ {
		f, err := s.find(ctx, r.Request, r.PaymentID)
		if err != nil {
			return Result{}, err
		}
		var result Result
		if f.record != nil {
			result, err = s.replayRefund(ctx, f)
		} else {
			result, err = s.refund(ctx, r, f, id)
		}
		if !lost(err) {
			return result, err
		}
	}
	return Result{}, journal.ErrBusy
}

func (s *Service) refund(ctx context.Context, r RefundRequest, f found, id payment.RefundID) (Result, error) {
	p, amount := f.payment, r.Amount
	if amount == 0 {
		amount = p.Refundable()
	}
	if err := p.CheckRefund(amount); err != nil {
		return Result{}, s.refundRefusal(ctx, p, err)
	}
	change := journal.Change{Source: journal.SourceAPI, Claim: s.claim(r.Request, p.ID, id, f.expired)}
	if p.CheckoutID != "" {
		change.Gate = &journal.Gate{CheckoutID: p.CheckoutID, Kind: journal.GateClosed}
	}
	event := payment.Event{Type: payment.EventRefundRequested, Refund: payment.RefundEvent{ID: id, Amount: amount, Reason: r.Reason}}
	p, err := s.Journal.Change(ctx, p, event, change)
	if c, ok := errors.AsType[*journal.Conflict](err); ok && c.Gate && !c.Version && c.Record == nil {
		return Result{}, ErrCheckoutPending
	}
	if err != nil {
		return Result{}, refusal(err)
	}
	p, err = s.sendRefund(ctx, p, id, sending{source: journal.SourceAPI})
	return Result{Payment: p, RefundID: id}, err
}

// refundRefusal is why a refund of p is refused. While its checkout is open that is
// the reason, whatever else there is: an amount may be taken only by the refund
// that undoes the checkout.
func (s *Service) refundRefusal(ctx context.Context, p payment.Payment, err error) error {
	if p.CheckoutID == "" {
		return refusal(err)
	}
	over, readErr := s.Store.CheckoutOver(ctx, p.CheckoutID)
	if readErr != nil {
		return readErr
	}
	if !over {
		return ErrCheckoutPending
	}
	return refusal(err)
}

// replayRefund renders the refund as it is now, and sends it again when its
// first request is not there any more to do it.
func (s *Service) replayRefund(ctx context.Context, f found) (Result, error) {
	p, id := f.payment, payment.RefundID(f.record.RefundID)
	result := Result{Payment: p, RefundID: id, Replayed: true}
	refund, _ := p.Refund(id) // one that has ended was answered: neither in flight nor sent again
	if err := s.inFlight(refund.Operation, *f.record); err != nil {
		return Result{}, err
	}
	if !s.resendable(refund.Operation) || !refund.Sendable(s.Now(), s.Policy(p.PSP)) {
		return result, nil
	}
	p, err := s.Journal.Change(ctx, p, payment.Event{Type: payment.EventRefundSent, Refund: payment.RefundEvent{ID: id}},
		journal.Change{Source: journal.SourceAPI, Claim: s.takeover(*f.record)})
	if err != nil {
		return Result{}, err
	}
	result.Payment, err = s.sendRefund(ctx, p, id, sending{source: journal.SourceAPI})
	return result, err
}
