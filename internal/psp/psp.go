// Package psp is the port to payment service providers (PSPs): the words that
// flows and adapters share. Each provider has a folder below it; psptest is the
// contract that every Provider passes. One that only takes webhooks in is Webhooks
// alone.
//
// The rule that carries the port: an error means no answer. A decline is a
// Charge with StatusFailed, and an error that cannot be classified is
// OutcomeUnknown, the zero value.
package psp

import (
	"context"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// Status is what a provider says of a charge, in one vocabulary.
type Status string

// Statuses of a charge at a provider.
const (
	StatusPending        Status = "pending"         // accepted, outcome later
	StatusRequiresAction Status = "requires_action" // the customer must act
	StatusAuthorized     Status = "authorized"      // funds held
	StatusCaptured       Status = "captured"        // funds taken, wholly or partly
	StatusFailed         Status = "failed"          // declined, final
	StatusCanceled       Status = "canceled"        // voided, abandoned or lapsed, final
)

// Charge is the provider's view of one payment.
type Charge struct {
	Reference   string // the provider's id
	PaymentID   string // our payment id, as the provider gives it back
	Status      Status
	Amount      money.Amount
	Captured    int64 // minor units
	Refunded    int64 // minor units
	RedirectURL payment.Secret
	// ClientSecret is what a provider's own client library needs, "" where the provider has none.
	ClientSecret payment.Secret
	Decline      *Decline // set when Status is StatusFailed
	Refunds      []Refund
}

// Decline is why a charge failed.
type Decline struct {
	Code      string // the provider's decline code, such as insufficient_funds
	Retryable bool   // whether another attempt with the same method may succeed
}

// RefundStatus is where a refund stands. Its rank only rises: pending, succeeded, failed.
type RefundStatus string

// Statuses of a refund.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Refund is the provider's view of one refund.
type Refund struct {
	Reference string // the provider's id
	RefundID  string // our re_ id, "" when the refund was made at the provider directly
	Amount    int64  // minor units of the charge's currency
	Status    RefundStatus
}

// DisputeStatus is where a dispute stands. Its rank only rises: open, closed.
type DisputeStatus string

// Statuses of a dispute.
const (
	DisputeOpen   DisputeStatus = "open"
	DisputeClosed DisputeStatus = "closed"
)

// Dispute is the provider's view of one dispute (chargeback).
type Dispute struct {
	Reference string // the provider's id
	Amount    int64  // minor units of the charge's currency
	Status    DisputeStatus
	Result    string // the provider's word for how it ended, such as won or lost, "" while open
}

// CreateRequest asks for a charge. Every field but Key comes from the stored
// payment, so that a repeat sends the same bytes.
type CreateRequest struct {
	Key           string // idempotency key, at most 64 characters, the same on every repeat
	PaymentID     string
	Amount        money.Amount
	PaymentMethod payment.Secret
	ManualCapture bool
	ReturnURL     string
	Metadata      map[string]string
}

// CaptureRequest takes held funds; what is not captured is released.
type CaptureRequest struct {
	Key       string
	Reference string // the provider's charge id
	Amount    money.Amount
}

// CancelRequest voids a charge that is not captured.
type CancelRequest struct {
	Key       string
	Reference string
}

// RefundRequest returns captured funds.
type RefundRequest struct {
	Key       string
	Reference string // the provider's charge id
	RefundID  string
	Amount    money.Amount
}

// LookupRequest finds a charge by the provider's id if known, else by ours.
type LookupRequest struct {
	Reference string
	PaymentID string
}

// Capabilities is what a provider promises.
type Capabilities struct {
	// KeyLifetime is how long the provider remembers an idempotency key. Half of
	// it after an operation was first sent, its key is never sent again.
	KeyLifetime time.Duration
	// AuthoritativeLookup says that "not found" means that no request which had
	// already arrived created a charge.
	AuthoritativeLookup bool
}

// Provider is one PSP. Methods are safe for concurrent use; each call is bounded
// by the context and by the adapter's own time-out. A Charge returned without
// error was compared with nothing: the caller compares money and reference. An error
// is an *Error, and OutcomeOf says what it means; or ErrNotFound, of Lookup.
type Provider interface {
	Name() string
	Capabilities() Capabilities
	Create(ctx context.Context, r CreateRequest) (Charge, error)
	Capture(ctx context.Context, r CaptureRequest) (Charge, error)
	Cancel(ctx context.Context, r CancelRequest) (Charge, error)
	Refund(ctx context.Context, r RefundRequest) (Refund, error)
	// Lookup returns ErrNotFound when the provider says that it has no such charge.
	Lookup(ctx context.Context, r LookupRequest) (Charge, error)
}
