package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
)

// Store keeps endpoints, feeds and deliveries.
type Store interface {
	// Endpoint reads consistently, or returns ErrNoEndpoint.
	Endpoint(ctx context.Context, merchantID string) (Endpoint, error)
	// SaveEndpoint writes an endpoint whose version is still Version-1, or returns ErrConflict.
	SaveEndpoint(ctx context.Context, e Endpoint) error
	// AddToFeed puts an event into its merchant's feed. Safe to repeat.
	AddToFeed(ctx context.Context, e outbox.Event) error
	// Feed reads a merchant's events after a position, oldest first.
	Feed(ctx context.Context, q FeedQuery) ([]outbox.Event, string, error)
	// Event reads the event of a journal row, or returns ErrNotFound.
	Event(ctx context.Context, eventID string) (outbox.Event, error)
	// AddDelivery puts a delivery if there is none for its event.
	AddDelivery(ctx context.Context, d Delivery) error
	// Delivery reads consistently, or returns ErrNotFound.
	Delivery(ctx context.Context, merchantID, eventID string) (Delivery, error)
	// SaveDelivery writes a delivery whose round and attempts are still what was
	// read, or returns ErrConflict.
	SaveDelivery(ctx context.Context, seen, next Delivery) error
}

// FeedQuery selects events of a merchant's feed.
type FeedQuery struct {
	MerchantID string
	From, To   time.Time // To zero: until now
	Cursor     string
	Limit      int
}

// Poster posts a signed message. An error means that there was no answer.
type Poster interface {
	Post(ctx context.Context, m Message) (status int, err error)
}

// Message is what is posted.
type Message struct {
	URL     string
	ID      string
	At      time.Time
	Body    []byte
	Secrets []payment.Secret // signed with each
}

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of deliveries.
const (
	MetricDelivered = "MerchantEventDelivered"
	MetricRefused   = "MerchantEventRefused"     // an attempt brought no 2xx
	MetricDisabled  = "MerchantEndpointDisabled" // an endpoint failed for GiveUpAfter
)

// Service announces and delivers. Safe for concurrent use; every call is safe to repeat.
type Service struct {
	Store     Store
	Poster    Poster
	NewSecret func() payment.Secret
	Now       func() time.Time
	// Spread adds jitter to a pause: between it and a fifth more.
	Spread func(time.Duration) time.Duration
	Meter  Meter
	Log    *slog.Logger
}

// Announce puts an event into its merchant's feed and makes its delivery if the
// endpoint wants it.
func (s *Service) Announce(ctx context.Context, e outbox.Event) error {
	if e.MerchantID == "" {
		return nil
	}
	if err := s.Store.AddToFeed(ctx, e); err != nil {
		return fmt.Errorf("add %s to the feed: %w", e.ID, err)
	}
	endpoint, err := s.Store.Endpoint(ctx, e.MerchantID)
	if errors.Is(err, ErrNoEndpoint) || err == nil && !endpoint.Wants(e.Type) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read endpoint of %s: %w", e.MerchantID, err)
	}
	now := s.Now()
	return s.Store.AddDelivery(ctx, Delivery{Event: e, Status: StatusPending, CreatedAt: now, DueAt: now.Add(firstPause)})
}

// Deliver posts one delivery that is pending, and notes how it went. Another
// worker's note is left alone. An error means that the store gave no answer.
func (s *Service) Deliver(ctx context.Context, merchantID, eventID string) error {
	d, err := s.Store.Delivery(ctx, merchantID, eventID)
	if errors.Is(err, ErrNotFound) || err == nil && d.Status != StatusPending {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read delivery of %s: %w", eventID, err)
	}
	endpoint, err := s.Store.Endpoint(ctx, merchantID)
	if err != nil && !errors.Is(err, ErrNoEndpoint) {
		return fmt.Errorf("read endpoint of %s: %w", merchantID, err)
	}
	next := d
	if err != nil || endpoint.Disabled {
		next.Status, next.DueAt = StatusFailed, time.Time{} // nobody to tell; the feed has it
	} else {
		next = d.posted(s.post(ctx, endpoint, d), s.Spread)
	}
	if err := s.Store.SaveDelivery(ctx, d, next); err != nil && !errors.Is(err, ErrConflict) {
		return fmt.Errorf("save delivery of %s: %w", eventID, err)
	}
	if next.Status == StatusFailed && err == nil && !endpoint.Disabled {
		return s.disable(ctx, endpoint)
	}
	return nil
}

func (s *Service) post(ctx context.Context, endpoint Endpoint, d Delivery) Attempt {
	now := s.Now()
	body, err := d.Event.Body()
	if err != nil {
		return Attempt{At: now, Reason: "event cannot be written"}
	}
	status, err := s.Poster.Post(ctx, Message{URL: endpoint.URL, ID: d.Event.ID, At: now, Body: body, Secrets: endpoint.Secrets(now)})
	a := Attempt{At: now, Status: status}
	switch {
	case err != nil:
		a.Reason = err.Error()
		s.Meter.Count(MetricRefused, 1)
		s.Log.InfoContext(ctx, "event not delivered", "event_id", d.Event.ID, "payment_id", d.Event.Subject, "reason", a.Reason)
	case status < 200 || status > 299:
		s.Meter.Count(MetricRefused, 1)
		s.Log.InfoContext(ctx, "event refused", "event_id", d.Event.ID, "payment_id", d.Event.Subject, "status", status)
	default:
		s.Meter.Count(MetricDelivered, 1)
	}
	return a
}

// disable stops an endpoint that only failed. Its merchant sets it again when it works.
func (s *Service) disable(ctx context.Context, e Endpoint) error {
	e.Disabled = true
	e.Version++
	e.UpdatedAt = s.Now()
	err := s.Store.SaveEndpoint(ctx, e)
	if errors.Is(err, ErrConflict) {
		return nil // the merchant has just set it anew
	}
	if err == nil {
		s.Meter.Count(MetricDisabled, 1)
		s.Log.ErrorContext(ctx, "endpoint disabled", "merchant_id", e.MerchantID)
	}
	return err
}

// maxRaces bounds how often a request decides anew after losing a race.
const maxRaces = 8

// SetEndpoint sets where a merchant wants which events, and enables it. secret is
// "" unless it is the first: then it is made here and shown once.
func (s *Service) SetEndpoint(ctx context.Context, merchantID, url string, types []string) (e Endpoint, secret payment.Secret, err error) {
	return s.change(ctx, merchantID, func(e *Endpoint, first bool) payment.Secret {
		e.URL, e.Events, e.Disabled = url, types, false
		if !first {
			return ""
		}
		e.Secret = s.NewSecret()
		return e.Secret
	}, true)
}

// RotateSecret makes a new secret; messages are signed with both for
// SecretOverlap. It returns ErrNoEndpoint when there is none.
func (s *Service) RotateSecret(ctx context.Context, merchantID string) (Endpoint, payment.Secret, error) {
	return s.change(ctx, merchantID, func(e *Endpoint, _ bool) payment.Secret {
		e.Previous, e.PreviousUntil = e.Secret, s.Now().Add(SecretOverlap)
		e.Secret = s.NewSecret()
		return e.Secret
	}, false)
}

func (s *Service) change(ctx context.Context, merchantID string, apply func(e *Endpoint, first bool) payment.Secret, create bool) (Endpoint, payment.Secret, error) {
	for range maxRaces {
		e, err := s.Store.Endpoint(ctx, merchantID)
		first := errors.Is(err, ErrNoEndpoint)
		if err != nil && !(first && create) {
			return Endpoint{}, "", err
		}
		now := s.Now()
		if first {
			e = Endpoint{MerchantID: merchantID, CreatedAt: now}
		}
		secret := apply(&e, first)
		e.Version++
		e.UpdatedAt = now
		err = s.Store.SaveEndpoint(ctx, e)
		if !errors.Is(err, ErrConflict) {
			return e, secret, err
		}
	}
	return Endpoint{}, "", ErrConflict
}

// Redeliver makes the delivery of one event pending again, or for the first
// time. Errors: ErrNotFound, ErrNoEndpoint, ErrDisabled.
func (s *Service) Redeliver(ctx context.Context, merchantID, eventID string) (Delivery, error) {
	endpoint, err := s.Store.Endpoint(ctx, merchantID)
	if err != nil {
		return Delivery{}, err
	}
	if endpoint.Disabled {
		return Delivery{}, ErrDisabled
	}
	for range maxRaces {
		d, err := s.again(ctx, merchantID, eventID)
		if !errors.Is(err, ErrConflict) {
			return d, err
		}
	}
	return Delivery{}, ErrConflict
}

func (s *Service) again(ctx context.Context, merchantID, eventID string) (Delivery, error) {
	now := s.Now()
	seen, err := s.Store.Delivery(ctx, merchantID, eventID)
	if errors.Is(err, ErrNotFound) {
		e, err := s.Store.Event(ctx, eventID)
		if err != nil || e.MerchantID != merchantID {
			return Delivery{}, ErrNotFound
		}
		d := Delivery{Event: e, Status: StatusPending, CreatedAt: now, DueAt: now}
		return d, s.Store.AddDelivery(ctx, d)
	}
	if err != nil {
		return Delivery{}, err
	}
	next := seen
	next.Status, next.CreatedAt, next.DueAt = StatusPending, now, now
	next.Wake++
	return next, s.Store.SaveDelivery(ctx, seen, next)
}

// RedeliverRange redelivers a page of a merchant's events of a time. It returns
// how many, and where to go on.
func (s *Service) RedeliverRange(ctx context.Context, q FeedQuery) (n int, cursor string, err error) {
	events, cursor, err := s.Store.Feed(ctx, q)
	if err != nil {
		return 0, "", err
	}
	for _, e := range events {
		if _, err := s.Redeliver(ctx, q.MerchantID, e.ID); err != nil {
			return n, "", fmt.Errorf("redeliver %s: %w", e.ID, err)
		}
		n++
	}
	return n, cursor, nil
}
