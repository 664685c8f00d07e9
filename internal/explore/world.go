package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

const (
	provider = "simulator"
	merchant = "m_alpha"
	amount   = int64(5000)
)

// durations are the documented defaults.
var durations = bootstrap.Durations{
	IdempotencyTTL: 24 * time.Hour, InProgressTTL: 30 * time.Second, LeaseTTL: 30 * time.Second, PSPTimeout: 10 * time.Second,
	PaymentExpiry: 30 * time.Minute, ReconcileAfter: time.Minute, ReconcileEvery: time.Minute, WebhookTolerance: 5 * time.Minute,
}

// keyLifetime is how long the provider remembers a key.
const keyLifetime = 24 * time.Hour

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is one house with everything in it, wired as the product wires it.
type world struct {
	scenario *Scenario
	now      time.Time
	psp      *psptest.Fake
	pspTwin  bool   // psp is another world's too
	rows     *table // payments
	table    *payments.Table

	charges *charge.Service
	ingest  *webhook.Ingest
	applier *webhook.Applier
	sweeper *reconcile.Sweeper
	api     *api.Handler
	shop    *shop // of a scenario with checkouts

	life    *life  // whose own world this is; nil: a world that is explored
	current *actor // of the process
	actors  []standing
	spawned []*actor // to be put in
	mover   string   // whose step it is
	air     []inFlight
	queue   []psptest.Event // told by the provider, not delivered yet
	told    []psptest.Event // everything it ever told
	stream  []store.Change  // of scenarios that relay

	pspDigest uint64
	ids       int // of recoveries
	answers   []answer
	sendings  map[string]sent
	keyOwner  map[string]string
	lastKey   time.Time // when a key last arrived at the provider
	lastMade  time.Time // when a charge was last made there
	published map[string]int
	keys      map[string]time.Time // of clients, and when each was first used
	wanted    int                  // payments that clients asked for
	acked     map[string]bool      // events that the provider need not send again
	person    bool                 // somebody was called, in a recovery
	lying     bool                 // the provider did what it had said it would not

	defect     map[string]any // what a mutant remembers
	violations []Violation
	trace      *[]string
	reached    map[string]int
}

// inFlight is a call that arrives late.
type inFlight struct {
	name string
	land func(w *world)
}

// sending is one call that moves money: what it is for, and with which key.
type sending struct {
	subject string
	key     string
	minor   int64
}

// sent is what is known of all sendings for one subject.
type sent struct {
	key   string
	minor int64
	first time.Time
}

// answer is what a client was told.
type answer struct {
	actor    string
	key      string
	payment  payment.Payment
	refund   payment.RefundID
	err      error
	replayed bool
	at       time.Time
}

// says is all of it that is looked at.
func (a answer) says() string {
	raw, err := json.Marshal(a.payment.View())
	return fmt.Sprint(a.key, a.payment.ID, a.payment.Version, a.refund, a.err, a.replayed, string(raw), err)
}

// newWorld is the world before the scenario begins.
func newWorld(s *Scenario, reached map[string]int) *world {
	w := ownWorld(s, reached)
	w.rows.committed, w.rows.leaked = w.watch, w.checkLeak
	if w.shop != nil {
		w.shop.open()
	}
	if s.Before != nil {
		s.Before(w)
	}
	return w
}

// ownWorld is the wiring of a process over a world that is empty.
func ownWorld(s *Scenario, reached map[string]int) *world {
	w := &world{scenario: s, now: start, psp: psptest.NewFake(provider), rows: newTable(), reached: reached, ids: 900_000}
	w.psp.Promise(psp.Capabilities{KeyLifetime: keyLifetime, AuthoritativeLookup: !s.PSP.Blind})
	if s.Shop != nil {
		w.shop = newShop(w)
	}
	w.wire()
	return w
}

// clone is the same world once more, with a life of its own. It is not wired.
func (w *world) clone() *world {
	c := *w
	w.pspTwin, c.pspTwin = true, true
	c.rows = w.rows.clone()
	c.rows.committed, c.rows.leaked = c.watch, c.checkLeak
	if w.shop != nil {
		c.shop = w.shop.clone(&c)
	}
	c.actors = slices.Clone(w.actors)
	// Whoever adds to these in one of the two worlds makes a copy.
	c.air, c.queue, c.told, c.stream, c.answers = slices.Clip(w.air), slices.Clip(w.queue), slices.Clip(w.told), slices.Clip(w.stream), slices.Clip(w.answers)
	w.air, w.queue, w.told, w.stream, w.answers = c.air, c.queue, c.told, c.stream, c.answers
	return &c
}

// provider is the provider of this world alone.
func (w *world) provider() *psptest.Fake {
	if w.pspTwin {
		w.psp, w.pspTwin = w.psp.Clone(), false
	}
	return w.psp
}

// with is a map that worlds share with one more entry.
func with[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[K]V{}
	}
	m[key] = value
	return m
}

// wire is the wiring of the product over the ports of the explorer. A mutant puts
// its defect in between.
func (w *world) wire() {
	var table store.Table = &tablePort{w: w, name: "payments"}
	var way psp.Provider = &pspPort{w: w}
	m := w.scenario.mutant
	if m != nil && m.Table != nil {
		table = m.Table(w, table)
	}
	if m != nil && m.Provider != nil {
		way = m.Provider(w, way)
	}
	w.table = payments.New(table)
	core := w.core(way)
	w.charges = core.Charges()
	w.charges.Spread = unspread
	w.charges.Journal.Pause = unpaused
	if m != nil && m.Policy != nil {
		policy := w.charges.Policy
		changed := func(name string) payment.Policy { return m.Policy(policy(name)) }
		w.charges.Policy, w.charges.Journal.Policy = changed, changed
	}
	w.ingest = core.Ingest()
	w.applier = core.Applier(w.charges)
	w.applier.Spread = unspread
	if w.shop != nil {
		w.shop.wire(core)
	}
	w.sweeper = core.Sweeper(w.charges, w.checkouts(core))
	w.sweeper.Repairs[reconcile.KindWebhook] = func(ctx context.Context, id string) error {
		name, eventID, _ := strings.Cut(id, "#")
		return w.applier.Apply(ctx, name, eventID) // without the jitter of another
	}
	w.api = core.API(w.charges, bootstrap.Shop{}, nil, provider)
	if m != nil && m.Wire != nil {
		m.Wire(w)
	}
}

func (w *world) core(way psp.Provider) bootstrap.Core {
	return bootstrap.Core{
		Payments: w.table, Durations: durations, Now: w.time, Meter: w, Log: w.logger(),
		Providers: map[string]psp.Provider{provider: way}, Webhooks: w.webhooks(),
		NewULID: w.ulid,
	}
}

// time is the product's clock.
func (w *world) time() time.Time {
	if w.life != nil {
		w.life.timed = true
	}
	return w.now
}

func unspread(d time.Duration) time.Duration { return d }

func unpaused(context.Context, int) error { return nil }

// ulid is the next id of whoever runs. It depends on that actor alone.
func (w *world) ulid() string {
	if p := w.life; p != nil {
		p.ids++
		return ulid(w.current.id*1000 + p.ids)
	}
	w.ids++
	return ulid(w.ids)
}

func ulid(n int) string { return fmt.Sprintf("01KDYAK348M9S346Q3D2%06d", n) }

// Count makes the world the meter of the flows: a metric is a state that was reached.
func (w *world) Count(name string, n int64) {
	w.reached[name] += int(n)
	w.person = w.person || name == charge.MetricNeedsPerson && w.current == nil
}

func (w *world) reach(name string) { w.reached[name]++ }

// happened takes what the provider has told since the last time.
func (w *world) happened() {
	events := w.psp.Drain()
	w.queue = append(w.queue, events...)
	w.told = append(w.told, events...)
	w.pspDigest = digestProvider(w.psp, w.told)
	w.checkMoney()
	w.checkDeadCharges()
}

// advance lets time go by. The provider forgets its keys when the last is over.
func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	if !w.lastKey.IsZero() && !w.now.Before(w.lastKey.Add(keyLifetime)) {
		w.provider().ForgetKeys()
		w.pspDigest = digestProvider(w.psp, w.told)
		w.reach("key expired at the psp")
	}
}

// blind reports whether a look-up does not see yet what was made a moment ago.
func (w *world) blind() bool {
	return w.scenario.PSP.Blind && !w.lastMade.IsZero() && w.now.Sub(w.lastMade) < durations.PSPTimeout
}

// noteSending holds each call that moves money to its key: one key for what it is
// for, used for nothing else, and never past half its life.
func (w *world) noteSending(s sending) {
	w.lastKey = w.now
	if s.subject[:6] == "charge" {
		w.lastMade = w.now
	}
	first, again := w.sendings[s.subject]
	switch {
	case !again:
		first = sent{s.key, s.minor, w.now}
		w.sendings = with(w.sendings, s.subject, first)
	case first.key != s.key && !w.newAttempt(s, first):
		w.violate("S-KEY-STABLE", "%s was sent with key %s and then %s", s.subject, short(first.key), short(s.key))
	case first.minor != s.minor && first.key == s.key:
		w.violate("S-AMOUNT-FIXED", "%s was sent with %d and then %d", s.subject, first.minor, s.minor)
	case w.now.Sub(first.first) >= keyLifetime/2:
		w.violate("S-KEY-WINDOW", "%s was sent again %s after it was first sent", s.subject, w.now.Sub(first.first))
	}
	if owner, used := w.keyOwner[s.key]; used && owner != s.subject {
		w.violate("S-KEY-STABLE", "key %s was used for %s and for %s", short(s.key), owner, s.subject)
	}
	w.keyOwner = with(w.keyOwner, s.key, s.subject)
}

// newAttempt allows another key where the former has a final answer: a capture or
// a void that was refused.
func (w *world) newAttempt(s sending, first sent) bool {
	for _, c := range w.psp.Calls() {
		if c.Key == first.key && psp.OutcomeOf(c.Err) == psp.OutcomeRejected && c.Err != nil {
			w.sendings = with(w.sendings, s.subject, sent{s.key, s.minor, w.now})
			return true
		}
	}
	return false
}

// payments are all payments as they are stored.
func (w *world) payments() []payment.Payment {
	var all []payment.Payment
	for key := range w.rows.rows {
		if id, ok := cutState(key); ok {
			all = append(all, w.payment(payment.ID(id)))
		}
	}
	slices.SortFunc(all, func(a, b payment.Payment) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	return all
}

// plain is the table past all ports and defects.
func (w *world) plain() *payments.Table { return payments.New(w.rows) }

// payment reads a payment past all ports.
func (w *world) payment(id payment.ID) payment.Payment {
	p, err := w.plain().Payment(background(), id)
	if err != nil {
		return payment.Payment{}
	}
	return p
}
