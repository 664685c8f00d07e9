package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

var limitClaims = []claim{
	{"the largest item is 400 KB", largestItem},
	{"an update can't make an item larger than 400 KB", largestUpdate},
	{"a refused condition comes before the size", conditionBeforeSize},
	{"malformed writes are refused and write nothing", malformedWrites},
	{"malformed reads are refused", malformedReads},
}

// filler returns text that makes an item with nothing else so many bytes.
func filler(key store.Key, bytes int) string {
	return strings.Repeat("x", bytes-store.Size(key, store.Item{"a": ""}))
}

// stampRoom is more than any adapter's writer takes: the last few bytes below the
// limit are for the table.
const stampRoom = 64

func largestItem(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, store.Item{"a": filler(key, store.MaxItemBytes-stampRoom)})
	err := b.write(store.Write{Kind: store.Put, Key: key, Item: store.Item{"a": filler(key, store.MaxItemBytes+1)}})
	if !errors.Is(err, store.ErrTooLarge) {
		b.Errorf("alone: got %v, want ErrTooLarge", err)
	}
	other := b.key("P", "other")
	err = b.write(
		store.Write{Kind: store.Put, Key: other},
		store.Write{Kind: store.Put, Key: key, Item: store.Item{"a": filler(key, store.MaxItemBytes+1)}},
	)
	if !errors.Is(err, store.ErrTooLarge) {
		b.Errorf("in a transaction: got %v, want ErrTooLarge", err)
	}
	b.wantItem(other, nil)
	if got := len(b.read(key)["a"].(string)); got != len(filler(key, store.MaxItemBytes-stampRoom)) {
		b.Errorf("got %d bytes, want the item as it was", got)
	}
}

func largestUpdate(b *bench) {
	key, other := b.key("P", "S"), b.key("P", "other")
	b.mustPut(key, store.Item{"a": filler(key, 300<<10)})
	grow := store.Write{Kind: store.Update, Key: key, Set: store.Item{"b": strings.Repeat("x", 101<<10)}}
	if err := b.write(grow); !errors.Is(err, store.ErrTooLarge) {
		b.Errorf("alone: got %v, want ErrTooLarge", err)
	}
	if err := b.write(store.Write{Kind: store.Put, Key: other}, grow); !errors.Is(err, store.ErrTooLarge) {
		b.Errorf("in a transaction: got %v, want ErrTooLarge", err)
	}
	if _, grown := b.read(key)["b"]; grown {
		b.Error("got the item grown, want it as it was")
	}
	b.wantItem(other, nil)
	grow.Remove = []string{"a"}
	b.mustWrite(grow)
}

func conditionBeforeSize(b *bench) {
	key := b.key("P", "S")
	small := store.Item{"n": int64(1)}
	b.mustPut(key, small)
	err := b.write(
		store.Write{Kind: store.Update, Key: key, Set: store.Item{"b": "x"}, If: store.Absent()},
		store.Write{Kind: store.Delete, Key: b.key("P", "other")},
	)
	b.wantRefusal(err, map[int]store.Item{0: small})
	big := store.Item{"a": filler(key, 300<<10)}
	b.mustPut(key, big)
	err = b.write(store.Write{
		Kind: store.Update, Key: key, If: store.Absent(),
		Set: store.Item{"b": strings.Repeat("x", 101<<10)},
	})
	b.wantRefusal(err, map[int]store.Item{0: big})
}

func malformedWrites(b *bench) {
	key, fine := b.key("P", "S"), b.key("P", "fine")
	cases := map[string]store.Write{
		"wrong type":        {Kind: store.Put, Key: key, Item: store.Item{"a": 1}},
		"nil value":         {Kind: store.Update, Key: key, Set: store.Item{"a": nil}},
		"empty key":         {Kind: store.Put, Key: store.Key{PK: key.PK}},
		"part of the key":   {Kind: store.Put, Key: key, Item: store.Item{"pk": "x"}},
		"empty due_shard":   {Kind: store.Put, Key: key, Item: store.Item{store.AttrDueShard: ""}},
		"not UTF-8":         {Kind: store.Put, Key: key, Item: store.Item{"a": "\xff"}},
		"changed twice":     {Kind: store.Update, Key: key, Set: store.Item{"a": "x"}, Remove: []string{"a"}},
		"empty check":       {Kind: store.Check, Key: key},
		"the same key":      {Kind: store.Update, Key: fine},
		"unknown kind":      {Kind: 17, Key: key},
		"unknown condition": {Kind: store.Delete, Key: key, If: store.Condition{Op: 17}},
	}
	for name, bad := range cases {
		err := b.write(store.Write{Kind: store.Put, Key: fine}, bad)
		if !errors.Is(err, store.ErrInvalid) {
			b.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	if err := b.write(); !errors.Is(err, store.ErrInvalid) {
		b.Errorf("no writes: got %v, want ErrInvalid", err)
	}
	many := make([]store.Write, store.MaxWrites+1)
	for i := range many {
		many[i] = store.Write{Kind: store.Put, Key: b.key("P", fmt.Sprint(i))}
	}
	if err := b.write(many...); !errors.Is(err, store.ErrInvalid) {
		b.Errorf("%d writes: got %v, want ErrInvalid", len(many), err)
	}
	b.wantItem(fine, nil)
	b.wantItem(many[0].Key, nil)
}

func malformedReads(b *bench) {
	if _, err := b.table.Get(b.Context(), store.Key{SK: "S"}); !errors.Is(err, store.ErrInvalid) {
		b.Errorf("get without a partition: got %v, want ErrInvalid", err)
	}
	for name, q := range map[string]store.Query{
		"no partition":  {Limit: 1},
		"no limit":      {PK: b.space},
		"unknown index": {PK: b.space, Index: "other", Limit: 1},
	} {
		if _, err := b.table.Query(b.Context(), q); !errors.Is(err, store.ErrInvalid) {
			b.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	for _, cursor := range []string{"x", "!", "e30"} {
		q := store.Query{PK: b.space, Limit: 1, Cursor: cursor}
		if _, err := b.table.Query(b.Context(), q); !errors.Is(err, store.ErrCursor) {
			b.Errorf("cursor %q: got %v, want ErrCursor", cursor, err)
		}
	}
}
