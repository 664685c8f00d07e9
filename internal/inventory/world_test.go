package inventory_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
)

const merchant, checkout = "alpha", "chk_1"

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func newTable() *memory.Table { return memory.New(memory.Options{Now: clock}) }

// tap is a table whose calls a test can watch, cut off or slip something before.
// It is for one goroutine.
type tap struct {
	store.Table
	calls  int            // so far
	before func(call int) // runs before each call, from 1
	lost   func(call int) fault
}

type fault int

const (
	none    fault = iota
	unsent        // the call has no effect and no answer
	unheard       // the call takes effect, its answer is lost
)

var errCut = errors.New("connection cut")

func (t *tap) next() fault {
	t.calls++
	call := t.calls
	if t.before != nil {
		t.before(call)
	}
	if t.lost != nil {
		return t.lost(call)
	}
	return none
}

func (t *tap) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if t.next() != none {
		return nil, errCut
	}
	return t.Table.Get(ctx, key)
}

func (t *tap) Write(ctx context.Context, writes ...store.Write) error {
	f := t.next()
	if f == unsent {
		return errCut
	}
	err := t.Table.Write(ctx, writes...)
	if f == unheard {
		return errCut
	}
	return err
}

func set(t testing.TB, p *inventory.Participant, sku string, available int64) {
	t.Helper()
	if err := p.Set(t.Context(), merchant, sku, available); err != nil {
		t.Fatalf("set %s: %v", sku, err)
	}
}

func stock(t testing.TB, p *inventory.Participant, sku string) inventory.Stock {
	t.Helper()
	s, err := p.Get(t.Context(), merchant, sku)
	if err != nil {
		t.Fatalf("get %s: %v", sku, err)
	}
	return s
}

func held(t testing.TB, p *inventory.Participant, id string) inventory.Status {
	t.Helper()
	s, err := p.Held(t.Context(), merchant, id)
	if err != nil {
		t.Fatalf("held %s: %v", id, err)
	}
	return s
}

// do carries out one command on the checkout and returns its answer.
func do(ctx context.Context, p *inventory.Participant, c inventory.Command, lines []inventory.Line) (inventory.Status, error) {
	switch c {
	case inventory.Reserve:
		a, err := p.Reserve(ctx, inventory.Reservation{MerchantID: merchant, CheckoutID: checkout, Lines: lines})
		return a.Status, err
	case inventory.Release:
		return inventory.Released, p.Release(ctx, merchant, checkout)
	case inventory.Sell:
		return inventory.Sold, p.Sell(ctx, merchant, checkout)
	}
	return inventory.None, errors.New("unknown command")
}

func wantStock(t testing.TB, p *inventory.Participant, want inventory.Stock) {
	t.Helper()
	if got := stock(t, p, want.SKU); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
