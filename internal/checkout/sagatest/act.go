package sagatest

import (
	"fmt"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// Basket is what a buyer wants. Its zero value is one piece of Tee for 5000 yen by
// card, captured at once, by a buyer with an address.
type Basket struct {
	SKU       string
	Quantity  int64
	Token     string
	Reference string
	Merchant  string
	Nameless  bool // no address
}

// Tee is the SKU of a basket that names none.
const Tee = "tee"

// Price of a piece.
const Price = 5000

func (b Basket) withDefaults() Basket {
	if b.SKU == "" {
		b.SKU = Tee
	}
	if b.Quantity == 0 {
		b.Quantity = 1
	}
	if b.Token == "" {
		b.Token = psptest.TokenCaptured
	}
	if b.Merchant == "" {
		b.Merchant = flowtest.Merchant
	}
	return b
}

// Supply sets the stock of a SKU of flowtest.Merchant.
func (w *World) Supply(sku string, available int64) {
	w.Helper()
	if err := w.Stock.Set(w.Context(), flowtest.Merchant, sku, available); err != nil {
		w.Fatal(err)
	}
	s, err := w.Stock.Get(w.Context(), flowtest.Merchant, sku)
	if err != nil {
		w.Fatal(err)
	}
	w.supply[sku] = s.Available + s.Reserved + s.Sold
}

// Order asks for a checkout, or repeats the request.
func (w *World) Order(key string, b Basket) (checkout.Result, error) {
	w.Helper()
	b = b.withDefaults()
	email := customer.Email("a@example.com")
	if b.Nameless {
		email = ""
	}
	r, err := w.Checkouts.Create(w.Context(), checkout.CreateRequest{
		Request: flowtest.Request(b.Merchant, "/v1/checkouts", key, fmt.Sprint(b)),
		Items:   []checkout.Item{{SKU: b.SKU, Quantity: b.Quantity, UnitAmount: Price}}, Email: email,
		Terms: payment.Terms{
			MerchantID: b.Merchant, Amount: money.Amount{Minor: Price * b.Quantity, Currency: "JPY"},
			CaptureMethod: payment.CaptureAutomatic, PaymentMethod: payment.Secret(b.Token), Reference: b.Reference, PSP: flowtest.PSP,
		},
	})
	if err == nil && !r.Replayed {
		w.made = append(w.made, r.Checkout.ID)
	}
	return r, err
}

// Ordered is a new checkout whose execution waits.
func (w *World) Ordered(key string, b Basket) checkout.Checkout {
	w.Helper()
	r, err := w.Order(key, b)
	if err != nil {
		w.Fatalf("checkout %s: %v", key, err)
	}
	return r.Checkout
}

// Bought is a new checkout after everything that follows at once.
func (w *World) Bought(key string, b Basket) checkout.Checkout {
	w.Helper()
	c := w.Ordered(key, b)
	w.Settle()
	return w.Checkout(c.ID)
}

// Checkout is a checkout as it is stored.
func (w *World) Checkout(id string) checkout.Checkout {
	w.Helper()
	c, err := w.Table.Checkout(w.Context(), id)
	if err != nil {
		w.Fatalf("read %s: %v", id, err)
	}
	return c
}

// WantCheckout ends the test unless the checkout has that status and failure code.
func (w *World) WantCheckout(id string, status checkout.Status, failure string) checkout.Checkout {
	w.Helper()
	c := w.Checkout(id)
	code := ""
	if c.Failure != nil {
		code = c.Failure.Code
	}
	if c.Status != status || code != failure {
		w.Fatalf("checkout: got %s %q, want %s %q; journal %v, payment %s", c.Status, code, status, failure, w.Events(id), w.Payment(c.PaymentID).Status)
	}
	return c
}

// Events are the types of a checkout's journal rows, without their prefix.
func (w *World) Events(id string) []string {
	w.Helper()
	var types []string
	for _, r := range w.CheckoutRows(id) {
		types = append(types, r.Type[len("checkout."):])
	}
	return types
}

// WantEvents ends the test unless those are the rows of the checkout.
func (w *World) WantEvents(id string, types ...string) {
	w.Helper()
	if got := w.Events(id); !slices.Equal(got, types) {
		w.Fatalf("journal: got %v, want %v", got, types)
	}
}

// CheckoutRows is the whole journal of a checkout.
func (w *World) CheckoutRows(id string) []payments.Row {
	w.Helper()
	rows, next, err := w.Table.CheckoutRows(w.Context(), id, "", 100)
	if err != nil || next != "" {
		w.Fatalf("journal of %s: %v, next page %q", id, err, next)
	}
	return rows
}

// Settle carries out everything that is under way until nothing is: what the
// stream brings, and the executions that wait.
func (w *World) Settle() {
	w.Helper()
	for w.Carry(); w.Waiting() > 0; w.Carry() {
		w.RunNext()
	}
}

// Carry carries out what the stream brings, and what that brings in turn.
func (w *World) Carry() {
	w.Helper()
	for changes := w.Store.TakeChanges(); len(changes) > 0; changes = w.Store.TakeChanges() {
		for _, c := range changes {
			if err := w.carry(c); err != nil && !w.Rough {
				w.Fatal(err)
			}
		}
	}
}

// carry hands a change to whoever reads the stream.
func (w *World) carry(c store.Change) error {
	if name, eventID, ok := payments.InboxChange(c); ok {
		return w.Applier.Apply(w.Context(), name, eventID)
	}
	e, ok := payments.RowChange(c)
	if !ok || w.Deaf {
		return nil
	}
	return w.Relay.Carry(w.Context(), []outbox.Event{e})[0]
}

// Deliver takes deliveries in, one after the other, and settles each.
func (w *World) Deliver(events ...psptest.Event) {
	w.Helper()
	for _, e := range events {
		w.Receive(e)
		w.Settle()
	}
}

// Pass lets time go by, with a sweep every RECONCILE_EVERY and at its end.
func (w *World) Pass(d time.Duration) {
	w.Helper()
	for d > 0 {
		step := min(d, flowtest.Durations.ReconcileEvery)
		w.Clock.Advance(step)
		d -= step
		w.Tick()
	}
}

// Tick is one sweep and what follows from it.
func (w *World) Tick() {
	w.Helper()
	for _, err := range w.Sweep() {
		if !w.Rough {
			w.Errorf("sweep: %v", err)
		}
	}
	if _, err := w.Notices.Sweep(w.Context()); err != nil {
		w.Errorf("sweep of notifications: %v", err)
	}
	w.Settle()
}

// Resume drives a checkout on as an operator does, and settles.
func (w *World) Resume(key, id string) (checkout.Result, error) {
	w.Helper()
	r, err := w.Checkouts.Resume(w.Context(), OperatorRequest(key, id), id)
	w.Settle()
	return r, err
}

// OperatorRequest is what identifies an operator's resume.
func OperatorRequest(key, id string) charge.Request {
	return flowtest.Request("@operator", "/v1/checkouts/"+id+"/resume", key, "")
}

// WantStock ends the test unless the SKU has those pieces.
func (w *World) WantStock(sku string, available, reserved, sold int64) {
	w.Helper()
	s, err := w.Stock.Get(w.Context(), flowtest.Merchant, sku)
	if err != nil || s.Available != available || s.Reserved != reserved || s.Sold != sold {
		w.Fatalf("stock of %s: got %+v %v, want %d available, %d reserved, %d sold", sku, s, err, available, reserved, sold)
	}
}
