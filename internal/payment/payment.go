package payment

import (
	"maps"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/money"
)

// CaptureMethod says who decides when held funds are taken.
type CaptureMethod string

// Capture methods.
const (
	CaptureAutomatic CaptureMethod = "automatic" // the PSP captures when it authorizes
	CaptureManual    CaptureMethod = "manual"    // the merchant captures later
)

// Payment is the state of one payment. It is a value: Apply returns a changed
// copy and never touches the receiver. It may hold secrets; what leaves the
// domain is View.
type Payment struct {
	ID         ID
	MerchantID string
	CheckoutID string // the checkout that owns it, "" for a payment made directly
	Version    int64  // counts applied events from 1; a write needs the version it has seen
	Status     Status

	Amount        money.Amount // never changes
	CaptureMethod CaptureMethod
	PaymentMethod Secret // the PSP's opaque token
	Reference     string // the merchant's order, may be ""
	ReturnURL     string
	PSP           string
	Metadata      map[string]string
	CreatedAt     time.Time
	UpdatedAt     time.Time
	ExpiresAt     time.Time // when an open payment that is not authorized is given up

	// HoldsReference is true while no other payment may have the same reference.
	HoldsReference bool

	PSPReference   string // the PSP's id of the charge, "" until it told us
	AmountCaptured int64  // minor units
	Failure        *Failure
	RedirectURL    Secret
	ClientSecret   Secret

	Create  Operation // the charge itself
	Capture Operation // the last capture, of a manual payment
	Void    Operation // the last void
	// CancelCause is why no charge may leave any more, "" while it may.
	CancelCause CancelCause
	// Mismatched is set when the PSP answered with other money than we asked for.
	Mismatched bool
	// Buried is set when the PSP itself said that the charge is dead.
	Buried bool
	// LateHold is set when funds are held for a payment that is dead.
	LateHold bool

	Refunds  []Refund
	Disputes []Dispute

	// DueAt is when somebody must look again, zero when the payment is at rest;
	// Tries counts the looks since the last change.
	DueAt time.Time
	Tries int
	// LeaseUntil and LeaseFence belong to the lease, not to the version: a lease
	// is taken and let go without a new version.
	LeaseUntil time.Time
	LeaseFence int64
}

// CancelCause is why a payment is being canceled.
type CancelCause string

// Causes of a cancel.
const (
	CancelByMerchant CancelCause = "merchant"
	CancelByExpiry   CancelCause = "expired"
	CancelByCheckout CancelCause = "checkout"
)

// Failure is why no money was taken.
type Failure struct {
	Code        string // card_declined, payment_expired, payment_rejected, authorization_expired
	DeclineCode string // the PSP's, "" when there is none
	Retryable   bool   // whether another payment with the same method may succeed
}

// Failure codes.
const (
	FailureDeclined      = "card_declined"
	FailureExpired       = "payment_expired"
	FailureRejected      = "payment_rejected"      // the PSP refused the request itself
	FailureAuthorization = "authorization_expired" // held funds lapsed at the PSP
)

// OperationState is what is known of the last sending of an operation.
type OperationState string

// States of an operation.
const (
	OperationNone     OperationState = ""         // never asked for
	OperationOwed     OperationState = "owed"     // decided, not sent yet
	OperationSent     OperationState = "sent"     // on its way, or its sender died
	OperationUnknown  OperationState = "unknown"  // sent, and no usable answer came
	OperationNotRun   OperationState = "not_run"  // certainly did not run; may be sent again
	OperationAnswered OperationState = "answered" // the PSP knows it and said so
	OperationRefused  OperationState = "refused"  // the PSP refused it for good
)

// Operation is one thing asked of the PSP. Its key is the same on every sending;
// a new key needs a final answer to the old one.
type Operation struct {
	State       OperationState
	Key         string
	Amount      int64 // minor units, for a capture
	FirstSentAt time.Time
	LastSentAt  time.Time
	RetryAt     time.Time // with OperationNotRun: not before this
	Sends       int       // counts sendings of this key
	Attempt     int       // counts keys, from 1
}

// open reports whether somebody still has to find out what became of o.
func (o Operation) open() bool {
	switch o.State {
	case OperationOwed, OperationSent, OperationUnknown, OperationNotRun:
		return true
	case OperationNone, OperationAnswered, OperationRefused:
		return false
	}
	return false
}

// awaits reports whether that sending, of the key that attempt counts, is on its
// way: the last one, and nothing is known of it yet. What is heard of another one
// is old news.
func (o Operation) awaits(attempt, sends int) bool {
	return o.State == OperationSent && o.Attempt == attempt && o.Sends == sends
}

// sent returns o after one more sending at.
func (o Operation) sent(at time.Time) Operation {
	if o.FirstSentAt.IsZero() {
		o.FirstSentAt = at
	}
	o.State, o.LastSentAt, o.RetryAt = OperationSent, at, time.Time{}
	o.Sends++
	return o
}

// InDoubt reports whether the PSP gave no usable answer and we are finding out.
func (p Payment) InDoubt() bool {
	if p.Status.Terminal() {
		return false
	}
	return p.Mismatched || p.Create.State == OperationUnknown ||
		p.Capture.State == OperationUnknown || p.Void.State == OperationUnknown
}

// Disputed reports whether a dispute is open.
func (p Payment) Disputed() bool {
	return slices.ContainsFunc(p.Disputes, func(d Dispute) bool { return d.Status == DisputeOpen })
}

// AmountRefunded is the sum of succeeded refunds in minor units.
func (p Payment) AmountRefunded() int64 {
	return p.refundSum(RefundSucceeded)
}

// Refundable is what may still be refunded, in minor units: what was captured
// less pending and succeeded refunds. Never negative.
func (p Payment) Refundable() int64 {
	return max(0, p.AmountCaptured-p.refundSum(RefundPending)-p.refundSum(RefundSucceeded))
}

func (p Payment) refundSum(s RefundStatus) int64 {
	var sum int64
	for _, r := range p.Refunds {
		if r.Status == s {
			sum += r.Amount
		}
	}
	return sum
}

// Refund returns the refund with that id.
func (p Payment) Refund(id RefundID) (Refund, bool) {
	for _, r := range p.Refunds {
		if r.ID == id {
			return r, true
		}
	}
	return Refund{}, false
}

// clone returns a copy that shares nothing changeable with p.
func (p Payment) clone() Payment {
	p.Metadata = maps.Clone(p.Metadata)
	p.Refunds = slices.Clone(p.Refunds)
	p.Disputes = slices.Clone(p.Disputes)
	p.Failure = p.Failure.clone()
	return p
}

func (f *Failure) clone() *Failure {
	if f == nil {
		return nil
	}
	c := *f
	return &c
}
