package charge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Store is what the service needs beside the journal.
type Store interface {
	// Payment reads consistently, or returns journal.ErrNotFound.
	Payment(ctx context.Context, id payment.ID) (payment.Payment, error)
	// Record reads an idempotency record consistently, or returns idempotency.ErrNoRecord.
	Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error)
	// Postpone moves the due date of a payment that is still at that version; a
	// zero time means at rest. A payment that has moved on is left alone, without error.
	Postpone(ctx context.Context, id payment.ID, version int64, at time.Time, tries int) error
	// CheckoutOver reports, read consistently, whether a checkout's saga has ended.
	CheckoutOver(ctx context.Context, id string) (bool, error)
}

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of charges.
const (
	MetricInDoubt     = "OutcomeUnknown"     // a call to a PSP brought no usable answer
	MetricNeedsPerson = "PaymentNeedsPerson" // only a person can tell what became of a payment
	MetricKeyReused   = "PSPKeyReused"       // the PSP saw our key with other parameters: a defect here
)

// Settings are the durations that the service needs.
type Settings struct {
	IdempotencyTTL time.Duration // a key is remembered at least this long
	InProgressTTL  time.Duration // a first request may be in flight this long
	PaymentExpiry  time.Duration // an open payment is given up after this
}

// Service makes and changes charges. Its methods are safe for concurrent use,
// and every one is safe to repeat.
type Service struct {
	Journal   *journal.Journal
	Store     Store
	Leases    *lease.Leases
	Providers map[string]psp.Provider
	Policy    func(psp string) payment.Policy
	Settings  Settings
	NewULID   func() string
	Now       func() time.Time
	// Spread adds jitter to a pause: between it and a fifth more.
	Spread func(time.Duration) time.Duration
	Meter  Meter
	Log    *slog.Logger
}

// Request is what every changing call of a merchant carries.
type Request struct {
	Scope       idempotency.Scope
	Fingerprint string // of the decoded request
}

// Result is the resource as it is now.
type Result struct {
	Payment  payment.Payment
	RefundID payment.RefundID // of a refund request
	Replayed bool             // an earlier request with the same key made it
}

// Refund is the refund of a refund request.
func (r Result) Refund() payment.Refund {
	refund, _ := r.Payment.Refund(r.RefundID)
	return refund
}

// maxRaces bounds how often a request decides anew because another writer was
// faster. Each race lost means that somebody else made progress.
const maxRaces = 8

// again reports whether attempt n, from 1, at deciding something may be made. From
// the second on it waits before, so that those who race do not stay together.
func (s *Service) again(ctx context.Context, n int) bool {
	return n <= maxRaces && (n == 1 || s.Journal.Pause(ctx, n-1) == nil)
}

// Payment reads a payment of a merchant. It returns ErrNotFound for one that
// does not exist and for another merchant's alike.
func (s *Service) Payment(ctx context.Context, merchantID string, id payment.ID) (payment.Payment, error) {
	if !id.WellFormed() {
		return payment.Payment{}, ErrNotFound
	}
	p, err := s.Store.Payment(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return payment.Payment{}, ErrNotFound
	case err != nil:
		return payment.Payment{}, fmt.Errorf("read payment %s: %w", id, err)
	case p.MerchantID != merchantID:
		return payment.Payment{}, ErrNotFound
	}
	return p, nil
}

// claim is a new record of r for the resource, in place of seen if there is one.
func (s *Service) claim(r Request, id payment.ID, refund payment.RefundID, seen *idempotency.Record) *idempotency.Claim {
	now := s.Now()
	return &idempotency.Claim{Seen: seen, Record: idempotency.Record{
		MerchantID: r.Scope.MerchantID, Hash: r.Scope.Hash(), Fingerprint: r.Fingerprint,
		ResourceID: string(id), RefundID: string(refund),
		CreatedAt: now, InProgressUntil: now.Add(s.Settings.InProgressTTL),
	}}
}

// takeover is rec with a new time in flight.
func (s *Service) takeover(rec idempotency.Record) *idempotency.Claim {
	next := rec
	next.InProgressUntil = s.Now().Add(s.Settings.InProgressTTL)
	return &idempotency.Claim{Record: next, Seen: &rec}
}

// found is what a request finds under its key.
type found struct {
	payment payment.Payment
	record  *idempotency.Record // nil: the key is free
	expired *idempotency.Record // a record to put a new one in place of
}

// find reads the record of r and then the payment, which is the record's or id.
// It returns idempotency.ErrKeyReused, ErrNotFound, or the store's error.
func (s *Service) find(ctx context.Context, r Request, id payment.ID) (found, error) {
	rec, err := s.Store.Record(ctx, r.Scope.MerchantID, r.Scope.Hash())
	if err != nil && !errors.Is(err, idempotency.ErrNoRecord) {
		return found{}, fmt.Errorf("read idempotency record: %w", err)
	}
	if errors.Is(err, idempotency.ErrNoRecord) {
		p, err := s.Payment(ctx, r.Scope.MerchantID, id)
		return found{payment: p}, err
	}
	return s.resolve(ctx, r, rec)
}

// resolve judges a record that has the key, and reads its payment.
func (s *Service) resolve(ctx context.Context, r Request, rec idempotency.Record) (found, error) {
	p, err := s.Payment(ctx, rec.MerchantID, payment.ID(rec.ResourceID))
	if err != nil {
		return found{}, err
	}
	if rec.Expired(s.Now(), s.Settings.IdempotencyTTL, p.DueAt.IsZero()) {
		return found{payment: p, expired: &rec}, nil
	}
	if err := rec.Check(r.Fingerprint); err != nil {
		return found{payment: p}, err
	}
	return found{payment: p, record: &rec}, nil
}

// inFlight returns an *InProgressError while an operation shows just its intent
// and its request may still be running.
func (s *Service) inFlight(o payment.Operation, rec idempotency.Record) error {
	if left := rec.InProgressUntil.Sub(s.Now()); o.State == payment.OperationSent && left > 0 {
		return &InProgressError{RetryAfter: left}
	}
	return nil
}

// resendable reports whether a repeat of the request has to drive the operation
// on: its sender died, or the PSP said that it did not run and to come again.
func (s *Service) resendable(o payment.Operation) bool {
	switch o.State {
	case payment.OperationSent:
		return true // the caller has checked that it is not in flight
	case payment.OperationNotRun:
		return !s.Now().Before(o.RetryAt)
	case payment.OperationNone, payment.OperationOwed, payment.OperationUnknown, payment.OperationAnswered, payment.OperationRefused:
		return false
	}
	return false
}

// lost reports whether err is a race that was lost: decide anew.
func lost(err error) bool {
	c, ok := errors.AsType[*journal.Conflict](err)
	return ok && (c.Version || c.Record != nil) || errors.Is(err, journal.ErrOldNews)
}
