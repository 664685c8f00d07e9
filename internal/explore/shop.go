package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// Shop is what a scenario with checkouts needs.
type Shop struct {
	Stock  int64 // pieces of the one SKU
	Reject bool  // the shop refuses the order
}

const sku = "tea"

// shop is the participants over their own tables, and the executions.
type shop struct {
	w         *world
	setting   Shop
	inventory *table
	orders    *table
	notices   *table
	checkouts *checkout.Service
	machine   *machine

	started map[string]bool
	waiting []execution // not run yet
	running int
}

// execution is one that was started.
type execution struct {
	name  string
	input checkout.Input
}

// maxRunning is how many executions of a scenario run beside the others; what is
// started later runs in the recovery.
const maxRunning = 2

func newShop(w *world) *shop {
	return &shop{w: w, setting: *w.scenario.Shop, inventory: newTable(), orders: newTable(), notices: newTable()}
}

// open puts the stock on the shelf.
func (s *shop) open() {
	if err := inventory.New(s.inventory, s.w.time).Set(background(), merchant, sku, s.setting.Stock); err != nil {
		panic(err)
	}
	s.watch()
}

// watch holds every commit of the participants to what must hold at every step.
func (s *shop) watch() {
	s.inventory.committed = func([]store.Change) { s.checkStock() }
	s.inventory.leaked, s.orders.leaked, s.notices.leaked = s.w.checkLeak, s.w.checkLeak, s.w.checkLeak
}

// clone is the same shop of another world. It is not wired.
func (s *shop) clone(w *world) *shop {
	c := *s
	c.w = w
	c.inventory, c.orders, c.notices = s.inventory.clone(), s.orders.clone(), s.notices.clone()
	c.watch()
	s.waiting = slices.Clip(s.waiting)
	c.waiting = s.waiting
	return &c
}

// wire is the wiring of the participants over their ports.
func (s *shop) wire(core bootstrap.Core) {
	w := s.w
	port := func(name string) store.Table {
		var port store.Table = &tablePort{w: w, name: name}
		if m := w.scenario.mutant; m != nil && m.Shop != nil {
			port = m.Shop(w, name, port)
		}
		return port
	}
	stock := inventory.New(port("inventory"), w.time)
	var rule order.Rule
	if s.setting.Reject {
		rule = order.RefuseSKUsFrom(sku)
	}
	orders := order.New(port("orders"), w.time, rule)
	notices := notification.New(notification.Options{
		Table: port("notifications"), Sender: notification.StoredOnly{}, Now: w.time,
		Jitter: func(int64) int64 { return 0 }, Log: w.logger(),
	})
	s.checkouts = core.Checkouts(s, bootstrap.Told{Notices: notices})
	s.checkouts.Spread, s.checkouts.Pause = unspread, unpaused
	saga := core.SagaStep(stock)
	saga.Saga.Payments = w.charges
	saga.Saga.Service.Spread, saga.Saga.Service.Pause = unspread, unpaused
	s.machine = loadMachine(map[string]function{
		"SagaStepFunction": saga.Invoke, "InventoryFunction": inventory.NewHandler(stock).Invoke,
		"OrdersFunction": order.NewHandler(orders).Invoke, "NotificationsFunction": notification.NewHandler(notices).Invoke,
	})
}

func (w *world) checkouts(core bootstrap.Core) *checkout.Service {
	if w.shop != nil {
		return w.shop.checkouts
	}
	return core.Checkouts(nil, nil)
}

// Start is the port to the state machine.
func (s *shop) Start(_ context.Context, name string, input checkout.Input) error {
	answer, _ := s.w.do(&call{
		name: func() string { return "start execution " + name }, faults: startFaults, asks: input,
		run: func(w *world) any {
			if s := w.shop; !s.started[name] {
				s.started = with(s.started, name, true)
				s.waiting = append(s.waiting, execution{name, input})
				s.spawn()
			}
			return failed{}
		},
		fail:   func(*world, fault, any) any { return failed{errNoExecution} },
		digest: digestFailed,
	}).(failed)
	return answer.err
}

var errNoExecution = errors.New("explore: no answer from the state machine")

// spawn makes actors of executions while there are few.
func (s *shop) spawn() {
	for len(s.waiting) > 0 && s.running < maxRunning && len(s.w.actors) > 0 {
		e := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.running++
		a := process(e.name, anyTime, func(w *world) { w.shop.machine.run(e) })
		a.id = 100 + s.running
		s.w.spawned = append(s.w.spawned, a)
	}
}

// runExecutions runs what was started and has not run, in a recovery.
func (w *world) runExecutions() {
	if w.shop == nil {
		return
	}
	for len(w.shop.waiting) > 0 {
		e := w.shop.waiting[0]
		w.shop.waiting = w.shop.waiting[1:]
		w.note("execution", e.name, none)
		w.shop.machine.run(e)
		w.happened()
	}
}

func (s *shop) digest(h uint64) uint64 {
	h = mix(h ^ mix(s.inventory.digest) ^ mix(s.orders.digest+1) ^ mix(s.notices.digest+2))
	for name := range s.started {
		h += mix(digestStrings(name))
	}
	for _, e := range s.waiting {
		h = digestString(h, e.name)
	}
	return mix(digestNumber(h, int64(s.running)))
}

// buy is a client's request for a checkout.
func buy(name, key, token, reference string) *actor {
	return process(name, nil, func(w *world) {
		r, err := w.shop.checkouts.Create(background(), checkout.CreateRequest{
			Request: request("/v1/checkouts", key, token+reference),
			Terms: payment.Terms{
				MerchantID: merchant, Amount: money.Amount{Minor: amount, Currency: "JPY"}, CaptureMethod: payment.CaptureAutomatic,
				PaymentMethod: payment.Secret(token), Reference: reference, ReturnURL: "https://shop.example/return", PSP: provider,
			},
			Items: []checkout.Item{{SKU: sku, Quantity: 1, UnitAmount: amount}}, Email: customer.Email("buyer@shop.example"),
		})
		w.tell(answer{actor: name, key: "checkout " + key, payment: r.Payment, err: err, replayed: r.Replayed})
	})
}

// Publish is the port to the bus.
func (w *world) Publish(_ context.Context, events []outbox.Event) []error {
	answer, _ := w.do(&call{
		name:   func() string { return fmt.Sprintf("publish %d events", len(events)) },
		faults: startFaults, asks: events,
		run: func(w *world) any {
			for _, e := range events {
				w.published = with(w.published, e.ID, w.published[e.ID]+1)
				w.checkText("an event on the bus", fmt.Sprint(e))
			}
			return failed{}
		},
		fail:   func(*world, fault, any) any { return failed{errNoBus} },
		digest: digestFailed,
	}).(failed)
	errs := make([]error, len(events))
	for i := range errs {
		errs[i] = answer.err
	}
	return errs
}

var errNoBus = errors.New("explore: no answer from the bus")

// relay carries what the stream holds, once. What was not carried stays in the
// stream, and comes again.
func relay(name string) *actor {
	return &actor{name: name, body: func(w *world) { w.carryOnce() }}
}

func (w *world) carryOnce() {
	batch, _ := w.do(&call{
		waits: true, name: func() string { return "takes the stream" }, guard: func(w *world) bool { return len(w.stream) > 0 },
		run: func(w *world) any { return w.stream },
		digest: func(answer any) uint64 {
			batch, _ := answer.([]store.Change)
			h := uint64(fnvBasis)
			for _, c := range batch {
				h = mix(h*fnvPrime ^ digestItem(c.Key, c.New))
			}
			return h
		},
	}).([]store.Change)
	var events []outbox.Event
	for _, c := range batch {
		e, _ := payments.RowChange(c)
		events = append(events, e)
	}
	carried := map[store.Key]bool{}
	for i, err := range w.relay().Carry(background(), events) {
		carried[batch[i].Key] = err == nil
	}
	w.effect(carried, func(w *world) {
		w.stream = slices.DeleteFunc(slices.Clone(w.stream), func(c store.Change) bool { return carried[c.Key] })
	})
}

func (w *world) relay() *outbox.Relay {
	r := &outbox.Relay{Publisher: w}
	if w.shop != nil {
		r.Sagas = w.shop.checkouts
	}
	if m := w.scenario.mutant; m != nil && m.Relay != nil {
		m.Relay(w, r)
	}
	return r
}

// carry carries everything, in a recovery.
func (w *world) carry() {
	for range maxSweeps {
		if len(w.stream) == 0 {
			return
		}
		w.carryOnce()
		w.runExecutions()
	}
}

// checkStock is S-STOCK-CONSERVED: pieces do not appear or vanish, and none is
// promised to two buyers.
func (s *shop) checkStock() {
	stock, err := inventory.New(s.inventory, s.w.time).Get(background(), merchant, sku)
	if err != nil {
		return
	}
	if total := stock.Available + stock.Reserved + stock.Sold; total != s.setting.Stock || stock.Available < 0 || stock.Reserved < 0 {
		s.w.violate("S-STOCK-CONSERVED", "%d free, %d held, %d sold of %d", stock.Available, stock.Reserved, stock.Sold, s.setting.Stock)
	}
}

// checkEnd is L-SAGA-ENDS, L-STOCK-FREED and L-STOCK-SOLD: every checkout comes to
// its end with money, stock and order that agree, and its buyer is told.
func (s *shop) checkEnd(w *world, r recovery) {
	if r == byWebhooks {
		return
	}
	held := int64(0)
	stock, _ := inventory.New(s.inventory, w.time).Get(background(), merchant, sku)
	for key, item := range w.rows.rows {
		if len(key.PK) < 9 || key.PK[:9] != "CHECKOUT#" || key.SK != "STATE" {
			continue
		}
		c, err := w.plain().Checkout(background(), key.PK[9:])
		if err != nil {
			w.violate("L-SAGA-ENDS", "%s: %v", key.PK, err)
			continue
		}
		_ = item
		held += s.checkCheckout(c)
	}
	if stock.Sold != held || stock.Reserved != 0 {
		w.violate("L-STOCK-FREED", "%d held and %d sold after the end, want 0 and %d", stock.Reserved, stock.Sold, held)
	}
}

// checkCheckout holds one checkout to what its buyer has, and returns how many
// pieces that buyer bought.
func (s *shop) checkCheckout(c checkout.Checkout) int64 {
	w := s.w
	p := w.payment(c.PaymentID)
	record, orderErr := order.New(s.orders, w.time, nil).Get(background(), merchant, order.ID(c.ID))
	confirmed := orderErr == nil && record.Status == order.Confirmed
	reservation, _ := inventory.New(s.inventory, w.time).Held(background(), merchant, c.ID)
	told, _ := notification.New(notification.Options{Table: s.notices, Now: w.time}).ListByCheckout(background(), merchant, c.ID)
	switch c.Status {
	case checkout.StatusCompleted:
		paid := p.Status == payment.StatusCaptured || p.Status == payment.StatusRefunded // by the merchant, later
		if !paid || !confirmed || reservation != inventory.Sold {
			w.violate("L-SAGA-ENDS", "%s is completed: payment %s, order %t, stock %q", c.ID, p.Status, confirmed, reservation)
		}
		if len(told) != 1 {
			w.violate("L-SAGA-ENDS", "the buyer of %s was told %d times", c.ID, len(told))
		}
		return 1
	case checkout.StatusFailed:
		if confirmed || len(told) != 0 {
			w.violate("L-SAGA-ENDS", "%s has failed: order %t, told %d times", c.ID, confirmed, len(told))
		}
		if net := w.psp.Net(string(p.ID)); net != 0 {
			w.violate("L-NO-LOST-MONEY", "%s has failed, the provider holds %d", c.ID, net)
		}
		if reservation == inventory.Reserved {
			w.violate("L-STOCK-FREED", "%s has failed and still holds stock", c.ID)
		}
		return 0
	case checkout.StatusPending, checkout.StatusRequiresAction, checkout.StatusNeedsReview:
	}
	w.violate("L-SAGA-ENDS", "%s is %s %s; payment %s", c.ID, c.Status, c.Direction, p.Status)
	return 0
}

// deadline is past the end of every payment that waits for its customer.
const deadline = 31 * time.Minute
