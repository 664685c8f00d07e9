package payment

import (
	"errors"
	"time"
)

// RefundStatus is where a refund stands. Its rank only rises.
type RefundStatus string

// Statuses of a refund by rank.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

func (s RefundStatus) rank() int {
	switch s {
	case RefundPending:
		return 1
	case RefundSucceeded:
		return 2
	case RefundFailed:
		return 3
	}
	return 0
}

// Reasons of refunds that we make ourselves.
const (
	ReasonLateCapture  = "late_capture"    // money came for a dead payment
	ReasonCompensation = "checkout_failed" // the saga gives the money back
	ReasonOutside      = "refunded_at_psp" // made at the PSP directly
)

// Refund returns captured funds, wholly or partly.
type Refund struct {
	ID           RefundID
	Status       RefundStatus
	Amount       int64 // minor units of the payment's currency
	Reason       string
	PSPReference string // the PSP's id, "" until it told us
	Outside      bool   // made at the PSP directly
	Operation    Operation
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// unanswered reports whether the PSP may hold a refund for r that we cannot tell
// from a foreign one yet. One that failed without an id was refused outright.
func (r Refund) unanswered() bool { return r.Status != RefundFailed && r.PSPReference == "" }

var (
	// ErrAmountTooLarge says that pending and succeeded refunds would exceed the
	// captured amount, or a capture the authorized one.
	ErrAmountTooLarge = errors.New("payment: amount is larger than what is left")
	// ErrDisputed says that an open dispute blocks refunds.
	ErrDisputed = errors.New("payment: disputed")
)

// CheckRefund says whether a refund of amount may be asked for now: nil,
// ErrDisputed, ErrAmountTooLarge, or a *TransitionError.
func (p Payment) CheckRefund(amount int64) error {
	if _, verdict := Next(p.Status, EventRefundRequested); verdict == Illegal || p.AmountCaptured == 0 {
		return &TransitionError{From: p.Status, Event: EventRefundRequested}
	}
	if p.Disputed() {
		return ErrDisputed
	}
	if amount <= 0 || amount > p.Refundable() {
		return ErrAmountTooLarge
	}
	return nil
}

// Sendable reports whether the refund may be sent again at now: its key is young enough.
func (r Refund) Sendable(now time.Time, pol Policy) bool { return pol.sendable(r.Operation, now) }

// CheckCapture says whether a capture of amount (0 for the whole) may be asked
// for now: nil, ErrAmountTooLarge or a *TransitionError.
func (p Payment) CheckCapture(amount int64) error {
	_, verdict := Next(p.Status, EventCaptureRequested)
	if verdict == Illegal || p.CancelCause != "" || p.Capture.open() || p.CaptureMethod != CaptureManual {
		return &TransitionError{From: p.Status, Event: EventCaptureRequested}
	}
	if amount < 0 || amount > p.Amount.Minor {
		return ErrAmountTooLarge
	}
	return nil
}

// CaptureSendable reports whether an open capture may be sent again at now.
func (p Payment) CaptureSendable(now time.Time, pol Policy) bool {
	return p.CancelCause == "" && p.Capture.open() && pol.sendable(p.Capture, now)
}

// DisputeStatus is where a dispute stands. Its rank only rises.
type DisputeStatus string

// Statuses of a dispute by rank.
const (
	DisputeOpen   DisputeStatus = "open"
	DisputeClosed DisputeStatus = "closed"
)

// Dispute is a customer's claim at the bank. While one is open no refund is made.
type Dispute struct {
	PSPReference string
	Amount       int64 // minor units
	Status       DisputeStatus
	Result       string // the PSP's word, such as won or lost, "" while open
	UpdatedAt    time.Time
}
