package storetest

import (
	"context"
	"errors"
	"sync"

	"github.com/kessai/kessai/internal/store"
)

// Meter is a Table that counts what the calls through it would cost on DynamoDB.
// It reads each item before and after a write to know its size, so it belongs in
// tests, around a table in memory. It is safe for concurrent use; concurrent
// writers of one item may make the sizes a little wrong.
type Meter struct {
	table store.Table

	mu    sync.Mutex
	count Count
	depth int // the longest chain of finished calls, each begun after the one before
}

var _ store.Table = (*Meter)(nil)

// Count is what calls cost.
type Count struct {
	Trips      int // sequential: calls at the same time count once
	Reads      int // Get, Query and Scan calls
	Writes     int // items written or checked, refused ones too
	WriteUnits int // on-demand write request units, of the table and of IndexDue
}

// NewMeter returns a Meter that passes every call on to the table.
func NewMeter(table store.Table) *Meter { return &Meter{table: table} }

// Count returns what the calls since the beginning or the last Reset cost.
func (m *Meter) Count() Count {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// Reset begins a new count. No call may be running.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count, m.depth = Count{}, 0
}

// Get is the table's, counted.
func (m *Meter) Get(ctx context.Context, key store.Key) (store.Item, error) {
	defer m.trip()(Count{Reads: 1})
	return m.table.Get(ctx, key)
}

// Query is the table's, counted.
func (m *Meter) Query(ctx context.Context, q store.Query) (store.Page, error) {
	defer m.trip()(Count{Reads: 1})
	return m.table.Query(ctx, q)
}

// Scan is the table's, counted.
func (m *Meter) Scan(ctx context.Context, s store.Scan) (store.Page, error) {
	defer m.trip()(Count{Reads: 1})
	return m.table.Scan(ctx, s)
}

// Write is the table's, counted. A refused write costs what it would have by the
// old item's size.
func (m *Meter) Write(ctx context.Context, writes ...store.Write) error {
	olds := m.items(ctx, writes)
	done := m.trip()
	err := m.table.Write(ctx, writes...)
	news := olds
	if err == nil {
		news = m.items(ctx, writes)
	}
	cost := Count{Writes: len(writes)}
	for i, w := range writes {
		units := kilobytes(max(store.Size(w.Key, olds[i]), store.Size(w.Key, news[i])))
		if len(writes) > 1 || w.Kind == store.Check {
			units *= 2 // a transaction prepares and commits
		}
		cost.WriteUnits += units + indexUnits(w.Key, olds[i], news[i])
	}
	done(cost)
	return err
}

// items reads the items of the writes, uncounted; nil when absent.
func (m *Meter) items(ctx context.Context, writes []store.Write) []store.Item {
	items := make([]store.Item, len(writes))
	for i, w := range writes {
		item, err := m.table.Get(ctx, w.Key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			continue // the write will say what is wrong
		}
		items[i] = item
	}
	return items
}

// trip begins a call and returns its end. A call is one deeper than the deepest
// that had finished when it began; the deepest of all is the number of trips.
func (m *Meter) trip() func(Count) {
	m.mu.Lock()
	defer m.mu.Unlock()
	mine := m.depth + 1
	return func(cost Count) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.depth = max(m.depth, mine)
		m.count.Trips = m.depth
		m.count.Reads += cost.Reads
		m.count.Writes += cost.Writes
		m.count.WriteUnits += cost.WriteUnits
	}
}

// indexUnits is what IndexDue costs: one write to put an entry in or take it out,
// both when the entry's place changes, nothing when it stays. The index holds
// keys only, so no other attribute matters.
func indexUnits(key store.Key, old, next store.Item) int {
	from, to := indexEntry(key, old), indexEntry(key, next)
	if from == to {
		return 0
	}
	return from.units() + to.units()
}

type entry struct {
	shard string
	at    int64
	bytes int // 0 for none
}

func indexEntry(key store.Key, item store.Item) entry {
	shard, sharded := item[store.AttrDueShard].(string)
	at, timed := item[store.AttrDueAt].(int64)
	if !sharded || !timed {
		return entry{}
	}
	kept := store.Item{store.AttrDueShard: shard, store.AttrDueAt: at}
	return entry{shard: shard, at: at, bytes: store.Size(key, kept)}
}

func (e entry) units() int {
	if e.bytes == 0 {
		return 0
	}
	return kilobytes(e.bytes)
}

func kilobytes(bytes int) int { return max(1, (bytes+1023)/1024) }
