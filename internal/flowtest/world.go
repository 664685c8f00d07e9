package flowtest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/store/storetest"
	"github.com/kessai/kessai/internal/webhook"
)

// Names of the PSPs of a world.
const (
	PSP        = "simulator"
	OtherPSP   = "other"
	Secretless = "secretless" // known to the inbox, without a secret
)

// Merchants of a world.
const (
	Merchant      = "m_alpha"
	OtherMerchant = "m_beta"
)

// Durations of a world: the documented defaults.
var Durations = bootstrap.Durations{
	IdempotencyTTL: 24 * time.Hour, InProgressTTL: 30 * time.Second, LeaseTTL: 30 * time.Second, PSPTimeout: 10 * time.Second,
	PaymentExpiry: 30 * time.Minute, ReconcileAfter: time.Minute, ReconcileEvery: time.Minute, WebhookTolerance: 5 * time.Minute,
}

// Arrival is how long a request to a PSP may be on its way.
const Arrival = 15 * time.Second

// Start is where the clock of every world begins.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// World is one house with everything in it. Its methods are for one goroutine;
// what it is made of is safe for concurrent use.
type World struct {
	testing.TB
	Clock *Clock
	PSP   *psptest.Fake // what PSP is
	Other *psptest.Fake // what OtherPSP is
	Line  *Line         // between the flows and PSP
	Store *Store        // between the flows and the table
	Cost  *storetest.Meter
	Table *payments.Table

	Charges *charge.Service
	Ingest  *webhook.Ingest
	Applier *webhook.Applier
	Sweeper *reconcile.Sweeper
	Meter   *Counts
	Logs    *Logs

	// Lies is set by a test whose PSP says what is not so: then what it says is
	// not held against what it did.
	Lies bool

	waiting atomic.Int64 // hooks at the provider that have not run yet
}

// New is a world at Start, without a payment. It is checked when the test ends.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{
		TB: t, Clock: &Clock{at: Start}, PSP: psptest.NewFake(PSP), Other: psptest.NewFake(OtherPSP),
		Meter: &Counts{names: map[string]int64{}}, Logs: &Logs{},
	}
	w.Line = &Line{Provider: w.PSP}
	table := memory.New(memory.Options{Now: w.Clock.Now})
	w.Cost = storetest.NewMeter(table)
	w.Store = newStore(w.Cost, table)
	w.Table = payments.New(w.Store)
	var ids atomic.Int64
	core := bootstrap.Core{
		Payments: w.Table, Durations: Durations, Now: w.Clock.Now, Meter: w.Meter, Log: slog.New(slog.NewJSONHandler(w.Logs, nil)),
		Providers: map[string]psp.Provider{PSP: w.Line, OtherPSP: w.Other},
		Webhooks:  map[string]psp.Webhooks{PSP: w.PSP, OtherPSP: w.Other, Secretless: nil},
		NewULID:   func() string { return ULID(ids.Add(1)) },
	}
	w.Charges = core.Charges()
	w.Charges.Spread = unspread
	w.Charges.Journal.Pause = pause
	w.Ingest = core.Ingest()
	w.Applier = core.Applier(w.Charges)
	w.Applier.Spread = unspread
	w.Sweeper = core.Sweeper(w.Charges, core.Checkouts(nil, nil))
	t.Cleanup(func() {
		if !t.Failed() {
			w.Check()
		}
	})
	return w
}

// Context is the test's, and outlives it for what is checked at the end.
func (w *World) Context() context.Context { return context.WithoutCancel(w.TB.Context()) }

// ULID is the n-th id that a world hands out, from 1.
func ULID(n int64) string { return fmt.Sprintf("01KDYAK348M9S346Q3D2%06d", n) }

// pause is over in less than a moment, of which the world's clock shows nothing: it
// is there for tests in which goroutines race.
func pause(ctx context.Context, n int) error {
	timer := time.NewTimer(rand.N(time.Duration(n) * 200 * time.Microsecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func unspread(d time.Duration) time.Duration { return d }

// Clock stands still until it is moved.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// Now is the time it shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Advance moves it on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// Counts keeps metrics.
type Counts struct {
	mu    sync.Mutex
	names map[string]int64
}

// Count adds n to a metric.
func (c *Counts) Count(name string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[name] += n
}

// Of is a metric's sum.
func (c *Counts) Of(name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[name]
}

// Logs keeps what was logged.
type Logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write appends a line.
func (l *Logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(line)
}

// Text is everything logged so far.
func (l *Logs) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
