package audit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// settled is a row of a file that tells of a payment as it is.
func (w *world) settled(p payment.Payment) string {
	w.Helper()
	return fmt.Sprintf("%s,%s,capture,,%d,%s\n", w.charge(p).Reference, p.ID, p.Amount.Minor, p.Amount.Currency)
}

// charge is the payment's charge at the PSP.
func (w *world) charge(p payment.Payment) psp.Charge {
	w.Helper()
	c, err := w.PSP.Lookup(w.Context(), psp.LookupRequest{PaymentID: string(p.ID)})
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// ofFile makes a request one about a file.
func ofFile(rows string, period bool) func(*audit.Request) {
	return func(r *audit.Request) {
		r.File = simulatorHeader + rows
		if !period {
			r.From, r.To = time.Time{}, time.Time{}
		}
	}
}

func TestAFileIsHeldAgainstEveryPaymentOfItsPeriod(t *testing.T) {
	w := newWorld(t)
	in, out := w.charged("in", psptest.TokenCaptured, payment.StatusCaptured), w.charged("out", psptest.TokenCaptured, payment.StatusCaptured)
	run := w.run(ofFile(w.settled(in), false))
	w.wantFindings(run)
	if run.Status != audit.StatusCompleted || run.Charges != 1 || run.Payments != 0 {
		t.Errorf("got %+v, want one row compared and nothing else", run)
	}
	run = w.run(ofFile(w.settled(in), true))
	w.wantFindings(run, "missing_at_psp needs_review")
	if f := w.raw(run)[0]; f.PaymentID != out.ID || !strings.HasSuffix(f.There, ", not in the file") {
		t.Errorf("got %+v, want the payment that the file lacks", f)
	}
	w.wantFindings(w.run(ofFile(w.settled(in)+w.settled(out), true)))
}

// A file is a reason to ask the PSP, and never believed itself.
func TestWhatAFileSaysIsNeverRecorded(t *testing.T) {
	w := newWorld(t)
	pending := w.charged("pending", psptest.TokenPending, payment.StatusProcessing)
	silent := w.charged("silent", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	short := w.charged("short", psptest.TokenCaptured, payment.StatusCaptured)
	direct := w.charged("direct", psptest.TokenCaptured, payment.StatusCaptured)
	w.PSP.RefundDirect(string(direct.ID), 20)
	foreign := w.charged("foreign", psptest.TokenCaptured, payment.StatusCaptured)
	refund := w.charge(direct).Refunds[0].Reference
	rows := w.settled(pending) + w.settled(silent) + strings.Replace(w.settled(short), "5000", "4999", 1) + w.settled(direct) +
		fmt.Sprintf("%s,%s,refund,%s,20,JPY\n", w.charge(direct).Reference, direct.ID, refund) +
		fmt.Sprintf("ch_x,%s,capture,,5000,JPY\n", foreign.ID) +
		strings.Replace(w.settled(foreign), "JPY", "EUR", 1)
	run := w.run(ofFile(rows, false))
	w.wantFindings(run, "amount_differs needs_review", "amount_differs needs_review", "missing_here needs_review",
		"refund_unmatched recorded", "status_differs needs_review", "status_differs recorded")
	w.Want(pending.ID, payment.StatusProcessing)
	w.Want(silent.ID, payment.StatusCaptured)
	if got := w.Want(direct.ID, payment.StatusCaptured).AmountRefunded(); got != 20 {
		t.Errorf("got %d refunded, want 20", got)
	}
	w.wantFindings(w.run(ofFile(rows, false)), "amount_differs needs_review", "amount_differs needs_review", "missing_here needs_review", "status_differs needs_review")
}

// Money that did not come, or that came back, is held against what is recorded here.
func TestAFileThatTakesBackIsCompared(t *testing.T) {
	w := newWorld(t)
	captured := w.charged("captured", psptest.TokenCaptured, payment.StatusCaptured)
	declined := w.charged("declined", psptest.TokenDeclined, payment.StatusFailed)
	undecided := w.charged("undecided", psptest.TokenPendingSilent, payment.StatusProcessing)
	bounced := w.charged("bounced", psptest.TokenCaptured, payment.StatusCaptured)
	back := w.Refunded("r", bounced.ID, 20, payment.RefundSucceeded)
	w.PSP.SettleRefund(string(back.ID), psp.RefundFailed)
	w.PSP.Drain() // and no webhook ever comes
	w.PSP.Decline(string(undecided.ID))
	w.PSP.Drain()
	undone := func(p payment.Payment, kind, refund, amount string) string {
		return fmt.Sprintf("%s,%s,%s,%s,%s,JPY\n", w.charge(p).Reference, p.ID, kind, refund, amount)
	}
	rows := undone(captured, "charge_failure", "", "5000") + undone(declined, "charge_failure", "", "5000") + undone(undecided, "charge_failure", "", "5000") +
		w.settled(bounced) + undone(bounced, "refund_failure", back.PSPReference, "20") +
		"ch_x,pay_" + flowtest.ULID(77) + ",charge_failure,,5,JPY\n" + "ch_x,,refund_failure,rf_x,5,JPY\n"
	run := w.run(ofFile(rows, true))
	w.wantFindings(run, "refund_unmatched recorded", "status_differs needs_review", "status_differs recorded")
	w.Want(captured.ID, payment.StatusCaptured)
	w.Want(undecided.ID, payment.StatusFailed)
	if got := w.Want(bounced.ID, payment.StatusCaptured).Refunds[0].Status; got != payment.RefundFailed {
		t.Errorf("got refund %s, want failed", got)
	}
	w.wantFindings(w.run(ofFile(rows, true)), "status_differs needs_review")
}

// A charge that was made at the PSP directly has no id of ours, and is missed here.
func TestARowWithoutAPaymentOfOursIsMissedHere(t *testing.T) {
	w := newWorld(t)
	run := w.run(ofFile("ch_x,,capture,,7,JPY\nch_y,,refund,rf_y,7,JPY\nch_x,,fee,,1,JPY\n", false))
	w.wantFindings(run, "missing_here needs_review", "missing_here needs_review")
	if run.Charges != 2 || run.PassedOver != 1 || run.BadCount != 0 {
		t.Errorf("got %+v, want two rows compared and one passed over", run)
	}
	if f := w.raw(run)[0]; f.There != "capture, 7 JPY" && f.There != "refund, 7 JPY" {
		t.Errorf("got %+v, want what the row says", f)
	}
}

// A PSP that cannot be asked here can still be compared with its file.
func TestWithoutAnAdapterAFileIsOnlyAReport(t *testing.T) {
	w := newWorld(t)
	silent := w.charged("silent", psptest.TokenTimeoutCapturedSilent, payment.StatusProcessing)
	out := w.charged("out", psptest.TokenCaptured, payment.StatusCaptured)
	row := w.settled(silent)
	delete(w.audit.Providers, flowtest.PSP)
	w.wantFindings(w.run(ofFile(row, true)), "missing_at_psp needs_review", "status_differs needs_review")
	w.Want(silent.ID, payment.StatusProcessing)
	w.Want(out.ID, payment.StatusCaptured)
	r := w.request("k")
	if _, _, err := w.audit.Start(t.Context(), r); !errors.Is(err, audit.ErrUnknownPSP) {
		t.Errorf("got %v, want ErrUnknownPSP without a file", err)
	}
}

func TestALongFileIsDonePageByPage(t *testing.T) {
	w := newWorld(t)
	var rows strings.Builder
	for n := range 120 {
		fmt.Fprintf(&rows, "ch_%d,%s,capture,,7,JPY\n", n, "pay_"+flowtest.ULID(int64(700_000+n)))
	}
	for n := range 110 {
		fmt.Fprintf(&rows, "ch_%d\n", n)
	}
	run := w.run(ofFile(rows.String(), false))
	if run.Status != audit.StatusCompleted || run.Charges != 120 || run.Counts[audit.MissingHere] != 120 || run.Review != 120 || run.BadCount != 110 || len(run.BadRows) != 100 {
		t.Errorf("got %+v, want every row compared once, and the first hundred bad ones shown", run)
	}
	if n := len(w.raw(run)); n != 120 {
		t.Errorf("got %d findings, want 120", n)
	}
}
