package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/kessai/kessai/internal/store"
)

// Options of a Table. The zero value is usable except for Now.
type Options struct {
	Now func() time.Time // clock of Expire

	// BatchSize is the most changes a handler gets at once; 0 means 10.
	BatchSize int
	// Workers is the most batches of one subscription at a time; 0 means 16.
	Workers int
	// Attempts is how often a change may fail, by name or alone in its batch, before
	// it is given up; 0 means 6.
	Attempts int
	// Pause returns how long a change rests after its attempt-th failure (from 1);
	// nil means a full jitter below 50 ms that doubles up to 5 s.
	Pause func(attempt int) time.Duration
	// OnFailure is told of each change that a subscription gave up; nil means that
	// it is dropped in silence. It may write to the table.
	OnFailure func(subscription string, c store.Change, err error)
}

// Table is a store.Table held in memory. Make one with New. All methods are safe
// for concurrent use.
type Table struct {
	options Options

	mu       sync.RWMutex
	rows     rows
	sequence uint64 // of the last change
	writes   uint64 // for writer tokens
	subs     []*subscription

	life   context.Context // of the handlers, ended by Close
	cancel context.CancelFunc
	drain  drain
}

var _ store.Table = (*Table)(nil)

// New returns an empty table. Close it when something has subscribed.
func New(o Options) *Table {
	o = o.withDefaults()
	t := &Table{options: o, rows: newRows()}
	t.life, t.cancel = context.WithCancel(context.Background())
	return t
}

// Get reads one item. It returns store.ErrNotFound when it is absent.
func (t *Table) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := ctx.Err(); err != nil {
		return nil, unavailable("get", key, err)
	}
	if err := key.Validate(); err != nil {
		return nil, err
	}
	t.mu.RLock()
	item := t.rows.item(key)
	t.mu.RUnlock()
	if item == nil {
		return nil, store.ErrNotFound
	}
	return store.Clone(item), nil
}

// Write carries out all of the writes, or none. See store.Table.
func (t *Table) Write(ctx context.Context, writes ...store.Write) error {
	if err := store.ValidateWrites(writes); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return unavailable("write", writes[0].Key, err)
	}
	owned := make([]store.Write, len(writes))
	for i, w := range writes {
		w.Item, w.Set = store.Clone(w.Item), store.Clone(w.Set)
		owned[i] = w
	}
	refused, err := t.commit(owned)
	if err != nil {
		return err
	}
	if refused == nil {
		return nil
	}
	for i, f := range refused {
		refused[i].Old = store.Clone(f.Old)
	}
	return &store.ConditionError{Failed: refused}
}

// commit holds the lock: it judges every condition against the same instant, then
// builds every new item, and only then changes anything.
func (t *Table) commit(writes []store.Write) ([]store.Failed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	olds := make([]store.Item, len(writes))
	var refused []store.Failed
	for i, w := range writes {
		olds[i] = t.rows.item(w.Key)
		if !w.If.Holds(olds[i]) {
			refused = append(refused, store.Failed{Index: i, Old: olds[i]})
		}
	}
	if refused != nil {
		return refused, nil
	}
	writer := "m" + strconv.FormatUint(t.writes+1, 36)
	news := make([]store.Item, len(writes))
	for i, w := range writes {
		next, err := apply(w, olds[i], writer)
		if err != nil {
			return nil, fmt.Errorf("write %d of %q: %w", i, w.Key, err)
		}
		news[i] = next
	}
	t.writes++
	for i, w := range writes {
		if w.Kind != store.Check {
			t.replace(store.Change{Key: w.Key, Old: olds[i], New: news[i]})
		}
	}
	return nil, nil
}

// replace puts one new item in place of the old one and tells the subscribers.
func (t *Table) replace(c store.Change) {
	if c.Old == nil && c.New == nil {
		return
	}
	t.rows.set(c.Key, c.New)
	t.sequence++
	c.Sequence = fmt.Sprintf("%021d", t.sequence)
	for _, s := range t.subs {
		s.add(c)
	}
}

// apply returns the item that a write makes of the old one; nil removes it. The
// old item is left as it is.
func apply(w store.Write, old store.Item, writer string) (store.Item, error) {
	switch w.Kind {
	case store.Put:
		next := w.Item
		if next == nil {
			next = store.Item{}
		}
		next[store.AttrWriter] = writer
		return next, fits(w.Key, next)
	case store.Update:
		return update(w, old, writer)
	case store.Delete:
		return nil, nil
	case store.Check:
		return old, nil
	}
	return nil, store.ErrInvalid
}

func update(w store.Write, old store.Item, writer string) (store.Item, error) {
	next := make(store.Item, len(old)+len(w.Set)+len(w.Add)+1)
	maps.Copy(next, old)
	maps.Copy(next, w.Set)
	for _, name := range w.Remove {
		delete(next, name)
	}
	for name, n := range w.Add {
		sum, err := add(old[name], n)
		if err != nil {
			return nil, fmt.Errorf("%w: attribute %q: %w", store.ErrInvalid, name, err)
		}
		next[name] = sum
	}
	next[store.AttrWriter] = writer
	return next, fits(w.Key, next)
}

func add(have any, n int64) (int64, error) {
	if have == nil {
		return n, nil
	}
	m, ok := have.(int64)
	if !ok {
		return 0, fmt.Errorf("number added to a %T", have)
	}
	if (n > 0 && m > math.MaxInt64-n) || (n < 0 && m < math.MinInt64-n) {
		return 0, errors.New("sum is beyond 64 bits")
	}
	return m + n, nil
}

func fits(key store.Key, item store.Item) error {
	if size := store.Size(key, item); size > store.MaxItemBytes {
		return fmt.Errorf("%w: %d bytes", store.ErrTooLarge, size)
	}
	return nil
}

// unavailable is what a caller gets whose context had already ended.
func unavailable(doing string, key store.Key, err error) error {
	return fmt.Errorf("memory: %s %q: %w: %w", doing, key, store.ErrUnavailable, err)
}
