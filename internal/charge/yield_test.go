package charge_test

import (
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
)

// Held funds are looked up daily. Somebody who drives them in between and finds
// the lease taken does not bring that forward.
func TestAWorkerThatFindsTheLeaseTakenLeavesALaterDueDateAlone(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Manual: true}, payment.StatusAuthorized)
	if _, err := w.Charges.Leases.Acquire(w.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Charges.Drive(w.Context(), p.ID, journal.SourceAPI); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Payment(p.ID).DueAt, Start.Add(24*time.Hour); !got.Equal(want) {
		t.Errorf("got due at %s, want it to stay %s", got, want)
	}
}
