package explore

import (
	"errors"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// Baselines are three ways in which the same is often built, under the same
// explorer and with the same provider: what they do wrong says what the product's
// design is for. Each is given a webhook handler that is always right in the end.

// naive is one way of building it.
type naive struct {
	name string
	pay  func(n *naivePayment) error
}

// naivePayment is one request of one of them.
type naivePayment struct {
	w     *world
	table store.Table
	way   psp.Provider
}

const (
	naiveOrder = "pay_01KDYAK348M9S346Q3D2000001"
	naiveLock  = 30 * time.Second
)

var (
	naiveState  = store.Key{PK: "NAIVE#" + naiveOrder, SK: "ORDER"}
	naiveRecord = store.Key{PK: "NAIVE#" + naiveOrder, SK: "KEY"}
	naiveMutex  = store.Key{PK: "NAIVE#" + naiveOrder, SK: "LOCK"}
)

func naives() []naive {
	return []naive{
		{"read, charge, write", func(n *naivePayment) error {
			if n.paid() {
				return nil
			}
			return n.charge()
		}},
		{"a lock around it", func(n *naivePayment) error {
			now := n.w.time().UnixMilli()
			err := n.table.Write(background(), store.Write{
				Kind: store.Put, Key: naiveMutex, Item: store.Item{"until": now + naiveLock.Milliseconds()},
				If: store.Any(store.Absent(), store.Less("until", now)),
			})
			if err != nil {
				return err
			}
			defer func() { _ = n.table.Write(background(), store.Write{Kind: store.Delete, Key: naiveMutex}) }()
			if n.paid() {
				return nil
			}
			return n.charge()
		}},
		{"an idempotency record, deleted on error", func(n *naivePayment) error {
			err := n.table.Write(background(), store.Write{Kind: store.Put, Key: naiveRecord, Item: store.Item{"state": "started"}, If: store.Absent()})
			if err != nil {
				return err // in flight, or done: the stored answer
			}
			if err := n.charge(); err != nil {
				_ = n.table.Write(background(), store.Write{Kind: store.Delete, Key: naiveRecord})
				return err
			}
			return n.table.Write(background(), store.Write{Kind: store.Put, Key: naiveRecord, Item: store.Item{"state": "done"}})
		}},
	}
}

func (n *naivePayment) paid() bool {
	item, err := n.table.Get(background(), naiveState)
	return err == nil && text(item, "status") == "captured"
}

// charge takes an error for a failure, and has a key of its own for each attempt.
func (n *naivePayment) charge() error {
	c, err := n.way.Create(background(), psp.CreateRequest{
		Key: n.w.ulid(), PaymentID: naiveOrder, Amount: money.Amount{Minor: amount, Currency: "JPY"},
		PaymentMethod: payment.Secret(psptest.TokenCaptured), ReturnURL: "https://shop.example/return",
	})
	status := "failed"
	if err == nil && c.Status == psp.StatusCaptured {
		status = "captured"
	}
	if werr := n.table.Write(background(), store.Write{Kind: store.Put, Key: naiveState, Item: store.Item{"status": status}}); werr != nil {
		return werr
	}
	return err
}

// baselines are scenarios of other designs: a client that repeats, and time.
func baselines() []Scenario {
	var all []Scenario
	for _, n := range naives() {
		client := func(name string, at when) *actor {
			return process(name, at, func(w *world) {
				_ = n.pay(&naivePayment{w, &tablePort{w: w, name: "payments"}, &pspPort{w: w}})
			})
		}
		all = append(all, Scenario{Name: n.name, End: naiveEnd, Actors: func() []*actor {
			return []*actor{client("api", nil), client("retry", anyTime), clock(31 * time.Second)}
		}})
	}
	return all
}

// naiveEnd lets the webhooks arrive, and compares the order with the provider.
func naiveEnd(w *world, r recovery) {
	if r == byReconciler {
		return // there is none
	}
	for range w.told {
		_ = w.rows.Write(background(), store.Write{Kind: store.Put, Key: naiveState, Item: store.Item{"status": "captured"}})
	}
	item, err := w.rows.Get(background(), naiveState)
	if errors.Is(err, store.ErrNotFound) {
		item = store.Item{}
	}
	net, status := w.psp.Net(naiveOrder), text(item, "status")
	if net > 0 && status == "failed" {
		w.violate("S-FAILED-MEANS-DECLINED", "the order failed, the provider holds %d", net)
	}
	if net > 0 && status != "captured" {
		w.violate("L-NO-LOST-MONEY", "the order is %q, the provider holds %d", status, net)
	}
	if net == 0 && status == "captured" {
		w.violate("S-NO-PHANTOM", "the order is captured, the provider holds nothing")
	}
}
