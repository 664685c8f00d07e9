package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
)

const runID = "rec_01M8NMNTP8PBAY5NFWEAWXN6KS"

// run makes a reconciliation with two findings, one of which needs review.
func (w *world) run() {
	w.t.Helper()
	must(w.t, w.table.CreateRun(w.t.Context(), audit.Run{
		ID: runID, PSP: "simulator", Source: audit.SourceList, Status: audit.StatusRunning, Phase: audit.PhaseThere, Version: 1, Repair: true,
		From: w.now.Add(-time.Hour), To: w.now, CreatedAt: w.now, UpdatedAt: w.now,
	}, "", *w.claim(runID)))
	for _, f := range []audit.Finding{
		{Kind: audit.AmountDiffers, PaymentID: paymentID, There: "7.00 USD", Here: "9.00 USD", NeedsReview: true, At: w.now},
		{Kind: audit.OrderMissing, CheckoutID: checkoutID, There: "no order", Here: "captured", Repair: audit.Resumed, At: w.now},
	} {
		if _, err := w.table.AddFinding(w.t.Context(), runID, f); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestReconciliationsAreListedWithTheirFindings(t *testing.T) {
	w := newWorld(t)
	inOrder(t, w.page("/console/reconciliations", ""), "None.")
	w.run()
	inOrder(t, w.page("/console", ""), `href="/console/reconciliations"`)
	inOrder(t, w.page("/console/reconciliations", ""), `href="/console/reconciliations/`+runID, "simulator", "running", "<td>2</td>", "<td>0</td>", `class="alert">1<`)
	page := w.page("/console/reconciliations/"+runID, "")
	inOrder(t, page, "running", "Needs review", "Findings: amount_differs", "Findings: order_missing")
	_, findings, _ := strings.Cut(page, "<h2>Findings")
	inOrder(t, findings, "amount_differs", `href="/console/payments/`+string(paymentID), "7.00 USD", "9.00 USD", "needs review")
	inOrder(t, findings, "order_missing", `href="/console/checkouts/`+checkoutID, "no order", "captured", "resumed")
	r := w.visit(visit{method: "GET", path: "/console/find", query: "id=" + runID, bearer: operatorKey})
	if got := r.Headers["Location"]; got != "/console/reconciliations/"+runID {
		t.Errorf("got location %q, want the run's page", got)
	}
}

func TestACursorThatNoPageGaveOutIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/console/reconciliations", "/console/webhooks"} {
		if r := w.visit(visit{method: "GET", path: path, query: "cursor=x", bearer: operatorKey}); r.StatusCode != 400 {
			t.Errorf("%s: got %d, want 400", path, r.StatusCode)
		}
	}
}

func TestAnAbsentReconciliationIsNotFound(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{runID, "rec_1", "pay_1"} {
		if r := w.visit(visit{method: "GET", path: "/console/reconciliations/" + id, bearer: operatorKey}); r.StatusCode != 404 {
			t.Errorf("%s: got %d, want 404", id, r.StatusCode)
		}
	}
}
