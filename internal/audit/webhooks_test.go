package audit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

// logOnly is a world whose runs come to the webhook log before anything is repaired:
// the PSP's list is empty.
func logOnly(t *testing.T) *world {
	w := newWorld(t)
	w.audit.Listers[flowtest.PSP] = empty{}
	return w
}

// kept takes an event in and marks its item so, without anybody having applied it.
func (w *world) kept(e psptest.Event, status webhook.Status) {
	w.Helper()
	w.Receive(e)
	w.Store.TakeChanges() // the stream is lost
	it := w.Item(e)
	it.Status, it.Reason, it.DueAt = status, "because", time.Time{}
	if err := w.Table.Save(w.Context(), it); err != nil {
		w.Fatal(err)
	}
}

// approved is a payment that the PSP has captured, and the event that says so.
func (w *world) approved(key string) (payment.Payment, psptest.Event) {
	w.Helper()
	p := w.charged(key, psptest.TokenPending, payment.StatusProcessing)
	w.PSP.Drain()
	w.PSP.Approve(string(p.ID))
	return p, w.PSP.Take(0)
}

func TestWhatWebhooksToldAndPaymentsShowIsNoFinding(t *testing.T) {
	w := logOnly(t)
	for i, token := range []string{
		psptest.TokenCaptured, psptest.TokenDeclined, psptest.TokenPending, psptest.TokenRequiresAction, psptest.TokenWebhookTwice, psptest.TokenWebhookReversed,
	} {
		if _, err := w.Charge(fmt.Sprint("k", i), flowtest.Order{Token: token, Manual: token == psptest.TokenWebhookReversed}); err != nil {
			t.Fatal(err)
		}
	}
	late := w.charged("late", psptest.TokenLateCaptured, payment.StatusProcessing)
	if _, err := w.Cancel("c", late.ID); err != nil {
		t.Fatal(err)
	}
	w.PSP.CaptureLate(string(late.ID))
	p := w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	w.Refunded("r", p.ID, 10, payment.RefundSucceeded)
	w.PSP.RefundDirect(string(p.ID), 20)
	dispute, _ := w.PSP.DisputeOpen(string(p.ID))
	w.PSP.DisputeClose(dispute, "won")
	events := w.PSP.Drain()
	for i := range events { // the last ones come first, as far as they can
		w.Deliver(events[len(events)-1-i])
	}
	w.Pass(5 * time.Minute)
	stray := w.PSP.Push(psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{Reference: "ch_x", PaymentID: "pay_" + flowtest.ULID(77), Status: psp.StatusCaptured, Captured: 5, Amount: money.Amount{Minor: 5, Currency: "JPY"}}})
	w.Deliver(stray)
	w.WantItem(stray, webhook.StatusReceived) // it waits for its payment
	run := w.completed()
	w.wantFindings(run)
	applied, _, err := w.Table.Webhooks(t.Context(), webhook.StatusApplied, "", 100)
	if err != nil || run.Webhooks != int64(len(applied)) || len(applied) < 12 {
		t.Errorf("got %d of %d notifications compared, %v, want all that were applied", run.Webhooks, len(applied), err)
	}
}

// What a notification told and no payment shows is asked of the PSP, whatever had
// become of the notification.
func TestWhatAPaymentDoesNotShowIsAskedOfThePSP(t *testing.T) {
	for _, status := range []webhook.Status{webhook.StatusApplied, webhook.StatusIgnored, webhook.StatusQuarantined} {
		t.Run(string(status), func(t *testing.T) {
			w := logOnly(t)
			captured, event := w.approved("captured")
			w.kept(event, status)
			declined := w.charged("declined", psptest.TokenPending, payment.StatusProcessing)
			w.PSP.Drain()
			w.PSP.Decline(string(declined.ID))
			w.kept(w.PSP.Take(0), status)
			refunded := w.charged("refunded", psptest.TokenCaptured, payment.StatusCaptured)
			w.PSP.Drain()
			w.PSP.RefundDirect(string(refunded.ID), 20)
			w.kept(w.PSP.Take(0), status)

			dry := w.run(func(r *audit.Request) { r.Repair = false })
			// The refund is seen once more when the captured payment is looked up.
			w.wantFindings(dry, "refund_unmatched ", "refund_unmatched ", "status_differs ", "status_differs ")
			w.Want(captured.ID, payment.StatusProcessing)
			run := w.completed()
			w.wantFindings(run, "refund_unmatched recorded", "status_differs recorded", "status_differs recorded")
			for _, f := range w.raw(run) {
				if f.PaymentID == captured.ID && (f.Webhook != w.Item(event).ID() || f.There != fmt.Sprintf("charge.captured webhook, %s: captured, 5000 JPY captured of 5000 JPY", status)) {
					t.Errorf("got %+v, want the notification and what it told", f)
				}
			}
			w.Want(captured.ID, payment.StatusCaptured)
			w.Want(declined.ID, payment.StatusFailed)
			if got := w.Payment(refunded.ID).AmountRefunded(); got != 20 {
				t.Errorf("got %d refunded, want 20", got)
			}
			rows := w.Rows(captured.ID)
			if last := rows[len(rows)-1]; last.Source != "reconciler" {
				t.Errorf("got %+v, want the PSP's answer recorded, not the notification", last)
			}
			w.Settle()
			before := w.versions(captured, declined, refunded)
			w.wantFindings(w.completed())
			if after := w.versions(captured, declined, refunded); after != before {
				t.Errorf("got versions %s, want %s: a second run changes nothing", after, before)
			}
		})
	}
}

// A notification that neither the stream nor the sweep came to is applied like by them.
func TestANotificationThatNobodyCameToIsDrivenOn(t *testing.T) {
	w := logOnly(t)
	p, event := w.approved("k")
	w.Receive(event)
	w.Store.TakeChanges() // the stream is lost
	w.Clock.Advance(2*time.Minute - time.Millisecond)
	w.wantFindings(w.completed()) // the sweep may still come
	w.Clock.Advance(time.Millisecond)
	w.wantFindings(w.run(func(r *audit.Request) { r.Repair = false }), "status_differs ")
	w.WantItem(event, webhook.StatusReceived)
	run := w.completed()
	w.wantFindings(run, "status_differs driven_on")
	w.WantItem(event, webhook.StatusApplied)
	w.Want(p.ID, payment.StatusCaptured)
	rows := w.Rows(p.ID)
	if last := rows[len(rows)-1]; last.Source != "webhook" || w.PSP.Calls()[len(w.PSP.Calls())-1].Operation == psptest.OperationLookup {
		t.Errorf("got %+v, want the webhook's own door, and nobody asked", last)
	}
	w.wantFindings(w.completed())
}

// What disagrees is quarantined when it is driven on, and a person must look.
func TestALateNotificationThatDisagreesNeedsReview(t *testing.T) {
	w := logOnly(t)
	p, event := w.approved("k")
	lie := event.Event
	lie.Charge.Amount.Minor, lie.Charge.Captured = 4000, 4000
	event = w.PSP.Push(lie)
	w.Receive(event)
	w.Store.TakeChanges()
	w.Clock.Advance(2 * time.Minute)
	w.wantFindings(w.completed(), "amount_differs needs_review")
	w.WantItem(event, webhook.StatusQuarantined)
	w.wantFindings(w.completed(), "amount_differs needs_review")
	w.Want(p.ID, payment.StatusProcessing)
	w.Pass(2 * time.Minute)
}

// A notification may come before its payment; only one that has waited in vain tells
// of money that nobody here owns.
func TestANotificationThatWaitsForItsPaymentIsNoFinding(t *testing.T) {
	w := logOnly(t)
	more := &provider{Fake: w.PSP}
	w.audit.Providers[flowtest.PSP] = more
	more.add("pay_"+flowtest.ULID(77), psp.StatusCaptured, 9)
	event := w.PSP.Push(psp.Event{Status: psp.StatusCaptured, Charge: more.extra[0]})
	w.Receive(event)
	w.Store.TakeChanges()
	w.Clock.Advance(flowtest.Durations.PaymentExpiry - time.Millisecond)
	w.wantFindings(w.completed())
	w.Clock.Advance(time.Millisecond)
	w.wantFindings(w.completed(), "missing_here needs_review")
	w.WantItem(event, webhook.StatusReceived) // to quarantine it is the sweep's
	w.Pass(time.Minute)
	w.WantItem(event, webhook.StatusQuarantined)
	w.wantFindings(w.completed(), "missing_here needs_review")
}

// What a notification says is never recorded because it is in the log.
func TestWhatOnlyAWebhookSaysNeedsReview(t *testing.T) {
	w := logOnly(t)
	p := w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	pending := w.charged("p", psptest.TokenPending, payment.StatusProcessing)
	foreign := w.Charged("f", flowtest.Order{PSP: flowtest.OtherPSP}, payment.StatusCaptured)
	w.Settle()
	w.PSP.Drain()
	about := func(p payment.Payment, change func(*psp.Event)) {
		c := psp.Charge{Reference: p.PSPReference, PaymentID: string(p.ID), Status: psp.StatusCaptured, Amount: p.Amount, Captured: p.Amount.Minor}
		e := psp.Event{Status: psp.StatusCaptured, Charge: c}
		change(&e)
		w.kept(w.PSP.Push(e), webhook.StatusQuarantined)
	}
	refund := func(r psp.Refund) func(*psp.Event) {
		return func(e *psp.Event) { e.Status, e.Refund = "", &r }
	}
	about(p, func(e *psp.Event) { e.Charge.Amount.Currency = "EUR" })
	about(p, func(e *psp.Event) { e.Charge.Captured-- })
	about(p, refund(psp.Refund{Reference: "rf_1", RefundID: "re_of_somebody_else", Amount: 1, Status: psp.RefundSucceeded}))
	about(p, refund(psp.Refund{Reference: "rf_2", Amount: 1, Status: psp.RefundSucceeded})) // the PSP knows of none
	about(p, func(e *psp.Event) {
		e.Status, e.Dispute = "", &psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeOpen}
	})
	about(pending, func(*psp.Event) {}) // the PSP says that it is pending
	about(foreign, func(e *psp.Event) { e.Charge.Reference = w.charge(p).Reference })
	about(p, func(e *psp.Event) { e.Charge.Reference = w.charge(pending).Reference })
	about(p, func(e *psp.Event) { e.Charge.Reference = "ch_unknown" })                         // the PSP has no such charge
	about(p, func(e *psp.Event) { e.Charge.Reference = strings.Repeat("x", 300) })             // nor this one
	about(p, func(e *psp.Event) { e.Status, e.Charge.Status = psp.StatusFailed, "failed" })    // old news
	about(p, func(e *psp.Event) { e.Status, e.Charge.Status = psp.StatusAuthorized, "" })      // old news
	about(pending, func(e *psp.Event) { e.Status, e.Charge.Status = psp.StatusPending, "" })   // no outcome
	about(pending, func(e *psp.Event) { e.Status = psp.StatusRequiresAction })                 // no outcome
	about(p, func(e *psp.Event) { e.Charge.PaymentID, e.Charge.Reference = "", "ch_unknown" }) // nobody's
	want := []string{
		"amount_differs needs_review", "amount_differs needs_review", "missing_here needs_review", "missing_here needs_review",
		"refund_unmatched needs_review", "refund_unmatched needs_review", "status_differs needs_review", "status_differs needs_review",
	}
	before := w.versions(p, pending, foreign)
	for range 2 {
		run := w.completed()
		w.wantFindings(run, want...)
		for _, f := range w.raw(run) {
			if f.Webhook == "" || !strings.Contains(f.There, " webhook, quarantined: ") {
				t.Errorf("got %+v, want it told by a webhook", f)
			}
		}
	}
	if after := w.versions(p, pending, foreign); after != before {
		t.Errorf("got versions %s, want %s: nothing is recorded", after, before)
	}
}

// The PSP is asked by our id, whatever the notification calls the charge; and not at
// all about a charge that cannot be.
func TestAWebhooksReferenceIsNotBelieved(t *testing.T) {
	w := logOnly(t)
	p := w.charged("k", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	tell := func(id payment.ID, reference string) {
		w.kept(w.PSP.Push(psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{
			Reference: reference, PaymentID: string(id), Status: psp.StatusCaptured, Amount: p.Amount, Captured: p.Amount.Minor,
		}}), webhook.StatusQuarantined)
	}
	tell(p.ID, "ch_wrong")
	w.wantFindings(w.completed(), "status_differs recorded")
	w.Want(p.ID, payment.StatusCaptured)
	w.wantFindings(w.completed())
	w.Clock.Advance(time.Hour)
	tell("", strings.Repeat("x", 300))
	w.PSP.Before(psptest.OperationLookup, func() error { return context.DeadlineExceeded })
	run := w.run(func(r *audit.Request) { r.From = w.Clock.Now() })
	w.wantFindings(run)
	if run.Status != audit.StatusCompleted || run.Webhooks != 1 {
		t.Errorf("got %+v, want it completed", run)
	}
}

// That a charge is dead does not matter to a payment that is, or that has its money;
// that funds are held for a dead one does.
func TestOnlyWhatIsAtStakeCountsForADeadPayment(t *testing.T) {
	w := logOnly(t)
	dead := w.charged("dead", psptest.TokenTimeoutNothing, payment.StatusProcessing)
	if _, err := w.Cancel("c", dead.ID); err != nil {
		t.Fatal(err)
	}
	w.Pass(5 * time.Minute)
	captured := w.charged("captured", psptest.TokenCaptured, payment.StatusCaptured)
	tell := func(p payment.Payment, status psp.Status, minor int64) {
		w.kept(w.PSP.Push(psp.Event{Status: status, Charge: psp.Charge{
			Reference: p.PSPReference, PaymentID: string(p.ID), Status: status, Amount: money.Amount{Minor: minor, Currency: "JPY"},
		}}), webhook.StatusQuarantined)
	}
	for _, status := range []psp.Status{psp.StatusFailed, psp.StatusCanceled} {
		tell(w.Want(dead.ID, payment.StatusCanceled), status, 5000)
		tell(captured, status, 4000)
	}
	w.wantFindings(w.completed())
	tell(w.Payment(dead.ID), psp.StatusAuthorized, 5000)
	w.wantFindings(w.completed(), "status_differs needs_review")
}

func TestTheWebhookLogIsReadForThePeriodAndThePSP(t *testing.T) {
	w := logOnly(t)
	w.Clock.Advance(time.Hour)
	_, event := w.approved("k")
	w.kept(event, webhook.StatusApplied)
	received := w.Clock.Now()
	for _, tt := range []struct {
		from, to time.Duration
		want     []string
	}{
		{-time.Minute, 0, []string{"status_differs "}},
		{0, time.Minute, []string{"status_differs "}},
		{-time.Minute, -time.Millisecond, nil},
		{time.Millisecond, time.Minute, nil},
	} {
		run := w.run(func(r *audit.Request) { r.From, r.To, r.Repair = received.Add(tt.from), received.Add(tt.to), false })
		w.wantFindings(run, tt.want...)
		if run.Webhooks != int64(len(tt.want)) {
			t.Errorf("got %d notifications compared, want %d", run.Webhooks, len(tt.want))
		}
	}
	w.audit.Listers[flowtest.OtherPSP], w.audit.Providers[flowtest.OtherPSP] = empty{}, w.Other
	w.audit.Webhooks[flowtest.OtherPSP] = w.PSP
	if run := w.run(func(r *audit.Request) { r.PSP = flowtest.OtherPSP }); run.Webhooks != 0 {
		t.Errorf("got %d notifications of another psp compared", run.Webhooks)
	}
	delete(w.audit.Webhooks, flowtest.PSP) // nobody can read them
	w.wantFindings(w.completed())
	w.Pass(2 * time.Minute)
}

// The log is read page by page, and a run goes on in it where it stopped.
func TestARunGoesOnInTheWebhookLog(t *testing.T) {
	w := logOnly(t)
	for i := range 120 {
		_, event := w.approved(fmt.Sprint("k", i))
		w.kept(event, []webhook.Status{webhook.StatusApplied, webhook.StatusQuarantined}[i%2])
	}
	calls := 0
	w.PSP.Before(psptest.OperationLookup, func() error {
		if calls++; calls == 70 {
			return context.DeadlineExceeded
		}
		return nil
	})
	r := w.request("key")
	run, _, err := w.audit.Start(t.Context(), r)
	stops := 0
	for ; err == nil && run.Status == audit.StatusRunning && stops < 9; stops++ {
		run, _, err = w.audit.Start(t.Context(), r)
	}
	if err != nil || run.Status != audit.StatusCompleted || stops == 0 || run.Webhooks != 120 || run.Counts[audit.StatusDiffers] != 120 || run.Repaired != 120 {
		t.Errorf("got %+v, %v after %d stops, want every notification once", run, err, stops)
	}
	w.Settle()
	w.wantFindings(w.completed())
}
