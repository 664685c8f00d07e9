package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// The cast of the scenarios: each is one invocation of a function, or something
// outside of the product.

// when is what an actor waits for before it starts.
type when func(w *world) bool

// process is an actor that starts when something holds, nil for at any time.
func process(name string, at when, body func(w *world)) *actor {
	return &actor{name: name, body: func(w *world) {
		if at != nil {
			w.do(&call{
				name: func() string { return "starts" }, guard: at, private: w.scenario.Timeless, waits: true, run: nothing, digest: plainly,
			})
		}
		body(w)
	}}
}

// outside is an actor that is no process of ours: it does one thing at a time, and
// nothing goes wrong with it.
func outside(name string, at when, what string, do func(w *world)) *actor {
	return &actor{name: name, exempt: true, body: func(w *world) {
		w.do(&call{
			waits: true, name: func() string { return what }, guard: at, digest: plainly,
			run: func(w *world) any {
				do(w)
				return nil
			},
		})
	}}
}

func nothing(*world) any { return nil }

func plainly(any) uint64 { return 1 }

func anyTime(*world) bool { return true }

// terms are a payment's terms as a client sends them.
type terms struct {
	token     string
	manual    bool
	reference string
}

func request(route, key, content string) charge.Request {
	return charge.Request{
		Scope:       idempotency.Scope{MerchantID: merchant, Method: "POST", Route: route, Key: key},
		Fingerprint: idempotency.Fingerprint([]byte(content)),
	}
}

// pay is a client's request for a payment.
func pay(name, key string, o terms, at when) *actor {
	return process(name, at, func(w *world) { w.pay(name, key, o) })
}

func (w *world) pay(name, key string, o terms) {
	w.effect("asks with "+key, func(w *world) {
		if used, again := w.keys[key]; !again || w.now.Sub(used) >= durations.IdempotencyTTL {
			w.wanted++
			w.keys = with(w.keys, key, w.now)
		}
	})
	method := payment.CaptureAutomatic
	if o.manual {
		method = payment.CaptureManual
	}
	r, err := w.charges.Create(background(), charge.CreateRequest{
		Request: request("/v1/payments", key, fmt.Sprint(o)),
		Terms: payment.Terms{
			MerchantID: merchant, Amount: money.Amount{Minor: amount, Currency: "JPY"}, CaptureMethod: method,
			PaymentMethod: payment.Secret(o.token), Reference: o.reference, ReturnURL: "https://shop.example/return", PSP: provider,
		},
	})
	a := answer{actor: name, key: "create " + key, payment: r.Payment, err: err, replayed: r.Replayed}
	w.effect(a.says(), func(w *world) {
		a := a
		if m := w.scenario.mutant; m != nil && m.Answer != nil && err == nil {
			a.payment = m.Answer(w, a.payment, key)
		}
		w.checkAnswer(a)
	})
}

// first is the payment that was made first, and whether there is one.
func (w *world) first() (payment.ID, bool) {
	least := ""
	for key := range w.rows.rows {
		if id, ok := cutState(key); ok && (least == "" || id < least) {
			least = id
		}
	}
	return payment.ID(least), least != ""
}

// firstSeen is first for an actor.
func (w *world) firstSeen() payment.ID {
	return look(w, func(w *world) payment.ID {
		id, _ := w.first()
		return id
	}, func(id payment.ID) uint64 { return digestStrings(string(id)) })
}

// tell is the answer to a client.
func (w *world) tell(a answer) { w.effect(a.says(), func(w *world) { w.checkAnswer(a) }) }

// status is the status of a payment as it is stored.
func (w *world) status(id payment.ID) payment.Status {
	return payment.Status(text(w.rows.rows[store.Key{PK: "PAYMENT#" + string(id), SK: "STATE"}], "status"))
}

func paymentExists(w *world) bool { _, ok := w.first(); return ok }

// paymentIs holds once the first payment is in one of the statuses.
func paymentIs(statuses ...payment.Status) when {
	return func(w *world) bool {
		id, ok := w.first()
		return ok && slices.Contains(statuses, w.status(id))
	}
}

// ended holds once the actor of that name has answered or died.
func ended(name string) when {
	return func(w *world) bool {
		return slices.ContainsFunc(w.actors, func(s standing) bool { return s.at.actor.name == name && s.over })
	}
}

func cancel(at when) *actor {
	const name, key = "cancel", "c"
	return process(name, at, func(w *world) {
		id := w.firstSeen()
		r, err := w.charges.Cancel(background(), charge.CancelRequest{Request: request("/v1/payments/"+string(id)+"/cancel", key, ""), PaymentID: id})
		w.tell(answer{actor: name, key: "cancel " + key, payment: r.Payment, err: err, replayed: r.Replayed})
	})
}

func capture(name, key string, minor int64, at when) *actor {
	return process(name, at, func(w *world) {
		id := w.firstSeen()
		r, err := w.charges.Capture(background(), charge.CaptureRequest{
			Request: request("/v1/payments/"+string(id)+"/capture", key, fmt.Sprint(minor)), PaymentID: id, Amount: minor,
		})
		w.tell(answer{actor: name, key: "capture " + key, payment: r.Payment, err: err, replayed: r.Replayed})
	})
}

func refund(name, key string, minor int64, at when) *actor {
	return process(name, at, func(w *world) {
		id := w.firstSeen()
		r, err := w.charges.Refund(background(), charge.RefundRequest{
			Request: request("/v1/payments/"+string(id)+"/refunds", key, fmt.Sprint(minor)), PaymentID: id, Amount: minor, Reason: "wish",
		})
		w.tell(answer{actor: name, key: "refund " + key, payment: r.Payment, refund: r.RefundID, err: err, replayed: r.Replayed})
	})
}

// hook is the delivery of the oldest event that the provider has to tell, through
// intake and application. Two of them deliver in any order.
func hook(name string) *actor {
	return &actor{name: name, body: func(w *world) {
		e, _ := w.do(&call{
			waits: true, name: func() string { return "takes an event" }, guard: func(w *world) bool { return len(w.queue) > 0 },
			private: w.scenario.Private != nil,
			run: func(w *world) any {
				e := w.queue[0]
				w.queue = w.queue[1:]
				return e
			},
			digest: digestEvent,
		}).(psptest.Event)
		w.deliver(e)
	}}
}

func digestEvent(answer any) uint64 {
	e, _ := answer.(psptest.Event)
	return digestStrings(e.ID, e.Type)
}

// again is a delivery of the n-th event that was told, which others may have delivered.
func again(name string, n int) *actor {
	return &actor{name: name, body: func(w *world) {
		e, _ := w.do(&call{
			waits: true, name: func() string { return "takes an event again" }, guard: func(w *world) bool { return len(w.told) > n },
			run: func(w *world) any { return w.told[n] }, digest: digestEvent,
		}).(psptest.Event)
		w.deliver(e)
	}}
}

func (w *world) deliver(e psptest.Event) {
	if _, err := w.ingest.Receive(background(), provider, w.delivery(e, w.time())); err != nil {
		return // no acknowledgement: it comes again
	}
	w.effect(e.ID, func(w *world) { w.acked = with(w.acked, e.ID, true) })
	_ = w.applier.Apply(background(), provider, e.ID)
}

// sweep is one sweep of what is due. An empty shard is no point at which anything
// could differ.
func sweep(name string) *actor {
	return process(name, somethingDue, func(w *world) {
		for shard := w.nextShard(0); shard >= 0; shard = w.nextShard(shard + 1) {
			page, _, err := w.table.DuePage(background(), shard, w.time(), 50, "")
			if err != nil {
				continue
			}
			for _, due := range page {
				w.repair(background(), due)
			}
		}
	})
}

// nextShard is the first shard from one on that holds anything, -1 for none.
func (w *world) nextShard(from int) int {
	return look(w, func(w *world) int {
		for shard := from; shard < w.plain().Shards(); shard++ {
			if w.dueIn(shard) {
				return shard
			}
		}
		return -1
	}, func(shard int) uint64 { return digestNumber(fnvBasis, int64(shard)) })
}

func somethingDue(w *world) bool {
	at, ok := w.nextDue()
	return ok && !at.After(w.now)
}

// dueIn reports whether a shard of the index holds anything.
func (w *world) dueIn(shard int) bool {
	page, _, err := w.plain().DuePage(background(), shard, w.now, 1, "")
	return err == nil && len(page) > 0
}

// clock lets time go by, step by step, between whatever else happens.
func clock(steps ...time.Duration) *actor {
	return clockWhen(func(w *world) bool { return !w.scenario.Bounded || w.quiet() }, steps...)
}

// clockWhen is clock, but each step waits until something holds.
func clockWhen(at when, steps ...time.Duration) *actor {
	return &actor{name: clockName, exempt: true, body: func(w *world) {
		for _, d := range steps {
			w.do(&call{
				name: func() string { return "+" + d.String() }, guard: at,
				run: func(w *world) any {
					w.pass(d)
					return nil
				},
				digest: plainly,
			})
		}
	}}
}

const clockName = "clock"

// longestLife is longer than any invocation lives, frozen or not, and than any
// request is on its way.
const longestLife = 12 * time.Hour

// pass lets time go by beside the actors.
func (w *world) pass(d time.Duration) {
	if d >= longestLife {
		w.air = nil
		for i, s := range w.actors {
			if s.at.actor.name != clockName && !s.over && !s.at.pending.waits {
				w.actors[i].over = true
			}
		}
	}
	w.advance(d)
}

// idle holds while nobody else can do anything.
func idle(w *world) bool {
	return len(w.air) == 0 && !slices.ContainsFunc(w.actors, func(s standing) bool { return s.at.actor.name != clockName && w.runnable(s) })
}

// quiet reports whether nothing is on its way to the provider.
func (w *world) quiet() bool {
	return len(w.air) == 0 && !slices.ContainsFunc(w.actors, func(s standing) bool { return !s.over && s.at.pending.sends })
}

// approval is the customer who does what the provider waits for.
func approval() *actor {
	waiting := func(w *world) bool {
		return slices.ContainsFunc(w.psp.Charges(), func(c psp.Charge) bool { return c.Status == psp.StatusRequiresAction })
	}
	return outside("customer", waiting, "approves", func(w *world) {
		for _, c := range w.psp.Charges() {
			w.provider().Approve(c.PaymentID)
		}
		w.happened()
	})
}

// lateMoney is a provider that captures whatever was said before.
func lateMoney(at when) *actor {
	return outside("provider", at, "captures late", func(w *world) {
		w.lying = true
		for _, c := range w.psp.Charges() {
			w.provider().CaptureLate(c.PaymentID)
		}
		w.happened()
	})
}

// stranger is another merchant who knows the payment's id.
func stranger(at when) *actor {
	return process("stranger", at, func(w *world) {
		id := w.firstSeen()
		r := request("/v1/payments/"+string(id), "k", "")
		r.Scope.MerchantID = "m_beta"
		_, readErr := w.charges.Payment(background(), "m_beta", id)
		_, cancelErr := w.charges.Cancel(background(), charge.CancelRequest{Request: r, PaymentID: id})
		w.effect([]error{readErr, cancelErr}, func(w *world) {
			for _, err := range []error{readErr, cancelErr} {
				// S-SCOPE: a merchant's payments are nobody else's business.
				if err == nil || errors.Is(err, charge.ErrCaptured) || errors.Is(err, charge.ErrInvalidStatus) {
					w.violate("S-SCOPE", "another merchant is told of %s: %v", id, err)
				}
			}
		})
	})
}
