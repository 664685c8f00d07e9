/*
Package webhook takes notifications of PSPs in and applies them.

Intake (Ingest) verifies the raw bytes, puts one inbox item if it is absent, and
lets the PSP be answered, whatever the rest of the system does. Applying (Apply)
is driven by the table's stream and by the sweep: at least once, in any order.

An item is received, then applied, ignored (its type means nothing here) or
quarantined (with an alarm; an operator replays it). What fails and what then:

  - The payment does not exist yet, or the event comes too early: the item stays
    received, is tried again with back-off, and quarantined after Settings.Wait.
  - Money or references disagree, or the body cannot be understood: quarantined
    at once. Nothing is captured.
  - Anything else fails: tried again with back-off, quarantined after maxAttempts.
  - The worker dies after the payment changed and before the item did: applying
    again is old news, and the item ends applied.

What it does not do: it does not ask the PSP anything.
*/
package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Status is where an inbox item stands.
type Status string

// Statuses of an inbox item.
const (
	StatusReceived    Status = "received"
	StatusApplied     Status = "applied"
	StatusIgnored     Status = "ignored"
	StatusQuarantined Status = "quarantined"
)

// Statuses lists every Status once.
func Statuses() []Status {
	return []Status{StatusReceived, StatusApplied, StatusIgnored, StatusQuarantined}
}

// Item is one notification in the inbox.
type Item struct {
	PSP        string
	EventID    string // the PSP's, or derived from its content
	Type       string // the PSP's word
	Body       []byte // raw; never logged
	Status     Status
	PaymentID  payment.ID // once known
	Reason     string     // why it was quarantined or ignored; our words
	ReceivedAt time.Time
	WaitUntil  time.Time // how long it may wait for its payment
	Attempts   int
	DueAt      time.Time // when the sweep looks at it, zero when at rest
	Wake       int64     // counts what asks for applying anew: redeliveries, replays
}

// ID is the item's id for operators. It is made of PSP and event id.
func (it Item) ID() string {
	return idPrefix + base64.RawURLEncoding.EncodeToString([]byte(it.PSP+"\x00"+it.EventID))
}

// Read is what the item says, by its PSP's adapter, with the errors of its Parse.
func (it Item) Read(provider psp.Webhooks) (psp.Event, error) {
	return provider.Parse(psp.Notification{EventID: it.EventID, Type: it.Type, Body: it.Body})
}

const idPrefix = "wh_"

// ParseID is the reverse of Item.ID; ok is false for anything else.
func ParseID(id string) (psp, eventID string, ok bool) {
	encoded, found := strings.CutPrefix(id, idPrefix)
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if !found || err != nil {
		return "", "", false
	}
	return strings.Cut(string(raw), "\x00")
}

var (
	// ErrNotFound says that there is no such inbox item.
	ErrNotFound = errors.New("webhook: no such item")
	// ErrUnknownPSP says that no provider of that name is known.
	ErrUnknownPSP = errors.New("webhook: unknown psp")
)

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of webhooks.
const (
	MetricQuarantined = "WebhookQuarantined" // an operator should look
	MetricRefused     = "WebhookRefused"     // signature missing, wrong, stale or future
	MetricDuplicate   = "WebhookDuplicate"   // a delivery seen before
)

// Inbox keeps items.
type Inbox interface {
	// Receive puts an item if it is absent, in one trip. When it is there
	// already, fresh is false, and one that is still received is woken.
	Receive(ctx context.Context, it Item) (fresh bool, err error)
	// Item reads consistently, or returns ErrNotFound.
	Item(ctx context.Context, psp, eventID string) (Item, error)
	// Save writes the status, payment, reason, attempts and due date of an item
	// that is still received; another is left alone, without error.
	Save(ctx context.Context, it Item) error
}
