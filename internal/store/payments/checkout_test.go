package payments_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

const (
	checkoutID = "chk_01KDYAK348M9S346Q3D2000001"
	checkoutPK = "CHECKOUT#" + checkoutID
)

// fullCheckout is a checkout with every field set.
func fullCheckout() checkout.Checkout {
	var c checkout.Checkout
	var n int64
	fill(reflect.ValueOf(&c).Elem(), &n)
	c.ID, c.Version = checkoutID, 1
	return c
}

func creation(c checkout.Checkout) checkout.Creation {
	made := change(firstID)
	return checkout.Creation{
		Checkout: c, Row: checkout.Row{Version: 1, Type: checkout.EventCreated, At: start},
		Payment: made.After, PaymentRow: made.Row, Claim: *claim("k", checkoutID),
	}
}

func (b *bench) created(c checkout.Checkout) checkout.Checkout {
	b.Helper()
	if err := b.table.CreateCheckout(b.Context(), creation(c)); err != nil {
		b.Fatal(err)
	}
	return b.checkout()
}

func (b *bench) checkout() checkout.Checkout {
	b.Helper()
	c, err := b.table.Checkout(b.Context(), checkoutID)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (b *bench) moved(before, after checkout.Checkout) error {
	after.Version = before.Version + 1
	row := checkout.Row{Version: after.Version, Type: checkout.EventCharged, At: start}
	return b.table.CommitCheckout(b.Context(), checkout.Change{Before: before, After: after, Row: row, Source: journal.SourceSaga})
}

func conflictOf(t *testing.T, err error) journal.Conflict {
	t.Helper()
	conflict, ok := errors.AsType[*journal.Conflict](err)
	if !ok {
		t.Fatalf("got %v, want a conflict", err)
	}
	return *conflict
}

func TestEveryFieldOfACheckoutSurvives(t *testing.T) {
	b := newBench(t)
	want := fullCheckout()
	got := b.created(want)
	same(t, "checkout", got, want)
	if _, err := b.table.Payment(t.Context(), firstID); err != nil {
		t.Errorf("its payment: %v", err)
	}
	cleared := checkout.Checkout{ID: checkoutID, Executions: got.Executions}
	if err := b.moved(got, cleared); err != nil {
		t.Fatal(err)
	}
	cleared.Version = 2
	same(t, "cleared", b.checkout(), cleared)
}

func TestACheckoutIsMadeWholeOrNotAtAll(t *testing.T) {
	b := newBench(t)
	b.commit(change(secondID)) // which holds the reference
	conflict := conflictOf(t, b.table.CreateCheckout(t.Context(), creation(fullCheckout())))
	same(t, "conflict", conflict, journal.Conflict{Holder: secondID})
	if _, err := b.table.Checkout(t.Context(), checkoutID); !errors.Is(err, checkout.ErrNotFound) {
		t.Errorf("got %v, want %v", err, checkout.ErrNotFound)
	}
	if _, err := b.table.Payment(t.Context(), firstID); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("its payment: got %v, want %v", err, journal.ErrNotFound)
	}
}

func TestACheckoutChangesAsItWasSeen(t *testing.T) {
	b := newBench(t)
	seen := b.created(fullCheckout())
	b.set(checkoutPK, "STATE", store.Item{"newer": "kept"})
	after := seen
	after.OrderID = "ord_1"
	if err := b.moved(seen, after); err != nil {
		t.Fatal(err)
	}
	if got := b.item(checkoutPK, "STATE")["newer"]; got != "kept" {
		t.Errorf("got %v, want what newer code wrote kept", got)
	}
	same(t, "conflict", conflictOf(t, b.moved(seen, after)), journal.Conflict{Version: true})
	rows, _, err := b.table.CheckoutRows(t.Context(), checkoutID, "", 10)
	if err != nil || len(rows) != 2 {
		t.Errorf("got %d rows, %v, want 2", len(rows), err)
	}
}

func TestTheCounterOfExecutionsIsNoNewsAndIsNeverLost(t *testing.T) {
	b := newBench(t)
	seen := b.created(fullCheckout())
	if err := b.table.RaiseExecutions(t.Context(), checkoutID, seen.Executions, nil); err != nil {
		t.Fatal(err)
	}
	same(t, "conflict", conflictOf(t, b.table.RaiseExecutions(t.Context(), checkoutID, seen.Executions, nil)), journal.Conflict{Version: true})
	after := seen // whoever had read it before
	after.OrderID = "ord_1"
	if err := b.moved(seen, after); err != nil {
		t.Fatalf("after an execution was counted: %v", err)
	}
	if got := b.checkout(); got.Executions != seen.Executions+1 || got.Version != seen.Version+1 {
		t.Errorf("got %d executions in version %d, want %d in %d", got.Executions, got.Version, seen.Executions+1, seen.Version+1)
	}
	if err := b.table.RaiseExecutions(t.Context(), checkoutID, seen.Executions+1, claim("k2", checkoutID)); err != nil {
		t.Fatal(err)
	}
	conflict := conflictOf(t, b.table.RaiseExecutions(t.Context(), checkoutID, seen.Executions+2, claim("k2", checkoutID)))
	if conflict.Record == nil {
		t.Errorf("got %+v, want the record in the way", conflict)
	}
}

func TestOnlyTheCheckoutThatWasSeenIsPutOff(t *testing.T) {
	b := newBench(t)
	seen := b.created(fullCheckout())
	later := start.Add(time.Hour)
	if err := b.table.PostponeCheckout(t.Context(), checkoutID, 7, later, 3); err != nil {
		t.Fatal(err)
	}
	same(t, "other version", b.checkout(), seen)
	if err := b.table.PostponeCheckout(t.Context(), checkoutID, 1, later, 3); err != nil {
		t.Fatal(err)
	}
	if got := b.checkout(); !got.DueAt.Equal(later) || got.Tries != 3 || got.Version != 1 {
		t.Errorf("got due at %s after %d tries, want it put off", got.DueAt, got.Tries)
	}
	after := seen // with the due date that was read before
	if err := b.moved(seen, after); err != nil {
		t.Fatal(err)
	}
	if got := b.checkout(); !got.DueAt.Equal(seen.DueAt) || got.Tries != seen.Tries {
		t.Errorf("got due at %s after %d tries, want the change's own %s", got.DueAt, got.Tries, seen.DueAt)
	}
	if err := b.table.PostponeCheckout(t.Context(), checkoutID, 2, time.Time{}, 0); err != nil {
		t.Fatal(err)
	}
	if got := b.checkout(); !got.DueAt.IsZero() {
		t.Errorf("got due at %s, want it at rest", got.DueAt)
	}
}

func TestACheckoutsSendNeedsItsDirection(t *testing.T) {
	b := newBench(t)
	c := fullCheckout()
	c.Direction, c.Status = checkout.Forward, checkout.StatusPending
	seen := b.created(c)
	p := b.read(firstID)
	turned := seen
	turned.Direction = checkout.Backward
	if err := b.moved(seen, turned); err != nil {
		t.Fatal(err)
	}
	send := b.next(p, payment.Event{Type: payment.EventSent})
	send.Gate = &journal.Gate{CheckoutID: checkoutID, Kind: journal.GateForward}
	same(t, "conflict", b.conflict(send), journal.Conflict{Gate: true})
}
