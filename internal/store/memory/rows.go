package memory

import (
	"github.com/tidwall/btree"

	"github.com/kessai/kessai/internal/store"
)

// rows keeps the items in the order of their keys, and two sparse orders of the
// same items: by due time within a shard, and by expiry. Its owner locks.
type rows struct {
	byKey    *btree.BTreeG[row]
	byDue    *btree.BTreeG[place]
	byExpiry *btree.BTreeG[place]
}

type row struct {
	key  store.Key
	item store.Item // never changed in place
}

// place is an item's position in a sparse order; byExpiry leaves shard empty.
type place struct {
	shard string
	at    int64
	key   store.Key
}

func newRows() rows {
	unlocked := btree.Options{NoLocks: true} // the table's lock covers them
	return rows{
		byKey:    btree.NewBTreeGOptions(func(a, b row) bool { return before(a.key, b.key) }, unlocked),
		byDue:    btree.NewBTreeGOptions(place.before, unlocked),
		byExpiry: btree.NewBTreeGOptions(place.before, unlocked),
	}
}

func before(a, b store.Key) bool {
	if a.PK != b.PK {
		return a.PK < b.PK
	}
	return a.SK < b.SK
}

func (p place) before(q place) bool {
	switch {
	case p.shard != q.shard:
		return p.shard < q.shard
	case p.at != q.at:
		return p.at < q.at
	}
	return before(p.key, q.key)
}

// item returns the item with the key, nil when it is absent.
func (r rows) item(key store.Key) store.Item {
	found, _ := r.byKey.Get(row{key: key})
	return found.item
}

// set puts the item in place of the one with the key; nil removes it.
func (r rows) set(key store.Key, item store.Item) {
	old := r.item(key)
	move(r.byDue, duePlace(key, old), duePlace(key, item))
	move(r.byExpiry, expiryPlace(key, old), expiryPlace(key, item))
	if item == nil {
		r.byKey.Delete(row{key: key})
		return
	}
	r.byKey.Set(row{key: key, item: item})
}

// move changes an item's place in a sparse order; the zero place is none.
func move(order *btree.BTreeG[place], from, to place) {
	if from == to {
		return
	}
	if from != (place{}) {
		order.Delete(from)
	}
	if to != (place{}) {
		order.Set(to)
	}
}

func duePlace(key store.Key, item store.Item) place {
	shard, okShard := item[store.AttrDueShard].(string)
	at, okAt := item[store.AttrDueAt].(int64)
	if !okShard || !okAt {
		return place{}
	}
	return place{shard: shard, at: at, key: key}
}

func expiryPlace(key store.Key, item store.Item) place {
	at, ok := item[store.AttrExpiresAt].(int64)
	if !ok {
		return place{}
	}
	return place{at: at, key: key}
}
