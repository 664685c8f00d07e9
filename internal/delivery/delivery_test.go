package delivery_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
)

// server is a merchant's server: it answers with the next of its statuses, the
// last one for ever.
type server struct {
	statuses []int
	err      error
	got      []delivery.Message
}

func (s *server) Post(_ context.Context, m delivery.Message) (int, error) {
	s.got = append(s.got, m)
	if s.err != nil {
		return 0, s.err
	}
	status := s.statuses[0]
	if len(s.statuses) > 1 {
		s.statuses = s.statuses[1:]
	}
	return status, nil
}

type world struct {
	t       *testing.T
	now     time.Time
	table   *payments.Table
	server  *server
	service *delivery.Service
	meter   counters
}

// counters is a meter that remembers.
type counters map[string]int64

func (c counters) Count(name string, n int64) { c[name] += n }

func newWorld(t *testing.T, statuses ...int) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC), server: &server{statuses: statuses}, meter: counters{}}
	clock := func() time.Time { return w.now }
	w.table = payments.New(memory.New(memory.Options{Now: clock}))
	n := 0
	w.service = &delivery.Service{
		Store: w.table, Poster: w.server, IdempotencyTTL: 24 * time.Hour, Now: clock, Meter: w.meter,
		NewSecret: func() payment.Secret { n++; return payment.Secret("whsec_" + string(rune('a'+n))) },
		Spread:    func(d time.Duration) time.Duration { return d }, Log: slog.New(slog.DiscardHandler),
	}
	return w
}

const subject = "pay_01M8NMNTP8PBAY5NFWEAWXN6KQ"

// event commits a payment of alpha and returns the event of its first row.
func (w *world) event(id string) outbox.Event {
	w.t.Helper()
	p, row := payment.NewSent(payment.Terms{
		ID: payment.ID(id), MerchantID: "alpha", Amount: money.Amount{Minor: 500, Currency: "JPY"}, CaptureMethod: payment.CaptureAutomatic,
		PaymentMethod: "tok", PSP: "simulator", ExpiresAt: w.now.Add(time.Hour),
	}, w.now)
	if err := w.table.Commit(w.t.Context(), journal.Change{After: p, Row: row, Source: journal.SourceAPI}); err != nil {
		w.t.Fatal(err)
	}
	e, err := w.table.Event(w.t.Context(), outbox.EventID(id, 1))
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *world) endpoint(types ...string) {
	w.t.Helper()
	if _, _, err := w.service.SetEndpoint(w.t.Context(), "alpha", "https://shop.example/hook", types); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) announce(e outbox.Event) {
	w.t.Helper()
	if err := w.service.Announce(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deliver(e outbox.Event) delivery.Delivery {
	w.t.Helper()
	if err := w.service.Deliver(w.t.Context(), "alpha", e.ID); err != nil {
		w.t.Fatal(err)
	}
	d, err := w.table.Delivery(w.t.Context(), "alpha", e.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func request(key string) delivery.Request {
	return delivery.Request{Scope: idempotency.Scope{MerchantID: "alpha", Method: "POST", Route: "/r", Key: key}, Fingerprint: "f"}
}

func TestAnEventIsDeliveredOnceHoweverOftenItIsAnnounced(t *testing.T) {
	w := newWorld(t, 204)
	w.endpoint(delivery.AllTypes)
	e := w.event(subject)
	w.announce(e)
	w.announce(e)
	d := w.deliver(e)
	if d.Status != delivery.StatusSucceeded || !d.DueAt.IsZero() || len(w.server.got) != 1 {
		t.Fatalf("got %+v after %d posts, want one success", d, len(w.server.got))
	}
	w.announce(e)
	if d := w.deliver(e); d.Attempts != 1 {
		t.Errorf("got %d attempts after a late announcement, want 1", d.Attempts)
	}
	m := w.server.got[0]
	var body map[string]any
	if err := json.Unmarshal(m.Body, &body); err != nil || body["id"] != e.ID || m.ID != e.ID || body["type"] != "payment.created" {
		t.Errorf("got message %s with body %s (%v), want the event under its own id", m.ID, m.Body, err)
	}
}

func TestOnlyWantedTypesAreDelivered(t *testing.T) {
	w := newWorld(t, 200)
	w.endpoint("payment.captured")
	e := w.event(subject)
	w.announce(e)
	if _, err := w.table.Delivery(t.Context(), "alpha", e.ID); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("got %v, want no delivery", err)
	}
}

// Events that are sent again may be older than the endpoint.
func TestWhatHappenedBeforeTheEndpointIsInTheFeedAlone(t *testing.T) {
	w := newWorld(t, 200)
	e := w.event(subject)
	w.now = w.now.Add(time.Millisecond)
	w.endpoint(delivery.AllTypes)
	w.announce(e)
	if _, err := w.table.Delivery(t.Context(), "alpha", e.ID); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("got %v, want no delivery", err)
	}
}

func TestAFailureIsTriedAgainLaterAndLater(t *testing.T) {
	w := newWorld(t, 500, 302, 200)
	w.endpoint(delivery.AllTypes)
	e := w.event(subject)
	w.announce(e)
	var last time.Duration
	for range 2 {
		d := w.deliver(e)
		pause := d.DueAt.Sub(w.now)
		if d.Status != delivery.StatusPending || pause <= last {
			t.Fatalf("got %s and a pause of %s after %s, want it pending and longer", d.Status, pause, last)
		}
		last, w.now = pause, d.DueAt
	}
	if d := w.deliver(e); d.Status != delivery.StatusSucceeded || d.Attempts != 3 || d.Log[1].Status != 302 {
		t.Errorf("got %+v, want a success at the third attempt", d)
	}
}

func TestAnEndpointThatOnlyFailsIsDisabledAfterThreeDaysAndCanBeSetAgain(t *testing.T) {
	w := newWorld(t)
	w.server.err = errors.New("no connection")
	w.endpoint(delivery.AllTypes)
	e := w.event(subject)
	w.announce(e)
	var d delivery.Delivery
	for n := 0; n == 0 || d.Status == delivery.StatusPending; n++ {
		if n > 60 {
			t.Fatal("still pending after 60 attempts, want it given up")
		}
		if d = w.deliver(e); d.Status == delivery.StatusPending {
			w.now = d.DueAt
		}
	}
	endpoint, err := w.table.Endpoint(t.Context(), "alpha")
	if err != nil || !endpoint.Disabled || d.Status != delivery.StatusFailed || w.now.Sub(d.CreatedAt) < delivery.GiveUpAfter {
		t.Fatalf("got %+v %+v (%v), want it given up and disabled after three days", endpoint, d, err)
	}
	if w.meter[delivery.MetricDisabled] != 1 || len(d.Log) > 20 {
		t.Errorf("got %d alarms and %d logged attempts, want 1 and at most 20", w.meter[delivery.MetricDisabled], len(d.Log))
	}
	if _, _, err := w.service.Redeliver(t.Context(), request("k"), e.ID); !errors.Is(err, delivery.ErrDisabled) {
		t.Errorf("got %v, want ErrDisabled", err)
	}
	w.endpoint(delivery.AllTypes)
	w.server.err, w.server.statuses = nil, []int{200}
	for range 2 { // the second is a repeat
		if _, _, err := w.service.Redeliver(t.Context(), request("k"), e.ID); err != nil {
			t.Fatal(err)
		}
	}
	if d := w.deliver(e); d.Status != delivery.StatusSucceeded || d.Wake != 1 {
		t.Errorf("got %+v, want one more round that succeeds", d)
	}
}

func TestRotationSignsWithBothSecretsForADay(t *testing.T) {
	w := newWorld(t, 200)
	w.endpoint(delivery.AllTypes)
	first, err := w.table.Endpoint(t.Context(), "alpha")
	if err != nil {
		t.Fatal(err)
	}
	rotated, secret, _, err := w.service.RotateSecret(t.Context(), request("k"))
	if err != nil || secret == "" || secret == first.Secret {
		t.Fatalf("got a secret that is none (%v)", err)
	}
	again, shown, replayed, err := w.service.RotateSecret(t.Context(), request("k"))
	if err != nil || shown != "" || !replayed || again.Secret != rotated.Secret {
		t.Errorf("a repeat rotated again or showed the secret (%v)", err)
	}
	if got := rotated.Secrets(w.now); len(got) != 2 || got[0] != secret || got[1] != first.Secret {
		t.Errorf("got %d secrets, want the new and the old one", len(got))
	}
	if got := rotated.Secrets(w.now.Add(delivery.SecretOverlap)); len(got) != 1 {
		t.Errorf("got %d secrets after the overlap, want 1", len(got))
	}
}

// The feed pages over the end of a month, in order, and begins after an event.
func TestTheFeedIsReadInOrderAcrossMonths(t *testing.T) {
	w := newWorld(t, 200)
	var want []string
	for i, id := range []string{"pay_0000000000000000000000000A", "pay_0000000000000000000000000B", "pay_0000000000000000000000000C"} {
		e := w.event(id)
		w.announce(e)
		want = append(want, e.ID)
		if i == 0 {
			w.now = w.now.Add(2 * time.Minute) // the next month
		} else {
			w.now = w.now.Add(time.Second)
		}
	}
	var got []string
	q := delivery.FeedQuery{MerchantID: "alpha", From: w.now.Add(-time.Hour), To: w.now, Limit: 1}
	for range 10 {
		events, next, err := w.table.Feed(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			got = append(got, e.ID)
		}
		if q.Cursor = next; next == "" {
			break
		}
	}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
	first, err := w.table.Event(t.Context(), want[0])
	if err != nil {
		t.Fatal(err)
	}
	q.Cursor, q.Limit = payments.FeedAfter("alpha", first), 10
	if rest, _, err := w.table.Feed(t.Context(), q); err != nil || len(rest) != 2 {
		t.Errorf("got %d events after the first (%v), want 2", len(rest), err)
	}
	if other, _, err := w.table.Feed(t.Context(), delivery.FeedQuery{MerchantID: "beta", From: w.now.Add(-time.Hour), To: w.now, Limit: 10}); err != nil || len(other) != 0 {
		t.Errorf("got %d events of another merchant (%v), want none", len(other), err)
	}
}

func TestRedeliveringATimeMakesItsEventsPendingOnce(t *testing.T) {
	w := newWorld(t, 200)
	w.endpoint(delivery.AllTypes)
	e := w.event(subject)
	w.announce(e)
	w.deliver(e)
	q := delivery.FeedQuery{MerchantID: "alpha", From: w.now.Add(-time.Hour), To: w.now, Limit: 10}
	for range 2 {
		n, _, _, err := w.service.RedeliverRange(t.Context(), request("range"), q)
		if err != nil || n != 1 {
			t.Fatalf("got %d (%v), want 1 event", n, err)
		}
	}
	if d := w.deliver(e); d.Wake != 1 || d.Attempts != 2 {
		t.Errorf("got %+v, want one more round", d)
	}
}

func TestAnotherMerchantsEventIsNotRedelivered(t *testing.T) {
	w := newWorld(t, 200)
	e := w.event(subject)
	if _, _, err := w.service.SetEndpoint(t.Context(), "beta", "https://b.example", []string{"*"}); err != nil {
		t.Fatal(err)
	}
	r := request("k")
	r.Scope.MerchantID = "beta"
	if _, _, err := w.service.Redeliver(t.Context(), r, e.ID); !errors.Is(err, delivery.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
