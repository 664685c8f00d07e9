package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

func TestWhatAgreesIsNoFinding(t *testing.T) {
	w := newWorld(t)
	for i, token := range []string{
		psptest.TokenCaptured, psptest.TokenDeclined, psptest.TokenPending, psptest.TokenRequiresAction, psptest.TokenLateCaptured, psptest.TokenInsufficientFunds,
	} {
		if _, err := w.Charge(fmt.Sprint("k", i), flowtest.Order{Token: token}); err != nil {
			t.Fatal(err)
		}
	}
	held := w.Charged("held", flowtest.Order{Manual: true}, payment.StatusAuthorized)
	part := w.Charged("part", flowtest.Order{Manual: true}, payment.StatusAuthorized)
	if _, err := w.Capture("c", part.ID, 100); err != nil {
		t.Fatal(err)
	}
	refunded := w.charged("refunded", psptest.TokenCaptured, payment.StatusCaptured)
	w.Refunded("r", refunded.ID, 70, payment.RefundSucceeded)
	late := w.charged("late", psptest.TokenLateCaptured, payment.StatusProcessing)
	if _, err := w.Cancel("c", late.ID); err != nil {
		t.Fatal(err)
	}
	w.PSP.CaptureLate(string(late.ID))
	w.Deliver(w.PSP.Drain()...)
	w.WantCheckout(w.Bought("b", sagatest.Basket{}).ID, checkout.StatusCompleted, "")
	w.WantCheckout(w.Bought("d", sagatest.Basket{Token: psptest.TokenDeclined}).ID, checkout.StatusFailed, "card_declined")
	w.Settle()
	run := w.completed()
	w.wantFindings(run)
	if run.Charges != int64(len(w.PSP.Charges())) || run.Payments != 5 {
		t.Errorf("got %d charges and %d payments compared, want %d and 5", run.Charges, run.Payments, len(w.PSP.Charges()))
	}
	w.Want(held.ID, payment.StatusAuthorized)
}

// Everything that can be repaired is, through the journal, and a second run finds it
// right and changes nothing.
func TestRepairsAreSafeAndTheSecondRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	silent := w.charged("silent", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	declined := w.charged("declined", psptest.TokenPendingSilent, payment.StatusProcessing)
	w.PSP.Decline(string(declined.ID))
	lapsed := w.Charged("lapsed", flowtest.Order{Manual: true}, payment.StatusAuthorized)
	w.PSP.Lapse(string(lapsed.ID))
	direct := w.charged("direct", psptest.TokenCaptured, payment.StatusCaptured)
	w.PSP.RefundDirect(string(direct.ID), 500)
	bounced := w.charged("bounced", psptest.TokenCaptured, payment.StatusCaptured)
	back := w.Refunded("r", bounced.ID, 5000, payment.RefundSucceeded)
	w.PSP.SettleRefund(string(back.ID), psp.RefundFailed)
	late := w.charged("late", psptest.TokenLateCaptured, payment.StatusProcessing)
	if _, err := w.Cancel("c", late.ID); err != nil {
		t.Fatal(err)
	}
	w.PSP.CaptureLate(string(late.ID))
	w.PSP.Drain() // and no webhook ever comes

	before := w.versions(silent, declined, lapsed, direct, bounced, late)
	dry := w.run(func(r *audit.Request) { r.Repair = false })
	w.wantFindings(dry, "refund_unmatched ", "refund_unmatched ", "status_differs ", "status_differs ", "status_differs ", "status_differs ")
	if after := w.versions(silent, declined, lapsed, direct, bounced, late); after != before {
		t.Errorf("got versions %s after a run without repair, want %s", after, before)
	}
	first := w.completed()
	w.wantFindings(first, "refund_unmatched recorded", "refund_unmatched recorded",
		"status_differs recorded", "status_differs recorded", "status_differs recorded", "status_differs recorded")
	w.Want(silent.ID, payment.StatusCaptured)
	w.Want(declined.ID, payment.StatusFailed)
	w.Want(lapsed.ID, payment.StatusCanceled)
	w.Want(late.ID, payment.StatusRefunded)
	if p := w.Want(direct.ID, payment.StatusCaptured); p.AmountRefunded() != 500 || !p.Refunds[0].Outside {
		t.Errorf("got %+v, want the refund made at the psp", p.Refunds)
	}
	if p := w.Payment(bounced.ID); p.AmountRefunded() != 0 || p.Refunds[0].Status != payment.RefundFailed {
		t.Errorf("got %+v, want the refund failed", p.Refunds)
	}
	for _, row := range w.Rows(silent.ID)[len(w.Rows(silent.ID))-1:] {
		if row.Type != "payment.captured" || row.Source != "reconciler" {
			t.Errorf("got %+v, want the capture by the reconciler", row)
		}
	}
	w.Settle()
	after, calls := w.versions(silent, declined, lapsed, direct, bounced, late), w.changes()
	w.wantFindings(w.completed())
	if got := w.versions(silent, declined, lapsed, direct, bounced, late); got != after || w.changes() != calls {
		t.Errorf("got versions %s and %d calls, want %s and %d: a second run changes nothing", got, w.changes(), after, calls)
	}
}

func (w *world) versions(all ...payment.Payment) string {
	w.Helper()
	var versions []int64
	for _, p := range all {
		versions = append(versions, w.Payment(p.ID).Version)
	}
	return fmt.Sprint(versions)
}

// changes is how many calls that could change anything the PSP has had.
func (w *world) changes() int {
	n := 0
	for _, c := range w.PSP.Calls() {
		if c.Operation != psptest.OperationLookup {
			n++
		}
	}
	return n
}

// What only a person can tell is left alone, and is told again by each run.
func TestWhatHasNoSafeRepairNeedsReview(t *testing.T) {
	w := newWorld(t)
	w.Lies = true
	gone := w.charged("gone", psptest.TokenCaptured, payment.StatusCaptured)
	w.PSP.Forget(string(gone.ID))
	other := w.charged("other", psptest.TokenCaptured, payment.StatusCaptured)
	short := w.charged("short", psptest.TokenCaptured, payment.StatusCaptured)
	reversed := w.charged("reversed", psptest.TokenCaptured, payment.StatusCaptured)
	twice := w.charged("twice", psptest.TokenCaptured, payment.StatusCaptured)
	phantom := w.charged("phantom", psptest.TokenCaptured, payment.StatusCaptured)
	unknown := w.charged("unknown", psptest.TokenCaptured, payment.StatusCaptured)
	more := &provider{Fake: w.PSP}
	w.audit.Providers[flowtest.PSP], w.audit.Listers[flowtest.PSP] = more, more
	more.add(string(twice.ID), psp.StatusCaptured, 9)
	more.add("order 17", psp.StatusCaptured, 9)
	more.add("pay_"+flowtest.ULID(77), psp.StatusAuthorized, 0)
	more.add(string(twice.ID), psp.StatusFailed, 0) // nothing is at stake
	more.add("order 18", psp.StatusCanceled, 0)
	w.Refunded("r", phantom.ID, 10, payment.RefundSucceeded)
	alter := func(c *psp.Charge) {
		switch payment.ID(c.PaymentID) {
		case other.ID:
			c.Amount.Currency = "EUR"
		case short.ID:
			c.Captured--
		case reversed.ID:
			c.Status, c.Captured = psp.StatusCanceled, 0
		case phantom.ID:
			c.Refunds, c.Refunded = nil, 0
		case unknown.ID:
			c.Refunds = []psp.Refund{{Reference: "rf_x", RefundID: "re_x", Amount: 1, Status: psp.RefundSucceeded}}
		}
	}
	w.PSP.Alter(psptest.OperationList, alter)
	w.PSP.Alter(psptest.OperationLookup, alter)
	w.Settle()
	all := []payment.Payment{gone, other, short, reversed, twice, phantom, unknown}
	before := w.versions(all...)
	want := []string{
		"amount_differs needs_review", "amount_differs needs_review", "missing_at_psp needs_review", "missing_here needs_review",
		"missing_here needs_review", "missing_here needs_review", "refund_unmatched needs_review", "refund_unmatched needs_review", "status_differs needs_review",
	}
	for _, repair := range []bool{false, true, true} {
		w.wantFindings(w.run(func(r *audit.Request) { r.Repair = repair }), want...)
	}
	if after := w.versions(all...); after != before {
		t.Errorf("got versions %s, want %s: nothing is changed", after, before)
	}
	if n := w.Meter.Of(audit.MetricReview); n != 27 {
		t.Errorf("got %d to review counted, want 27", n)
	}
}

// provider is a PSP that has charges which did not come from here.
type provider struct {
	*psptest.Fake
	extra []psp.Charge
}

func (p *provider) add(paymentID string, status psp.Status, captured int64) {
	p.extra = append(p.extra, psp.Charge{
		Reference: fmt.Sprintf("ch_direct_%d", len(p.extra)), PaymentID: paymentID, Status: status, Captured: captured, Amount: money.Amount{Minor: 9, Currency: "JPY"},
	})
}

func (p *provider) List(ctx context.Context, since time.Time, cursor string) ([]psp.Charge, string, error) {
	charges, next, err := p.Fake.List(ctx, since, cursor)
	if next == "" {
		charges = append(charges, p.extra...)
	}
	return charges, next, err
}

func (p *provider) Lookup(ctx context.Context, r psp.LookupRequest) (psp.Charge, error) {
	for _, c := range p.extra {
		if c.Reference == r.Reference {
			return c, nil
		}
	}
	return p.Fake.Lookup(ctx, r)
}

// A list is older than what has happened since: only what is there when it is asked
// again counts.
func TestAnOldListIsNoFinding(t *testing.T) {
	w := newWorld(t)
	p := w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	refunded := w.charged("r", psptest.TokenCaptured, payment.StatusCaptured)
	w.Refunded("r", refunded.ID, 10, payment.RefundSucceeded)
	w.PSP.Alter(psptest.OperationList, func(c *psp.Charge) {
		c.Refunds, c.Refunded = nil, 0
		if c.PaymentID == string(p.ID) {
			c.Status, c.Captured = psp.StatusPending, 0
		}
	})
	w.wantFindings(w.completed())
}

// empty is a list without charges.
type empty struct{}

func (empty) List(context.Context, time.Time, string) ([]psp.Charge, string, error) {
	return nil, "", nil
}

func TestACapturedPaymentIsLookedUpWhenTheListIsTooYoung(t *testing.T) {
	w := newWorld(t)
	p := w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	w.audit.Listers[flowtest.PSP] = empty{}
	w.wantFindings(w.completed())
	w.Lies = true
	w.PSP.Forget(string(p.ID))
	run := w.completed()
	w.wantFindings(run, "missing_at_psp needs_review")
	if f := w.raw(run)[0]; f.PaymentID != p.ID || f.Reference != w.Payment(p.ID).PSPReference || f.Here != "captured, 5000 JPY captured of 5000 JPY" || f.There != "nothing" {
		t.Errorf("got %+v, want what each side says", f)
	}
	outside := w.run(func(r *audit.Request) { r.From, r.To = w.Clock.Now().Add(time.Second), w.Clock.Now().Add(time.Hour) })
	w.wantFindings(outside)
	before := w.run(func(r *audit.Request) { r.To = flowtest.Start.Add(-time.Minute) })
	w.wantFindings(before)
}

func TestAShopIsHeldAgainstItsPayments(t *testing.T) {
	w := newWorld(t)
	fine, lost, unsold := w.Bought("1", sagatest.Basket{}), w.Bought("2", sagatest.Basket{}), w.Bought("3", sagatest.Basket{})
	failed := w.Bought("4", sagatest.Basket{Token: psptest.TokenDeclined})
	w.WantCheckout(fine.ID, checkout.StatusCompleted, "")
	w.shop.lost[order.ID(lost.ID)] = true
	w.shop.held[unsold.ID] = inventory.Reserved
	w.shop.held[failed.ID] = inventory.Reserved
	run := w.completed()
	w.wantFindings(run, "order_missing needs_review", "stock_leaked needs_review", "stock_leaked needs_review")
	for _, f := range w.raw(run) {
		if f.CheckoutID == fine.ID || f.CheckoutID == "" {
			t.Errorf("got %+v, want a checkout that is wrong", f)
		}
	}
}

func TestACheckoutThatNobodyDrivesOnIsResumed(t *testing.T) {
	w := newWorld(t)
	c := w.Bought("1", sagatest.Basket{Token: psptest.TokenPending})
	w.Rough = true
	w.OnStart = func(string) error { return errors.New("no executions today") }
	w.PSP.Approve(string(c.PaymentID))
	w.Deliver(w.PSP.Drain()...)
	w.Want(c.PaymentID, payment.StatusCaptured)
	w.wantFindings(w.completed()) // it is not late yet
	w.OnStart = nil
	w.Clock.Advance(time.Hour)
	w.wantFindings(w.run(func(r *audit.Request) { r.Repair = false }), "order_missing ")
	w.wantFindings(w.completed(), "order_missing resumed")
	w.wantFindings(w.completed()) // its execution has begun
	w.Settle()
	w.WantCheckout(c.ID, checkout.StatusCompleted, "")
	w.wantFindings(w.completed())
}

func TestAnOrderWithoutACapturedPaymentIsAnAlarm(t *testing.T) {
	w := newWorld(t)
	c := w.Bought("1", sagatest.Basket{})
	// As if the capture had never been recorded.
	err := w.Store.Write(w.Context(), store.Write{
		Kind: store.Update, Key: store.Key{PK: "PAYMENT#" + string(c.PaymentID), SK: "STATE"}, Set: store.Item{"status": "failed"}, Remove: []string{"amount_captured"},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := w.run(func(r *audit.Request) { r.Repair = false })
	w.wantFindings(run, "status_differs ", "status_differs needs_review")
	if w.Meter.Of(checkout.MetricOrderWithoutPayment) != 1 {
		t.Errorf("got no alarm of an order without a payment")
	}
	if err := w.Store.Write(w.Context(), store.Write{
		Kind: store.Update, Key: store.Key{PK: "PAYMENT#" + string(c.PaymentID), SK: "STATE"}, Set: store.Item{"status": "captured", "amount_captured": int64(5000)},
	}); err != nil {
		t.Fatal(err)
	}
}

func TestARunGoesOnWhereItStopped(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.charged(fmt.Sprint("k", i), psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	}
	pages := 0
	w.PSP.Before(psptest.OperationList, func() error {
		if pages++; pages%2 == 0 {
			return context.DeadlineExceeded
		}
		return nil
	})
	r := w.request("key")
	run, replayed, err := w.audit.Start(t.Context(), r)
	if err != nil || replayed || run.Status != audit.StatusRunning || run.Charges != 5 {
		t.Fatalf("got %+v, %t, %v, want it running after one page", run, replayed, err)
	}
	for range 20 {
		if run, replayed, err = w.audit.Start(t.Context(), r); err != nil || !replayed {
			t.Fatalf("got %+v, %t, %v, want the same run driven on", run, replayed, err)
		}
		if run.Status == audit.StatusCompleted {
			break
		}
	}
	if run.Status != audit.StatusCompleted || run.Charges != 60 || run.Repaired != 60 || run.Counts[audit.StatusDiffers] != 60 {
		t.Errorf("got %+v, want every charge once", run)
	}
	r.Fingerprint = "other"
	if _, _, err := w.audit.Start(t.Context(), r); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Errorf("got %v, want ErrKeyReused", err)
	}
	runs, next, err := w.Table.Runs(t.Context(), "", 100)
	if err != nil || next != "" || len(runs) != 1 || runs[0].ID != run.ID {
		t.Errorf("got %v, %v, want the one run", runs, err)
	}
	if w.Meter.Of(audit.MetricCompleted) != 1 || w.Meter.Of(audit.MetricFindings) != 60 {
		t.Errorf("got metrics %d, %d, want one run and its findings", w.Meter.Of(audit.MetricCompleted), w.Meter.Of(audit.MetricFindings))
	}
}

func TestARunThatStopsTooOftenIsFailed(t *testing.T) {
	w := newWorld(t)
	w.PSP.Before(psptest.OperationList, func() error { return context.DeadlineExceeded })
	r := w.request("key")
	var run audit.Run
	for n := range 11 {
		var err error
		if run, _, err = w.audit.Start(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if want := n >= 9; (run.Status == audit.StatusFailed) != want {
			t.Fatalf("call %d: got %s, want failed %t", n+1, run.Status, want)
		}
	}
	if w.Meter.Of(audit.MetricFailed) != 1 {
		t.Errorf("got %d failed runs counted, want 1", w.Meter.Of(audit.MetricFailed))
	}
}

// A process that dies between any two writes leaves a run that the next call ends,
// with every difference counted once.
func TestADeadWorkerLosesNothing(t *testing.T) {
	for die := range 6 {
		t.Run(fmt.Sprint(die), func(t *testing.T) {
			w := newWorld(t)
			p := w.charged("k", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
			writes := 0
			fail := func(all []store.Write) bool {
				if !strings.HasPrefix(all[len(all)-1].Key.PK, "RECONCILIATION") {
					return false
				}
				writes++
				return writes == die+1
			}
			w.Store.After(fail, flowtest.Silent)
			r := w.request("key")
			run, _, err := w.audit.Start(t.Context(), r)
			for n := 0; n < 5 && (err != nil || run.Status != audit.StatusCompleted); n++ {
				run, _, err = w.audit.Start(t.Context(), r)
			}
			if err != nil || run.Status != audit.StatusCompleted || run.Counts[audit.StatusDiffers] != 1 || run.Repaired+run.Review != 1 {
				t.Errorf("got %+v, %v, want one difference that has ended", run, err)
			}
			w.Want(p.ID, payment.StatusCaptured)
		})
	}
}
