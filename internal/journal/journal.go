/*
Package journal is the one door through which a payment changes.

The API's answer from a PSP, a webhook, a saga step and the reconciler all come
through Record: load, the pure payment.Apply, one conditional transaction of the
state (version as seen) and its journal row, bounded retry with full jitter.
Whoever loses the race reads again and agrees with the winner. A version conflict
is news, not an error. Old news writes nothing and is a success.

Intents come through Change: one attempt on the payment as it was seen, because
an intent that lost a race must be decided anew.

The journal row is the outbox row: the same transaction writes both, and the
table's stream carries it out.

What fails, and what then:

  - The transaction's outcome is unknown: Record reads and applies again; a fact
    that had landed is old news. After a Change the caller's error is unknown too,
    and the payment's due date, committed before, brings a sweep.
  - The retries run out: ErrBusy. Nothing is lost; the fact is still at the PSP.
*/
package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
)

// Source says which part of the system recorded a row.
type Source string

// Sources of rows.
const (
	SourceAPI        Source = "api"
	SourceWebhook    Source = "webhook"
	SourceSaga       Source = "saga"
	SourceReconciler Source = "reconciler"
)

var (
	// ErrNotFound says that there is no such payment.
	ErrNotFound = errors.New("journal: no such payment")
	// ErrBusy says that every attempt lost its race. Safe to repeat.
	ErrBusy = errors.New("journal: too much contention")
	// ErrOldNews says that an intent is not needed any more.
	ErrOldNews = errors.New("journal: nothing to do any more")
)

// Change is one committed step of one payment.
type Change struct {
	Before payment.Payment // as seen; its zero value when After is created
	After  payment.Payment
	Row    payment.Row
	Source Source
	// Fence, when not 0, must still be the lease's.
	Fence int64
	// Claim, when set, is written in the same transaction.
	Claim *idempotency.Claim
	// Gate, when set, must hold in the same transaction.
	Gate *Gate
}

// Gate is what must be true of the payment's checkout when a change commits.
type Gate struct {
	CheckoutID string
	Kind       GateKind
}

// GateKind is a condition on a checkout.
type GateKind string

// Kinds of a Gate.
const (
	GateForward GateKind = "forward" // its direction is forward: nothing is being undone
	GateClosed  GateKind = "closed"  // its saga has ended
)

// Conflict says why a change did not commit. Nothing was written.
type Conflict struct {
	Version bool                // the payment has moved on, or its lease has
	Record  *idempotency.Record // this record has the key
	Holder  payment.ID          // this payment holds the reference
	Gate    bool                // the checkout's condition does not hold
}

func (c *Conflict) Error() string { return "journal: change lost a race" }

// Store keeps payments with their journal.
type Store interface {
	// Payment reads consistently, or returns ErrNotFound.
	Payment(ctx context.Context, id payment.ID) (payment.Payment, error)
	// Commit is one transaction. It returns a *Conflict, or an error that means
	// that the outcome is unknown.
	Commit(ctx context.Context, c Change) error
}

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of the journal.
const (
	MetricConflict     = "VersionConflict"  // a change lost a race and was decided again
	MetricLateCapture  = "LateCapture"      // money came for a dead payment
	MetricMismatch     = "PSPMismatch"      // the PSP answered with other money
	MetricRefundFailed = "RefundFailed"     // a refund failed at the PSP
	MetricLateFinal    = "LateFinalisation" // a final status came after the payment's deadline
	MetricDisputed     = "DisputeOpened"    // a customer disputes a payment
)

// Journal is the door. Its methods are safe for concurrent use.
type Journal struct {
	Store  Store
	Policy func(psp string) payment.Policy
	Now    func() time.Time
	// Pause waits before attempt n (from 1) with full jitter; it returns the
	// context's error when that ends first.
	Pause func(ctx context.Context, n int) error
	Meter Meter
	Log   *slog.Logger
}

// maxAttempts bounds the races one Record may lose. With full jitter and a
// handful of writers per payment eight in a row means that something is wrong.
const maxAttempts = 8

// Record applies facts in their order and commits each that is news. It returns
// the payment after them, and the error of the first that could not be applied:
// a *payment.TransitionError, *payment.MismatchError, ErrNotFound, ErrBusy or
// the store's. Safe to repeat.
func (j *Journal) Record(ctx context.Context, id payment.ID, source Source, facts ...payment.Event) (payment.Payment, error) {
	p, err := j.Store.Payment(ctx, id)
	if err != nil {
		return payment.Payment{}, fmt.Errorf("load payment %s: %w", id, err)
	}
	return j.RecordOn(ctx, p, source, facts...)
}

// RecordOn is Record for a caller that has just read or written p, with the same
// errors. Safe to repeat.
func (j *Journal) RecordOn(ctx context.Context, p payment.Payment, source Source, facts ...payment.Event) (payment.Payment, error) {
	for _, fact := range facts {
		var err error
		if p, err = j.record(ctx, p, source, fact); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (j *Journal) record(ctx context.Context, p payment.Payment, source Source, fact payment.Event) (payment.Payment, error) {
	var last error
	for n := 1; n <= maxAttempts; n++ {
		next, _, err := j.apply(ctx, p, fact, Change{Source: source})
		if err == nil {
			return next, nil // p itself when the fact was old news
		}
		if !retryable(err) {
			return p, err
		}
		last = err
		if err := j.Pause(ctx, n); err != nil {
			break
		}
		fresh, err := j.Store.Payment(ctx, p.ID)
		if err != nil {
			return p, fmt.Errorf("load payment %s again: %w", p.ID, err)
		}
		p = fresh
	}
	if _, lost := errors.AsType[*Conflict](last); lost {
		last = ErrBusy
	}
	return p, fmt.Errorf("record %s on %s: %w", fact.Type, p.ID, last)
}

// retryable reports whether reading and applying again may help: a lost race,
// or an outcome that is unknown. The domain's refusals are final.
func retryable(err error) bool {
	if _, ok := errors.AsType[*payment.TransitionError](err); ok {
		return false
	}
	if _, ok := errors.AsType[*payment.MismatchError](err); ok {
		return false
	}
	return !errors.Is(err, payment.ErrAmountTooLarge) && !errors.Is(err, payment.ErrDisputed)
}

// Change applies one event to p as it was seen and commits it with what c holds
// beside: source, fence, claim, gate. It is one attempt. It returns the payment
// after it, or p with a *Conflict, ErrOldNews, the domain's refusal, or an error
// that means that the outcome is unknown.
func (j *Journal) Change(ctx context.Context, p payment.Payment, e payment.Event, c Change) (payment.Payment, error) {
	next, changed, err := j.apply(ctx, p, e, c)
	if err == nil && !changed {
		err = ErrOldNews
	}
	if err != nil {
		return p, fmt.Errorf("change %s by %s: %w", p.ID, e.Type, err)
	}
	return next, nil
}

// Create commits version 1 of a payment. It is one attempt. Its error is a *Conflict,
// or one that means that the outcome is unknown.
func (j *Journal) Create(ctx context.Context, p payment.Payment, row payment.Row, c Change) (payment.Payment, error) {
	p.DueAt = p.Look(j.Policy(p.PSP))
	c.Before, c.After, c.Row = payment.Payment{}, p, row
	return p, j.commit(ctx, c)
}

func (j *Journal) apply(ctx context.Context, p payment.Payment, e payment.Event, c Change) (payment.Payment, bool, error) {
	e.At = j.Now()
	next, row, changed, err := p.Apply(e)
	if err != nil || !changed {
		return p, false, err
	}
	next.DueAt = next.Look(j.Policy(p.PSP))
	c.Before, c.After, c.Row = p, next, row
	if err := j.commit(ctx, c); err != nil {
		return p, false, err
	}
	j.count(ctx, c)
	return next, true, nil
}

func (j *Journal) commit(ctx context.Context, c Change) error {
	err := j.Store.Commit(ctx, c)
	if lost, ok := errors.AsType[*Conflict](err); ok && lost.Version {
		j.Meter.Count(MetricConflict, 1)
	}
	return err
}

// worthCounting are the rows that an operator wants to see as a number.
var worthCounting = map[payment.EventType]string{
	payment.EventLateCaptured:  MetricLateCapture,
	payment.EventMismatched:    MetricMismatch,
	payment.EventRefundFailed:  MetricRefundFailed,
	payment.EventDisputeOpened: MetricDisputed,
}

func (j *Journal) count(ctx context.Context, c Change) {
	if name, ok := worthCounting[c.Row.Type]; ok {
		j.Meter.Count(name, 1)
	}
	if c.Row.Type == payment.EventRefundFailed && c.Row.Data.Refund != nil {
		// It is final, and the customer has not got the money: somebody must know which.
		j.Log.ErrorContext(ctx, "refund failed", "payment_id", string(c.After.ID), "refund_id", string(c.Row.Data.Refund.ID),
			"stranded", c.After.Stranded())
	}
	if c.Before.Status.Open() && c.After.Status.Terminal() && c.Row.At.After(c.After.ExpiresAt) {
		j.Meter.Count(MetricLateFinal, 1)
	}
}
