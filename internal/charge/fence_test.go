package charge_test

import (
	"context"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// takeLease is another worker that takes the payment's lease, which has run out.
func takeLease(t *testing.T, w *World, id payment.ID) {
	t.Helper()
	w.Clock.Advance(Durations.LeaseTTL)
	if _, err := w.Charges.Leases.Acquire(w.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func TestAFenceLostInTheMiddleOfACallKeepsItsAnswerAndStopsTheRest(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutNothing}, payment.StatusProcessing)
	// The worker's repeat of the charge has no answer for so long that its lease is lost
	// and the next look is due: that look is not its own.
	w.Clock.Advance(time.Minute)
	w.OnAnswer(psptest.OperationCreate, Then(func() {
		w.Clock.Advance(2 * time.Minute)
		takeLease(t, w, p.ID)
	}))
	w.Sweep()
	w.WantCalls(psptest.OperationLookup, 1)
	got := w.Payment(p.ID)
	if o := got.Create; o.Sends != 2 || o.State != payment.OperationUnknown {
		t.Errorf("got the charge %+v, want the repeat in doubt", o)
	}
	if got.LeaseFence != 2 || got.LeaseUntil.IsZero() {
		t.Errorf("got fence %d until %s, want the other worker's lease untouched", got.LeaseFence, got.LeaseUntil)
	}
}

func TestTheAnswerOfACallIsRecordedAlsoWithoutTheFence(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenErrorOnce}, payment.StatusProcessing)
	w.Clock.Advance(time.Minute)
	w.OnAnswer(psptest.OperationCreate, Then(func() { takeLease(t, w, p.ID) }))
	w.Sweep()
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAnIntentUnderALostFenceIsNotCommittedAndNothingIsSent(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenErrorOnce}, payment.StatusProcessing)
	w.Clock.Advance(time.Minute)
	w.Store.Before(Row(payment.EventSent), Then(func() { takeLease(t, w, p.ID) }))
	w.Sweep()
	w.WantCalls(psptest.OperationCreate, 1)
	if got := w.Payment(p.ID); got.Version != p.Version {
		t.Errorf("got version %d, want it to stay %d", got.Version, p.Version)
	}
	w.Pass(2 * time.Minute)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAfterItsLeaseRanOutAWorkerAsksThePSPNothing(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	// At the deadline: look up, cancel, void; the void is refused, and a look-up
	// would tell why.
	w.Clock.Advance(Durations.PaymentExpiry)
	w.OnCall(psptest.OperationCancel, Then(func() {
		w.PSP.Approve(string(p.ID))
		takeLease(t, w, p.ID)
	}))
	w.Sweep()
	w.WantCalls(psptest.OperationLookup, 1)
	w.Want(p.ID, payment.StatusProcessing)
	w.Pass(time.Minute)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAWorkerThatFindsTheLeaseTakenLeavesThePaymentToItsHolder(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	w.Clock.Advance(time.Minute)
	held, err := w.Charges.Leases.Acquire(w.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.Sweep()
	w.WantCalls(psptest.OperationLookup, 0)
	got := w.Payment(p.ID)
	if want := w.Clock.Now().Add(Durations.LeaseTTL); !got.DueAt.Equal(want) {
		t.Errorf("got due at %s, want the end of the lease %s", got.DueAt, want)
	}
	if n := w.Meter.Of(lease.MetricHeld); n != 1 {
		t.Errorf("got %d times held, want 1", n)
	}
	if held.Fence != 1 {
		t.Errorf("got fence %d, want 1", held.Fence)
	}
	w.Clock.Advance(Durations.LeaseTTL)
	w.Sweep()
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAWorkerThatDiedUnderItsLeaseIsFollowed(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	w.Clock.Advance(time.Minute)
	w.Crash(func() {
		w.OnAnswer(psptest.OperationLookup, w.Die)
		w.Sweep()
	})
	if got := w.Payment(p.ID); got.LeaseUntil.IsZero() {
		t.Fatal("the lease is free, want it held by the dead worker")
	}
	w.Sweep()
	w.WantCalls(psptest.OperationLookup, 1)
	w.Clock.Advance(Durations.LeaseTTL)
	w.Sweep()
	w.Want(p.ID, payment.StatusCaptured)
}

func TestALeaseThatCannotBeReleasedRunsOut(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.Store.Before(Released, Silent)
	w.Clock.Advance(time.Minute)
	w.Sweep()
	w.PSP.Approve(string(p.ID))
	w.Pass(2 * time.Minute)
	w.Want(p.ID, payment.StatusCaptured)
}

// The other worker's clock may be ahead of ours: then the lease is lost before we
// think that it is over.
func TestAWorkerWhoseFenceIsLostAsksThePSPNothing(t *testing.T) {
	w := New(t)
	w.Charged("k", Order{Token: psptest.TokenErrorOnce}, payment.StatusProcessing)
	id := payment.ID(payment.IDPrefix + ULID(1))
	w.Clock.Advance(time.Minute)
	w.Store.Before(Row(payment.EventSent), Then(func() {
		ahead := w.Clock.Now().Add(Durations.LeaseTTL)
		if _, err := w.Table.AcquireLease(w.Context(), id, ahead, ahead.Add(Durations.LeaseTTL)); err != nil {
			t.Fatal(err)
		}
	}))
	w.Sweep()
	w.WantCalls(psptest.OperationLookup, 1)
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestAWorkerWhoseCallerGaveUpLetsGoAndPutsOff(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	w.Clock.Advance(time.Minute)
	ctx, giveUp := context.WithCancel(w.Context())
	w.OnCall(psptest.OperationLookup, func() error {
		giveUp()
		return Lost()
	})
	if _, err := w.Charges.Drive(ctx, p.ID, journal.SourceReconciler); err == nil {
		t.Fatal("got no error, want the look-up's")
	}
	got := w.Payment(p.ID)
	if !got.LeaseUntil.IsZero() {
		t.Errorf("the lease is held until %s", got.LeaseUntil)
	}
	if !got.DueAt.After(w.Clock.Now()) || got.Tries != 1 {
		t.Errorf("got due at %s after %d tries, want it put off", got.DueAt, got.Tries)
	}
}
