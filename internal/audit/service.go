package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/webhook"
)

// Lister reads a PSP's own list of charges, page by page.
type Lister interface {
	// List is one page of the charges made since a time; "" is the first cursor, and
	// next is "" on the last page. The order does not matter.
	List(ctx context.Context, since time.Time, cursor string) (charges []psp.Charge, next string, err error)
}

// Store keeps runs and their findings, and reads what they compare.
type Store interface {
	// Run reads consistently, or returns ErrNotFound.
	Run(ctx context.Context, id string) (Run, error)
	Runs(ctx context.Context, cursor string, limit int) ([]Run, string, error)
	// CreateRun writes a run, its file and the claim of its request in one
	// transaction, or returns a *journal.Conflict.
	CreateRun(ctx context.Context, r Run, file string, claim idempotency.Claim) error
	// SaveRun writes how far a run has come, and the payments that a page has met, if
	// the run is still at Version-1, or returns ErrConflict. Of counts of findings
	// it writes nothing. A run that has ended gets its summary row with it.
	SaveRun(ctx context.Context, r Run, met []payment.ID) error
	File(ctx context.Context, id string) (string, error)
	// Met calls do for every payment that pages of the run have met.
	Met(ctx context.Context, id string, do func(payment.ID)) error

	// AddFinding writes a finding that is not there yet, and counts it; fresh is false
	// for one that was there.
	AddFinding(ctx context.Context, runID string, f Finding) (fresh bool, err error)
	// SettleFinding writes how a finding that is open ended, and counts that.
	SettleFinding(ctx context.Context, runID string, f Finding) error
	// Settled reports whether a finding is there and has ended.
	Settled(ctx context.Context, runID string, f Finding) (bool, error)
	Findings(ctx context.Context, runID, cursor string, limit int) ([]Finding, string, error)

	// Log lists the items of a PSP's webhook log that have a status and were received
	// in the period, newest first.
	Log(ctx context.Context, psp string, status webhook.Status, w Window) ([]webhook.Item, string, error)
	// NextMerchant is the merchant that follows in the order of ids, "" after the last.
	NextMerchant(ctx context.Context, after string) (string, error)
	// Happened reads what a merchant's feed tells of a period, oldest first.
	Happened(ctx context.Context, merchantID string, w Window) ([]Happening, string, error)

	// Payment reads consistently, or returns journal.ErrNotFound.
	Payment(ctx context.Context, id payment.ID) (payment.Payment, error)
	// Checkout reads consistently, or returns checkout.ErrNotFound.
	Checkout(ctx context.Context, id string) (checkout.Checkout, error)
	// Record reads an idempotency record consistently, or returns idempotency.ErrNoRecord.
	Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error)
}

// Window is a part of a feed or a log.
type Window struct {
	From, To time.Time
	Cursor   string
	Limit    int
}

// Happening is an event of a feed by name.
type Happening struct {
	EventID string
	Type    string
}

// Charges is the flow that asks PSPs.
type Charges interface {
	Learn(ctx context.Context, p payment.Payment, source journal.Source, c psp.Charge) (payment.Payment, error)
	Drive(ctx context.Context, id payment.ID, source journal.Source) (payment.Payment, error)
}

// Applier is the flow that applies notifications.
type Applier interface {
	// Apply brings one item on as far as it goes now.
	Apply(ctx context.Context, psp, eventID string) error
}

// Checkouts is the flow that drives checkouts on.
type Checkouts interface {
	Repair(ctx context.Context, id string) error
}

// Orders is the shop's order participant.
type Orders interface {
	Get(ctx context.Context, merchant, id string) (order.Order, error)
}

// Stock is the shop's stock participant.
type Stock interface {
	Held(ctx context.Context, merchant, checkout string) (inventory.Status, error)
}

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of reconciliations, counted when a run ends.
const (
	MetricCompleted = "ReconciliationCompleted"
	MetricFailed    = "ReconciliationFailed"
	MetricFindings  = "ReconciliationFindings"
	MetricRepaired  = "ReconciliationRepaired"
	MetricReview    = "ReconciliationNeedsReview"
)

const (
	// budget is how long one call works on a run: well within the API's time.
	budget = 10 * time.Second
	// lastPage is how long before the budget's end no page begins any more.
	lastPage = 2 * time.Second
	// pageSize is how many rows of a file, notifications, or events of a feed are a page.
	pageSize = 50
	// maxStops bounds how often in a row a run may stop at one place.
	maxStops = 10
	// maxRaces bounds how often a request decides anew because another was faster.
	maxRaces = 8
	// maxShownRows bounds the bad rows that a run remembers; it counts them all.
	maxShownRows = 100
)

// Service reconciles. Safe for concurrent use; every call is safe to repeat.
type Service struct {
	Store     Store
	Charges   Charges
	Providers map[string]psp.Provider // who can be asked
	Listers   map[string]Lister       // whose charges can be listed
	Webhooks  map[string]psp.Webhooks // whose notifications can be read
	Applier   Applier
	Checkouts Checkouts
	Orders    Orders
	Stock     Stock

	IdempotencyTTL time.Duration
	ReconcileAfter time.Duration // how often something due is swept at least
	NewULID        func() string
	Now            func() time.Time
	Meter          Meter
	Log            *slog.Logger
}

// Request asks for a run.
type Request struct {
	Scope       idempotency.Scope
	Fingerprint string
	PSP         string
	File        string    // a settlement file, "" for the PSP's list
	From, To    time.Time // both, or neither with a file
	Repair      bool
}

// Start begins a run, or finds the one that an earlier request with the key began,
// and works on it for a while. Errors: ErrUnknownPSP, ErrUnknownFormat, a
// *HeaderError, idempotency.ErrKeyReused, or the store's.
func (s *Service) Start(ctx context.Context, r Request) (run Run, replayed bool, err error) {
	run, err = s.newRun(r)
	if err != nil {
		return Run{}, false, err
	}
	for range maxRaces {
		id, found, err := s.begun(ctx, r, run)
		if _, lost := errors.AsType[*journal.Conflict](err); lost {
			continue
		}
		if err != nil {
			return Run{}, false, err
		}
		run, err = s.Continue(ctx, id)
		return run, found, err
	}
	return Run{}, false, journal.ErrBusy
}

func (s *Service) newRun(r Request) (Run, error) {
	now := s.Now()
	run := Run{
		ID: IDPrefix + s.NewULID(), PSP: r.PSP, Source: SourceList, From: r.From, To: r.To, Repair: r.Repair,
		Status: StatusRunning, Version: 1, Phase: PhaseThere, CreatedAt: now, UpdatedAt: now,
	}
	if r.File == "" {
		if s.Listers[r.PSP] == nil || s.Providers[r.PSP] == nil {
			return Run{}, ErrUnknownPSP
		}
		return run, nil
	}
	run.Source = SourceFile
	settlement, err := ParseSettlement(r.PSP, r.File)
	run.BadCount, run.BadRows = int64(len(settlement.Bad)), settlement.Bad[:min(len(settlement.Bad), maxShownRows)]
	run.PassedOver = int64(settlement.PassedOver)
	return run, err
}

// begun is the id of the run of a request: a new one, or that of an earlier request.
func (s *Service) begun(ctx context.Context, r Request, run Run) (id string, found bool, err error) {
	claim, done, err := idempotency.Begin(ctx, s.Store, idempotency.Fresh(r.Scope, r.Fingerprint, run.ID, s.Now()), s.IdempotencyTTL)
	switch {
	case err != nil:
		return "", false, err
	case done != nil:
		return done.ResourceID, true, nil
	}
	return run.ID, false, s.Store.CreateRun(ctx, run, r.File, *claim)
}

// Continue works on a run for a while, from where it stands, and returns it as it
// then is. A PSP that gives no answer stops it, and that is no error. Errors:
// ErrNotFound, or the store's.
func (s *Service) Continue(ctx context.Context, id string) (Run, error) {
	begin, over := context.WithTimeout(ctx, budget-lastPage)
	defer over()
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	w := &walk{s: s}
	for {
		run, err := s.Store.Run(ctx, id)
		if err != nil {
			return Run{}, fmt.Errorf("read run %s: %w", id, err)
		}
		if run.Status != StatusRunning || w.stopped || begin.Err() != nil {
			return run, nil
		}
		next, met, err := w.page(ctx, run)
		if err != nil {
			next, met, w.stopped = s.stop(ctx, run, err), nil, true
		}
		if err := s.save(ctx, next, met); err != nil {
			return Run{}, err
		}
	}
}

// stop is a run after a page that was not finished.
func (s *Service) stop(ctx context.Context, run Run, cause error) Run {
	s.Log.WarnContext(ctx, "reconciliation stopped", "reconciliation_id", run.ID, "psp", run.PSP, "reason", cause.Error())
	run.Stops++
	if run.Stops >= maxStops {
		run.Status = StatusFailed
	}
	return run
}

// saveTimeout bounds the note of a page when its time is over.
const saveTimeout = 2 * time.Second

// save commits a run's progress. Losing the race means that another worker made it.
func (s *Service) save(ctx context.Context, run Run, met []payment.ID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	run.Version++
	run.UpdatedAt = s.Now()
	err := s.Store.SaveRun(ctx, run, met)
	if errors.Is(err, ErrConflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("save run %s: %w", run.ID, err)
	}
	s.count(ctx, run)
	return nil
}

// count tells of a run that has ended.
func (s *Service) count(ctx context.Context, run Run) {
	switch run.Status {
	case StatusRunning:
		return
	case StatusFailed:
		s.Meter.Count(MetricFailed, 1)
	case StatusCompleted:
		s.Meter.Count(MetricCompleted, 1)
	}
	var findings int64
	for _, n := range run.Counts {
		findings += n
	}
	s.Meter.Count(MetricFindings, findings)
	s.Meter.Count(MetricRepaired, run.Repaired)
	s.Meter.Count(MetricReview, run.Review)
	s.Log.InfoContext(ctx, "reconciliation ended", "reconciliation_id", run.ID, "psp", run.PSP, "status", string(run.Status),
		"charges", run.Charges, "webhooks", run.Webhooks, "payments", run.Payments, "findings", findings, "repaired", run.Repaired, "needs_review", run.Review)
}
