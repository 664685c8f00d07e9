package payment

import (
	"time"

	"github.com/kessai/kessai/internal/money"
)

// OperationName names an operation in an event.
type OperationName string

// Operations an event may speak of. Refunds have events of their own.
const (
	OperationCreate  OperationName = "create"
	OperationCapture OperationName = "capture"
	OperationVoid    OperationName = "void"
)

// Event is something that happened to a payment. Which fields count depends on
// Type; the others are left empty.
type Event struct {
	Type EventType
	At   time.Time // when it is recorded, UTC

	// Facts about the charge: what the PSP said.
	PSPReference string
	Amount       money.Amount // the charge's amount as the PSP has it
	Captured     int64        // minor units
	RedirectURL  Secret
	ClientSecret Secret
	Failure      *Failure

	// Unanswered, not run, refused: of which sending. A charge that is declined has
	// them when the request was refused, and no Sends when it is the PSP's word on
	// the charge.
	Operation OperationName
	Attempt   int // of which key
	Sends     int // which sending of that key
	RetryAt   time.Time

	// Cancel: whose it is, and what a merchant says of it.
	Cause  CancelCause
	Reason string

	// Refunds and disputes.
	Refund  RefundEvent
	Dispute Dispute
	// Notification is the webhook that brought the event, "" otherwise.
	Notification string
}

// RefundEvent is what an event says of one refund.
type RefundEvent struct {
	ID           RefundID // "" when the PSP does not know ours
	PSPReference string
	Amount       int64 // minor units
	Reason       string
	Sends        int       // of which sending: unanswered, or failed because the request was refused; else 0
	NotRun       bool      // with EventRefundUnanswered: it certainly did not run
	RetryAt      time.Time // with NotRun
}

// about reports whether the event is what a PSP said of the charge itself.
func (t EventType) about() bool {
	switch t {
	case EventPending, EventActionRequired, EventAuthorized, EventCaptured, EventDeclined, EventVoided:
		return true
	case EventSent, EventCaptureRequested, EventCancelRequested, EventVoidSent, EventRefundRequested, EventRefundSent,
		EventAbsent, EventUnanswered, EventNotRun, EventMismatched, EventCaptureRefused, EventVoidRefused,
		EventRefundPending, EventRefundSucceeded, EventRefundFailed, EventRefundUnanswered,
		EventDisputeOpened, EventDisputeClosed, EventCreated, EventLateCaptured, EventLateAuthorized:
		return false
	}
	return false
}
