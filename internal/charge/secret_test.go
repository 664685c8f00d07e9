package charge_test

import (
	"errors"
	"testing"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// paidMeanwhile is a payment that waits for its customer, and what happens when the
// customer pays and the PSP tells of it.
func paidMeanwhile(w *World) (payment.ID, func()) {
	p := w.Charged("k", Order{Token: psptest.TokenRequiresAction}, payment.StatusRequiresAction)
	return p.ID, func() {
		w.PSP.Approve(string(p.ID))
		w.Deliver(w.PSP.Drain()...)
	}
}

func TestACancelThatFindsTheLeaseTakenShowsNothingOfWhatEndedMeanwhile(t *testing.T) {
	w := New(t)
	id, pays := paidMeanwhile(w)
	if _, err := w.Charges.Leases.Acquire(w.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.Store.Before(Postponed, Then(pays))
	r, err := w.Cancel("c", id)
	if !errors.Is(err, charge.ErrCaptured) {
		t.Errorf("got %s with a redirect %t, %v, want it captured", r.Payment.Status, r.Payment.RedirectURL != "", err)
	}
}

func TestACancelWhoseDriveReadsNothingShowsNothingOfWhatEndedMeanwhile(t *testing.T) {
	w := New(t)
	id, pays := paidMeanwhile(w)
	state := func(k store.Key) bool { return k.SK == "STATE" }
	w.Store.After(Row(payment.EventCancelRequested), Then(func() {
		w.Store.BeforeGet(state, func() error {
			pays()
			return ErrSilent
		})
	}))
	r, err := w.Cancel("c", id)
	if !errors.Is(err, charge.ErrCaptured) {
		t.Errorf("got %s with a redirect %t, %v, want it captured", r.Payment.Status, r.Payment.RedirectURL != "", err)
	}
}

func TestAPaymentThatCannotBeReadAgainIsToldWithoutItsRedirect(t *testing.T) {
	w := New(t)
	id, _ := paidMeanwhile(w)
	state := func(k store.Key) bool { return k.SK == "STATE" }
	w.Store.After(Row(payment.EventCancelRequested), Then(func() {
		for range 3 { // the drive's reading, the one after it, and that of waiting for its worker
			w.Store.BeforeGet(state, Silent)
		}
	}))
	r, err := w.Cancel("c", id)
	if err != nil || r.Payment.RedirectURL != "" {
		t.Errorf("got a redirect %t, %v, want none", r.Payment.RedirectURL != "", err)
	}
}
