package charge

import (
	"context"
	"errors"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

// CancelRequest voids a payment before it is captured.
type CancelRequest struct {
	Request
	PaymentID payment.ID
	Reason    string // for the journal, "" for none
}

// Cancel ends a payment before its capture. The result is canceled; or, while a
// call may still be on its way to the PSP, not ended yet: then no charge leaves
// any more, and the cancel takes effect as soon as the PSP answers. Errors:
// ErrNotFound, ErrCaptured, ErrInvalidStatus, idempotency.ErrKeyReused,
// *InProgressError.
func (s *Service) Cancel(ctx context.Context, r CancelRequest) (Result, error) {
	for n := 1; s.again(ctx, n); n++ {
		f, err := s.find(ctx, r.Request, r.PaymentID)
		if err != nil {
			return Result{}, err
		}
		result, err := s.cancel(ctx, r, f)
		if !lost(err) {
			return result, err
		}
	}
	return Result{}, journal.ErrBusy
}

func (s *Service) cancel(ctx context.Context, r CancelRequest, f found) (Result, error) {
	p := f.payment
	if f.record != nil {
		return s.repeatCancel(ctx, p, *f.record)
	}
	if p.InDoubt() {
		// Ask before anything is decided: what was charged in time is captured.
		var err error
		if p, _, err = s.lookUp(ctx, p, journal.SourceAPI); err != nil {
			s.Log.InfoContext(ctx, "cancel without a look-up", "payment_id", string(p.ID), "reason", err.Error())
		}
	}
	if err := cancelable(p.Status); err != nil {
		return Result{}, err
	}
	p, err := s.Journal.Change(ctx, p, payment.Event{Type: payment.EventCancelRequested, Cause: payment.CancelByMerchant, Reason: r.Reason},
		journal.Change{Source: journal.SourceAPI, Claim: s.claim(r.Request, p.ID, "", f.expired)})
	if err != nil {
		return Result{}, refusal(err)
	}
	driven, err := s.Drive(ctx, p.ID, journal.SourceAPI)
	if err != nil {
		// The cancel is committed; the sweep goes on with it.
		s.Log.WarnContext(ctx, "cancel left to the sweep", "payment_id", string(p.ID), "reason", err.Error())
	}
	if driven.ID == "" {
		driven = s.latest(ctx, p)
	}
	p = s.awaitVoid(ctx, driven)
	if p.Status == payment.StatusCanceled || p.Status.Open() {
		return Result{Payment: p}, nil
	}
	return Result{}, cancelable(p.Status)
}

// repeatCancel drives a cancel on that rec's request committed. That request may
// still be running while its void is on its way, or is about to leave.
func (s *Service) repeatCancel(ctx context.Context, p payment.Payment, rec idempotency.Record) (Result, error) {
	p = s.Follow(ctx, p, journal.SourceAPI)
	now := s.Now()
	voiding := p.Void.State == payment.OperationSent || p.Next(now).Kind == payment.StepVoid
	if left := rec.InProgressUntil.Sub(now); p.Status.Open() && voiding && left > 0 {
		return Result{}, &InProgressError{RetryAfter: left}
	}
	return Result{Payment: p, Replayed: true}, nil
}

// voidLooks bounds the looks at a void that another worker is sending: with the
// pauses between lost races they span about two seconds.
const voidLooks = 10

// awaitVoid waits a moment for the worker that was faster to take the lease and
// voids the charge in our place, so that a cancel whose outcome is on its way is
// answered with it.
func (s *Service) awaitVoid(ctx context.Context, p payment.Payment) payment.Payment {
	for n := 1; n <= voidLooks && underway(p); n++ {
		if s.Journal.Pause(ctx, n) != nil {
			break
		}
		now, err := s.Store.Payment(ctx, p.ID)
		if err != nil {
			break
		}
		p = now
	}
	return s.latest(ctx, p)
}

// underway reports whether somebody else is at the void: we would have sent it.
func underway(p payment.Payment) bool {
	sending := p.Void.State == payment.OperationNone || p.Void.State == payment.OperationSent
	return p.Status.Open() && p.Create.State == payment.OperationAnswered && p.PSPReference != "" && sending
}

// cancelable returns ErrCaptured or ErrInvalidStatus for a status that cannot
// become canceled.
func cancelable(status payment.Status) error {
	switch status {
	case payment.StatusCreated, payment.StatusProcessing, payment.StatusRequiresAction, payment.StatusAuthorized:
		return nil
	case payment.StatusCaptured:
		return ErrCaptured
	case payment.StatusFailed, payment.StatusCanceled, payment.StatusRefunded:
		return ErrInvalidStatus
	}
	return ErrInvalidStatus
}

// Compensation is what became of a payment that a saga wants undone.
type Compensation string

// Outcomes of a compensation.
const (
	CompensationDone    Compensation = "done"    // no money is taken, or all of it went back
	CompensationPending Compensation = "pending" // the PSP has not said yet; repeat later
	CompensationFailed  Compensation = "failed"  // the refund failed for good; a person must act
)

// Compensate undoes a payment for its checkout, as far as that goes now: a
// payment of which nothing was sent is canceled, an open one is voided, a
// captured one is refunded under an id derived from the payment. A refund that
// failed for good is followed by another only while there were fewer than
// attempts. Safe to repeat, and meant to be. It decides by the stored state and
// the PSP's word only. Errors: payment.ErrDisputed, while the bank has the word,
// and others when the store or the PSP gave no answer.
func (s *Service) Compensate(ctx context.Context, id payment.ID, attempts int) (payment.Payment, Compensation, error) {
	var p payment.Payment
	for n := 1; s.again(ctx, n); n++ {
		var err error
		if p, err = s.Store.Payment(ctx, id); err != nil {
			return p, CompensationPending, err
		}
		p, err = s.compensate(ctx, p, attempts)
		if err == nil {
			return p, compensated(p), nil
		}
		if !lost(err) {
			return p, CompensationPending, err
		}
	}
	return p, CompensationPending, journal.ErrBusy
}

func (s *Service) compensate(ctx context.Context, p payment.Payment, attempts int) (payment.Payment, error) {
	change := journal.Change{Source: journal.SourceSaga}
	switch p.Status {
	case payment.StatusCreated, payment.StatusProcessing, payment.StatusRequiresAction, payment.StatusAuthorized:
		if p.CancelCause == "" {
			var err error
			p, err = s.Journal.Change(ctx, p, payment.Event{Type: payment.EventCancelRequested, Cause: payment.CancelByCheckout}, change)
			if err != nil {
				return p, err
			}
		}
		driven, err := s.Drive(ctx, p.ID, journal.SourceSaga)
		if err != nil || driven.Status != payment.StatusCaptured {
			return driven, err
		}
		return s.compensate(ctx, driven, attempts) // the PSP had captured
	case payment.StatusCaptured:
		return s.refundForCheckout(ctx, p, attempts)
	case payment.StatusFailed, payment.StatusCanceled, payment.StatusRefunded:
		return s.Follow(ctx, p, journal.SourceSaga), nil
	}
	return p, nil
}

func (s *Service) refundForCheckout(ctx context.Context, p payment.Payment, attempts int) (payment.Payment, error) {
	id, ok := nextCompensation(p, attempts)
	if !ok || p.Refundable() == 0 {
		return s.Drive(ctx, p.ID, journal.SourceSaga)
	}
	refund := payment.RefundEvent{ID: id, Amount: p.Refundable(), Reason: payment.ReasonCompensation}
	p, err := s.Journal.Change(ctx, p, payment.Event{Type: payment.EventRefundRequested, Refund: refund}, journal.Change{Source: journal.SourceSaga})
	if err != nil {
		return p, err
	}
	return s.sendRefund(ctx, p, id, sending{source: journal.SourceSaga})
}

// nextCompensation is the id of the refund to ask for next; ok is false while
// one is under way, and when the attempts are used up. One that succeeded is
// followed too: a refund made at the PSP may have failed since.
func nextCompensation(p payment.Payment, attempts int) (payment.RefundID, bool) {
	for n := range attempts {
		id := payment.CompensationRefundID(p.ID, n)
		r, asked := p.Refund(id)
		switch {
		case !asked:
			return id, true
		case r.Status == payment.RefundPending:
			return "", false
		}
	}
	return "", false
}

// compensated reads off a payment how far its compensation is.
func compensated(p payment.Payment) Compensation {
	switch p.Status {
	case payment.StatusRefunded:
		return CompensationDone
	case payment.StatusFailed, payment.StatusCanceled:
		if p.AmountCaptured == 0 {
			return CompensationDone
		}
	case payment.StatusCaptured:
	case payment.StatusCreated, payment.StatusProcessing, payment.StatusRequiresAction, payment.StatusAuthorized:
		return CompensationPending
	}
	for _, r := range p.Refunds {
		if r.Status == payment.RefundPending {
			return CompensationPending
		}
	}
	return CompensationFailed
}

// Send sends the charge of a payment that a checkout owns, if nothing was sent
// yet and the checkout's direction is forward; otherwise it finds out where the
// payment stands when that is due. It returns the payment as it is then.
func (s *Service) Send(ctx context.Context, id payment.ID) (payment.Payment, error) {
	for n := 1; s.again(ctx, n); n++ {
		p, err := s.Store.Payment(ctx, id)
		if err != nil {
			return p, err
		}
		if p.Status != payment.StatusCreated {
			if p.Next(s.Now()).Kind == payment.StepRest {
				return p, nil
			}
			return s.Drive(ctx, id, journal.SourceSaga)
		}
		sent, err := s.Journal.Change(ctx, p, payment.Event{Type: payment.EventSent}, journal.Change{
			Source: journal.SourceSaga, Gate: &journal.Gate{CheckoutID: p.CheckoutID, Kind: journal.GateForward},
		})
		if err == nil {
			sent, err = s.sendCharge(ctx, sent, sending{source: journal.SourceSaga})
			return s.Follow(ctx, sent, journal.SourceSaga), err
		}
		if c, ok := errors.AsType[*journal.Conflict](err); ok && c.Gate {
			return p, nil // the checkout is being undone; nothing leaves
		}
		if _, illegal := errors.AsType[*payment.TransitionError](err); illegal {
			return s.Drive(ctx, id, journal.SourceSaga) // past its deadline
		}
		if !lost(err) {
			return p, err
		}
	}
	return payment.Payment{}, journal.ErrBusy
}
