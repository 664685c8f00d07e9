package lease_test

import (
	"errors"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/payment"
)

func leased(t *testing.T) (*World, payment.ID) {
	t.Helper()
	w := New(t)
	return w, w.Charged("k", Order{}, payment.StatusCaptured).ID
}

func TestALeaseKeepsOthersOffUntilItIsLetGo(t *testing.T) {
	w, id := leased(t)
	first, err := w.Charges.Leases.Acquire(w.Context(), id)
	if err != nil || first.Fence != 1 {
		t.Fatalf("got %+v, %v, want fence 1", first, err)
	}
	if _, err := w.Charges.Leases.Acquire(w.Context(), id); !errors.Is(err, lease.ErrHeld) {
		t.Fatalf("got %v, want %v", err, lease.ErrHeld)
	}
	if n := w.Meter.Of(lease.MetricHeld); n != 1 {
		t.Errorf("got %d times held, want 1", n)
	}
	if err := first.Release(w.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := w.Charges.Leases.Acquire(w.Context(), id)
	if err != nil || second.Fence != 2 {
		t.Fatalf("got %+v, %v, want fence 2", second, err)
	}
	if err := first.Release(w.Context()); err != nil { // once more, and late
		t.Fatal(err)
	}
	if _, err := w.Charges.Leases.Acquire(w.Context(), id); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("got %v, want the second's lease untouched", err)
	}
}

func TestALeaseRunsOutByItself(t *testing.T) {
	w, id := leased(t)
	first, err := w.Charges.Leases.Acquire(w.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(Durations.LeaseTTL - time.Millisecond)
	if first.Over() {
		t.Error("it is over before its time")
	}
	w.Clock.Advance(time.Millisecond)
	if !first.Over() {
		t.Error("it is not over after its time")
	}
	if second, err := w.Charges.Leases.Acquire(w.Context(), id); err != nil || second.Fence != 2 {
		t.Errorf("got %+v, %v, want fence 2", second, err)
	}
}

func TestWorkThatTakesMostOfItsLeaseIsCounted(t *testing.T) {
	for held, counted := range map[time.Duration]int64{24 * time.Second: 0, 24*time.Second + time.Millisecond: 1} {
		w, id := leased(t)
		l, err := w.Charges.Leases.Acquire(w.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		w.Clock.Advance(held)
		if err := l.Release(w.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.Meter.Of(lease.MetricNearExpiry); n != counted {
			t.Errorf("held %s of %s: got %d counted, want %d", held, Durations.LeaseTTL, n, counted)
		}
	}
}

func TestThereIsNoLeaseOnWhatIsNotThere(t *testing.T) {
	w := New(t)
	if _, err := w.Charges.Leases.Acquire(w.Context(), "pay_01KDYAK348M9S346Q3D2999999"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("got %v, want %v", err, journal.ErrNotFound)
	}
}

func TestALeaseWhoseTakingHadNoAnswerIsNotHeldByAnybody(t *testing.T) {
	w, id := leased(t)
	w.Store.After(Lease, Silent)
	if l, err := w.Charges.Leases.Acquire(w.Context(), id); err == nil || l != nil {
		t.Fatalf("got %+v, %v, want an error", l, err)
	}
	w.Clock.Advance(Durations.LeaseTTL)
	if l, err := w.Charges.Leases.Acquire(w.Context(), id); err != nil || l.Fence != 2 {
		t.Errorf("got %+v, %v, want fence 2", l, err)
	}
}
