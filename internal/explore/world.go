package explore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

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
	rows     *table // payments
	table    *payments.Table

	charges *charge.Service
	ingest  *webhook.Ingest
	applier *webhook.Applier
	sweeper *reconcile.Sweeper
	shop    *shop // of a scenario with checkouts

	actors  []*actor
	spawned []*actor // to be started
	current *actor
	clock   *actor
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

func newWorld(s *Scenario, reached map[string]int) *world {
	w := &world{
		scenario: s, now: start, psp: psptest.NewFake(provider), rows: newTable(), reached: reached,
		sendings: map[string]sent{}, keyOwner: map[string]string{}, published: map[string]int{}, acked: map[string]bool{}, keys: map[string]time.Time{}, defect: map[string]any{}, ids: 900_000,
	}
	w.psp.Promise(psp.Capabilities{KeyLifetime: keyLifetime, AuthoritativeLookup: !s.PSP.Blind})
	w.rows.committed = w.watch
	w.wire()
	if s.Before != nil {
		s.Before(w)
	}
	for i, a := range s.Actors() {
		a.id = i + 1
		w.actors = append(w.actors, a)
	}
	for _, a := range w.actors {
		a.start(w)
	}
	return w
}

// wire is the wiring of the product over the ports of the explorer. A mutant puts
// its defect in between.
func (w *world) wire() {
	var table store.Table = &tablePort{w: w, name: "payments", table: w.rows}
	var way psp.Provider = &pspPort{w: w, fake: w.psp}
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
	w.charges.Journal.Pause = func(context.Context, int) error { return nil }
	if m != nil && m.Policy != nil {
		policy := w.charges.Policy
		changed := func(name string) payment.Policy { return m.Policy(policy(name)) }
		w.charges.Policy, w.charges.Journal.Policy = changed, changed
	}
	w.ingest = core.Ingest()
	w.applier = core.Applier(w.charges)
	w.applier.Spread = unspread
	if w.scenario.Shop != nil {
		w.shop = newShop(w, core)
	}
	w.sweeper = core.Sweeper(w.charges, w.checkouts(core))
	if m != nil && m.Wire != nil {
		m.Wire(w)
	}
}

func (w *world) core(way psp.Provider) bootstrap.Core {
	return bootstrap.Core{
		Payments: w.table, Durations: durations, Now: w.time, Meter: w, Log: slog.New(slog.DiscardHandler),
		Providers: map[string]psp.Provider{provider: way}, Webhooks: map[string]psp.Webhooks{provider: w.psp},
		NewULID: w.ulid,
	}
}

func (w *world) time() time.Time { return w.now }

func unspread(d time.Duration) time.Duration { return d }

// ulid is the next id of whoever runs. It depends on that actor alone.
func (w *world) ulid() string {
	if a := w.current; a != nil {
		a.ids++
		return ulid(a.id*1000 + a.ids)
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
	h := uint64(fnvBasis)
	for _, c := range w.psp.Charges() {
		h = mix(h*fnvPrime ^ digestCharge(c))
	}
	for _, c := range w.psp.Calls() {
		if c.Arrived && !c.Replayed && c.Operation != psptest.OperationLookup {
			h = digestString(h, c.Key)
		}
	}
	w.pspDigest = h
	w.checkMoney()
	w.checkDeadCharges()
}

// advance lets time go by. The provider forgets its keys when the last is over.
func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	if !w.lastKey.IsZero() && !w.now.Before(w.lastKey.Add(keyLifetime)) {
		w.psp.ForgetKeys()
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
		w.sendings[s.subject] = first
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
	w.keyOwner[s.key] = s.subject
}

// newAttempt allows another key where the former has a final answer: a capture or
// a void that was refused.
func (w *world) newAttempt(s sending, first sent) bool {
	for _, c := range w.psp.Calls() {
		if c.Key == first.key && psp.OutcomeOf(c.Err) == psp.OutcomeRejected && c.Err != nil {
			w.sendings[s.subject] = sent{s.key, s.minor, w.now}
			return true
		}
	}
	return false
}

// digest is the whole world as one number, without its actors.
func (w *world) digest() uint64 {
	h := digestNumber(w.rows.digest, w.now.UnixMilli())
	h = mix(h ^ w.pspDigest*fnvPrime)
	for _, f := range w.air {
		h = digestString(h, f.name)
	}
	for _, e := range w.queue {
		h = digestString(h, e.ID)
	}
	for _, c := range w.stream {
		h = mix(h*fnvPrime ^ digestItem(c.Key, c.New))
	}
	for id, n := range w.published {
		h += mix(digestStrings("published", id) + uint64(min(n, 1)))
	}
	for id := range w.acked {
		h += mix(digestStrings(id))
	}
	for subject, s := range w.sendings { // in no order: a sum
		h += mix(digestNumber(digestStrings(subject, s.key), s.first.UnixMilli()))
	}
	if w.shop != nil {
		h = w.shop.digest(h)
	}
	return mix(h)
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
