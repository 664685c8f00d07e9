package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

func TestAnAnswerAboutOtherMoneyIsNotRecorded(t *testing.T) {
	w := newWorld(t)
	w.Lies = true
	p := w.charged("k", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	row := w.settled(p)
	for _, alter := range []func(*psp.Charge){
		func(c *psp.Charge) { c.Amount.Minor, c.Captured = 4000, 4000 },
		func(c *psp.Charge) { c.PaymentID = "pay_" + flowtest.ULID(77) },
	} {
		w.PSP.Alter(psptest.OperationLookup, alter)
		w.wantFindings(w.run(ofFile(row, false)), "status_differs needs_review")
		if after := w.Payment(p.ID); after.Version != p.Version {
			t.Errorf("got version %d, want %d: nothing is recorded", after.Version, p.Version)
		}
	}
}

func TestAPaymentThatMovesMeanwhileIsNoFinding(t *testing.T) {
	w := newWorld(t)
	p := w.charged("k", psptest.TokenTimeoutCaptured, payment.StatusProcessing)
	w.OnCall(psptest.OperationLookup, func() error {
		w.Deliver(w.PSP.Drain()...)
		return nil
	})
	w.wantFindings(w.completed())
	w.Want(p.ID, payment.StatusCaptured)
}

func TestTheChargeOfAnotherPaymentIsNoAnswer(t *testing.T) {
	w := newWorld(t)
	w.Lies = true
	w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	w.audit.Listers[flowtest.PSP] = empty{}
	w.PSP.Alter(psptest.OperationLookup, func(c *psp.Charge) { c.PaymentID = "pay_" + flowtest.ULID(77) })
	w.wantFindings(w.completed(), "missing_at_psp needs_review")
}

func TestPaymentsOfOtherPSPsAreNotCompared(t *testing.T) {
	w := newWorld(t)
	w.Lies = true
	p := w.Charged("k", flowtest.Order{PSP: flowtest.OtherPSP}, payment.StatusCaptured)
	w.Settle()
	run := w.completed()
	w.wantFindings(run)
	if run.Payments != 0 {
		t.Errorf("got %d payments, want none of another psp", run.Payments)
	}
	more := &provider{Fake: w.PSP}
	w.audit.Providers[flowtest.PSP], w.audit.Listers[flowtest.PSP] = more, more
	more.extra = []psp.Charge{{Reference: p.PSPReference, PaymentID: string(p.ID), Status: psp.StatusCaptured, Captured: 5000, Amount: p.Amount}}
	run = w.completed()
	w.wantFindings(run, "missing_here needs_review")
	if f := w.raw(run)[0]; f.Here != "a payment at other" {
		t.Errorf("got %q, want where the payment is", f.Here)
	}
}

// The row's reference is nobody's, so that the PSP tells nothing when it is asked by
// it: the payment is driven on, which asks by its id.
func TestAPaymentOfWhichThePSPTellsNothingIsDrivenOn(t *testing.T) {
	w := newWorld(t)
	p := w.charged("k", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	row := strings.Replace(w.settled(p), w.charge(p).Reference, "ch_typo", 1)
	if p.PSPReference != "" {
		t.Fatalf("got reference %q, want none known", p.PSPReference)
	}
	w.Clock.Advance(2 * time.Minute) // it is due, and nobody comes
	w.wantFindings(w.run(ofFile(row, false)), "status_differs driven_on")
	rows := w.Rows(p.ID)
	if last := rows[len(rows)-1]; last.Type != "payment.captured" || last.Source != "reconciler" {
		t.Errorf("got %+v, want the capture by the reconciler", last)
	}
	w.wantFindings(w.run(ofFile(row, false)), "missing_here needs_review") // now the reference is known to be wrong
	w.Want(p.ID, payment.StatusCaptured)
}

// Something was recorded, but not what the row tells of.
func TestARepairCountsOnlyWhenTheDifferenceIsGone(t *testing.T) {
	w := newWorld(t)
	p := w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	w.PSP.RefundDirect(string(p.ID), 20)
	w.PSP.Drain()
	row := fmt.Sprintf("%s,%s,refund,rf_other,10,JPY\n", w.charge(p).Reference, p.ID)
	w.wantFindings(w.run(ofFile(row, false)), "refund_unmatched needs_review")
	if got := w.Payment(p.ID).AmountRefunded(); got != 20 {
		t.Errorf("got %d refunded, want the 20 that the psp told of", got)
	}
}

// idle drives no checkout on.
type idle struct{}

func (idle) Repair(context.Context, string) error { return nil }

func TestHeldFundsOfADeadPaymentAreReleased(t *testing.T) {
	w := newWorld(t)
	p := w.Charged("k", flowtest.Order{Token: psptest.TokenTimeoutCapturedSilent, Manual: true}, payment.StatusProcessing)
	w.PSP.Before(psptest.OperationLookup, func() error { return psp.ErrNotFound })
	w.Pass(time.Hour) // it dies, as the psp knows nothing of it
	w.PSP.Before(psptest.OperationLookup, nil)
	w.PSP.Drain() // and no webhook ever comes
	run := w.completed()
	w.wantFindings(run, "status_differs recorded")
	if f := w.raw(run)[0]; !strings.HasPrefix(f.There, "authorized") || !strings.HasPrefix(f.Here, "canceled") {
		t.Errorf("got %+v, want held funds of a dead payment", f)
	}
	w.wantFindings(w.completed())
	w.Pass(time.Hour)
	w.WantCalls(psptest.OperationCancel, 1)
	w.Want(p.ID, payment.StatusCanceled)
}

// The repair voids the charge, so that the PSP's side has moved when it is held
// against the payment again.
func TestAfterARepairBothSidesAreReadAgain(t *testing.T) {
	w := newWorld(t)
	p := w.Charged("k", flowtest.Order{Token: psptest.TokenTimeoutCapturedSilent, Manual: true}, payment.StatusProcessing)
	w.PSP.Before(psptest.OperationLookup, func() error { return errors.New("no answer") })
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.PSP.Before(psptest.OperationLookup, nil)
	w.PSP.Drain() // and no webhook ever comes
	w.wantFindings(w.completed(), "status_differs recorded")
	w.WantCalls(psptest.OperationCancel, 1)
	w.Want(p.ID, payment.StatusCanceled)
}

func TestACheckoutThatDoesNotMoveNeedsReview(t *testing.T) {
	w := newWorld(t)
	c := w.Bought("1", sagatest.Basket{Token: psptest.TokenPending})
	w.Rough = true
	w.OnStart = func(string) error { return errors.New("no executions today") }
	w.PSP.Approve(string(c.PaymentID))
	w.Deliver(w.PSP.Drain()...)
	w.OnStart = nil
	w.Clock.Advance(time.Hour)
	repairs := w.audit.Checkouts
	w.audit.Checkouts = idle{}
	w.wantFindings(w.completed(), "order_missing needs_review")
	w.audit.Checkouts = repairs
	w.wantFindings(w.completed(), "order_missing resumed")
	w.Settle()
}

// What the feed tells of after the period is another run's.
func TestWhatHappenedAfterThePeriodIsNotLookedAt(t *testing.T) {
	w := newWorld(t)
	w.charged("before", psptest.TokenCaptured, payment.StatusCaptured)
	end := w.Clock.Now()
	w.Clock.Advance(time.Millisecond)
	w.charged("after", psptest.TokenCaptured, payment.StatusCaptured)
	for _, tt := range []struct {
		to   time.Time
		want int64
	}{{end.Add(-time.Millisecond), 0}, {end, 1}, {end.Add(time.Millisecond), 2}} {
		if run := w.run(func(r *audit.Request) { r.To = tt.to }); run.Payments != tt.want || run.Status != audit.StatusCompleted {
			t.Errorf("until %s: got %d payments (%s), want %d", tt.to, run.Payments, run.Status, tt.want)
		}
	}
}

func TestARefundWithoutAnAnswerIsNotYetMissing(t *testing.T) {
	w := newWorld(t)
	p := w.charged("k", psptest.TokenCaptured, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, flowtest.Lost)
	w.Refunded("r", p.ID, 10, payment.RefundPending)
	w.wantFindings(w.completed())
}

// A finding is counted once, and ends once, whoever comes to it.
func TestAFindingIsCountedOnce(t *testing.T) {
	w := newWorld(t)
	run := w.run(ofFile("", false))
	f := audit.Finding{Kind: audit.StatusDiffers, Reference: "ch_1", At: w.Clock.Now()}
	for n := range 2 {
		fresh, err := w.Table.AddFinding(t.Context(), run.ID, f)
		if err != nil || fresh != (n == 0) {
			t.Fatalf("got %t, %v, want it fresh the first time", fresh, err)
		}
	}
	settled := f
	settled.Repair = audit.Recorded
	review := f
	review.NeedsReview = true
	for _, end := range []audit.Finding{settled, settled, review} {
		if err := w.Table.SettleFinding(t.Context(), run.ID, end); err != nil {
			t.Fatal(err)
		}
	}
	run, err := w.Table.Run(t.Context(), run.ID)
	if err != nil || run.Counts[audit.StatusDiffers] != 1 || run.Repaired != 1 || run.Review != 0 {
		t.Errorf("got %+v, %v, want one finding that was repaired", run, err)
	}
	w.wantFindings(run, "status_differs recorded")
}

func TestASlowWorkerDoesNotTurnARunBack(t *testing.T) {
	w := newWorld(t)
	run := w.run(ofFile("", false))
	slow := run
	slow.Status, slow.Charges = audit.StatusRunning, 7
	if err := w.Table.SaveRun(t.Context(), slow, nil); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	if now, err := w.Table.Run(t.Context(), run.ID); err != nil || now.Status != audit.StatusCompleted || now.Charges != 0 {
		t.Errorf("got %+v, %v, want it as it was", now, err)
	}
}

func TestAnUnknownPSPHasNoRun(t *testing.T) {
	w := newWorld(t)
	r := w.request("key")
	r.PSP = "other"
	if _, _, err := w.audit.Start(t.Context(), r); !errors.Is(err, audit.ErrUnknownPSP) {
		t.Errorf("got %v, want ErrUnknownPSP", err)
	}
	if _, err := w.audit.Continue(t.Context(), "rec_x"); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
