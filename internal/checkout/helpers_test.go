package checkout_test

import (
	"errors"
	"testing"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

func wantReferenceInUse(t *testing.T, err error, holder string) {
	t.Helper()
	inUse, ok := errors.AsType[*charge.ReferenceInUseError](err)
	if !ok || string(inUse.PaymentID) != holder {
		t.Fatalf("got %v, want the reference in use by %s", err, holder)
	}
}

func wantCheckoutPending(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, charge.ErrCheckoutPending) {
		t.Errorf("got %v, want ErrCheckoutPending", err)
	}
}

// wantRelayed carries changes as the stream does and wants that answer.
func wantRelayed(t *testing.T, w *sagatest.World, changes []store.Change, want error) {
	t.Helper()
	var failed error
	for _, c := range changes {
		if name, id, ok := payments.InboxChange(c); ok {
			failed = errors.Join(failed, w.Applier.Apply(t.Context(), name, id))
		}
		if e, ok := payments.RowChange(c); ok {
			failed = errors.Join(failed, w.Relay.Carry(t.Context(), []outbox.Event{e})[0])
		}
	}
	if !errors.Is(failed, want) {
		t.Fatalf("relay: got %v, want %v", failed, want)
	}
}
