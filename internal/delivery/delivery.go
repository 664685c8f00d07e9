package delivery

import (
	"errors"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
)

// Status is where a delivery stands.
type Status string

// Statuses of a delivery.
const (
	StatusPending   Status = "pending"
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed" // given up; it can be redelivered
)

const (
	// GiveUpAfter is how long an endpoint may fail without a success.
	GiveUpAfter = 72 * time.Hour
	// SecretOverlap is how long the secret before a rotation is still signed with.
	SecretOverlap = 24 * time.Hour
	// maxLog bounds the attempts that a delivery remembers, newest last.
	maxLog = 20
	// firstPause and lastPause bound the pause between two attempts, which doubles.
	firstPause = 10 * time.Second
	lastPause  = 4 * time.Hour
)

// AllTypes in an endpoint's Events stands for every type.
const AllTypes = "*"

// Endpoint is where a merchant wants its events.
type Endpoint struct {
	MerchantID string
	URL        string
	Events     []string // types, or AllTypes
	Secret     payment.Secret
	// Previous is signed with beside Secret until PreviousUntil.
	Previous      payment.Secret
	PreviousUntil time.Time
	Disabled      bool
	Version       int64
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Wants reports whether an event is to be delivered: not one from before the endpoint,
// which comes when events are sent again.
func (e Endpoint) Wants(event outbox.Event) bool {
	return !e.Disabled && !event.At.Before(e.CreatedAt) && (slices.Contains(e.Events, AllTypes) || slices.Contains(e.Events, event.Type))
}

// Secrets are what a message is signed with at now, current first.
func (e Endpoint) Secrets(now time.Time) []payment.Secret {
	if e.Previous != "" && now.Before(e.PreviousUntil) {
		return []payment.Secret{e.Secret, e.Previous}
	}
	return []payment.Secret{e.Secret}
}

// Attempt is one post of a delivery.
type Attempt struct {
	At     time.Time
	Status int    // HTTP status, 0 when there was no answer
	Reason string // our words when there was none
}

// Delivery is one event on its way to the merchant's endpoint.
type Delivery struct {
	Event     outbox.Event
	Status    Status
	Attempts  int
	Log       []Attempt
	CreatedAt time.Time // of this round: a redelivery begins a new one
	DueAt     time.Time
	Wake      int64 // counts rounds
}

// ID names a delivery within its merchant: it is the event's.
func (d Delivery) ID() string { return d.Event.ID }

// posted is d after an attempt at now.
func (d Delivery) posted(a Attempt, jitter func(time.Duration) time.Duration) Delivery {
	d.Attempts++
	d.Log = append(slices.Clone(d.Log), a)
	if len(d.Log) > maxLog {
		d.Log = d.Log[len(d.Log)-maxLog:]
	}
	switch {
	case a.Status >= 200 && a.Status < 300:
		d.Status, d.DueAt = StatusSucceeded, time.Time{}
	case a.At.Sub(d.CreatedAt) >= GiveUpAfter:
		d.Status, d.DueAt = StatusFailed, time.Time{}
	default:
		d.DueAt = a.At.Add(jitter(pauseAfter(d.Attempts)))
	}
	return d
}

func pauseAfter(attempts int) time.Duration {
	pause := firstPause
	for n := 1; n < attempts && pause < lastPause; n++ {
		pause *= 2
	}
	return min(pause, lastPause)
}

var (
	// ErrNoEndpoint says that the merchant has set no endpoint.
	ErrNoEndpoint = errors.New("delivery: no endpoint")
	// ErrDisabled says that the endpoint is disabled: set it again first.
	ErrDisabled = errors.New("delivery: endpoint is disabled")
	// ErrNotFound says that there is no such event or delivery of this merchant.
	ErrNotFound = errors.New("delivery: not found")
)
