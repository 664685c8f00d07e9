package charge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// maxSteps bounds one drive: a look-up, a cancel, a void, another look-up and a
// refund are the longest honest sequence.
const maxSteps = 8

// Drive does what is owed on a payment now, under its lease, until nothing is
// owed or only time can tell: finds out what is in doubt, sends again what did
// not run, voids what must not be charged, gives late money back. It then says
// when to look next. It returns the payment as it is after that.
//
// While another worker has the lease it does nothing and returns the payment.
// An error means that something gave no answer; the payment stays due.
func (s *Service) Drive(ctx context.Context, id payment.ID, source journal.Source) (payment.Payment, error) {
	p, err := s.underLease(ctx, id, source)
	return s.latest(ctx, p), err
}

// latest is p as it is now if it holds a secret. The drive's last reading is older
// than its last write, and the secret of a payment that has ended meanwhile must not
// be told.
func (s *Service) latest(ctx context.Context, p payment.Payment) payment.Payment {
	if p.RedirectURL == "" && p.ClientSecret == "" {
		return p
	}
	now, err := s.Store.Payment(ctx, p.ID)
	if err != nil {
		p.RedirectURL, p.ClientSecret = "", ""
		return p
	}
	return now
}

func (s *Service) underLease(ctx context.Context, id payment.ID, source journal.Source) (payment.Payment, error) {
	held, err := s.Leases.Acquire(ctx, id)
	if errors.Is(err, lease.ErrHeld) {
		return s.yield(ctx, id)
	}
	if err != nil {
		return payment.Payment{}, fmt.Errorf("lease %s: %w", id, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		if err := held.Release(ctx); err != nil {
			s.Log.WarnContext(ctx, "lease not released", "payment_id", string(id), "reason", err.Error())
		}
	}()
	d := drive{s: s, source: source, lease: held}
	p, err := d.run(ctx, id)
	if p.ID == "" {
		return p, err
	}
	return p, errors.Join(err, s.postpone(ctx, p))
}

// yield leaves a payment to the worker that has its lease, and its due date to
// the end of that lease.
func (s *Service) yield(ctx context.Context, id payment.ID) (payment.Payment, error) {
	p, err := s.Store.Payment(ctx, id)
	if err != nil || p.DueAt.IsZero() || p.DueAt.After(s.Now()) || p.LeaseUntil.IsZero() {
		return p, err
	}
	return p, s.Store.Postpone(ctx, id, p.Version, p.LeaseUntil, p.Tries)
}

// drive is one run of Drive.
type drive struct {
	s      *Service
	source journal.Source
	lease  *lease.Lease
}

// sight is what the look-up showed that a step follows from, its zero value when
// there was none.
type sight struct {
	payment.Seen
	charge psp.Charge
	asked  time.Time // when the question was put
}

// by is how an operation is sent of which the look-up, if there was one, showed
// nothing.
func (d *drive) by(p payment.Payment, o payment.Operation, seen sight) sending {
	return sending{source: d.source, alone: !seen.asked.IsZero() && d.s.Policy(p.PSP).Alone(o, seen.asked)}
}

func (d *drive) run(ctx context.Context, id payment.ID) (payment.Payment, error) {
	p, err := d.s.Store.Payment(ctx, id)
	if err != nil {
		return payment.Payment{}, fmt.Errorf("read payment %s: %w", id, err)
	}
	for range maxSteps {
		if d.lease.Over() {
			return p, nil // a look-up has no intent that would notice
		}
		now := d.s.Now() // of the question: what was on its way then may arrive before the answer
		step, seen := p.Next(now), sight{}
		if step.Kind == payment.StepLookUp {
			if p, seen, err = d.s.lookUp(ctx, p, d.source); err != nil {
				return p, err
			}
			seen.asked = now
			step = p.NextAfterLookUp(now, d.s.Policy(p.PSP), seen.Seen)
		}
		p, err = d.do(ctx, p, step, seen)
		switch {
		case errors.Is(err, errStop):
			return p, nil
		case lost(err):
			if p, err = d.s.Store.Payment(ctx, id); err != nil {
				return p, fmt.Errorf("read payment %s: %w", id, err)
			}
			if p.LeaseFence != d.lease.Fence {
				return p, nil // the lease is another's: no more calls
			}
		case err != nil:
			return p, err
		}
	}
	return p, nil
}

// errStop ends a drive: nothing is owed, or only time or a person can tell.
var errStop = errors.New("charge: nothing to do now")

// do takes one step. Every call to the PSP follows an intent of its own.
func (d *drive) do(ctx context.Context, p payment.Payment, step payment.Step, seen sight) (payment.Payment, error) {
	s := d.s
	intent := func(e payment.Event) (payment.Payment, error) {
		return s.Journal.Change(ctx, p, e, journal.Change{Source: d.source, Fence: d.lease.Fence})
	}
	switch step.Kind {
	case payment.StepRest, payment.StepLookUp:
		return p, errStop
	case payment.StepPerson:
		s.Meter.Count(MetricNeedsPerson, 1)
		s.Log.ErrorContext(ctx, "payment needs a person", "payment_id", string(p.ID), "status", string(p.Status))
		return p, errStop
	case payment.StepRecord:
		return intent(payment.Event{Type: step.Event, Cause: payment.CancelByExpiry})
	case payment.StepSend:
		next, err := intent(payment.Event{Type: payment.EventSent})
		if err != nil {
			return p, err
		}
		return s.sendCharge(ctx, next, d.by(p, p.Create, seen))
	case payment.StepVoid:
		next, err := intent(payment.Event{Type: payment.EventVoidSent, PSPReference: seen.Reference})
		if err != nil {
			return p, err
		}
		return s.sendVoid(ctx, next, d.source)
	case payment.StepCapture:
		next, err := intent(payment.Event{Type: payment.EventCaptureRequested, Captured: p.Capture.Amount})
		if err != nil {
			return p, err
		}
		next, err = s.sendCapture(ctx, next, d.by(p, p.Capture, seen))
		if errors.Is(err, ErrCaptureRefused) {
			err = nil // recorded; the merchant sees it
		}
		return next, err
	case payment.StepRefund:
		next, err := intent(payment.Event{Type: payment.EventRefundSent, Refund: payment.RefundEvent{ID: step.Refund}})
		if err != nil {
			return p, err
		}
		refund, _ := p.Refund(step.Refund)
		next, err = s.sendRefund(ctx, next, step.Refund, d.by(p, refund.Operation, seen))
		if err != nil || !seen.Found {
			return next, err
		}
		return s.learnRefunds(ctx, next, d.source, seen.charge) // others may have waited for this one's answer
	}
	return p, errStop
}

// lookUp asks the PSP where the charge stands and records what it says. An error
// means that it gave no answer.
func (s *Service) lookUp(ctx context.Context, p payment.Payment, source journal.Source) (payment.Payment, sight, error) {
	callCtx, cancel := s.call(ctx, p)
	defer cancel()
	c, err := s.provider(p).Lookup(callCtx, psp.LookupRequest{Reference: p.PSPReference, PaymentID: string(p.ID)})
	if errors.Is(err, psp.ErrNotFound) {
		return p, sight{}, nil
	}
	if err != nil {
		return p, sight{}, fmt.Errorf("look up %s: %w", p.ID, err)
	}
	seen := sight{charge: c, Seen: payment.Seen{Found: true, Reference: c.Reference, Refunds: map[payment.RefundID]bool{}}}
	switch c.Status {
	case psp.StatusPending, psp.StatusRequiresAction, psp.StatusAuthorized:
		seen.Live = true
	case psp.StatusCaptured, psp.StatusFailed, psp.StatusCanceled:
	}
	for _, r := range c.Refunds {
		seen.Refunds[payment.RefundID(r.RefundID)] = true
	}
	if p.Status == payment.StatusAuthorized && c.Status == psp.StatusFailed {
		c.Status = psp.StatusCanceled // what was held lapsed: the answer to a question is no old news
	}
	p, err = s.learn(ctx, p, source, c)
	return p, seen, err
}

// postpone says when to look again at a payment that is still due.
func (s *Service) postpone(ctx context.Context, p payment.Payment) error {
	now := s.Now()
	if p.DueAt.IsZero() || p.DueAt.After(now) {
		return nil
	}
	at, tries := p.Postponed(s.Policy(p.PSP), now)
	if !at.IsZero() {
		at = now.Add(s.Spread(at.Sub(now)))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := s.Store.Postpone(ctx, p.ID, p.Version, at, tries); err != nil {
		return fmt.Errorf("postpone %s: %w", p.ID, err)
	}
	return nil
}

// Follow drives p on when what was just recorded asks for a call at once: a void
// for a canceled payment, the refund of late money. An error there does not undo
// what was recorded; the sweep goes on with it.
func (s *Service) Follow(ctx context.Context, p payment.Payment, source journal.Source) payment.Payment {
	switch p.Next(s.Now()).Kind {
	case payment.StepVoid, payment.StepRefund:
	case payment.StepRest, payment.StepLookUp, payment.StepRecord, payment.StepSend, payment.StepCapture, payment.StepPerson:
		return p
	}
	driven, err := s.Drive(ctx, p.ID, source)
	if err != nil {
		s.Log.WarnContext(ctx, "left to the sweep", "payment_id", string(p.ID), "reason", err.Error())
	}
	if driven.ID == "" {
		return s.latest(ctx, p)
	}
	return driven
}
