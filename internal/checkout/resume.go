package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

const (
	// maxTries bounds the executions that the sweep starts for a checkout without
	// any change; with doubling pauses from a minute they span most of a day.
	maxTries = 10
	// maxPause bounds the pause between two looks at a checkout.
	maxPause = 6 * time.Hour
)

// Repair is the sweep's look at a checkout that is due. While the customer or
// the PSP has the word it only looks again later; otherwise it starts another
// execution, and after maxTries of them without any change the checkout needs a
// person. Safe to repeat.
func (s *Service) Repair(ctx context.Context, id string) error {
	c, err := s.Store.Checkout(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	now := s.Now()
	if c.DueAt.IsZero() || c.DueAt.After(now) {
		return nil
	}
	if c.Status == StatusCompleted {
		return s.repairNotice(ctx, c)
	}
	p, err := s.Store.Payment(ctx, c.PaymentID)
	if err != nil {
		return fmt.Errorf("read payment of %s: %w", id, err)
	}
	if waits(c, p) {
		// A wake-up may have been lost, so it is looked at before the deadline too.
		return s.Store.PostponeCheckout(ctx, id, c.Version, now.Add(s.Spread(s.Settings.ReconcileAfter)), c.Tries)
	}
	if c.Tries >= maxTries {
		_, err := s.commit(ctx, c, Event{Type: EventNeedsReview, Reason: "no progress"}, Change{Source: journal.SourceReconciler})
		if _, lost := errors.AsType[*journal.Conflict](err); lost {
			return nil // there is progress
		}
		return err
	}
	return s.again(ctx, c)
}

// again starts another execution, and looks again later.
func (s *Service) again(ctx context.Context, c Checkout) error {
	at := s.Now().Add(s.Spread(s.pause(c.Tries)))
	if err := s.Store.PostponeCheckout(ctx, c.ID, c.Version, at, c.Tries+1); err != nil {
		return err
	}
	return s.raise(ctx, c, nil)
}

// repairNotice looks once whether the buyer of a completed checkout was told,
// and has it done again if not. It never undoes anything.
func (s *Service) repairNotice(ctx context.Context, c Checkout) error {
	told, err := s.Notices.Told(ctx, c.MerchantID, c.ID)
	if err != nil {
		return fmt.Errorf("look for the notification of %s: %w", c.ID, err)
	}
	if !told && c.Tries < maxTries {
		return s.again(ctx, c)
	}
	if !told {
		s.Meter.Count(MetricNotNotified, 1)
		s.Log.ErrorContext(ctx, "buyer was not notified", "checkout_id", c.ID, "payment_id", string(c.PaymentID))
	}
	return s.Store.PostponeCheckout(ctx, c.ID, c.Version, time.Time{}, 0)
}

// waits reports whether only the customer or the PSP can bring c on: it has done
// all it can about its payment as that is.
func waits(c Checkout, p payment.Payment) bool {
	if c.Direction == Backward {
		canceling := p.Status.Open() && p.CancelCause != ""
		return canceling || slices.ContainsFunc(p.Refunds, func(r payment.Refund) bool { return r.Status == payment.RefundPending })
	}
	switch p.Status {
	case payment.StatusProcessing, payment.StatusAuthorized:
		return true
	case payment.StatusRequiresAction:
		return c.Status == StatusRequiresAction // else the merchant does not know yet
	case payment.StatusCreated, payment.StatusCaptured, payment.StatusFailed, payment.StatusCanceled, payment.StatusRefunded:
	}
	return false
}

func (s *Service) pause(tries int) time.Duration {
	pause := s.Settings.ReconcileAfter
	for ; tries > 0 && pause < maxPause; tries-- {
		pause *= 2
	}
	return min(pause, maxPause)
}

// Resume drives a checkout on, for an operator: one that needs review becomes
// pending again and may try another refund; one that is under way gets another
// execution. Errors: ErrNotFound, ErrOver with the checkout, idempotency.ErrKeyReused.
func (s *Service) Resume(ctx context.Context, r charge.Request, id string) (Result, error) {
	for n := 1; s.anew(ctx, n); n++ {
		result, err := s.resume(ctx, r, id)
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			return result, err
		}
	}
	return Result{}, journal.ErrBusy
}

func (s *Service) resume(ctx context.Context, r charge.Request, id string) (Result, error) {
	rec, err := s.Store.Record(ctx, r.Scope.MerchantID, r.Scope.Hash())
	if err == nil {
		if err := rec.Check(r.Fingerprint); err != nil {
			return Result{}, err
		}
		found, err := s.Get(ctx, "", id)
		if err == nil && !found.Checkout.Status.Over() {
			s.start(ctx, found.Checkout, found.Checkout.Executions) // in case the first request did not come to it
		}
		found.Replayed = true
		return found, err
	}
	if !errors.Is(err, idempotency.ErrNoRecord) {
		return Result{}, err
	}
	found, err := s.Get(ctx, "", id)
	if err != nil {
		return Result{}, err
	}
	c, claim := found.Checkout, &idempotency.Claim{Record: s.recordOf(r, id)}
	switch c.Status {
	case StatusCompleted, StatusFailed:
		return found, ErrOver
	case StatusPending, StatusRequiresAction:
	case StatusNeedsReview:
		if c, err = s.commit(ctx, c, Event{Type: EventResumed}, Change{Source: journal.SourceAPI, Claim: claim}); err != nil {
			return Result{}, err
		}
		claim = nil
	}
	if err := s.raise(ctx, c, claim); err != nil {
		return Result{}, err
	}
	return s.Get(ctx, "", id)
}

// commit applies one event to c as it was seen, or returns a *journal.Conflict:
// then the event must be decided anew. What has happened already changes nothing.
func (s *Service) commit(ctx context.Context, c Checkout, e Event, change Change) (Checkout, error) {
	next, row, changed, err := c.apply(e, s.Now())
	if err != nil || !changed {
		return c, err
	}
	next.DueAt = s.due(next)
	change.Before, change.After, change.Row = c, next, row
	if err := s.Store.CommitCheckout(ctx, change); err != nil {
		return c, fmt.Errorf("commit %s on %s: %w", e.Type, c.ID, err)
	}
	if e.Type == EventNeedsReview {
		s.Meter.Count(MetricNeedsReview, 1)
		s.Log.ErrorContext(ctx, "checkout needs review", "checkout_id", c.ID, "payment_id", string(c.PaymentID), "reason", e.Reason)
	}
	if e.Type == EventCompensating {
		s.Meter.Count(MetricCompensating, 1)
	}
	return next, nil
}

// due is when the sweep looks at c if nothing else happens.
func (s *Service) due(c Checkout) time.Time {
	unsure := c.Status == StatusCompleted && c.Email != "" // whether the buyer was told
	if c.Status.Over() && !unsure {
		return time.Time{}
	}
	return c.UpdatedAt.Add(s.Settings.ReconcileAfter)
}
