/*
Package bootstrap puts the house together: it reads the environment, and it wires
rules, flows, stores and adapters into the handlers that the functions start. It
is the only reader of the environment among the packages of the product.

Core wires what every way of running shares; the one-process run and each Lambda
function build on it, so that all three run the same flows. A function's own file
wires no more than that function needs: what it does not import is not in its zip.
*/
package bootstrap

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/console"
	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/delivery/webhookclient"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Core is what every flow needs.
type Core struct {
	Payments  *payments.Table
	Providers map[string]psp.Provider
	Webhooks  map[string]psp.Webhooks // nil value: known, but has no secret
	Durations Durations
	// LocalEndpoints lets merchants' endpoints be on this machine and without TLS.
	LocalEndpoints bool
	Now            func() time.Time
	NewULID        func() string
	Meter          Meter
	Log            *slog.Logger
}

// Clock is the system's time in UTC, in milliseconds as the store keeps it.
func Clock() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// ULIDs makes unique ids that rise within a process.
func ULIDs(now func() time.Time) func() string {
	var mu sync.Mutex
	entropy := ulid.Monotonic(rand.Reader, 0)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		id, err := ulid.New(ulid.Timestamp(now()), entropy)
		if err != nil { // the millisecond's ids are used up: start its run anew
			entropy = ulid.Monotonic(rand.Reader, 0)
			id = ulid.MustNew(ulid.Timestamp(now()), entropy)
		}
		return id.String()
	}
}

// Policy is what due dates and next steps of a payment depend on.
func (c Core) Policy(name string) payment.Policy {
	pol := payment.Policy{PSPTimeout: c.Durations.PSPTimeout, ReconcileAfter: c.Durations.ReconcileAfter}
	if p := c.Providers[name]; p != nil {
		capabilities := p.Capabilities()
		pol.KeyLifetime, pol.AuthoritativeLookup = capabilities.KeyLifetime, capabilities.AuthoritativeLookup
	}
	return pol
}

// Journal is the door to payments.
func (c Core) Journal() *journal.Journal {
	return &journal.Journal{Store: c.Payments, Policy: c.Policy, Now: c.Now, Pause: pause, Meter: c.Meter, Log: c.Log}
}

// Charges is the service that talks to the PSPs.
func (c Core) Charges() *charge.Service {
	return &charge.Service{
		Journal: c.Journal(), Store: c.Payments, Providers: c.Providers, Policy: c.Policy,
		Leases: &lease.Leases{Store: c.Payments, TTL: c.Durations.LeaseTTL, Now: c.Now, Meter: c.Meter},
		Settings: charge.Settings{
			IdempotencyTTL: c.Durations.IdempotencyTTL, InProgressTTL: c.Durations.InProgressTTL, PaymentExpiry: c.Durations.PaymentExpiry,
		},
		NewULID: c.NewULID, Now: c.Now, Spread: spread, Meter: c.Meter, Log: c.Log,
	}
}

// Ingest takes webhooks in.
func (c Core) Ingest() *webhook.Ingest {
	return &webhook.Ingest{Providers: c.Webhooks, Inbox: c.Payments, Settings: c.webhookSettings(), Now: c.Now, Meter: c.Meter}
}

// Applier applies webhooks.
func (c Core) Applier(charges *charge.Service) *webhook.Applier {
	return &webhook.Applier{
		Providers: c.Webhooks, Inbox: c.Payments, Reader: c.Payments, Payments: charges.Journal, Follower: charges,
		Settings: c.webhookSettings(), Now: c.Now, Spread: spread, Meter: c.Meter, Log: c.Log,
	}
}

// Checkouts makes checkouts and starts their executions. Notices is needed by
// the sweep only.
func (c Core) Checkouts(starter checkout.Starter, notices checkout.Notices) *checkout.Service {
	return &checkout.Service{
		Store: c.Payments, Starter: starter, Notices: notices, Policy: c.Policy,
		Settings: checkout.Settings{
			IdempotencyTTL: c.Durations.IdempotencyTTL, InProgressTTL: c.Durations.InProgressTTL,
			PaymentExpiry: c.Durations.PaymentExpiry, ReconcileAfter: c.Durations.ReconcileAfter,
		},
		NewULID: c.NewULID, Now: c.Now, Spread: spread, Pause: pause, Meter: c.Meter, Log: c.Log,
	}
}

// SagaStep serves the payment steps of the saga.
func (c Core) SagaStep(stock checkout.Stock) checkout.Handler {
	return checkout.Handler{Saga: &checkout.Saga{Service: c.Checkouts(nil, nil), Payments: c.Charges(), Stock: stock}}
}

// Sweeper finishes what nobody finished.
func (c Core) Sweeper(charges *charge.Service, checkouts *checkout.Service) *reconcile.Sweeper {
	applier, deliveries, recoverer := c.Applier(charges), c.Deliveries(), c.Recoverer()
	return &reconcile.Sweeper{
		Index: c.Payments, Now: c.Now, Meter: c.Meter, Log: c.Log,
		Repairs: map[reconcile.Kind]reconcile.Repair{
			reconcile.KindPayment: func(ctx context.Context, id string) error {
				_, err := charges.Drive(ctx, payment.ID(id), journal.SourceReconciler)
				return err
			},
			reconcile.KindWebhook: func(ctx context.Context, id string) error {
				name, eventID, _ := strings.Cut(id, "#")
				return applier.Apply(ctx, name, eventID)
			},
			reconcile.KindCheckout: checkouts.Repair,
			reconcile.KindDelivery: func(ctx context.Context, id string) error {
				merchantID, eventID, _ := strings.Cut(id, "#")
				return deliveries.Deliver(ctx, merchantID, eventID)
			},
			reconcile.KindHeartbeat: c.Pulse().Beat,
			reconcile.KindRecovery:  func(ctx context.Context, _ string) error { return recoverer.Recover(ctx) },
		},
	}
}

// Sweep is the schedule's handler.
type Sweep struct {
	Sweeper *reconcile.Sweeper
	Pulse   *outbox.Pulse
	Log     *slog.Logger
}

// Handle runs one sweep. Its report is the function's result. The process's first one
// makes the heartbeats, if nobody has; a sweep without them is better than none.
func (s *Sweep) Handle(ctx context.Context) (reconcile.Report, error) {
	if err := s.Pulse.Start(ctx); err != nil {
		s.Log.WarnContext(ctx, "no heartbeats", "reason", err.Error())
	}
	return s.Sweeper.Sweep(ctx)
}

// Told says whether the buyer of a checkout was notified.
type Told struct{ Notices *notification.Participant }

// Told reads the notifications of a checkout.
func (t Told) Told(ctx context.Context, merchantID, checkoutID string) (bool, error) {
	sent, err := t.Notices.ListByCheckout(ctx, merchantID, checkoutID)
	return len(sent) > 0, err
}

func (c Core) webhookSettings() webhook.Settings {
	return webhook.Settings{ReconcileAfter: c.Durations.ReconcileAfter, Wait: c.Durations.PaymentExpiry}
}

// First and last bound of the pause between two attempts at one payment. The
// first is about one trip to the store.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// pause waits before attempt n, with full jitter between nothing and a bound
// that doubles.
func pause(ctx context.Context, n int) error {
	bound := lastPause
	if n < 6 {
		bound = min(lastPause, firstPause<<(n-1))
	}
	timer := time.NewTimer(below(bound))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spread is d and up to a fifth more, so that what fell due together does not
// stay together.
func spread(d time.Duration) time.Duration { return d + below(d/5) }

// below is a random duration from 0 up to, but not including, bound.
func below(bound time.Duration) time.Duration {
	if bound <= 0 {
		return 0
	}
	n, err := rand.Int(rand.Reader, big.NewInt(int64(bound)))
	if err != nil {
		return bound / 2
	}
	return time.Duration(n.Int64())
}

// Deliveries brings merchants their events.
func (c Core) Deliveries() *delivery.Service {
	return &delivery.Service{
		Store: c.Payments, Poster: webhookclient.New(c.LocalEndpoints), IdempotencyTTL: c.Durations.IdempotencyTTL, NewSecret: webhookclient.NewSecret,
		Now: c.Now, Spread: spread, Meter: c.Meter, Log: c.Log,
	}
}

// Merchants makes merchants and keys.
func (c Core) Merchants(prefix string) *merchant.Service {
	return &merchant.Service{
		Store: c.Payments, IdempotencyTTL: c.Durations.IdempotencyTTL, KeyPrefix: prefix,
		NewULID: c.NewULID, NewSecret: merchant.NewSecret, Now: c.Now,
	}
}

// Shop is what checkouts are made of, for whoever shows or starts them.
type Shop struct {
	Checkouts *checkout.Service
	Stock     *inventory.Participant
	Orders    *order.Participant
	Notices   *notification.Participant
}

// Audit compares what is here with the PSPs, as far as they can be asked, and with the shop.
func (c Core) Audit(charges *charge.Service, shop Shop) *audit.Service {
	listers := map[string]audit.Lister{}
	for name, p := range c.Providers {
		if l, ok := p.(audit.Lister); ok {
			listers[name] = l
		}
	}
	return &audit.Service{
		Store: c.Payments, Charges: charges, Providers: c.Providers, Listers: listers, Webhooks: c.Webhooks, Applier: c.Applier(charges),
		Checkouts: shop.Checkouts, Orders: shop.Orders, Stock: shop.Stock,
		IdempotencyTTL: c.Durations.IdempotencyTTL, ReconcileAfter: c.Durations.ReconcileAfter, NewULID: c.NewULID, Now: c.Now, Meter: c.Meter, Log: c.Log,
	}
}

// API is the merchant API over its flows.
func (c Core) API(charges *charge.Service, shop Shop, merchants *merchant.Service, defaultPSP string) *api.Handler {
	return api.New(api.Config{
		Charges: charges, Lists: c.Payments, Inbox: c.Payments, Merchants: merchants,
		Checkouts: shop.Checkouts, CheckoutLists: c.Payments,
		Stock: shop.Stock, Orders: shop.Orders, Notifications: shop.Notices,
		Deliveries: c.Deliveries(), Recovery: c.Recoverer(), Feed: c.Payments, CheckEndpoint: webhookclient.New(c.LocalEndpoints).CheckURL,
		Reconciliations: c.Audit(charges, shop), ReconciliationLists: c.Payments,
		Settings: api.Settings{
			DefaultPSP: defaultPSP, PSPs: slices.Sorted(maps.Keys(c.Providers)),
			IdempotencyTTL: c.Durations.IdempotencyTTL, Webhooks: c.webhookSettings(),
		},
		Now: c.Now, Log: c.Log,
	})
}

// Console is the operator's pages.
func (c Core) Console(checkouts *checkout.Service, keys func(context.Context) ([]string, error), insecure bool) *console.Handler {
	return console.New(console.Config{
		Table: c.Payments, Checkouts: checkouts, Keys: keys, Webhooks: c.webhookSettings(),
		NewULID: c.NewULID, Now: c.Now, Log: c.Log, Insecure: insecure,
	})
}
