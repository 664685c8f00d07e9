package flowtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// Order is what a merchant charges for. Its zero value is 5000 yen by card,
// captured at once, without a reference.
type Order struct {
	Amount    int64
	Currency  money.Currency
	Token     string
	Manual    bool
	Reference string
	Merchant  string
	PSP       string
}

func (o Order) withDefaults() Order {
	if o.Amount == 0 {
		o.Amount = 5000
	}
	if o.Currency == "" {
		o.Currency = "JPY"
	}
	if o.Token == "" {
		o.Token = psptest.TokenCaptured
	}
	if o.Merchant == "" {
		o.Merchant = Merchant
	}
	if o.PSP == "" {
		o.PSP = PSP
	}
	return o
}

// Request is what identifies a call of a merchant with that key: its content is
// told apart by the fingerprint.
func Request(merchant, route, key, fingerprint string) charge.Request {
	return charge.Request{
		Scope:       idempotency.Scope{MerchantID: merchant, Method: "POST", Route: route, Key: key},
		Fingerprint: idempotency.Fingerprint([]byte(fingerprint)),
	}
}

// Charge makes a payment, or repeats the request.
func (w *World) Charge(key string, o Order) (charge.Result, error) {
	w.Helper()
	return w.ChargeWith(w.Context(), key, o)
}

// ChargeWith is Charge in a context of its own.
func (w *World) ChargeWith(ctx context.Context, key string, o Order) (charge.Result, error) {
	o = o.withDefaults()
	method := payment.CaptureAutomatic
	if o.Manual {
		method = payment.CaptureManual
	}
	return w.Charges.Create(ctx, charge.CreateRequest{
		Request: Request(o.Merchant, "/v1/payments", key, fmt.Sprint(o)),
		Terms: payment.Terms{
			MerchantID: o.Merchant, Amount: money.Amount{Minor: o.Amount, Currency: o.Currency}, CaptureMethod: method,
			PaymentMethod: payment.Secret(o.Token), Reference: o.Reference, ReturnURL: "https://shop.example/return", PSP: o.PSP,
		},
	})
}

// Charged is a new payment that is in that status after its first request.
func (w *World) Charged(key string, o Order, status payment.Status) payment.Payment {
	w.Helper()
	r, err := w.Charge(key, o)
	if err != nil {
		w.Fatalf("charge %s: %v", key, err)
	}
	if r.Payment.Status != status {
		w.Fatalf("charge %s: got status %s, want %s", key, r.Payment.Status, status)
	}
	return r.Payment
}

// Capture captures held funds, 0 for the whole.
func (w *World) Capture(key string, id payment.ID, amount int64) (charge.Result, error) {
	route := "/v1/payments/" + string(id) + "/capture"
	return w.Charges.Capture(w.Context(), charge.CaptureRequest{
		Request: Request(Merchant, route, key, fmt.Sprint(amount)), PaymentID: id, Amount: amount,
	})
}

// Cancel cancels a payment.
func (w *World) Cancel(key string, id payment.ID) (charge.Result, error) {
	route := "/v1/payments/" + string(id) + "/cancel"
	return w.Charges.Cancel(w.Context(), charge.CancelRequest{Request: Request(Merchant, route, key, ""), PaymentID: id})
}

// Refund refunds a payment, 0 for all that is left.
func (w *World) Refund(key string, id payment.ID, amount int64) (charge.Result, error) {
	route := "/v1/payments/" + string(id) + "/refunds"
	return w.Charges.Refund(w.Context(), charge.RefundRequest{
		Request: Request(Merchant, route, key, fmt.Sprint(amount)), PaymentID: id, Amount: amount, Reason: "wish",
	})
}

// Refunded is a refund that was asked for and has that status after its first request.
func (w *World) Refunded(key string, id payment.ID, amount int64, status payment.RefundStatus) payment.Refund {
	w.Helper()
	r, err := w.Refund(key, id, amount)
	if err != nil {
		w.Fatalf("refund %s: %v", key, err)
	}
	if r.Refund().Status != status {
		w.Fatalf("refund %s: got status %s, want %s", key, r.Refund().Status, status)
	}
	return r.Refund()
}

// Receive takes deliveries in and leaves them for later.
func (w *World) Receive(events ...psptest.Event) {
	w.Helper()
	for _, e := range events {
		if _, err := w.Ingest.Receive(w.Context(), PSP, w.PSP.Delivery(e, w.Clock.Now())); err != nil {
			w.Fatalf("receive %s: %v", e.Type, err)
		}
	}
}

// Stream applies what the table's stream asks for since the last time. Rows that
// ask for nothing are passed over.
func (w *World) Stream() {
	w.Helper()
	for _, c := range w.Store.TakeChanges() {
		name, eventID, ok := payments.InboxChange(c)
		if !ok {
			continue
		}
		if err := w.Applier.Apply(w.Context(), name, eventID); err != nil {
			w.Fatalf("apply %s: %v", eventID, err)
		}
	}
}

// Deliver takes deliveries in, one after the other, and applies each at once.
func (w *World) Deliver(events ...psptest.Event) {
	w.Helper()
	for _, e := range events {
		w.Receive(e)
		w.Stream()
	}
}

// Item is the inbox item of an event.
func (w *World) Item(e psptest.Event) webhook.Item {
	w.Helper()
	it, err := w.Table.Item(w.Context(), PSP, e.ID)
	if err != nil {
		w.Fatalf("item of %s: %v", e.ID, err)
	}
	return it
}

// WantItem ends the test unless the event's item has that status.
func (w *World) WantItem(e psptest.Event, status webhook.Status) {
	w.Helper()
	if it := w.Item(e); it.Status != status {
		w.Fatalf("notification %s: got status %s (%s), want %s", e.Type, it.Status, it.Reason, status)
	}
}

// Sweep looks once at everything that is due, one after the other, and returns
// the errors of repairs.
func (w *World) Sweep() []error {
	w.Helper()
	var failed []error
	now := w.Clock.Now()
	for shard := range w.Table.Shards() {
		cursor := ""
		for {
			page, next, err := w.Table.DuePage(w.Context(), shard, now, 50, cursor)
			if err != nil {
				w.Fatalf("due page: %v", err)
			}
			failed = append(failed, w.repair(page)...)
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	return failed
}

func (w *World) repair(page []reconcile.Due) []error {
	var failed []error
	for _, due := range page {
		if err := w.Sweeper.Repairs[due.Kind](w.Context(), due.ID); err != nil {
			failed = append(failed, fmt.Errorf("%s %s: %w", due.Kind, due.ID, err))
		}
	}
	return failed
}

// Pass lets time go by, with a sweep every RECONCILE_EVERY and at its end.
func (w *World) Pass(d time.Duration) {
	w.Helper()
	for d > 0 {
		step := min(d, Durations.ReconcileEvery)
		w.Clock.Advance(step)
		d -= step
		w.Sweep()
	}
}

// Payment is the payment as it is stored.
func (w *World) Payment(id payment.ID) payment.Payment {
	w.Helper()
	p, err := w.Table.Payment(w.Context(), id)
	if err != nil {
		w.Fatalf("read %s: %v", id, err)
	}
	return p
}

// Want ends the test unless the payment is in that status. It returns it.
func (w *World) Want(id payment.ID, status payment.Status) payment.Payment {
	w.Helper()
	p := w.Payment(id)
	if p.Status != status {
		w.Fatalf("got status %s, want %s; journal %v", p.Status, status, w.Types(id))
	}
	return p
}

// WantRest ends the test unless nothing is owed on the payment any more.
func (w *World) WantRest(id payment.ID) {
	w.Helper()
	if p := w.Payment(id); !p.DueAt.IsZero() {
		w.Fatalf("payment %s %s is due at %s, want it at rest", id, p.Status, p.DueAt)
	}
}

// Rows is the whole journal of a payment.
func (w *World) Rows(id payment.ID) []payments.Row {
	w.Helper()
	var all []payments.Row
	cursor := ""
	for {
		rows, next, err := w.Table.PaymentRows(w.Context(), id, cursor, 100)
		if err != nil {
			w.Fatalf("journal of %s: %v", id, err)
		}
		all = append(all, rows...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// Types are the types of a payment's journal rows.
func (w *World) Types(id payment.ID) []string {
	w.Helper()
	var types []string
	for _, r := range w.Rows(id) {
		types = append(types, r.Type)
	}
	return types
}

// Calls are the provider's calls of one operation.
func (w *World) Calls(operation psptest.Operation) []psptest.Call {
	var calls []psptest.Call
	for _, c := range w.PSP.Calls() {
		if c.Operation == operation {
			calls = append(calls, c)
		}
	}
	return calls
}

// WantCalls ends the test unless the provider saw n calls of the operation.
func (w *World) WantCalls(operation psptest.Operation, n int) {
	w.Helper()
	if calls := w.Calls(operation); len(calls) != n {
		w.Fatalf("got %d calls of %s, want %d: %+v", len(calls), operation, n, calls)
	}
}

// OnCall runs do once, when the provider is next asked for the operation and
// before it does anything. An error is a call lost on its way.
func (w *World) OnCall(operation psptest.Operation, do func() error) {
	w.waiting.Add(1)
	w.PSP.Before(operation, func() error {
		w.PSP.Before(operation, nil)
		w.waiting.Add(-1)
		return do()
	})
}

// OnAnswer runs do once, between the effect of the next call of the operation and
// its answer. An error is an answer lost on its way.
func (w *World) OnAnswer(operation psptest.Operation, do func() error) {
	w.waiting.Add(1)
	w.PSP.After(operation, func() error {
		w.PSP.After(operation, nil)
		w.waiting.Add(-1)
		return do()
	})
}

// Quiet drops everything that was to go wrong and has not.
func (w *World) Quiet() {
	w.Store.Forget()
	w.waiting.Store(0)
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, nil)
		w.PSP.After(operation, nil)
	}
	w.Line.forget()
}

// Lost is a hook that loses the call or the answer.
func Lost() error { return errTimeout }

// Silent is a hook for the table that loses the write or its answer.
func Silent() error { return ErrSilent }

// Then is a hook that runs do, without an error.
func Then(do func()) func() error {
	return func() error {
		do()
		return nil
	}
}

// death is what a process that dies panics with.
type death struct{}

// Die is a hook at which the process ends: nothing that it had left to do is done.
func (w *World) Die() error {
	w.Store.setDead(true)
	w.Line.setDead(true)
	panic(death{})
}

// Crash runs what a process does until it dies, and ends the test if it does not.
func (w *World) Crash(process func()) {
	w.Helper()
	if !w.dies(process) {
		w.Fatal("the process lived")
	}
}

// Survives runs what a process does and reports whether it lived to the end.
func (w *World) Survives(process func()) bool { return !w.dies(process) }

func (w *World) dies(process func()) (died bool) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case death{}:
			died = true
		default:
			panic(cause)
		}
		w.Store.setDead(false)
		w.Line.setDead(false)
	}()
	process()
	return false
}

// InProgress reports whether the answer was that the first request may still run.
func InProgress(err error) bool {
	_, ok := errors.AsType[*charge.InProgressError](err)
	return ok
}
