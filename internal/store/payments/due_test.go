package payments_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

func TestALeaseIsTakenOnceUntilItRunsOut(t *testing.T) {
	b := newBench(t)
	b.commit(change(firstID))
	until := start.Add(30 * time.Second)
	acquire := func(now time.Time) (int64, error) {
		return b.table.AcquireLease(t.Context(), firstID, now, now.Add(30*time.Second))
	}
	if fence, err := acquire(start); err != nil || fence != 1 {
		t.Fatalf("first: got %d, %v, want fence 1", fence, err)
	}
	if _, err := acquire(until.Add(-time.Millisecond)); !errors.Is(err, lease.ErrHeld) {
		t.Fatalf("held: got %v, want %v", err, lease.ErrHeld)
	}
	if fence, err := acquire(until); err != nil || fence != 2 {
		t.Fatalf("run out: got %d, %v, want fence 2", fence, err)
	}
	if err := b.table.ReleaseLease(t.Context(), firstID, 1); err != nil { // the first one, late
		t.Fatal(err)
	}
	if _, err := acquire(until); !errors.Is(err, lease.ErrHeld) {
		t.Fatalf("after a stranger's release: got %v, want %v", err, lease.ErrHeld)
	}
	if err := b.table.ReleaseLease(t.Context(), firstID, 2); err != nil {
		t.Fatal(err)
	}
	if fence, err := acquire(until); err != nil || fence != 3 {
		t.Fatalf("released: got %d, %v, want fence 3", fence, err)
	}
	if got := b.read(firstID); got.Version != 1 {
		t.Errorf("got version %d, want a lease to be no news", got.Version)
	}
}

func TestOneOfTwoTakersGetsTheLease(t *testing.T) {
	for name, between := range map[string]func(b *bench){
		"another took it": func(b *bench) {
			if _, err := b.table.AcquireLease(b.Context(), firstID, start, start.Add(time.Minute)); err != nil {
				b.Fatal(err)
			}
		},
		"another took it and let go": func(b *bench) {
			fence, err := b.table.AcquireLease(b.Context(), firstID, start, start.Add(time.Minute))
			if err != nil {
				b.Fatal(err)
			}
			if err := b.table.ReleaseLease(b.Context(), firstID, fence); err != nil {
				b.Fatal(err)
			}
		},
		"it was set by a clock ahead of ours": func(b *bench) {
			b.set("PAYMENT#"+string(firstID), "STATE", store.Item{"lease_until": start.Add(time.Hour).UnixMilli()})
		},
		"the payment was removed": func(b *bench) {
			key := store.Key{PK: "PAYMENT#" + string(firstID), SK: "STATE"}
			if err := b.raw.Write(b.Context(), store.Write{Kind: store.Delete, Key: key}); err != nil {
				b.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.commit(change(firstID))
			if _, err := b.table.AcquireLease(t.Context(), firstID, start.Add(-time.Hour), start.Add(-time.Minute)); err != nil {
				t.Fatal(err)
			}
			late := b.late(func() { between(b) })
			if fence, err := late.AcquireLease(t.Context(), firstID, start, start.Add(time.Minute)); !errors.Is(err, lease.ErrHeld) {
				t.Errorf("got fence %d, %v, want %v", fence, err, lease.ErrHeld)
			}
		})
	}
}

func TestAHeldLeaseIsRefusedWithoutAWrite(t *testing.T) {
	b := newBench(t)
	b.commit(change(firstID))
	if _, err := b.table.AcquireLease(t.Context(), firstID, start, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	late := b.late(func() { t.Error("it was written") })
	if _, err := late.AcquireLease(t.Context(), firstID, start, start.Add(time.Minute)); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("got %v, want %v", err, lease.ErrHeld)
	}
}

func TestALeaseMakesNoPayment(t *testing.T) {
	b := newBench(t)
	b.commit(change(firstID))
	key := store.Key{PK: "PAYMENT#" + string(firstID), SK: "STATE"}
	late := b.late(func() {
		if err := b.raw.Write(t.Context(), store.Write{Kind: store.Delete, Key: key}); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := late.AcquireLease(t.Context(), firstID, start, start.Add(time.Minute)); err == nil {
		t.Error("got a lease on nothing")
	}
	if b.item(key.PK, key.SK) != nil {
		t.Error("a payment was made of a lease")
	}
}

func TestAnIntentUnderALeaseNeedsItsFence(t *testing.T) {
	b := newBench(t)
	p := b.commit(change(firstID))
	fence, err := b.table.AcquireLease(t.Context(), firstID, start, start.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	c := b.next(p, payment.Event{Type: payment.EventSent})
	c.Fence = fence + 1
	if conflict := b.conflict(c); !conflict.Version {
		t.Errorf("got %+v, want the fence refused", conflict)
	}
	c.Fence = fence
	p = b.commit(c)
	if _, err := b.table.AcquireLease(t.Context(), firstID, start.Add(time.Minute), start.Add(2*time.Minute)); err != nil {
		t.Fatal(err)
	}
	b.commit(b.next(p, captured())) // a fact needs the version alone
	if got := b.read(firstID); got.LeaseFence != 2 || got.LeaseUntil.IsZero() {
		t.Errorf("got fence %d until %s, want the lease as it was", got.LeaseFence, got.LeaseUntil)
	}
}

func TestOnlyThePaymentThatWasSeenIsPutOff(t *testing.T) {
	b := newBench(t)
	p := b.commit(change(firstID))
	due := p.DueAt
	if err := b.table.Postpone(t.Context(), firstID, 2, start.Add(time.Hour), 1); err != nil {
		t.Fatal(err)
	}
	if got := b.read(firstID); !got.DueAt.Equal(due) || got.Tries != 0 {
		t.Errorf("other version: got due at %s after %d tries, want it left alone", got.DueAt, got.Tries)
	}
	if err := b.table.Postpone(t.Context(), firstID, 1, start.Add(time.Hour), 1); err != nil {
		t.Fatal(err)
	}
	if got := b.read(firstID); !got.DueAt.Equal(start.Add(time.Hour)) || got.Tries != 1 || got.Version != 1 {
		t.Errorf("got due at %s after %d tries in version %d, want it put off and no news", got.DueAt, got.Tries, got.Version)
	}
	if err := b.table.Postpone(t.Context(), firstID, 1, time.Time{}, 0); err != nil {
		t.Fatal(err)
	}
	if got := b.read(firstID); !got.DueAt.IsZero() {
		t.Errorf("got due at %s, want it at rest", got.DueAt)
	}
	if err := b.table.Postpone(t.Context(), secondID, 1, start, 0); err != nil {
		t.Errorf("no such payment: got %v, want nothing done", err)
	}
	if b.item("PAYMENT#"+string(secondID), "STATE") != nil {
		t.Error("a payment was made of a due date")
	}
}

func TestWhatIsDueIsFoundOldestFirstInPages(t *testing.T) {
	b := newBench(t)
	for n := range 40 {
		c := change(payment.ID(fmt.Sprintf("pay_01KDYAK348M9S346Q3D20000%02d", n)))
		c.After.Reference, c.After.HoldsReference = "", false
		c.After.DueAt = start.Add(time.Duration(40-n) * time.Minute)
		b.commit(c)
		b.receive(fmt.Sprintf("evt_%02d", n), start.Add(time.Duration(n)*time.Minute))
	}
	b.set("CHECKOUT#chk_1", "STATE", store.Item{store.AttrDueShard: "due#0", store.AttrDueAt: start.UnixMilli()})
	b.set("GIFT#1", "STATE", store.Item{store.AttrDueShard: "due#0", store.AttrDueAt: start.UnixMilli()}) // of newer code
	b.set("PAYMENT#x", "STATE", store.Item{store.AttrDueShard: "due#0", store.AttrDueAt: start.Add(time.Hour).UnixMilli()})

	found := map[reconcile.Due]int{}
	at := start.Add(20 * time.Minute)
	for shard := range b.table.Shards() {
		cursor := ""
		for {
			page, next, err := b.table.DuePage(t.Context(), shard, at, 3, cursor)
			if err != nil || len(page) > 3 {
				t.Fatalf("got %d, %v", len(page), err)
			}
			for _, due := range page {
				found[due]++
			}
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	counts := map[reconcile.Kind]int{}
	for due, times := range found {
		counts[due.Kind]++
		if times != 1 {
			t.Errorf("%v was found %d times", due, times)
		}
	}
	same(t, "found", counts, map[reconcile.Kind]int{reconcile.KindPayment: 20, reconcile.KindWebhook: 21, reconcile.KindCheckout: 1})
	if found[reconcile.Due{Kind: reconcile.KindWebhook, ID: "simulator#evt_03"}] != 1 {
		t.Error("an inbox item is not found by its psp and event id")
	}
}

// receive takes an inbox item in that is due at a time.
func (b *bench) receive(eventID string, due time.Time) {
	b.Helper()
	fresh, err := b.table.Receive(b.Context(), webhook.Item{
		PSP: "simulator", EventID: eventID, Type: "charge.captured", Body: []byte(`{}`), Status: webhook.StatusReceived,
		ReceivedAt: start, WaitUntil: start.Add(time.Hour), DueAt: due,
	})
	if err != nil || !fresh {
		b.Fatalf("receive %s: got fresh %t, %v", eventID, fresh, err)
	}
}
