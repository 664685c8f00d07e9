package charge

import (
	"context"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

// CreateRequest asks for a new payment. Terms were validated; ID and ExpiresAt
// are set here.
type CreateRequest struct {
	Request
	Terms payment.Terms
}

// Create charges once. A first use costs two sequential trips to the store, one
// before the PSP and one after.
//
// It returns the payment in whatever status the PSP's answer led to, also when
// it declined, and in StatusProcessing when no usable answer came. Errors:
// ErrUnknownPSP, *ReferenceInUseError, idempotency.ErrKeyReused and
// *InProgressError with the payment that has the key, and others when the store gave
// no answer.
func (s *Service) Create(ctx context.Context, r CreateRequest) (Result, error) {
	if _, ok := s.Providers[r.Terms.PSP]; !ok {
		return Result{}, ErrUnknownPSP
	}
	now := s.Now()
	r.Terms.ID = payment.ID(payment.IDPrefix + s.NewULID())
	r.Terms.ExpiresAt = now.Add(s.Settings.PaymentExpiry)
	p, row := payment.NewSent(r.Terms, now)
	claim := s.claim(r.Request, p.ID, "", nil)
	for n := 1; s.again(ctx, n); n++ {
		created, err := s.Journal.Create(ctx, p, row, journal.Change{Source: journal.SourceAPI, Claim: claim})
		if err == nil {
			sent, err := s.sendCharge(ctx, created, sending{source: journal.SourceAPI})
			return Result{Payment: s.Follow(ctx, sent, journal.SourceAPI)}, err
		}
		conflict, ok := errors.AsType[*journal.Conflict](err)
		switch {
		case !ok:
			return Result{}, fmt.Errorf("create payment: %w", err)
		case conflict.Record == nil && conflict.Holder != "":
			return Result{}, &ReferenceInUseError{PaymentID: conflict.Holder}
		case conflict.Record == nil:
			claim.Seen = nil // the expired record is gone meanwhile
			continue
		}
		f, err := s.resolve(ctx, r.Request, *conflict.Record)
		if err != nil {
			return Result{Payment: f.payment}, err
		}
		if f.expired != nil {
			claim.Seen = f.expired
			continue
		}
		return s.replayCreate(ctx, r.Request, f)
	}
	return Result{}, journal.ErrBusy
}

// replayCreate answers a repeat, and drives the charge on when its first request
// is not there any more to do it.
func (s *Service) replayCreate(ctx context.Context, r Request, f found) (Result, error) {
	for n := 1; s.again(ctx, n); n++ {
		p := f.payment
		if p.Status != payment.StatusProcessing {
			return Result{Payment: p, Replayed: true}, nil
		}
		if err := s.inFlight(p.Create, *f.record); err != nil {
			return Result{Payment: p}, err
		}
		if !s.resendable(p.Create) {
			return Result{Payment: p, Replayed: true}, nil
		}
		if !p.Sendable(s.Now(), s.Policy(p.PSP)) {
			driven, err := s.Drive(ctx, p.ID, journal.SourceAPI)
			return Result{Payment: driven, Replayed: true}, err
		}
		sent, err := s.Journal.Change(ctx, p, payment.Event{Type: payment.EventSent},
			journal.Change{Source: journal.SourceAPI, Claim: s.takeover(*f.record)})
		if err == nil {
			p, err := s.sendCharge(ctx, sent, sending{source: journal.SourceAPI})
			return Result{Payment: s.Follow(ctx, p, journal.SourceAPI), Replayed: true}, err
		}
		if !lost(err) {
			return Result{}, fmt.Errorf("take over: %w", err)
		}
		if f, err = s.find(ctx, r, p.ID); err != nil {
			return Result{}, err
		}
		if f.record == nil {
			return Result{Payment: f.payment, Replayed: true}, nil
		}
	}
	return Result{}, journal.ErrBusy
}
