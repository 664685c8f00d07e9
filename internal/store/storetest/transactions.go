package storetest

import (
	"fmt"

	"github.com/kessai/kessai/internal/store"
)

var transactionClaims = []claim{
	{"all kinds of writes happen together", allKindsTogether},
	{"one refusal undoes every write", oneRefusalUndoesAll},
	{"a refusal names every write that was refused, with its item", refusalNamesEach},
	{"100 items change together", hundredTogether},
	{"a condition sees the items as they were before", conditionsSeeBefore},
}

func allKindsTogether(b *bench) {
	put, updated, deleted, checked := b.key("P", "put"), b.key("P", "update"), b.key("Q", "delete"), b.key("Q", "check")
	for _, key := range []store.Key{updated, deleted, checked} {
		b.mustPut(key, store.Item{"n": int64(1)})
	}
	b.mustWrite(
		store.Write{Kind: store.Put, Key: put, Item: store.Item{"a": "x"}, If: store.Absent()},
		store.Write{Kind: store.Update, Key: updated, Set: store.Item{"a": "x"}, Add: map[string]int64{"n": 1}},
		store.Write{Kind: store.Delete, Key: deleted, If: store.Equal("n", int64(1))},
		store.Write{Kind: store.Check, Key: checked, If: store.Equal("n", int64(1))},
	)
	b.wantItem(put, store.Item{"a": "x"})
	b.wantItem(updated, store.Item{"a": "x", "n": int64(2)})
	b.wantItem(deleted, nil)
	b.wantItem(checked, store.Item{"n": int64(1)})
}

// oneRefusalUndoesAll tries the refused write of each kind in each place.
func oneRefusalUndoesAll(b *bench) {
	kinds := []store.Kind{store.Put, store.Update, store.Delete, store.Check}
	for at, refused := range kinds {
		var keys []store.Key
		var writes []store.Write
		for i, kind := range kinds {
			key := b.key(fmt.Sprint(at), fmt.Sprint(i))
			b.mustPut(key, store.Item{"n": int64(i)})
			w := store.Write{Kind: kind, Key: key, If: store.Equal("n", int64(i))}
			if i == at {
				w.Kind, w.If = refused, store.Equal("n", int64(-1))
			}
			if w.Kind == store.Put {
				w.Item = store.Item{"replaced": true}
			}
			if w.Kind == store.Update {
				w.Set = store.Item{"n": int64(100)}
			}
			keys, writes = append(keys, key), append(writes, w)
		}
		b.wantRefusal(b.write(writes...), map[int]store.Item{at: {"n": int64(at)}})
		for i, key := range keys {
			b.wantItem(key, store.Item{"n": int64(i)})
		}
	}
}

func refusalNamesEach(b *bench) {
	present, absent, fine := b.key("P", "present"), b.key("P", "absent"), b.key("P", "fine")
	item := store.Item{"deep": map[string]any{"l": []any{int64(1), "x"}}, "n": int64(7)}
	b.mustPut(present, item)
	err := b.write(
		store.Write{Kind: store.Put, Key: present, Item: store.Item{}, If: store.Absent()},
		store.Write{Kind: store.Put, Key: fine, Item: store.Item{}, If: store.Absent()},
		store.Write{Kind: store.Update, Key: absent, Set: store.Item{"a": "x"}, If: store.Exists()},
	)
	b.wantRefusal(err, map[int]store.Item{0: item, 2: nil})
	b.wantItem(fine, nil)
}

func hundredTogether(b *bench) {
	writes := make([]store.Write, store.MaxWrites)
	for i := range writes {
		writes[i] = store.Write{
			Kind: store.Put, Key: b.key(fmt.Sprint("P", i%7), fmt.Sprint(i)),
			Item: store.Item{"n": int64(i)}, If: store.Absent(),
		}
	}
	b.mustWrite(writes...)
	for _, i := range []int{0, 50, 99} {
		b.wantItem(writes[i].Key, store.Item{"n": int64(i)})
	}
	b.mustWrite(store.Write{Kind: store.Delete, Key: writes[99].Key})
	want := make(map[int]store.Item)
	for i := range writes[:99] {
		want[i] = store.Item{"n": int64(i)}
	}
	b.wantRefusal(b.write(writes...), want)
	b.wantItem(writes[99].Key, nil)
}

func conditionsSeeBefore(b *bench) {
	one, two := b.key("P", "1"), b.key("P", "2")
	b.mustPut(one, store.Item{"n": int64(1)})
	b.mustPut(two, store.Item{"n": int64(1)})
	b.mustWrite(
		store.Write{Kind: store.Update, Key: one, Add: map[string]int64{"n": 1}, If: store.Equal("n", int64(1))},
		store.Write{Kind: store.Update, Key: two, Add: map[string]int64{"n": 1}, If: store.Less("n", 2)},
	)
	b.wantItem(one, store.Item{"n": int64(2)})
	b.wantItem(two, store.Item{"n": int64(2)})
}
