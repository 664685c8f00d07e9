package psp

import (
	"errors"
	"fmt"
	"time"
)

// ErrNotFound says that the provider knows no such charge. Whether that proves
// that there is none is Capabilities.AuthoritativeLookup.
var ErrNotFound = errors.New("psp: no such charge")

// Outcome classifies an error: what is known of the operation.
type Outcome int

// Outcomes of a call that brought no charge or refund.
const (
	OutcomeUnknown    Outcome = iota // it may have run; the zero value, on purpose
	OutcomeNotSent                   // nothing left this process, or the connection was refused
	OutcomeThrottled                 // 429: it did not run; the same key again after RetryAfter
	OutcomeInProgress                // the same key is running at the provider; wait
	OutcomeRejected                  // the provider refused for good: invalid request or wrong state
	OutcomeKeyReused                 // same key, other parameters: a defect here
)

// Error is a call without a charge or refund in its answer. Its text never
// holds a body, a token or an address.
type Error struct {
	Operation  string // create, capture, cancel, refund or lookup
	Outcome    Outcome
	Code       string        // the provider's stable code, if any, such as charge_captured
	HTTPStatus int           // 0 when there was no answer
	RetryAfter time.Duration // set with OutcomeThrottled when the provider said so
	Err        error         // the cause, for errors.Is; may be nil
}

func (e *Error) Error() string {
	text := fmt.Sprintf("psp: %s: http status %d", e.Operation, e.HTTPStatus)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// OutcomeOf is the outcome of any error of a Provider, OutcomeUnknown when it
// carries none.
func OutcomeOf(err error) Outcome {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Outcome
	}
	return OutcomeUnknown
}
