package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/kessai/kessai/internal/store"
)

// table is a store.Table that is cheap to make and to compare: a map of items that
// are never changed in place, and a digest that is kept up with each write. The
// digest leaves writer tokens out, so that equal contents are equal. It passes the
// contract of all tables.
type table struct {
	mu     sync.Mutex
	rows   map[store.Key]store.Item
	digest uint64
	// before is what the last write replaced: what an index shows that is behind.
	before map[store.Key]store.Item
	// committed is told of each write that took place.
	committed func(changes []store.Change)
	// leaked is told of each item that holds what nothing may hold.
	leaked func(where string)
	writes int  // for writer tokens
	shared bool // rows are those of a twin too
}

var _ store.Table = (*table)(nil)

func newTable() *table { return &table{rows: map[store.Key]store.Item{}} }

// clone is a twin with a life of its own.
func (t *table) clone() *table {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = true
	return &table{rows: t.rows, digest: t.digest, before: t.before, writes: t.writes, shared: true}
}

// Get reads one item.
func (t *table) Get(_ context.Context, key store.Key) (store.Item, error) {
	item, err := t.peek(key)
	return store.Clone(item), err
}

// peek reads one item as it lies there, not to be changed.
func (t *table) peek(key store.Key) (store.Item, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	item := t.rows[key]
	if item == nil {
		return nil, store.ErrNotFound
	}
	return item, nil
}

// Write carries out all writes, or none.
func (t *table) Write(_ context.Context, writes ...store.Write) error {
	if err := store.ValidateWrites(writes); err != nil {
		return err
	}
	return t.write(writes, &memory{})
}

// memory is what the same writes came to before, by the first of the items that they
// met. Items are never changed in place: the same item is the same place in memory.
type memory map[unsafe.Pointer][]outcome

// outcome is what writes come to.
type outcome struct {
	met     []store.Item
	changes []store.Change
	before  map[store.Key]store.Item
	delta   uint64 // of the digest
	leak    string // of the items written
	err     error
}

func place(item store.Item) unsafe.Pointer { return reflect.ValueOf(item).UnsafePointer() }

// find is the outcome for those items.
func (m memory) find(met []store.Item) (outcome, bool) {
	for _, o := range m[place(met[0])] {
		if slices.EqualFunc(o.met, met, func(a, b store.Item) bool { return place(a) == place(b) }) {
			return o, true
		}
	}
	return outcome{}, false
}

// write carries out writes that are valid.
func (t *table) write(writes []store.Write, known *memory) error {
	o := t.commit(writes, known)
	if o.leak != "" && t.leaked != nil {
		t.leaked(o.leak)
	}
	if o.err == nil && t.committed != nil {
		t.committed(o.changes)
	}
	return o.err
}

func (t *table) commit(writes []store.Write, known *memory) outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	met := make([]store.Item, len(writes))
	for i, w := range writes {
		met[i] = t.rows[w.Key]
	}
	o, again := known.find(met)
	if !again {
		t.writes++
		o = outcomeOf(writes, met, "w"+strconv.Itoa(t.writes))
		if *known == nil {
			*known = memory{}
		}
		(*known)[place(met[0])] = append((*known)[place(met[0])], o)
	}
	if o.err != nil {
		return o
	}
	if t.shared {
		t.rows, t.shared = maps.Clone(t.rows), false
	}
	t.before = o.before
	t.digest ^= o.delta
	for _, c := range o.changes {
		if c.New == nil {
			delete(t.rows, c.Key)
		} else {
			t.rows[c.Key] = c.New
		}
	}
	return o
}

// outcomeOf is what writes make of the items that they meet.
func outcomeOf(writes []store.Write, met []store.Item, writer string) outcome {
	var refused []store.Failed
	for i, w := range writes {
		if !w.If.Holds(met[i]) {
			refused = append(refused, store.Failed{Index: i, Old: store.Clone(met[i])})
		}
	}
	if refused != nil {
		return outcome{met: met, err: &store.ConditionError{Failed: refused}}
	}
	o := outcome{met: met, before: map[store.Key]store.Item{}}
	for i, w := range writes {
		next, err := written(w, met[i], writer)
		if err != nil {
			return outcome{met: met, err: err}
		}
		if w.Kind != store.Check && (met[i] != nil || next != nil) {
			o.changes = append(o.changes, store.Change{Key: w.Key, Old: met[i], New: next})
			o.before[w.Key] = met[i]
			o.leak = cmp.Or(o.leak, leakOf(w.Key, next))
			o.delta ^= digestItem(w.Key, met[i]) ^ digestItem(w.Key, next)
		}
	}
	return o
}

// written is what a write makes of the item; nil removes it.
func written(w store.Write, old store.Item, writer string) (store.Item, error) {
	var next store.Item
	switch w.Kind {
	case store.Check:
		return old, nil
	case store.Delete:
		return nil, nil
	case store.Put:
		next = store.Clone(w.Item)
		if next == nil {
			next = store.Item{}
		}
		next[store.AttrWriter] = writer
	case store.Update:
		next = make(store.Item, len(old)+len(w.Set))
		maps.Copy(next, old)
		maps.Copy(next, store.Clone(w.Set))
		for _, name := range w.Remove {
			delete(next, name)
		}
		for name, n := range w.Add {
			sum, err := sum(next[name], n)
			if err != nil {
				return nil, fmt.Errorf("%w: attribute %q: %w", store.ErrInvalid, name, err)
			}
			next[name] = sum
		}
		next[store.AttrWriter] = writer
	}
	if size := store.Size(w.Key, next); size > store.MaxItemBytes {
		return nil, fmt.Errorf("%w: %d bytes", store.ErrTooLarge, size)
	}
	return next, nil
}

func sum(have any, n int64) (int64, error) {
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

// maxPageBytes ends a page early, like DynamoDB.
const maxPageBytes = 1 << 20

// Query reads one page.
func (t *table) Query(_ context.Context, q store.Query) (store.Page, error) { return t.query(q, false) }

// query reads the index as it was before the last write when it is behind.
func (t *table) query(q store.Query, behind bool) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	from, resumed, err := q.Position()
	if err != nil {
		return store.Page{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	entries := t.found(q, behind)
	slices.SortFunc(entries, q2order(q))
	if q.Descending {
		slices.Reverse(entries)
	}
	var page store.Page
	var last store.Position
	bytes := 0
	for _, e := range entries {
		at := store.Position{Key: e.Key}
		if q.Index == store.IndexDue {
			at.DueAt, _ = e.Item[store.AttrDueAt].(int64)
		}
		if resumed && !past(q, at, from) {
			continue
		}
		if len(page.Entries) == q.Limit || bytes > maxPageBytes {
			page.Cursor = q.CursorAfter(last)
			break
		}
		page.Entries = append(page.Entries, store.Entry{Key: e.Key, Item: store.Clone(e.Item)})
		last = at
		bytes += store.Size(e.Key, e.Item)
	}
	return page, nil
}

func q2order(q store.Query) func(a, b store.Entry) int {
	return func(a, b store.Entry) int {
		x, y := store.Position{Key: a.Key}, store.Position{Key: b.Key}
		if q.Index == store.IndexDue {
			x.DueAt, _ = a.Item[store.AttrDueAt].(int64)
			y.DueAt, _ = b.Item[store.AttrDueAt].(int64)
		}
		return compare(x, y)
	}
}

func compare(a, b store.Position) int {
	return cmp.Or(cmp.Compare(a.DueAt, b.DueAt), strings.Compare(a.Key.PK, b.Key.PK), strings.Compare(a.Key.SK, b.Key.SK))
}

func past(q store.Query, at, from store.Position) bool {
	if q.Descending {
		return compare(at, from) < 0
	}
	return compare(at, from) > 0
}

func (t *table) found(q store.Query, behind bool) []store.Entry {
	var entries []store.Entry
	take := func(key store.Key, item store.Item) {
		if q.Index == "" {
			if key.PK == q.PK && strings.HasPrefix(key.SK, q.SKPrefix) {
				entries = append(entries, store.Entry{Key: key, Item: item})
			}
			return
		}
		shard, _ := item[store.AttrDueShard].(string)
		at, due := item[store.AttrDueAt].(int64)
		if due && shard == q.PK && (q.AtMost == 0 || at <= q.AtMost) {
			entries = append(entries, store.Entry{Key: key, Item: store.Item{store.AttrDueShard: shard, store.AttrDueAt: at}})
		}
	}
	for key, item := range t.rows {
		if old, changed := t.before[key]; behind && changed {
			item = old
		}
		take(key, item)
	}
	if behind {
		for key, old := range t.before {
			if _, there := t.rows[key]; !there {
				take(key, old)
			}
		}
	}
	return entries
}
