package charge_test

import (
	"context"
	"testing"

	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// The sweep takes the lease between a cancel's commit and its own drive: the cancel
// is answered with what the sweep brings about.
func TestACancelWaitsForTheWorkerThatIsFaster(t *testing.T) {
	w := flowtest.New(t)
	p := w.Charged("charge", flowtest.Order{Manual: true}, payment.StatusAuthorized)
	lease, err := w.Charges.Leases.Acquire(t.Context(), p.ID) // the other worker
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	w.Charges.Journal.Pause = pauses(func() {
		if looks++; looks == 3 { // it is done now
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := w.Charges.Drive(t.Context(), p.ID, journal.SourceReconciler); err != nil {
				t.Error(err)
			}
		}
	})
	result, err := w.Cancel("cancel", p.ID)
	if err != nil || result.Payment.Status != payment.StatusCanceled {
		t.Errorf("got %s (%v), want it canceled", result.Payment.Status, err)
	}
	w.WantCalls(psptest.OperationCancel, 1)
}

func pauses(do func()) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error {
		do()
		return ctx.Err()
	}
}
