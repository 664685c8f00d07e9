package charge

import (
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// Refusals, each before any effect unless it says otherwise; the key stays free.
var (
	// ErrNotFound says that there is no such payment of this merchant.
	ErrNotFound = errors.New("charge: no such payment")
	// ErrUnknownPSP says that no provider of that name is configured.
	ErrUnknownPSP = errors.New("charge: unknown psp")
	// ErrInvalidStatus says that the operation is wrong in the payment's status.
	ErrInvalidStatus = errors.New("charge: invalid status")
	// ErrCaptured says that a captured payment cannot be canceled. When the PSP
	// said so only now, the payment was recorded as captured.
	ErrCaptured = errors.New("charge: payment is captured")
	// ErrCaptureRefused says that the PSP refused the capture. It was tried; the
	// payment stays authorized, and the next attempt has a key of its own.
	ErrCaptureRefused = errors.New("charge: capture refused")
	// ErrCheckoutPending says that the payment's checkout has not ended.
	ErrCheckoutPending = errors.New("charge: checkout is pending")
)

// InProgressError says that the first request with the key may still be in flight.
type InProgressError struct {
	RetryAfter time.Duration
}

func (e *InProgressError) Error() string {
	return fmt.Sprintf("charge: first request in progress for up to %s", e.RetryAfter)
}

// ReferenceInUseError says that another payment with the same reference is live
// or captured.
type ReferenceInUseError struct {
	PaymentID payment.ID
}

func (e *ReferenceInUseError) Error() string {
	return fmt.Sprintf("charge: reference is in use by %s", e.PaymentID)
}
