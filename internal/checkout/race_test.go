package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

func TestWhoLosesARaceWaitsLongerEachTimeAndGivesUpInTheEnd(t *testing.T) {
	turned := func(w *sagatest.World) string {
		c := w.Ordered("k", sagatest.Basket{})
		backward := &checkout.BackwardError{}
		if err := w.Saga.Charge(w.Context(), c.ID, inventory.OutOfStock); !errors.As(err, &backward) {
			w.Fatalf("got %v, want a turn", err)
		}
		return c.ID
	}
	undone := func(w *sagatest.World) string {
		id := turned(w)
		if err := w.Saga.UndoCharge(w.Context(), id); err != nil {
			w.Fatal(err)
		}
		return id
	}
	for name, c := range map[string]struct {
		before func(w *sagatest.World) string
		do     func(w *sagatest.World, id string) error
		wants  any // the error of a way that is an answer
	}{
		"create": {func(*sagatest.World) string { return "" }, func(w *sagatest.World, _ string) error {
			_, err := w.Order("new", sagatest.Basket{})
			return err
		}, nil},
		"charge": {func(w *sagatest.World) string { return w.Ordered("k", sagatest.Basket{}).ID }, func(w *sagatest.World, id string) error {
			return w.Saga.Charge(w.Context(), id, inventory.Reserved)
		}, nil},
		"complete": {func(w *sagatest.World) string { return w.Ordered("k", sagatest.Basket{}).ID }, func(w *sagatest.World, id string) error {
			return w.Saga.Complete(w.Context(), id, checkout.OrderAnswer{Outcome: order.OutcomeRejected})
		}, new(*checkout.BackwardError)},
		"undo charge": {turned, func(w *sagatest.World, id string) error { return w.Saga.UndoCharge(w.Context(), id) }, nil},
		"close":       {undone, func(w *sagatest.World, id string) error { return w.Saga.Close(w.Context(), id) }, nil},
		"resume": {func(w *sagatest.World) string {
			w.OnCall(psptest.OperationRefund, refused)
			return w.Bought("k", sagatest.Basket{SKU: rejected}).ID
		}, func(w *sagatest.World, id string) error { _, err := w.Resume("r", id); return err }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := stocked(t)
			w.Rough = true
			id := c.before(w)
			var pauses []int
			w.Checkouts.Pause = func(_ context.Context, n int) error {
				pauses = append(pauses, n)
				return nil
			}
			lose := func(races int) {
				for range races {
					w.Store.Before(ofACheckout, flowtest.Refused)
				}
			}
			lose(8)
			if err := c.do(w, id); !errors.Is(err, journal.ErrBusy) {
				t.Fatalf("after eight races: got %v, want %v", err, journal.ErrBusy)
			}
			if fmt.Sprint(pauses) != "[1 2 3 4 5 6 7]" {
				t.Errorf("got pauses %v, want one between two attempts", pauses)
			}
			pauses = nil
			lose(2)
			if err := c.do(w, id); err != nil && (c.wants == nil || !errors.As(err, c.wants)) {
				t.Fatalf("after two races: %v", err)
			}
			if fmt.Sprint(pauses) != "[1 2]" {
				t.Errorf("got pauses %v, want two", pauses)
			}
		})
	}
}

// ofACheckout is the moment before a checkout is made or changed.
func ofACheckout(writes []store.Write) bool {
	return slices.ContainsFunc(writes, func(w store.Write) bool {
		return strings.HasPrefix(w.Key.PK, "CHECKOUT#") && w.Kind != store.Check
	})
}
