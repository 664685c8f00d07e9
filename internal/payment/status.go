package payment

// Status is where a payment stands, as the merchant sees it.
type Status string

// Statuses, in the order a successful payment passes through them.
const (
	StatusCreated        Status = "created"         // stored, nothing sent to the PSP
	StatusProcessing     Status = "processing"      // sent, outcome not known or pending at the PSP
	StatusRequiresAction Status = "requires_action" // the customer must act (3-D Secure, redirect)
	StatusAuthorized     Status = "authorized"      // funds held, not taken
	StatusCaptured       Status = "captured"        // funds taken
	StatusFailed         Status = "failed"          // declined by the PSP
	StatusCanceled       Status = "canceled"        // voided, abandoned, expired
	StatusRefunded       Status = "refunded"        // all captured funds returned
)

// Statuses lists every Status once.
func Statuses() []Status {
	return []Status{
		StatusCreated, StatusProcessing, StatusRequiresAction, StatusAuthorized,
		StatusCaptured, StatusFailed, StatusCanceled, StatusRefunded,
	}
}

// Terminal reports whether the merchant may rely on s for good: only money that
// comes late, or a refund, moves it, and only to StatusRefunded.
func (s Status) Terminal() bool {
	switch s {
	case StatusCaptured, StatusFailed, StatusCanceled, StatusRefunded:
		return true
	case StatusCreated, StatusProcessing, StatusRequiresAction, StatusAuthorized:
		return false
	}
	return false
}

// Dead reports whether the merchant was told that no money is taken.
func (s Status) Dead() bool { return s == StatusFailed || s == StatusCanceled }

// Open reports whether the charge has no final outcome and is not captured.
func (s Status) Open() bool { return !s.Terminal() }

// EventType names something that happened to a payment. The journal writes it
// as the type of its row.
type EventType string

// Intents: what we are about to ask of the PSP, committed before the call.
const (
	EventSent             EventType = "payment.sent"              // the charge is being sent, or sent again
	EventCaptureRequested EventType = "payment.capture_requested" // a capture is being sent, or sent again
	EventCancelRequested  EventType = "payment.cancel_requested"  // no charge leaves any more; the PSP's is voided
	EventVoidSent         EventType = "payment.void_sent"         // a void is being sent, or sent again
	EventRefundRequested  EventType = "refund.requested"          // a refund exists and is being sent
	EventRefundSent       EventType = "refund.sent"               // a refund is being sent again
)

// Facts: what the PSP said, by answer, webhook or look-up.
const (
	EventPending        EventType = "payment.pending"
	EventActionRequired EventType = "payment.requires_action"
	EventAuthorized     EventType = "payment.authorized"
	EventCaptured       EventType = "payment.captured"
	EventDeclined       EventType = "payment.failed"
	EventVoided         EventType = "payment.canceled"
	EventAbsent         EventType = "payment.absent" // the PSP has no charge, and none can arrive in time
	EventUnanswered     EventType = "payment.in_doubt"
	EventNotRun         EventType = "payment.not_run" // the call did not run: throttled, or never sent
	EventMismatched     EventType = "payment.mismatched"
	EventCaptureRefused EventType = "payment.capture_refused"
	EventVoidRefused    EventType = "payment.void_refused"

	EventRefundPending    EventType = "refund.pending"
	EventRefundSucceeded  EventType = "refund.succeeded"
	EventRefundFailed     EventType = "refund.failed"
	EventRefundUnanswered EventType = "refund.in_doubt"

	EventDisputeOpened EventType = "payment.dispute_opened"
	EventDisputeClosed EventType = "payment.dispute_closed"
)

// Row types that Apply writes in place of the event's own.
const (
	EventCreated        EventType = "payment.created"         // version 1
	EventLateCaptured   EventType = "payment.late_captured"   // EventCaptured on a dead payment
	EventLateAuthorized EventType = "payment.late_authorized" // EventAuthorized on a dead payment
)

// EventTypes lists every EventType that Apply takes, once.
func EventTypes() []EventType {
	return []EventType{
		EventSent, EventCaptureRequested, EventCancelRequested, EventVoidSent, EventRefundRequested, EventRefundSent,
		EventPending, EventActionRequired, EventAuthorized, EventCaptured, EventDeclined, EventVoided,
		EventAbsent, EventUnanswered, EventNotRun, EventMismatched, EventCaptureRefused, EventVoidRefused,
		EventRefundPending, EventRefundSucceeded, EventRefundFailed, EventRefundUnanswered,
		EventDisputeOpened, EventDisputeClosed,
	}
}
