package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Payments is the door to payments.
type Payments interface {
	Record(ctx context.Context, id payment.ID, source journal.Source, facts ...payment.Event) (payment.Payment, error)
}

// Follower does at once what a recorded fact asks for: a void, a late refund.
type Follower interface {
	Follow(ctx context.Context, p payment.Payment, source journal.Source) payment.Payment
}

// Applier applies inbox items. Safe for concurrent use; every call is safe to repeat.
type Applier struct {
	Providers map[string]psp.Webhooks
	Inbox     Inbox
	// Reader reads a payment before it is changed, to compare its PSP.
	Reader   PaymentReader
	Payments Payments
	Follower Follower
	Settings Settings
	Now      func() time.Time
	// Spread adds jitter to a pause: between it and a fifth more.
	Spread func(time.Duration) time.Duration
	Meter  Meter
	Log    *slog.Logger
}

// PaymentReader reads payments.
type PaymentReader interface {
	// Payment reads consistently, or returns journal.ErrNotFound.
	Payment(ctx context.Context, id payment.ID) (payment.Payment, error)
}

const (
	// maxAttempts bounds the tries of an item that fails for no reason of its own:
	// with doubling pauses from a minute they span most of a day.
	maxAttempts = 10
	// maxPause bounds the pause between two tries.
	maxPause = time.Hour
)

// Apply brings one item on as far as it goes now: applied, ignored, quarantined,
// or still received with a later due date. An item that is not received any more
// is left alone. An error means that the store gave no answer; the item stays.
func (a *Applier) Apply(ctx context.Context, name, eventID string) error {
	it, err := a.Inbox.Item(ctx, name, eventID)
	if errors.Is(err, ErrNotFound) {
		return nil // its time to live ran out while it waited in a stream
	}
	if err != nil {
		return fmt.Errorf("read notification: %w", err)
	}
	if it.Status != StatusReceived {
		return nil
	}
	a.apply(ctx, &it)
	if it.Status == StatusQuarantined {
		a.Meter.Count(MetricQuarantined, 1)
		a.Log.ErrorContext(ctx, "webhook quarantined", "payment_id", string(it.PaymentID), "webhook_id", it.ID(), "psp", it.PSP, "reason", it.Reason)
	}
	if err := a.Inbox.Save(ctx, it); err != nil {
		return fmt.Errorf("save notification: %w", err)
	}
	return nil
}

// apply decides what becomes of a received item.
func (a *Applier) apply(ctx context.Context, it *Item) {
	it.Attempts++
	provider := a.Providers[it.PSP]
	if provider == nil {
		a.settle(it, StatusQuarantined, "no adapter for this psp")
		return
	}
	event, err := it.Read(provider)
	switch {
	case errors.Is(err, psp.ErrEventIgnored):
		a.settle(it, StatusIgnored, "event type of no interest")
		return
	case err != nil:
		a.settle(it, StatusQuarantined, "cannot be understood")
		return
	}
	// Another id is nobody's, of any length, and not worth keeping.
	if id := payment.ID(event.Charge.PaymentID); id.WellFormed() {
		it.PaymentID = id
	}
	err = a.record(ctx, it, charge.EventFact(event))
	a.judge(ctx, it, err)
}

var errOtherPSP = errors.New("webhook: payment belongs to another psp")

func (a *Applier) record(ctx context.Context, it *Item, fact payment.Event) error {
	if it.PaymentID == "" {
		return journal.ErrNotFound
	}
	p, err := a.Reader.Payment(ctx, it.PaymentID)
	if err != nil {
		return err
	}
	if p.PSP != it.PSP {
		return errOtherPSP
	}
	fact.Notification = it.ID()
	if p, err = a.Payments.Record(ctx, it.PaymentID, journal.SourceWebhook, fact); err != nil {
		return err
	}
	a.Follower.Follow(ctx, p, journal.SourceWebhook)
	return nil
}

// judge turns what recording said into the item's fate.
func (a *Applier) judge(ctx context.Context, it *Item, err error) {
	illegal, refused := errors.AsType[*payment.TransitionError](err)
	mismatch, disagrees := errors.AsType[*payment.MismatchError](err)
	waits := errors.Is(err, journal.ErrNotFound) || (refused && illegal.Early)
	switch {
	case err == nil:
		a.settle(it, StatusApplied, "")
	case disagrees:
		a.settle(it, StatusQuarantined, "disagrees with the payment about the "+mismatch.Field)
	case errors.Is(err, errOtherPSP):
		a.settle(it, StatusQuarantined, "the payment belongs to another psp")
	case refused && !illegal.Early:
		a.settle(it, StatusQuarantined, "not possible in status "+string(illegal.From))
	case waits && !a.Now().Before(it.WaitUntil):
		a.settle(it, StatusQuarantined, "never matched a payment")
	case !waits && it.Attempts >= maxAttempts:
		a.settle(it, StatusQuarantined, "kept failing")
	default:
		if !waits {
			a.Log.WarnContext(ctx, "webhook not applied yet", "payment_id", string(it.PaymentID), "webhook_id", it.ID(), "reason", err.Error())
		}
		it.DueAt = a.nextTry(*it)
	}
}

func (a *Applier) settle(it *Item, to Status, reason string) {
	it.Status, it.Reason, it.DueAt = to, reason, time.Time{}
}

// nextTry doubles the pause with every attempt. An item that waits is looked at
// once more right when its time is over.
func (a *Applier) nextTry(it Item) time.Time {
	pause := a.Settings.ReconcileAfter
	for n := 1; n < it.Attempts && pause < maxPause; n++ {
		pause *= 2
	}
	now := a.Now()
	at := now.Add(a.Spread(min(pause, maxPause)))
	if now.Before(it.WaitUntil) && it.WaitUntil.Before(at) {
		return it.WaitUntil
	}
	return at
}
