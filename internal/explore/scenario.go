package explore

import (
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// Scenarios are all of them.
func Scenarios() []Scenario {
	return slices.Concat(chargeScenarios(), afterScenarios(), checkoutScenarios())
}

// What is asked for: a charge that is captured at once, and one whose customer must act.
var (
	captured = terms{token: psptest.TokenCaptured, reference: "order-42"}
	action   = terms{token: psptest.TokenRequiresAction}
)

// chargeScenarios are about a charge on its way.
func chargeScenarios() []Scenario {
	return []Scenario{
		{Name: "pay", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil)}
		}},
		{Name: "pay declined", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", terms{token: psptest.TokenDeclined, reference: "order-42"}, nil), hook("webhook")}
		}},
		{Name: "pay webhook", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), hook("webhook")}
		}},
		{Name: "pay retry clock", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), pay("retry", "k", captured, paymentExists), clock(31 * time.Second)}
		}},
		{Name: "unanswered webhook", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", terms{token: psptest.TokenTimeoutCaptured}, nil), hook("webhook")}
		}},
		{Name: "pay reconciler", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), clock(31 * time.Minute), sweep("sweep")}
		}},
		{Name: "pay cancel webhook", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), cancel(paymentExists), hook("webhook")}
		}},
		{Name: "pay expiry reconciler webhook", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), clock(31 * time.Minute), sweep("sweep"), hook("webhook")}
		}},
		{Name: "action two webhooks", Actors: func() []*actor {
			return []*actor{pay("api", "k", action, nil), approval(), hook("webhook 1"), hook("webhook 2")}
		}},
		{Name: "action cancel", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", action, nil), approval(), cancel(paymentIs(payment.StatusRequiresAction)), hook("webhook")}
		}},
		{Name: "repeat at once", Timeless: true, Actors: func() []*actor {
			o := terms{token: psptest.TokenCaptured}
			return []*actor{pay("api 1", "k", o, nil), pay("api 2", "k", o, nil)}
		}},
		{Name: "two keys one order", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api 1", "k1", captured, nil), pay("api 2", "k2", captured, nil)}
		}},
		{Name: "cancel in flight", Timeless: true, Bounded: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), cancel(paymentExists)}
		}},
		{Name: "action cancel repeat", Private: inbox, Timeless: true, Bounded: true, Actors: func() []*actor {
			return []*actor{
				pay("api", "k", action, nil), cancel(paymentIs(payment.StatusRequiresAction)),
				pay("repeat", "k", action, paymentIs(payment.StatusRequiresAction, payment.StatusCanceled)), approval(),
			}
		}},
	}
}

// afterScenarios are about what comes after it: refunds, captures, late money, other
// code, other providers.
func afterScenarios() []Scenario {
	return []Scenario{
		{Name: "refund refund webhook", Private: inbox, Timeless: true, Before: func(w *world) { w.prepare(captured) }, Actors: func() []*actor {
			return []*actor{refund("refund 1", "r1", 3000, nil), refund("refund 2", "r2", 3000, nil), hook("webhook")}
		}},
		{Name: "capture cancel", Timeless: true, Before: func(w *world) { w.prepare(terms{token: psptest.TokenCaptured, manual: true}) }, Actors: func() []*actor {
			return []*actor{capture("capture", "p", 3000, nil), cancel(nil)}
		}},
		{Name: "late capture", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{
				pay("api", "k", terms{token: psptest.TokenLateCaptured, reference: "order-42"}, nil),
				cancel(paymentExists), lateMoney(paymentIs(payment.StatusCanceled)), hook("webhook"),
			}
		}},
		{Name: "late capture unheard", Timeless: true, Actors: func() []*actor {
			o := terms{token: psptest.TokenLateCaptured, reference: "order-42"}
			return []*actor{pay("api", "k", o, nil), cancel(paymentExists), lateMoney(paymentIs(payment.StatusCanceled))}
		}},
		{Name: "refund key window", Before: func(w *world) { w.prepare(captured) }, Actors: func() []*actor {
			return []*actor{refund("refund", "r", 3000, nil), clock(61*time.Second, 13*time.Hour), refund("repeat", "r", 3000, ended("refund")), sweep("sweep")}
		}},
		{Name: "two sweeps", Before: func(w *world) { w.prepare(terms{token: psptest.TokenTimeoutNothing}) }, Actors: func() []*actor {
			return []*actor{clock(61*time.Second, 31*time.Second), sweep("sweep"), sweep("sweep 2")}
		}},
		{Name: "key expired", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), clock(25 * time.Hour), pay("retry", "k", captured, ended("api")), sweep("sweep")}
		}},
		{Name: "another merchant", Timeless: true, Private: inbox, Actors: func() []*actor {
			return []*actor{pay("api", "k", action, nil), stranger(paymentExists)}
		}},
		{Name: "old and new code", Timeless: true, Private: inbox, Before: func(w *world) {
			w.prepare(captured)
			id, _ := w.first()
			_ = w.rows.Write(background(), store.Write{Kind: store.Update, Key: store.Key{PK: "PAYMENT#" + string(id), SK: "STATE"}, Set: store.Item{newer: "kept"}})
		}, Actors: func() []*actor {
			return []*actor{refund("refund", "r", 3000, nil), hook("webhook")}
		}},
		{Name: "blind pay expiry reconciler webhook", PSP: Character{Blind: true}, Private: inbox, Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), clock(31 * time.Minute), sweep("sweep"), hook("webhook")}
		}},
		{Name: "blind pay cancel webhook", PSP: Character{Blind: true}, Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), cancel(paymentExists), hook("webhook")}
		}},
		{Name: "outbox relay", Relay: true, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), relay("relay 1"), relay("relay 2")}
		}},
		{Name: "forged webhooks", Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{pay("api", "k", action, nil), approval(), hook("webhook"), forger()}
		}},
		{Name: "card data", Relay: true, Private: inbox, Timeless: true, Actors: func() []*actor {
			return []*actor{shopper(), careless(), hook("webhook"), relay("relay")}
		}},
		{Name: "inbox redelivery sweep", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), hook("webhook"), again("redelivery", 0), clock(2 * time.Minute), sweep("sweep")}
		}},
	}
}

// checkoutScenarios are about the saga and its participants.
func checkoutScenarios() []Scenario {
	return []Scenario{
		{Name: "checkout", Relay: true, Shop: &Shop{Stock: 1}, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api", "k", psptest.TokenCaptured, "order-42")}
		}},
		{Name: "checkout declined", Relay: true, Shop: &Shop{Stock: 1}, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api", "k", psptest.TokenDeclined, "order-42")}
		}},
		{Name: "checkout order refused", Relay: true, Shop: &Shop{Stock: 1, Reject: true}, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api", "k", psptest.TokenCaptured, "order-42")}
		}},
		{Name: "checkout two executions", Relay: true, Shop: &Shop{Stock: 1}, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api", "k", psptest.TokenCaptured, "order-42"), wake("wake", executed)}
		}},
		{Name: "checkout two executions declined", Relay: true, Shop: &Shop{Stock: 1}, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api", "k", psptest.TokenDeclined, "order-42"), wake("wake", executed)}
		}},
		{Name: "checkout merchant refund", Relay: true, Shop: &Shop{Stock: 1}, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api", "k", psptest.TokenCaptured, "order-42"), refund("refund", "r", 0, paymentIs(payment.StatusCaptured))}
		}},
		{Name: "checkout last unit", Relay: true, Shop: &Shop{Stock: 1}, Private: unshared, Timeless: true, Actors: func() []*actor {
			return []*actor{buy("api 1", "k1", psptest.TokenCaptured, "order-1"), buy("api 2", "k2", psptest.TokenCaptured, "order-2")}
		}},
		{Name: "checkout abandoned paid late", Relay: true, Shop: &Shop{Stock: 1}, Actors: func() []*actor {
			return []*actor{
				buy("api", "k", psptest.TokenRequiresAction, "order-42"), clockWhen(idle, deadline), sweep("sweep"),
				wake("wake", paymentIs(payment.StatusCanceled)), lateMoney(paymentIs(payment.StatusCanceled)),
			}
		}},
		{Name: "checkout abandoned told late", Relay: true, Shop: &Shop{Stock: 1}, Private: inbox, Timeless: true, Before: (*world).abandon, Actors: func() []*actor {
			return []*actor{lateMoney(anyTime), hook("webhook"), sweep("sweep")}
		}},
	}
}

// prepare makes a payment before the scenario begins; what the provider told of it
// was delivered.
func (w *world) prepare(o terms) {
	w.pay("before", "k", o)
	for _, e := range w.queue {
		w.deliver(e)
	}
	w.queue = nil
}

// unshared is all but the stock: two checkouts have nothing else in common.
func unshared(key store.Key) bool { return !strings.HasPrefix(key.PK, "STOCK#") }

// abandon makes a checkout whose buyer went away, up to its end and to when its payment
// is looked up again.
func (w *world) abandon() {
	buy("before", "k", psptest.TokenRequiresAction, "order-42").body(w)
	w.runExecutions()
	w.advance(deadline)
	for at, due := w.nextDue(); due && (!w.over() || at.After(w.now)); at, due = w.nextDue() {
		if at.After(w.now) {
			w.advance(at.Sub(w.now))
			if w.over() {
				break
			}
		}
		w.sweep(background())
		w.runExecutions()
	}
	for _, e := range w.queue {
		w.deliver(e)
	}
	w.queue = nil
}

// over reports whether every checkout has ended.
func (w *world) over() bool {
	for _, id := range w.checkoutIDs() {
		state := w.rows.rows[store.Key{PK: "CHECKOUT#" + id, SK: "STATE"}]
		if !checkout.Status(text(state, "status")).Over() {
			return false
		}
	}
	return true
}

// inbox items belong to the one delivery of their event.
func inbox(key store.Key) bool { return key.SK == "INBOX" }

// wake is the relay's news for a checkout that has an execution already.
func wake(name string, at when) *actor {
	return process(name, at, func(w *world) {
		for _, id := range look(w, (*world).checkoutIDs, func(ids []string) uint64 { return digestStrings(ids...) }) {
			_ = w.shop.checkouts.Wake(background(), id)
		}
	})
}

// executed holds once an execution was started.
func executed(w *world) bool { return len(w.shop.started) > 0 }

func (w *world) checkoutIDs() []string {
	var ids []string
	for key := range w.rows.rows {
		if id, ok := strings.CutPrefix(key.PK, "CHECKOUT#"); ok && key.SK == "STATE" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
