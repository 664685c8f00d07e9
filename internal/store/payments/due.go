package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
)

// due puts the item into a queue of IndexDue, or leaves it out.
func (f fields) due(queue string, key store.Key, at time.Time) {
	if at.IsZero() {
		return
	}
	f[store.AttrDueShard] = shardOf(queue, key)
	f[store.AttrDueAt] = at.UnixMilli()
}

// changes is the update of a state that turns before, as it was read, into after.
// A due date and its tries are put off without a new version, so they are always
// written: what was read of them may be old.
func changes(before, after store.Item) (set store.Item, remove []string) {
	for _, name := range []string{store.AttrDueShard, store.AttrDueAt, attrTries} {
		delete(before, name)
		if _, ok := after[name]; !ok {
			remove = append(remove, name)
		}
	}
	set, gone := diff(before, after)
	return set, append(remove, gone...)
}

// Postpone moves the due date of a payment that is still at that version; a zero
// time takes it out of the index. A payment that has moved on is left alone.
func (t *Table) Postpone(ctx context.Context, id payment.ID, version int64, at time.Time, tries int) error {
	key := paymentKey(id)
	w := store.Write{
		Kind: store.Update, Key: key, Set: store.Item{attrTries: int64(tries)},
		If: store.Equal(attrVersion, version), // who changed it has said when to look
	}
	if at.IsZero() {
		w.Remove = []string{store.AttrDueShard, store.AttrDueAt}
	} else {
		fields(w.Set).due(queueDue, key, at)
	}
	return ignoreCondition(t.table.Write(ctx, w))
}

// AcquireLease takes the lease of a payment whose lease has run out. It adds one
// to the fence and nothing to the version: a lease is no news.
func (t *Table) AcquireLease(ctx context.Context, id payment.ID, now, until time.Time) (int64, error) {
	item, err := t.table.Get(ctx, paymentKey(id))
	if err != nil {
		return 0, notFound(err)
	}
	if reader(item).time(attrLeaseUntil).After(now) {
		return 0, lease.ErrHeld
	}
	fence := reader(item).num(attrLeaseFence)
	unchanged := store.Equal(attrLeaseFence, fence)
	if fence == 0 {
		unchanged = store.HasNo(attrLeaseFence)
	}
	err = t.table.Write(ctx, store.Write{
		Kind: store.Update, Key: paymentKey(id),
		Set: store.Item{attrLeaseUntil: until.UnixMilli(), attrLeaseFence: fence + 1},
		// The fence says that nobody took it since; the time is compared as well,
		// so that a release and an expiry are the same to the next taker.
		If: store.All(store.Exists(), unchanged, store.Any(store.HasNo(attrLeaseUntil), store.Less(attrLeaseUntil, now.UnixMilli()+1))),
	})
	if _, lost := errors.AsType[*store.ConditionError](err); lost {
		return 0, lease.ErrHeld
	}
	return fence + 1, err
}

// ReleaseLease ends the lease if the fence is still the holder's.
func (t *Table) ReleaseLease(ctx context.Context, id payment.ID, fence int64) error {
	return ignoreCondition(t.table.Write(ctx, store.Write{
		Kind: store.Update, Key: paymentKey(id), Remove: []string{attrLeaseUntil},
		If: store.Equal(attrLeaseFence, fence),
	}))
}

// Shards is the number of shards that a sweep reads.
func (t *Table) Shards() int { return len(sweptQueues) * Shards }

// DuePage reads one page of one shard: what is due at most at that time, oldest
// first. The index is a hint: read each item again before acting.
func (t *Table) DuePage(ctx context.Context, shardNumber int, at time.Time, limit int, cursor string) ([]reconcile.Due, string, error) {
	page, err := t.table.Query(ctx, store.Query{
		PK: shard(sweptQueues[shardNumber/Shards], shardNumber%Shards), Index: store.IndexDue, AtMost: at.UnixMilli(), Limit: limit, Cursor: cursor,
	})
	if err != nil {
		return nil, "", fmt.Errorf("read due shard %d: %w", shardNumber, err)
	}
	due := make([]reconcile.Due, 0, len(page.Entries))
	for _, e := range page.Entries {
		for prefix, kind := range kinds {
			if id, ok := idOf(e.Key, prefix); ok {
				due = append(due, reconcile.Due{Kind: kind, ID: id})
			}
		}
	}
	return due, page.Cursor, nil
}

var kinds = map[string]reconcile.Kind{
	pkPayment: reconcile.KindPayment, pkWebhook: reconcile.KindWebhook, pkCheckout: reconcile.KindCheckout,
	pkDelivery: reconcile.KindDelivery, pkHeartbeat: reconcile.KindHeartbeat, pkRecovery: reconcile.KindRecovery,
}

// ignoreCondition treats a condition that does not hold as nothing to do.
func ignoreCondition(err error) error {
	if _, lost := errors.AsType[*store.ConditionError](err); lost {
		return nil
	}
	return err
}
