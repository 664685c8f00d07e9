package storetest

import (
	"errors"

	"github.com/kessai/kessai/internal/store"
)

var writeClaims = []claim{
	{"an absent item is not found", absentIsNotFound},
	{"a put replaces the whole item", putReplaces},
	{"an update changes only what it names", updateKeepsTheRest},
	{"an update creates an absent item", updateCreates},
	{"an update may set nothing", updateOfNothing},
	{"a number is added to what is there, or to nothing", addCounts},
	{"a number can't be added to text", addToText},
	{"a delete succeeds again", deleteRepeats},
	{"each write stamps another writer", writesAreStamped},
	{"a writer can be a condition", writerIsACondition},
	{"nothing is shared with the caller", nothingIsShared},
	{"keys differ in each part", keysDiffer},
}

func absentIsNotFound(b *bench) {
	_, err := b.table.Get(b.Context(), b.key("P", "S"))
	if !errors.Is(err, store.ErrNotFound) {
		b.Errorf("got %v, want ErrNotFound", err)
	}
}

func putReplaces(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, store.Item{"a": "1", "b": "2"})
	b.mustPut(key, store.Item{"b": "3"})
	b.wantItem(key, store.Item{"b": "3"})
	b.mustPut(key, store.Item{})
	b.wantItem(key, store.Item{})
}

// updateKeepsTheRest is why old code may write an item that newer code has
// extended.
func updateKeepsTheRest(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, store.Item{"a": "1", "b": "2", "unknown": map[string]any{"deep": []any{"x"}}, "n": int64(5)})
	b.mustWrite(store.Write{
		Kind: store.Update, Key: key,
		Set: store.Item{"a": "changed", "new": true}, Remove: []string{"b", "never there"}, Add: map[string]int64{"n": 2},
	})
	b.wantItem(key, store.Item{
		"a": "changed", "new": true, "unknown": map[string]any{"deep": []any{"x"}}, "n": int64(7),
	})
}

func updateCreates(b *bench) {
	key := b.key("P", "S")
	b.mustWrite(store.Write{
		Kind: store.Update, Key: key,
		Set: store.Item{"a": "1"}, Remove: []string{"b"}, Add: map[string]int64{"n": -2},
	})
	b.wantItem(key, store.Item{"a": "1", "n": int64(-2)})
}

func updateOfNothing(b *bench) {
	key := b.key("P", "S")
	b.mustWrite(store.Write{Kind: store.Update, Key: key})
	b.wantItem(key, store.Item{})
}

func addCounts(b *bench) {
	key := b.key("P", "S")
	for _, n := range []int64{1, 41, 0, -100} {
		b.mustWrite(store.Write{Kind: store.Update, Key: key, Add: map[string]int64{"n": n, "m": 1}})
	}
	b.wantItem(key, store.Item{"n": int64(-58), "m": int64(4)})
}

func addToText(b *bench) {
	key, other := b.key("P", "S"), b.key("P", "other")
	b.mustPut(key, store.Item{"text": "x"})
	bad := store.Write{Kind: store.Update, Key: key, Add: map[string]int64{"text": 1}}
	if err := b.write(bad); !errors.Is(err, store.ErrInvalid) {
		b.Errorf("alone: got %v, want ErrInvalid", err)
	}
	err := b.write(store.Write{Kind: store.Put, Key: other}, bad)
	if !errors.Is(err, store.ErrInvalid) {
		b.Errorf("in a transaction: got %v, want ErrInvalid", err)
	}
	b.wantItem(key, store.Item{"text": "x"})
	b.wantItem(other, nil)
}

func deleteRepeats(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, store.Item{"a": "1"})
	for range 2 {
		b.mustWrite(store.Write{Kind: store.Delete, Key: key})
		b.wantItem(key, nil)
	}
}

// writer returns the token of the last write of an item.
func (b *bench) writer(key store.Key) string {
	b.Helper()
	item, err := b.table.Get(b.Context(), key)
	if err != nil {
		b.Fatalf("get %s: %v", key, err)
	}
	w, _ := item[store.AttrWriter].(string)
	return w
}

func writesAreStamped(b *bench) {
	one, two := b.key("P", "1"), b.key("P", "2")
	seen := map[string]bool{"": true}
	for _, writes := range [][]store.Write{
		{{Kind: store.Put, Key: one, Item: store.Item{store.AttrWriter: "not mine to say"}}},
		{{Kind: store.Update, Key: one, Set: store.Item{store.AttrWriter: "nor here"}}},
		{{Kind: store.Put, Key: one}, {Kind: store.Update, Key: two}},
	} {
		b.mustWrite(writes...)
		w := b.writer(one)
		if seen[w] || w == "not mine to say" || w == "nor here" {
			b.Errorf("got writer %q, want a new one for each write", w)
		}
		seen[w] = true
	}
	if b.writer(one) != b.writer(two) {
		b.Errorf("got writers %q and %q of one transaction, want one", b.writer(one), b.writer(two))
	}
}

func writerIsACondition(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, store.Item{})
	seen := b.writer(key)
	touch := store.Write{Kind: store.Update, Key: key, If: store.Equal(store.AttrWriter, seen)}
	b.mustWrite(touch)
	b.wantRefusal(b.write(touch), map[int]store.Item{0: {}})
}

func nothingIsShared(b *bench) {
	key := b.key("P", "S")
	mine := store.Item{"m": map[string]any{"l": []any{"as put"}}}
	spoil := func(item store.Item) { item["m"].(map[string]any)["l"].([]any)[0] = "spoiled" }
	want := store.Clone(mine)
	b.mustPut(key, mine)
	spoil(mine)
	if _, stamped := mine[store.AttrWriter]; stamped {
		b.Error("got the writer in the caller's item, want it left alone")
	}
	got := b.read(key)
	if !same(got, want) {
		b.Fatalf("got %v, want %v", got, want)
	}
	spoil(got)
	page, err := b.table.Query(b.Context(), store.Query{PK: key.PK, Limit: 1})
	if err != nil || len(page.Entries) != 1 {
		b.Fatalf("got %v, %v, want one entry", page, err)
	}
	spoil(page.Entries[0].Item)
	err = b.write(store.Write{Kind: store.Delete, Key: key, If: store.Absent()})
	if refusal, ok := errors.AsType[*store.ConditionError](err); ok {
		spoil(refusal.Failed[0].Old)
	}
	b.wantItem(key, want)
}

func keysDiffer(b *bench) {
	one, two, three := b.key("P", "S"), b.key("P", "T"), b.key("Q", "S")
	for _, key := range []store.Key{one, two, three} {
		b.mustPut(key, store.Item{"me": key.String()})
	}
	b.mustWrite(store.Write{Kind: store.Delete, Key: two})
	b.wantItem(one, store.Item{"me": one.String()})
	b.wantItem(two, nil)
	b.wantItem(three, store.Item{"me": three.String()})
}
