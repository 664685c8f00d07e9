package explore

import (
	"time"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// Scenarios are all of them.
func Scenarios() []Scenario {
	captured := order{token: psptest.TokenCaptured, reference: "order-42"}
	action := order{token: psptest.TokenRequiresAction}
	return []Scenario{
		{Name: "pay", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil)}
		}},
		{Name: "pay declined", Actors: func() []*actor {
			return []*actor{pay("api", "k", order{token: psptest.TokenDeclined}, nil), hook("webhook")}
		}},
		{Name: "pay webhook", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), hook("webhook")}
		}},
		{Name: "pay retry clock", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), pay("retry", "k", captured, paymentExists), clock(31 * time.Second)}
		}},
		{Name: "pay cancel webhook", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), cancel("cancel", "c", paymentExists), hook("webhook")}
		}},
		{Name: "pay expiry reconciler webhook", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), clock(31 * time.Minute), sweep("sweep"), hook("webhook")}
		}},
		{Name: "action two webhooks", Actors: func() []*actor {
			return []*actor{pay("api", "k", action, nil), customer(), hook("webhook 1"), hook("webhook 2")}
		}},
		{Name: "action cancel", Actors: func() []*actor {
			return []*actor{pay("api", "k", action, nil), customer(), cancel("cancel", "c", paymentIs(payment.StatusRequiresAction)), hook("webhook")}
		}},
		{Name: "refund refund webhook", Before: func(w *world) { w.prepare(captured) }, Actors: func() []*actor {
			return []*actor{refund("refund 1", "r1", 3000, nil), refund("refund 2", "r2", 3000, nil), hook("webhook")}
		}},
		{Name: "capture cancel", Before: func(w *world) { w.prepare(order{token: psptest.TokenCaptured, manual: true}) }, Actors: func() []*actor {
			return []*actor{capture("capture", "p", 3000, nil), cancel("cancel", "c", nil)}
		}},
		{Name: "late capture", Actors: func() []*actor {
			return []*actor{
				pay("api", "k", order{token: psptest.TokenLateCaptured, reference: "order-42"}, nil),
				cancel("cancel", "c", paymentExists), lateMoney(paymentIs(payment.StatusCanceled)), hook("webhook"),
			}
		}},
		{Name: "inbox redelivery sweep", Actors: func() []*actor {
			return []*actor{pay("api", "k", captured, nil), hook("webhook"), again("redelivery", 0), clock(2 * time.Minute), sweep("sweep")}
		}},
	}
}

// prepare makes a payment before the scenario begins; what the provider told of it
// was delivered.
func (w *world) prepare(o order) {
	w.pay("before", "k", o)
	for _, e := range w.queue {
		w.deliver(e)
	}
	w.queue = nil
}
