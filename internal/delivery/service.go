package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
)

// Store keeps endpoints, feeds and deliveries.
type Store interface {
	// Endpoint reads consistently, or returns ErrNoEndpoint.
	Endpoint(ctx context.Context, merchantID string) (Endpoint, error)
	// SaveEndpoint writes an endpoint whose version is still Version-1, with the
	// claim of a request if there is one, or returns a *journal.Conflict.
	SaveEndpoint(ctx context.Context, e Endpoint, claim *idempotency.Claim) error
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
	// read (Seen nil: there was none), with the claim of a request if there is one,
	// or returns a *journal.Conflict.
	SaveDelivery(ctx context.Context, seen *Delivery, next Delivery, claim *idempotency.Claim) error
	// Record reads an idempotency record consistently, or returns idempotency.ErrNoRecord.
	Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error)
	// Remember writes the claim of a request whose work is done and may be done
	// again, or returns a *journal.Conflict.
	Remember(ctx context.Context, claim idempotency.Claim) error
}

// Request is what every changing call carries.
type Request struct {
	Scope       idempotency.Scope
	Fingerprint string // of the decoded request
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

// maxRaces bounds how often a request decides anew after losing a race.
const maxRaces = 8

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
	Store          Store
	Poster         Poster
	IdempotencyTTL time.Duration
	NewSecret      func() payment.Secret
	Now            func() time.Time
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
	if errors.Is(err, ErrNoEndpoint) || err == nil && !endpoint.Wants(e) {
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
	gone := err != nil || endpoint.Disabled
	err = s.Store.SaveDelivery(ctx, &d, next, nil)
	if err != nil && !lost(err) {
		return fmt.Errorf("save delivery of %s: %w", eventID, err)
	}
	if err == nil && next.Status == StatusFailed {
		s.Log.InfoContext(ctx, "event given up", named(next)...)
	}
	if next.Status == StatusFailed && !gone {
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
		s.Log.Log(ctx, levelOf(d), "event not delivered", append(named(d), "reason", a.Reason)...)
	case status < 200 || status > 299:
		s.Meter.Count(MetricRefused, 1)
		s.Log.Log(ctx, levelOf(d), "event refused", append(named(d), "status", status)...)
	default:
		s.Meter.Count(MetricDelivered, 1)
	}
	return a
}

// levelOf is how loud a failed attempt is: the first says that something is wrong, and
// the many after it, for days, would bury what else the log says.
func levelOf(d Delivery) slog.Level {
	if d.Attempts > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// named is a delivery in a log line.
func named(d Delivery) []any {
	subject := "subject"
	if payment.ID(d.Event.Subject).WellFormed() {
		subject = "payment_id"
	}
	return []any{"event_id", d.Event.ID, subject, d.Event.Subject, "merchant_id", d.Event.MerchantID, "attempts", d.Attempts}
}

// disable stops an endpoint that only failed. Its merchant sets it again when it works.
func (s *Service) disable(ctx context.Context, e Endpoint) error {
	e.Disabled = true
	e.Version++
	e.UpdatedAt = s.Now()
	err := s.Store.SaveEndpoint(ctx, e, nil)
	if lost(err) {
		return nil // the merchant has just set it anew
	}
	if err == nil {
		s.Meter.Count(MetricDisabled, 1)
		s.Log.ErrorContext(ctx, "endpoint disabled", "merchant_id", e.MerchantID)
	}
	return err
}

// SetEndpoint sets where a merchant wants which events, and enables it. secret is
// "" unless it is the first: then it is made here and shown once.
func (s *Service) SetEndpoint(ctx context.Context, merchantID, url string, types []string) (Endpoint, payment.Secret, error) {
	for range maxRaces {
		e, err := s.Store.Endpoint(ctx, merchantID)
		now, secret := s.Now(), payment.Secret("")
		switch {
		case errors.Is(err, ErrNoEndpoint):
			secret = s.NewSecret()
			e = Endpoint{MerchantID: merchantID, Secret: secret, CreatedAt: now}
		case err != nil:
			return Endpoint{}, "", err
		}
		e.URL, e.Events, e.Disabled, e.UpdatedAt = url, types, false, now
		e.Version++
		if err = s.Store.SaveEndpoint(ctx, e, nil); !lost(err) {
			return e, secret, err
		}
	}
	return Endpoint{}, "", journal.ErrBusy
}

// RotateSecret makes a new secret; messages are signed with both for
// SecretOverlap. A repeat gets the endpoint without the secret, which nobody has
// any more. Errors: ErrNoEndpoint, idempotency.ErrKeyReused.
func (s *Service) RotateSecret(ctx context.Context, r Request) (e Endpoint, secret payment.Secret, replayed bool, err error) {
	for range maxRaces {
		claim, again, err := s.begin(ctx, r)
		if err != nil {
			return Endpoint{}, "", false, err
		}
		e, err := s.Store.Endpoint(ctx, r.Scope.MerchantID)
		if err != nil || again {
			return e, "", again, err
		}
		now := s.Now()
		e.Previous, e.PreviousUntil, e.Secret, e.UpdatedAt = e.Secret, now.Add(SecretOverlap), s.NewSecret(), now
		e.Version++
		if err = s.Store.SaveEndpoint(ctx, e, claim); !lost(err) {
			return e, e.Secret, false, err
		}
	}
	return Endpoint{}, "", false, journal.ErrBusy
}

// begin is the claim of a request, or that it was done before.
func (s *Service) begin(ctx context.Context, r Request) (claim *idempotency.Claim, again bool, err error) {
	claim, done, err := idempotency.Begin(ctx, s.Store, idempotency.Fresh(r.Scope, r.Fingerprint, r.Scope.Route, s.Now()), s.IdempotencyTTL)
	return claim, done != nil, err
}

// lost reports whether somebody else was faster: read again.
func lost(err error) bool {
	_, ok := errors.AsType[*journal.Conflict](err)
	return ok
}

// Redeliver makes the delivery of one event pending again, or for the first
// time. Errors: ErrNotFound, ErrNoEndpoint, ErrDisabled, idempotency.ErrKeyReused.
func (s *Service) Redeliver(ctx context.Context, r Request, eventID string) (d Delivery, replayed bool, err error) {
	for range maxRaces {
		claim, again, err := s.begin(ctx, r)
		if err != nil {
			return Delivery{}, false, err
		}
		if again {
			d, err := s.Store.Delivery(ctx, r.Scope.MerchantID, eventID)
			return d, true, err
		}
		if err := s.open(ctx, r.Scope.MerchantID); err != nil {
			return Delivery{}, false, err
		}
		d, err := s.again(ctx, r.Scope.MerchantID, eventID, claim)
		if !lost(err) {
			return d, false, err
		}
	}
	return Delivery{}, false, journal.ErrBusy
}

// open says whether the merchant has an endpoint that takes deliveries.
func (s *Service) open(ctx context.Context, merchantID string) error {
	endpoint, err := s.Store.Endpoint(ctx, merchantID)
	if err == nil && endpoint.Disabled {
		err = ErrDisabled
	}
	return err
}

func (s *Service) again(ctx context.Context, merchantID, eventID string, claim *idempotency.Claim) (Delivery, error) {
	now := s.Now()
	seen, err := s.Store.Delivery(ctx, merchantID, eventID)
	if errors.Is(err, ErrNotFound) {
		e, err := s.Store.Event(ctx, eventID)
		if err != nil || e.MerchantID != merchantID {
			return Delivery{}, ErrNotFound
		}
		d := Delivery{Event: e, Status: StatusPending, CreatedAt: now, DueAt: now}
		return d, s.Store.SaveDelivery(ctx, nil, d, claim)
	}
	if err != nil {
		return Delivery{}, err
	}
	next := seen
	next.Status, next.CreatedAt, next.DueAt = StatusPending, now, now
	next.Wake++
	return next, s.Store.SaveDelivery(ctx, &seen, next, claim)
}

// RedeliverRange redelivers a page of a merchant's events of a time, for an
// operator. It returns how many, and where to go on; a repeat does it once more
// only if its first one broke off.
func (s *Service) RedeliverRange(ctx context.Context, r Request, q FeedQuery) (n int, cursor string, replayed bool, err error) {
	claim, again, err := s.begin(ctx, r)
	if err != nil {
		return 0, "", false, err
	}
	events, cursor, err := s.Store.Feed(ctx, q)
	if err != nil || again {
		return len(events), cursor, again, err
	}
	if err := s.open(ctx, q.MerchantID); err != nil {
		return 0, "", false, err
	}
	for _, e := range events {
		if _, err := s.again(ctx, q.MerchantID, e.ID, nil); err != nil && !lost(err) {
			return 0, "", false, fmt.Errorf("redeliver %s: %w", e.ID, err)
		}
	}
	if err := s.Store.Remember(ctx, *claim); err != nil && !lost(err) {
		return 0, "", false, err
	}
	return len(events), cursor, false, nil
}

// TypeTest is the type of a test message. It is about nothing, and in no feed.
const TypeTest = "endpoint.test"

// Test posts a test message to the merchant's endpoint and says how it went. It
// changes nothing. Errors: ErrNoEndpoint.
func (s *Service) Test(ctx context.Context, merchantID, id string) (Attempt, error) {
	endpoint, err := s.Store.Endpoint(ctx, merchantID)
	if err != nil {
		return Attempt{}, err
	}
	now := s.Now()
	e := outbox.Event{ID: "evt_test_" + id, Type: TypeTest, Subject: "test", Version: 1, At: now, Source: "api", MerchantID: merchantID, Data: map[string]any{}}
	return s.post(ctx, endpoint, Delivery{Event: e}), nil
}
