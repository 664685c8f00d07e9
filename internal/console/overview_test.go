package console_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/webhook"
)

const (
	paymentID  = payment.ID("pay_01M8NMNTP8PBAY5NFWEAWXN6KQ")
	checkoutID = "chk_01M8NMNTP8PBAY5NFWEAWXN6KR"
)

// sent is a payment of 7.00 USD that was just sent to the PSP.
func (w *world) sent() (payment.Payment, payment.Row) {
	return payment.NewSent(payment.Terms{
		ID: paymentID, MerchantID: "alpha", Amount: money.Amount{Minor: 700, Currency: "USD"}, CaptureMethod: payment.CaptureAutomatic,
		PaymentMethod: "tok_canary", PSP: "simulator", Metadata: map[string]string{"cart": "c-7"}, ExpiresAt: w.now.Add(time.Hour),
	}, w.now)
}

func (w *world) claim(id string) *idempotency.Claim {
	return &idempotency.Claim{Record: idempotency.Record{MerchantID: "alpha", Hash: "h", ResourceID: id, CreatedAt: w.now, InProgressUntil: w.now}}
}

func (w *world) paid() payment.Payment {
	w.t.Helper()
	p, row := w.sent()
	must(w.t, w.table.Commit(w.t.Context(), journal.Change{After: p, Row: row, Source: journal.SourceAPI, Claim: w.claim(string(p.ID))}))
	return p
}

// after commits what an event makes of p.
func (w *world) after(p payment.Payment, e payment.Event) payment.Payment {
	w.t.Helper()
	e.At = w.now
	next, row, changed, err := p.Apply(e)
	must(w.t, err)
	if !changed {
		w.t.Fatalf("%s changed nothing", e.Type)
	}
	must(w.t, w.table.Commit(w.t.Context(), journal.Change{Before: p, After: next, Row: row, Source: journal.SourceWebhook}))
	return next
}

// reviewed makes a checkout that needs review since an hour from now.
func (w *world) reviewed() {
	w.t.Helper()
	p, paymentRow := w.sent()
	c := checkout.Checkout{
		ID: checkoutID, MerchantID: "alpha", Version: 1, Status: checkout.StatusPending, Direction: checkout.Forward, Amount: p.Amount,
		PaymentID: p.ID, Executions: 1, CreatedAt: w.now, UpdatedAt: w.now, DueAt: w.now,
	}
	must(w.t, w.table.CreateCheckout(w.t.Context(), checkout.Creation{
		Checkout: c, Row: checkout.Row{Version: 1, Type: checkout.EventCreated, At: w.now}, Payment: p, PaymentRow: paymentRow, Claim: *w.claim(c.ID),
	}))
	next := c
	next.Version, next.Status, next.UpdatedAt, next.DueAt = 2, checkout.StatusNeedsReview, w.now.Add(time.Hour), time.Time{}
	row := checkout.Row{Version: 2, Type: checkout.EventNeedsReview, At: next.UpdatedAt, Data: checkout.RowData{Status: next.Status, Reason: "no progress"}}
	must(w.t, w.table.CommitCheckout(w.t.Context(), checkout.Change{Before: c, After: next, Row: row, Source: journal.SourceSaga}))
}

// page is what the operator sees at a path.
func (w *world) page(path, query string) string {
	w.t.Helper()
	r := w.visit(visit{method: "GET", path: path, query: query, bearer: operatorKey})
	if r.StatusCode != 200 {
		w.t.Fatalf("%s: got %d, want 200", path, r.StatusCode)
	}
	return r.Body
}

// inOrder reports which of texts does not follow the one before on a page.
func inOrder(t *testing.T, page string, texts ...string) {
	t.Helper()
	rest := page
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("got page\n%s\nwant %q, in the order of %q", page, text, texts)
		}
		rest = after
	}
}

func TestTheOverviewBeginsWithWhatWaitsForAPerson(t *testing.T) {
	w := newWorld(t)
	w.reviewed()
	w.quarantine()
	inOrder(t, w.page("/console", ""), "Waits for a person", "2026-01-02 04:04:05.000Z", `href="/console/checkouts/`+checkoutID, "no progress",
		"Quarantined webhooks", "never matched a payment", "Due now")
}

func TestACheckoutsPageSaysThatItWaitsForAnOperator(t *testing.T) {
	w := newWorld(t)
	w.reviewed()
	page := w.page("/console/checkouts/"+checkoutID, "")
	inOrder(t, page, "7.00 USD", "waits for an operator", "since 2026-01-02 04:04:05.000Z: no progress", "Drive it on")
	if strings.Contains(page, "at rest") {
		t.Error("its page says that it is at rest")
	}
}

func TestMoneyOfADeadPaymentWaitsForAnOperator(t *testing.T) {
	w := newWorld(t)
	p := w.after(w.paid(), payment.Event{Type: payment.EventDeclined, Amount: money.Amount{Minor: 700, Currency: "USD"}, Failure: &payment.Failure{Code: "declined"}})
	p = w.after(p, payment.Event{Type: payment.EventCaptured, PSPReference: "ch_1", Amount: p.Amount, Captured: 700})
	w.after(p, payment.Event{Type: payment.EventRefundFailed, Refund: payment.RefundEvent{ID: p.Refunds[0].ID, PSPReference: "re_1", Amount: 700}})
	inOrder(t, w.page("/console", ""), "Waits for a person", `href="/console/payments/`+string(paymentID), "refund it again", "Quarantined webhooks")
	inOrder(t, w.page("/console/payments/"+string(paymentID), ""), "waits for an operator", "refund it again")
}

func TestAPaymentsPageHasItsDisputesMetadataAndMoneyAsPeopleWriteIt(t *testing.T) {
	w := newWorld(t)
	p := w.after(w.paid(), payment.Event{Type: payment.EventCaptured, PSPReference: "ch_1", Amount: money.Amount{Minor: 700, Currency: "USD"}, Captured: 700})
	w.after(p, payment.Event{Type: payment.EventDisputeOpened, Dispute: payment.Dispute{PSPReference: "dp_1", Amount: 250}})
	page := w.page("/console/payments/"+string(paymentID), "")
	inOrder(t, page, "7.00 USD, captured 7.00 USD, refunded 0.00 USD", "Created", "2026-01-02 03:04:05.000Z", "cart", "c-7", "Disputes", "dp_1", "open", "2.50 USD")
	if strings.Contains(page, "minor units") {
		t.Error("an amount is in minor units")
	}
}

// deliveries makes n deliveries that are due.
func (w *world) deliveries(n int) {
	w.t.Helper()
	for i := range n {
		must(w.t, w.table.AddDelivery(w.t.Context(), delivery.Delivery{
			Event:  outbox.Event{ID: fmt.Sprintf("evt_%s_%d", paymentID, i+1), Type: "payment.captured", Subject: string(paymentID), Version: int64(i + 1), MerchantID: "alpha", At: w.now},
			Status: delivery.StatusPending, CreatedAt: w.now, DueAt: w.now.Add(-time.Minute),
		}))
	}
}

func TestDeliveriesThatAreDueAreANumberAndHideNothing(t *testing.T) {
	w := newWorld(t)
	w.deliveries(2_000) // more than one page of each shard
	w.paid()
	p, err := w.table.Payment(t.Context(), paymentID)
	must(t, err)
	must(t, w.table.Postpone(t.Context(), p.ID, p.Version, w.now, 0)) // due after all of them
	page := w.page("/console", "")
	inOrder(t, page, "Due now", `href="/console/payments/`+string(paymentID), "2000 deliveries")
	if strings.Contains(page, `href=""`) || strings.Contains(page, "alpha#evt_") {
		t.Error("deliveries are listed one by one")
	}
}

func TestMoreThanIsCountedIsSaidToBeMore(t *testing.T) {
	w := newWorld(t)
	w.deliveries(9_000)
	if page := w.page("/console", ""); !strings.Contains(page, "At least ") || strings.Contains(page, " 9000 deliveries") {
		t.Errorf("got page\n%s\nwant a least number of deliveries", page)
	}
}

func TestAWebhookWithoutAPaymentHasNoLinkToOne(t *testing.T) {
	w := newWorld(t)
	it := w.quarantine()
	for _, path := range []string{"/console", "/console/webhooks", "/console/webhooks/" + it.ID()} {
		if strings.Contains(w.page(path, ""), `href="/console/payments/"`) {
			t.Errorf("%s has a link to no payment", path)
		}
	}
}

func TestAnUnknownStatusIsRefusedWithTheStatuses(t *testing.T) {
	w := newWorld(t)
	r := w.visit(visit{method: "GET", path: "/console/webhooks", query: "status=foo", bearer: operatorKey})
	if r.StatusCode != 400 {
		t.Errorf("got %d, want 400", r.StatusCode)
	}
	for _, status := range webhook.Statuses() {
		if !strings.Contains(r.Body, "status="+string(status)) {
			t.Errorf("status %s is not offered", status)
		}
	}
}

func TestWhatCannotBeFoundIsSaid(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"re_01M8NMNTP8PBAY5NFWEAWXN6KQ", "order-42", ""} {
		r := w.visit(visit{method: "GET", path: "/console/find", query: "id=" + id, bearer: operatorKey})
		if r.StatusCode != 404 || !strings.Contains(r.Body, "on the page of its payment") {
			t.Errorf("%q: got %d\n%s\nwant 404 and what can be found", id, r.StatusCode, r.Body)
		}
	}
}

// starter starts no execution.
type starter struct{}

func (starter) Start(context.Context, string, checkout.Input) error { return nil }
