package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

var (
	// ErrNotFound says that there is no such checkout of this merchant.
	ErrNotFound = errors.New("checkout: no such checkout")
	// ErrOver says that a checkout that has ended cannot be driven on.
	ErrOver = errors.New("checkout: has ended")
)

// Creation is what one transaction writes to begin a checkout.
type Creation struct {
	Checkout   Checkout
	Row        Row
	Payment    payment.Payment
	PaymentRow payment.Row
	Claim      idempotency.Claim
}

// Change is one committed step of one checkout.
type Change struct {
	Before, After Checkout
	Row           Row
	Source        journal.Source
	Claim         *idempotency.Claim
}

// Store keeps checkouts.
type Store interface {
	// Checkout reads consistently, or returns ErrNotFound.
	Checkout(ctx context.Context, id string) (Checkout, error)
	// CreateCheckout is one transaction. It returns a *journal.Conflict with the
	// record or the holder that stands in the way.
	CreateCheckout(ctx context.Context, c Creation) error
	// CommitCheckout is one transaction on the version that was seen, or a *journal.Conflict.
	CommitCheckout(ctx context.Context, c Change) error
	// RaiseExecutions adds one to the counter if it is still what was seen, and
	// writes the claim if there is one, or returns a *journal.Conflict.
	RaiseExecutions(ctx context.Context, id string, seen int64, claim *idempotency.Claim) error
	// PostponeCheckout moves the due date of a checkout still at that version.
	PostponeCheckout(ctx context.Context, id string, version int64, at time.Time, tries int) error
	Payment(ctx context.Context, id payment.ID) (payment.Payment, error)
	Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error)
}

// Starter starts executions of the state machine. Starting a name that exists
// already is a success.
type Starter interface {
	Start(ctx context.Context, name string, input Input) error
}

// Notices says whether the buyer of a checkout was told.
type Notices interface {
	Told(ctx context.Context, merchantID, checkoutID string) (bool, error)
}

// Input is what an execution starts with: all that its participants need, none
// of it changeable.
type Input struct {
	CheckoutID string     `json:"checkout_id"`
	MerchantID string     `json:"merchant_id"`
	PaymentID  payment.ID `json:"payment_id"`
	Reference  string     `json:"reference"`
	Lines      []Item     `json:"lines"`  // for the order
	Pieces     []Pieces   `json:"pieces"` // for the stock
	Amount     int64      `json:"amount"`
	Currency   string     `json:"currency"`
	Email      string     `json:"email"`
}

// Pieces is how many of one SKU.
type Pieces struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of checkouts.
const (
	MetricNeedsReview  = "CheckoutNeedsReview"
	MetricNotStarted   = "ExecutionNotStarted" // the sweep will start it
	MetricCompensating = "CheckoutCompensating"
	MetricNotNotified  = "BuyerNotNotified"
	// MetricStepFailed counts commands that ended in an error that is no answer.
	// Lambda's own count of errors has those that are, a decline for one.
	MetricStepFailed = "SagaStepFailed"
	// MetricOrderWithoutPayment counts orders that exist although no charge was seen.
	MetricOrderWithoutPayment = "OrderWithoutPayment"
)

// Settings are the durations that checkouts need.
type Settings struct {
	IdempotencyTTL time.Duration
	InProgressTTL  time.Duration
	PaymentExpiry  time.Duration
	ReconcileAfter time.Duration
}

// Service makes checkouts and starts their executions. Safe for concurrent use.
type Service struct {
	Store    Store
	Starter  Starter
	Notices  Notices // for Repair only
	Settings Settings
	Policy   func(psp string) payment.Policy
	NewULID  func() string
	Now      func() time.Time
	Spread   func(time.Duration) time.Duration
	// Pause waits before attempt n (from 1) with full jitter; it returns the
	// context's error when that ends first.
	Pause func(ctx context.Context, n int) error
	Meter Meter
	Log   *slog.Logger
}

// maxRaces bounds how often a request decides anew after losing a race.
const maxRaces = 8

// anew reports whether attempt n, from 1, at deciding something may be made. From
// the second on it waits before, so that those who race do not stay together.
func (s *Service) anew(ctx context.Context, n int) bool {
	return n <= maxRaces && (n == 1 || s.Pause(ctx, n-1) == nil)
}

// CreateRequest asks for a checkout. Everything was validated; Items are merged.
type CreateRequest struct {
	charge.Request
	Terms payment.Terms // of its payment; ID, CheckoutID and ExpiresAt are set here
	Items []Item
	Email customer.Email
}

// Result is the checkout as it is now, with its payment.
type Result struct {
	Checkout Checkout
	Payment  payment.Payment
	Replayed bool
}

// Create begins a checkout and starts its execution. Its payment exists from the
// first moment; nothing is sent yet. Errors: *charge.ReferenceInUseError,
// idempotency.ErrKeyReused, and others when the store gave no answer.
func (s *Service) Create(ctx context.Context, r CreateRequest) (Result, error) {
	c := s.creation(r)
	for n := 1; s.anew(ctx, n); n++ {
		err := s.Store.CreateCheckout(ctx, c)
		if err == nil {
			s.start(ctx, c.Checkout, 1)
			return Result{Checkout: c.Checkout, Payment: c.Payment}, nil
		}
		conflict, ok := errors.AsType[*journal.Conflict](err)
		switch {
		case !ok:
			return Result{}, fmt.Errorf("create checkout: %w", err)
		case conflict.Record == nil && conflict.Holder != "":
			return Result{}, &charge.ReferenceInUseError{PaymentID: conflict.Holder}
		case conflict.Record == nil:
			continue
		}
		found, err := s.Get(ctx, r.Scope.MerchantID, conflict.Record.ResourceID)
		if err != nil {
			return Result{}, err
		}
		if conflict.Record.Expired(s.Now(), s.Settings.IdempotencyTTL, atRest(found)) {
			c.Claim.Seen = conflict.Record
			continue
		}
		found.Replayed = true
		return found, conflict.Record.Check(r.Fingerprint)
	}
	return Result{}, journal.ErrBusy
}

// atRest reports whether nobody has anything to do any more, a person included.
func atRest(r Result) bool {
	return r.Checkout.Status != StatusNeedsReview && r.Checkout.DueAt.IsZero() && r.Payment.DueAt.IsZero()
}

func (s *Service) creation(r CreateRequest) Creation {
	now := s.Now()
	r.Terms.ID = payment.ID(payment.IDPrefix + s.NewULID())
	r.Terms.CheckoutID = IDPrefix + s.NewULID()
	r.Terms.ExpiresAt = now.Add(s.Settings.PaymentExpiry)
	p, paymentRow := payment.New(r.Terms, now)
	p.DueAt = p.Look(s.Policy(p.PSP))
	c := Checkout{
		ID: r.Terms.CheckoutID, MerchantID: r.Terms.MerchantID, Version: 1, Status: StatusPending, Direction: Forward,
		Items: r.Items, Amount: r.Terms.Amount, Reference: r.Terms.Reference, Email: r.Email, PaymentID: p.ID,
		Executions: 1, CreatedAt: now, UpdatedAt: now, DueAt: now.Add(s.Settings.ReconcileAfter),
	}
	return Creation{
		Checkout: c, Row: c.row(Event{Type: EventCreated}, now), Payment: p, PaymentRow: paymentRow,
		Claim: idempotency.Claim{Record: s.recordOf(r.Request, c.ID)},
	}
}

func (s *Service) recordOf(r charge.Request, id string) idempotency.Record {
	now := s.Now()
	return idempotency.Record{
		MerchantID: r.Scope.MerchantID, Hash: r.Scope.Hash(), Fingerprint: r.Fingerprint, ResourceID: id,
		CreatedAt: now, InProgressUntil: now.Add(s.Settings.InProgressTTL),
	}
}

// Get reads a checkout of a merchant with its payment; merchantID "" reads any
// merchant's, for operators. It returns ErrNotFound for one that does not exist
// and for another merchant's alike.
func (s *Service) Get(ctx context.Context, merchantID, id string) (Result, error) {
	if !WellFormed(id) {
		return Result{}, ErrNotFound
	}
	c, err := s.Store.Checkout(ctx, id)
	if err != nil {
		return Result{}, err
	}
	if merchantID != "" && c.MerchantID != merchantID {
		return Result{}, ErrNotFound
	}
	p, err := s.Store.Payment(ctx, c.PaymentID)
	if err != nil {
		return Result{}, fmt.Errorf("read payment of %s: %w", id, err)
	}
	return Result{Checkout: c, Payment: p}, nil
}

// start starts execution n. A failure is no error: the checkout is due, and the
// sweep starts another.
func (s *Service) start(ctx context.Context, c Checkout, n int64) {
	if err := s.launch(ctx, c, n); err != nil {
		s.Meter.Count(MetricNotStarted, 1)
		s.Log.WarnContext(ctx, "execution not started", "checkout_id", c.ID, "payment_id", string(c.PaymentID), "reason", err.Error())
	}
}

// startTimeout bounds one start of an execution: it takes a few hundred
// milliseconds, and whoever starts one has something else to do.
const startTimeout = 5 * time.Second

func (s *Service) launch(ctx context.Context, c Checkout, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s.Starter.Start(ctx, executionName(c.ID, n), input(c))
}

// executionName is a name that no other start of any checkout uses.
func executionName(id string, n int64) string { return fmt.Sprintf("%s-%d", id, n) }

func input(c Checkout) Input {
	in := Input{
		CheckoutID: c.ID, MerchantID: c.MerchantID, PaymentID: c.PaymentID, Reference: c.Reference, Lines: c.Items,
		Amount: c.Amount.Minor, Currency: string(c.Amount.Currency), Email: c.Email.Reveal(),
	}
	for _, item := range c.Items {
		in.Pieces = append(in.Pieces, Pieces{item.SKU, item.Quantity})
	}
	return in
}

// Begin starts the first execution of a checkout again: for a relay that saw its
// creation, in case nobody came to start it. The name makes it a no-op otherwise.
func (s *Service) Begin(ctx context.Context, id string) error {
	c, err := s.Store.Checkout(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || c.Status.Over() || c.Executions > 1 {
		return err
	}
	return s.launch(ctx, c, 1)
}

// Wake starts another execution of a checkout that is not over, because its
// payment has news. Losing the race for the counter is a success: the winner's
// execution starts after that news.
func (s *Service) Wake(ctx context.Context, id string) error {
	c, err := s.Store.Checkout(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || c.Status.Over() {
		return err
	}
	return s.raise(ctx, c, nil)
}

// raise starts another execution under a name of its own. Losing the race for the
// counter is a success, unless there is a claim to write, which then was not.
func (s *Service) raise(ctx context.Context, c Checkout, claim *idempotency.Claim) error {
	err := s.Store.RaiseExecutions(ctx, c.ID, c.Executions, claim)
	if _, lost := errors.AsType[*journal.Conflict](err); lost && claim == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("raise executions of %s: %w", c.ID, err)
	}
	return s.launch(ctx, c, c.Executions+1)
}
