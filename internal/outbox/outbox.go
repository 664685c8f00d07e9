package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Event is one journal row on its way out. It holds nothing secret.
type Event struct {
	ID         string // deterministic: subject and version
	Type       string // such as payment.captured
	Subject    string // id of the payment or checkout
	Version    int64
	At         time.Time // UTC
	Source     string    // api, webhook, saga or reconciler
	MerchantID string
	CheckoutID string // the checkout concerned, "" when there is none
	Status     string // of the subject, after the event
	Data       map[string]any

	// Again counts how often it was brought back into the stream. It is no part of
	// what leaves.
	Again int64
}

// EventID is the id of the event of a row: the same wherever the row is seen.
func EventID(subject string, version int64) string {
	return fmt.Sprintf("evt_%s_%d", subject, version)
}

// ParseEventID is the reverse of EventID; ok is false for anything else.
func ParseEventID(id string) (subject string, version int64, ok bool) {
	body, found := strings.CutPrefix(id, "evt_")
	at := strings.LastIndexByte(body, '_')
	if !found || at < 1 {
		return "", 0, false
	}
	version, err := strconv.ParseInt(body[at+1:], 10, 64)
	if err != nil || version < 1 || EventID(body[:at], version) != id {
		return "", 0, false
	}
	return body[:at], version, true
}

// Schema is the version of an event's form: infra/events/event.schema.json.
const Schema = 1

// Body is the event as the outside sees it, on the bus and in a merchant's webhook.
func (e Event) Body() ([]byte, error) {
	return json.Marshal(struct {
		ID         string         `json:"id"`
		Object     string         `json:"object"`
		Schema     int            `json:"schema"`
		Type       string         `json:"type"`
		Subject    string         `json:"subject"`
		Version    int64          `json:"version"`
		At         time.Time      `json:"at"`
		Source     string         `json:"source"`
		MerchantID string         `json:"merchant_id"`
		Data       map[string]any `json:"data"`
	}{e.ID, "event", Schema, e.Type, e.Subject, e.Version, e.At.UTC(), e.Source, e.MerchantID, e.Data})
}

// Publisher hands events to the bus.
type Publisher interface {
	// Publish returns one error for each event, in their order, nil where it was
	// taken. Safe to repeat.
	Publish(ctx context.Context, events []Event) []error
}

// Sagas are woken by news of their payment.
type Sagas interface {
	Begin(ctx context.Context, checkoutID string) error
	Wake(ctx context.Context, checkoutID string) error
}

// Announcer tells a merchant of its events.
type Announcer interface {
	// Announce puts an event into its merchant's feed and on its way. Safe to repeat.
	Announce(ctx context.Context, e Event) error
}

// Relay carries events out. Safe for concurrent use.
type Relay struct {
	Publisher Publisher
	Sagas     Sagas
	Merchants Announcer // nil: nobody is told
}

// Carry tells the merchants, wakes the sagas concerned, and publishes: in that
// order, so that whoever hears of an event finds it in its merchant's feed. It
// returns one error for each event, in their order. Safe to repeat.
func (r *Relay) Carry(ctx context.Context, events []Event) []error {
	told := make([]error, len(events))
	for i, e := range events {
		told[i] = errors.Join(r.announce(ctx, e), r.wake(ctx, e))
	}
	errs := r.Publisher.Publish(ctx, events)
	for i := range errs {
		errs[i] = errors.Join(errs[i], told[i])
	}
	return errs
}

func (r *Relay) announce(ctx context.Context, e Event) error {
	if r.Merchants == nil {
		return nil
	}
	return r.Merchants.Announce(ctx, e)
}

// wake starts an execution where an event needs one: the first of a new
// checkout, in case nobody came to start it, and another when a payment or its
// refund has ended, or when the customer must act and the merchant does not know
// yet. What a saga did itself is no news to it.
func (r *Relay) wake(ctx context.Context, e Event) error {
	switch {
	case e.CheckoutID == "" || e.Source == "saga":
		return nil
	case e.Type == "checkout.created":
		return r.Sagas.Begin(ctx, e.CheckoutID)
	case strings.HasPrefix(e.Type, "checkout."):
		return nil
	case news(e):
		return r.Sagas.Wake(ctx, e.CheckoutID)
	}
	return nil
}

// news reports whether an event is what an open checkout waits for.
func news(e Event) bool {
	switch e.Type {
	case "payment.requires_action", "payment.captured", "payment.failed", "payment.canceled", "refund.succeeded", "refund.failed":
		return true
	}
	return false
}
