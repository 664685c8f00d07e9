package charge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Every function here follows a committed intent: it calls the PSP once and
// records what came of it. Requests are built from the stored payment only.

// sending is who sends an operation, and what is known of its earlier sendings.
type sending struct {
	source journal.Source
	// alone says that a look-up has just shown that no earlier sending had an effect,
	// or will have one.
	alone bool
}

// refused reports whether err is the PSP's final refusal of o. A repeat may be
// refused for reasons of its own while an earlier sending has run.
func (by sending) refused(err error, o payment.Operation) bool {
	return psp.OutcomeOf(err) == psp.OutcomeRejected && (o.Sends == 1 || by.alone)
}

// call bounds one call to a PSP: by its own time-out, and so that a part of the
// caller's time is left to write down what was heard. That time is the machine's.
func (s *Service) call(ctx context.Context, p payment.Payment) (context.Context, context.CancelFunc) {
	timeout := s.Policy(p.PSP).PSPTimeout
	if deadline, bounded := ctx.Deadline(); bounded {
		left := time.Until(deadline)
		timeout = min(timeout, left-min(recordTimeout, left/4))
	}
	return context.WithTimeout(ctx, timeout)
}

// sendCharge sends the charge of p and records the answer.
func (s *Service) sendCharge(ctx context.Context, p payment.Payment, by sending) (payment.Payment, error) {
	callCtx, cancel := s.call(ctx, p)
	defer cancel()
	c, err := s.provider(p).Create(callCtx, psp.CreateRequest{
		Key: p.Create.Key, PaymentID: string(p.ID), Amount: p.Amount, PaymentMethod: p.PaymentMethod,
		ManualCapture: p.CaptureMethod == payment.CaptureManual, ReturnURL: p.ReturnURL, Metadata: p.Metadata,
	})
	if err == nil {
		return s.heed(ctx, p, by.source, c, payment.OperationCreate)
	}
	miss := s.missed(err, payment.OperationCreate, p.Create)
	if by.refused(err, p.Create) {
		miss = payment.Event{
			Type: payment.EventDeclined, Amount: p.Amount, Attempt: miss.Attempt, Sends: miss.Sends,
			Failure: &payment.Failure{Code: payment.FailureRejected, DeclineCode: codeOf(err)},
		}
	}
	return s.record(ctx, p, by.source, miss)
}

// sendCapture sends the capture of p and records the answer. A refusal is
// recorded and returned as ErrCaptureRefused.
func (s *Service) sendCapture(ctx context.Context, p payment.Payment, by sending) (payment.Payment, error) {
	callCtx, cancel := s.call(ctx, p)
	defer cancel()
	amount := p.Amount
	amount.Minor = p.Capture.Amount
	c, err := s.provider(p).Capture(callCtx, psp.CaptureRequest{Key: p.Capture.Key, Reference: p.PSPReference, Amount: amount})
	if err == nil {
		return s.heed(ctx, p, by.source, c, payment.OperationCapture)
	}
	miss := s.missed(err, payment.OperationCapture, p.Capture)
	refused := by.refused(err, p.Capture)
	if refused {
		miss.Type = payment.EventCaptureRefused
	}
	next, err := s.record(ctx, p, by.source, miss)
	if err == nil && refused && next.Status == payment.StatusAuthorized && captureRefused(next, p.Capture.Attempt) {
		err = ErrCaptureRefused
	}
	return next, err
}

// sendVoid voids the charge of p and records the answer.
func (s *Service) sendVoid(ctx context.Context, p payment.Payment, source journal.Source) (payment.Payment, error) {
	callCtx, cancel := s.call(ctx, p)
	defer cancel()
	c, err := s.provider(p).Cancel(callCtx, psp.CancelRequest{Key: p.Void.Key, Reference: p.PSPReference})
	if err == nil {
		return s.heed(ctx, p, source, c, payment.OperationVoid)
	}
	miss := s.missed(err, payment.OperationVoid, p.Void)
	if psp.OutcomeOf(err) == psp.OutcomeRejected {
		miss.Type = payment.EventVoidRefused // captured meanwhile, perhaps: a look-up tells
	}
	return s.record(ctx, p, source, miss)
}

// sendRefund sends one refund of p and records the answer.
func (s *Service) sendRefund(ctx context.Context, p payment.Payment, id payment.RefundID, by sending) (payment.Payment, error) {
	r, ok := p.Refund(id)
	if !ok {
		return p, errors.New("charge: no such refund")
	}
	callCtx, cancel := s.call(ctx, p)
	defer cancel()
	amount := p.Amount
	amount.Minor = r.Amount
	answer, err := s.provider(p).Refund(callCtx, psp.RefundRequest{
		Key: r.Operation.Key, Reference: p.PSPReference, RefundID: string(r.ID), Amount: amount,
	})
	about := payment.RefundEvent{ID: r.ID, Amount: r.Amount, Sends: r.Operation.Sends}
	switch {
	case err == nil && answer.RefundID != "" && answer.RefundID != string(r.ID):
		s.Meter.Count(journal.MetricMismatch, 1)
		return s.record(ctx, p, by.source, payment.Event{Type: payment.EventRefundUnanswered, Refund: about})
	case err == nil:
		answer.RefundID = string(r.ID)
		fact := refundFact(psp.Charge{Reference: p.PSPReference}, answer)
		next, err := s.record(ctx, p, by.source, fact)
		if _, disagrees := errors.AsType[*payment.MismatchError](err); disagrees {
			s.Meter.Count(journal.MetricMismatch, 1)
			return s.record(ctx, p, by.source, payment.Event{Type: payment.EventRefundUnanswered, Refund: about})
		}
		return next, err
	case by.refused(err, r.Operation):
		return s.record(ctx, p, by.source, payment.Event{Type: payment.EventRefundFailed, Refund: about})
	}
	miss := s.missed(err, "", r.Operation)
	about.NotRun, about.RetryAt = miss.Type == payment.EventNotRun, miss.RetryAt
	return s.record(ctx, p, by.source, payment.Event{Type: payment.EventRefundUnanswered, Refund: about})
}

// missed is what a call without an answer amounts to. Unknown is never failed.
func (s *Service) missed(err error, name payment.OperationName, o payment.Operation) payment.Event {
	e := payment.Event{Type: payment.EventUnanswered, Operation: name, Attempt: o.Attempt, Sends: o.Sends}
	switch psp.OutcomeOf(err) {
	case psp.OutcomeNotSent, psp.OutcomeThrottled:
		e.Type, e.RetryAt = payment.EventNotRun, s.Now().Add(retryAfter(err))
		return e
	case psp.OutcomeKeyReused:
		s.Meter.Count(MetricKeyReused, 1)
	case psp.OutcomeUnknown, psp.OutcomeInProgress, psp.OutcomeRejected:
	}
	s.Meter.Count(MetricInDoubt, 1)
	return e
}

// minRetryAfter is the pause after a call that did not run when the PSP named none.
const minRetryAfter = time.Second

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*psp.Error](err); ok && e.RetryAfter > minRetryAfter {
		return e.RetryAfter
	}
	return minRetryAfter
}

func codeOf(err error) string {
	if e, ok := errors.AsType[*psp.Error](err); ok {
		return e.Code
	}
	return ""
}

// heed records the answer to an operation on p. One that says nothing of what the
// operation was for, or that cannot be believed, leaves the operation in doubt: it
// is not in flight any more.
func (s *Service) heed(ctx context.Context, p payment.Payment, source journal.Source, c psp.Charge, name payment.OperationName) (payment.Payment, error) {
	next, err := s.learn(ctx, p, source, c)
	if err != nil {
		return next, err
	}
	if operationOf(next, name).State != payment.OperationSent {
		return next, nil
	}
	s.Meter.Count(MetricInDoubt, 1)
	o := operationOf(p, name) // the sending that was answered; of a later one that says nothing
	return s.record(ctx, next, source, payment.Event{Type: payment.EventUnanswered, Operation: name, Attempt: o.Attempt, Sends: o.Sends})
}

func operationOf(p payment.Payment, name payment.OperationName) payment.Operation {
	switch name {
	case payment.OperationCreate:
		return p.Create
	case payment.OperationCapture:
		return p.Capture
	case payment.OperationVoid:
		return p.Void
	}
	return payment.Operation{}
}

// learn records what an answer says of the charge. An answer with other money
// leaves the payment in doubt: it is believed neither as success nor as failure.
func (s *Service) learn(ctx context.Context, p payment.Payment, source journal.Source, c psp.Charge) (payment.Payment, error) {
	if c.PaymentID != "" && c.PaymentID != string(p.ID) {
		return s.record(ctx, p, source, payment.Event{Type: payment.EventMismatched})
	}
	next, err := s.record(ctx, p, source, Facts(c)[0])
	if _, disagrees := errors.AsType[*payment.MismatchError](err); disagrees {
		return s.record(ctx, p, source, payment.Event{Type: payment.EventMismatched})
	}
	if err != nil {
		return next, err
	}
	return s.learnRefunds(ctx, next, source, c)
}

// learnRefunds records what is said of the charge's refunds.
func (s *Service) learnRefunds(ctx context.Context, p payment.Payment, source journal.Source, c psp.Charge) (payment.Payment, error) {
	for _, fact := range Facts(c)[1:] {
		next, err := s.record(ctx, p, source, fact)
		switch {
		case err == nil:
			p = next
		case refusedByDomain(err):
			s.passOver(ctx, p, err)
		default:
			return next, err
		}
	}
	return p, nil
}

// passOver leaves a refund that the PSP told of unrecorded. One that waits for our
// own one's answer is told of again by the next look; one that disagrees with ours
// is for a person.
func (s *Service) passOver(ctx context.Context, p payment.Payment, err error) {
	level := slog.LevelInfo
	if _, disagrees := errors.AsType[*payment.MismatchError](err); disagrees {
		level = slog.LevelError
		s.Meter.Count(journal.MetricMismatch, 1)
	}
	s.Log.Log(ctx, level, "refund not recorded", "payment_id", string(p.ID), "reason", err.Error())
}

func refusedByDomain(err error) bool {
	if _, ok := errors.AsType[*payment.TransitionError](err); ok {
		return true
	}
	_, ok := errors.AsType[*payment.MismatchError](err)
	return ok
}

// recordTimeout bounds the recording of an answer when the caller has given up:
// what was heard is written down all the same.
const recordTimeout = 5 * time.Second

func (s *Service) record(ctx context.Context, p payment.Payment, source journal.Source, fact payment.Event) (payment.Payment, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return s.Journal.RecordOn(ctx, p, source, fact)
}
