package psp

import (
	"errors"
	"net/http"
	"time"
)

// ErrSignature says that a delivery is not from the provider, or not from now:
// missing, wrong, stale or future. Nothing of it may be used or logged.
var ErrSignature = errors.New("psp: webhook signature refused")

// Delivery is a webhook as received: the raw bytes, before any parsing.
type Delivery struct {
	Header     http.Header
	Body       []byte
	ReceivedAt time.Time
}

// Notification is one verified message of a delivery, as it is stored.
type Notification struct {
	EventID string // the provider's event id, or one derived from its content, at most 255 bytes
	Type    string // the provider's word, "" when the body cannot be read
	Body    []byte // the message's raw bytes, or its signed fields where the scheme signs no bytes
}

// Acknowledgement is the body a provider expects with a 200.
type Acknowledgement struct {
	ContentType string
	Body        string
}

// Event is one notification in the words of this package. Exactly one of
// Refund, Dispute or neither is set; Charge holds what the provider said of the
// charge with it, at least its references and money; with a refund it may be no
// more than the provider's Reference, by which Lookup finds the rest.
type Event struct {
	// Status is what became of the charge, "" for an event about a refund or a dispute.
	Status  Status
	Charge  Charge
	Refund  *Refund
	Dispute *Dispute
}

var (
	// ErrEventIgnored says that the notification's type means nothing here.
	ErrEventIgnored = errors.New("psp: event type of no interest")
	// ErrEventInvalid says that a verified notification cannot be understood.
	ErrEventInvalid = errors.New("psp: event cannot be understood")
)

// Webhooks is a provider's side of receiving: verify at intake, parse when applying.
type Webhooks interface {
	// Verify checks the signature on the raw bytes before anything is parsed.
	// It returns ErrSignature, or at least one notification; it never fails
	// because of the content of a signed body. It does no IO.
	Verify(d Delivery) ([]Notification, error)
	// Parse returns ErrEventIgnored, ErrEventInvalid, or the event. It does no IO.
	Parse(n Notification) (Event, error)
	Acknowledge() Acknowledgement
}
