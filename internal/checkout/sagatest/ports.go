package sagatest

import (
	"context"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
)

// AtPorts runs do before every write to the payments table, before and after
// every call of the PSP, and before stock is sold: wherever a process may die or
// another may be faster. It may be called by several executions at once, and it
// may panic by World.Die.
func (w *World) AtPorts(do func()) {
	over := false
	var arm func()
	arm = func() {
		w.Store.Before(func([]store.Write) bool { return true }, func() error {
			if !over {
				arm()
				do()
			}
			return nil
		})
	}
	arm()
	hook := func() error { do(); return nil }
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, hook)
		w.PSP.After(operation, hook)
	}
	w.Saga.Stock = watchedStock{w.Saga.Stock, do}
	w.Cleanup(func() { // the last hook is taken off by a write that does nothing
		over = true
		if err := w.Table.Postpone(w.Context(), "pay_none", 1, time.Time{}, 0); err != nil {
			w.Error(err)
		}
	})
}

type watchedStock struct {
	checkout.Stock
	do func()
}

func (s watchedStock) Sell(ctx context.Context, merchantID, checkoutID string) error {
	s.do()
	return s.Stock.Sell(ctx, merchantID, checkoutID)
}
