package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/store"
)

var modelClaims = []claim{
	{"any sequence of calls does what a plain map would", likeAMap},
}

// likeAMap draws sequences of writes, reads and queries and compares each answer
// with a map's. Few keys and small numbers make refusals as common as successes.
func likeAMap(b *bench) {
	rapid.Check(b.T, func(t *rapid.T) {
		m := &model{ctx: b.Context(), table: b.table, space: newSpace(), items: make(map[store.Key]store.Item)}
		t.Repeat(map[string]func(*rapid.T){
			"write":       m.write,
			"transaction": m.transaction,
			"get":         m.get,
			"query":       m.query,
			"due":         m.due,
		})
	})
}

type model struct {
	ctx   context.Context
	table store.Table
	space string
	items map[store.Key]store.Item
}

var (
	partitions = rapid.SampledFrom([]string{"P", "Q"})
	sortKeys   = rapid.SampledFrom([]string{"STATE", "EVENT#1", "EVENT#2", "EVENT#10"})
	names      = rapid.SampledFrom([]string{"a", "status", "n"})
	numbers    = rapid.Int64Range(-2, 3)
	texts      = rapid.SampledFrom([]string{"", "x", "y"})
	scalars    = rapid.OneOf(numbers.AsAny(), texts.AsAny(), rapid.Bool().AsAny())
	values     = rapid.OneOf(scalars, rapid.Deferred(documents))
)

func documents() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.SliceOfN(scalars, 0, 2).AsAny(),
		rapid.MapOfN(texts.Filter(func(s string) bool { return s != "" }), scalars, 0, 2).AsAny(),
	)
}

func (m *model) drawKey(t *rapid.T) store.Key {
	return store.Key{PK: m.space + partitions.Draw(t, "pk"), SK: sortKeys.Draw(t, "sk")}
}

func (m *model) drawItem(t *rapid.T) store.Item {
	item := store.Item(rapid.MapOfN(names, values, 0, 3).Draw(t, "item"))
	if rapid.Bool().Draw(t, "has shard") {
		item[store.AttrDueShard] = m.space + "0"
	}
	if rapid.Bool().Draw(t, "has time") {
		item[store.AttrDueAt] = numbers.Draw(t, "due_at")
	}
	return item
}

func drawCondition(t *rapid.T, depth int) store.Condition {
	op := rapid.IntRange(int(store.OpAlways), int(store.OpAny)).Draw(t, "op")
	c := store.Condition{Op: store.Op(op)}
	switch c.Op {
	case store.OpAlways:
	case store.OpExists, store.OpAbsent:
		c.Attr = rapid.OneOf(names, rapid.Just("")).Draw(t, "attr")
	case store.OpEqual, store.OpNotEqual:
		c.Attr, c.Value = names.Draw(t, "attr"), scalars.Draw(t, "value")
	case store.OpLess, store.OpAtLeast:
		c.Attr, c.Value = names.Draw(t, "attr"), numbers.Draw(t, "value")
	case store.OpAll, store.OpAny:
		if depth == 0 {
			return store.Exists()
		}
		for range rapid.IntRange(0, 2).Draw(t, "terms") {
			c.Terms = append(c.Terms, drawCondition(t, depth-1))
		}
	}
	return c
}

// drawWrite draws a well-formed write; one that adds to text is refused later.
func (m *model) drawWrite(t *rapid.T, key store.Key) store.Write {
	kind := store.Kind(rapid.IntRange(int(store.Put), int(store.Check)).Draw(t, "kind"))
	w := store.Write{Kind: kind, Key: key, If: drawCondition(t, 2)}
	switch kind {
	case store.Put:
		w.Item = m.drawItem(t)
	case store.Update:
		w.Set = m.drawItem(t)
		for _, name := range []string{"a", "n", store.AttrDueAt} {
			if _, set := w.Set[name]; set {
				continue
			}
			switch rapid.IntRange(0, 2).Draw(t, name) {
			case 1:
				w.Remove = append(w.Remove, name)
			case 2:
				if w.Add == nil {
					w.Add = make(map[string]int64)
				}
				w.Add[name] = numbers.Draw(t, "added")
			}
		}
	case store.Delete:
	case store.Check:
		if w.If.Simplify().Op == store.OpAlways {
			w.If = store.Exists()
		}
	}
	return w
}

func (m *model) write(t *rapid.T) { m.apply(t, m.drawWrite(t, m.drawKey(t))) }

func (m *model) transaction(t *rapid.T) {
	var writes []store.Write
	seen := make(map[store.Key]bool)
	for range rapid.IntRange(2, 4).Draw(t, "writes") {
		key := m.drawKey(t)
		if !seen[key] {
			seen[key] = true
			writes = append(writes, m.drawWrite(t, key))
		}
	}
	m.apply(t, writes...)
}

// apply writes to the table and to the map, and compares the outcomes.
func (m *model) apply(t *rapid.T, writes ...store.Write) {
	err := m.table.Write(m.ctx, writes...)
	refusal, refused := errors.AsType[*store.ConditionError](err)
	next := make(map[store.Key]store.Item)
	valid, anyRefused := true, false
	for i, w := range writes {
		old := m.items[w.Key]
		if !w.If.Holds(old) {
			anyRefused = true
			if !refused {
				t.Fatalf("got %v, want write %d refused by %v", err, i, old)
			}
			if got, ok := refusal.At(i); !ok || !same(unstamped(got), old) {
				t.Fatalf("write %d: got %v, %v, want it refused by %v", i, got, ok, old)
			}
			continue
		}
		if refused {
			if got, ok := refusal.At(i); ok {
				t.Fatalf("write %d: got it refused by %v, want it to hold of %v", i, got, old)
			}
		}
		item, ok := changed(w, old)
		next[w.Key], valid = item, valid && ok
	}
	switch {
	case anyRefused:
		return
	case !valid:
		if !errors.Is(err, store.ErrInvalid) {
			t.Fatalf("got %v, want ErrInvalid", err)
		}
		return
	case err != nil:
		t.Fatalf("got %v, want nil", err)
	}
	for key, item := range next {
		m.items[key] = item
		if item == nil {
			delete(m.items, key)
		}
	}
}

// changed is what a write makes of an item; false when it adds to text.
func changed(w store.Write, old store.Item) (store.Item, bool) {
	switch w.Kind {
	case store.Put:
		return store.Clone(w.Item), true
	case store.Update:
		item := store.Clone(old)
		if item == nil {
			item = store.Item{}
		}
		for name, v := range store.Clone(w.Set) {
			item[name] = v
		}
		for _, name := range w.Remove {
			delete(item, name)
		}
		for name, n := range w.Add {
			have, ok := item[name].(int64)
			if _, present := item[name]; present && !ok {
				return nil, false
			}
			item[name] = have + n
		}
		return item, true
	case store.Delete:
		return nil, true
	case store.Check:
		return old, true
	}
	return nil, false
}

func (m *model) get(t *rapid.T) {
	key := m.drawKey(t)
	got, err := m.table.Get(m.ctx, key)
	want, present := m.items[key]
	if !present {
		if !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("get %s: got %v, %v, want ErrNotFound", key, got, err)
		}
		return
	}
	if err != nil || !same(unstamped(got), want) {
		t.Fatalf("get %s: got %v, %v, want %v", key, got, err, want)
	}
}

func (m *model) query(t *rapid.T) {
	q := store.Query{
		PK:         m.space + partitions.Draw(t, "pk"),
		SKPrefix:   rapid.SampledFrom([]string{"", "EVENT#", "EVENT#1", "X"}).Draw(t, "prefix"),
		Descending: rapid.Bool().Draw(t, "descending"),
		Limit:      rapid.IntRange(1, 5).Draw(t, "limit"),
	}
	var want []string
	for key := range m.items {
		if key.PK == q.PK && strings.HasPrefix(key.SK, q.SKPrefix) {
			want = append(want, key.SK)
		}
	}
	slices.Sort(want)
	if q.Descending {
		slices.Reverse(want)
	}
	read, err := pages(m.ctx, m.table, q)
	if err != nil {
		t.Fatalf("query %+v: %v", q, err)
	}
	var got []string
	for _, entries := range read {
		for _, e := range entries {
			got = append(got, e.Key.SK)
			if !same(unstamped(e.Item), m.items[e.Key]) {
				t.Fatalf("query %+v: got %v of %s, want %v", q, e.Item, e.Key, m.items[e.Key])
			}
		}
	}
	if !slices.Equal(got, want) || len(read) != max(1, (len(want)+q.Limit-1)/q.Limit) {
		t.Fatalf("query %+v: got %q on %d pages, want %q", q, got, len(read), want)
	}
}

// due looks until the index has caught up, or patience ends.
func (m *model) due(t *rapid.T) {
	q := store.Query{
		PK: m.space + "0", Index: store.IndexDue,
		AtMost:     rapid.Int64Range(-2, 5).Draw(t, "at most"),
		Descending: rapid.Bool().Draw(t, "descending"),
		Limit:      rapid.IntRange(1, 5).Draw(t, "limit"),
	}
	want := make(map[store.Key]int64)
	for key, item := range m.items {
		at, timed := item[store.AttrDueAt].(int64)
		if _, sharded := item[store.AttrDueShard]; sharded && timed && (q.AtMost == 0 || at <= q.AtMost) {
			want[key] = at
		}
	}
	wrong := eventually(m.ctx, func(ctx context.Context) error { return m.dueOnce(ctx, q, want) })
	if wrong != nil {
		t.Fatal(wrong)
	}
}

func (m *model) dueOnce(ctx context.Context, q store.Query, want map[store.Key]int64) error {
	read, err := pages(ctx, m.table, q)
	if err != nil {
		return err
	}
	got := make(map[store.Key]int64)
	var order []int64
	for _, entries := range read {
		for _, e := range entries {
			at, _ := e.Item[store.AttrDueAt].(int64)
			got[e.Key] = at
			order = append(order, at)
		}
	}
	if q.Descending {
		slices.Reverse(order)
	}
	if len(order) != len(want) || !slices.IsSorted(order) {
		return fmt.Errorf("query %+v: got times %v, want %v in order", q, order, want)
	}
	for key, at := range want {
		if got[key] != at {
			return fmt.Errorf("query %+v: got %v, want %v", q, got, want)
		}
	}
	return nil
}
