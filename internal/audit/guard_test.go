package audit_test

import (
	"errors"
	"testing"

	"github.com/kessai/kessai/internal/audit"
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
