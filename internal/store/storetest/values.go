package storetest

import (
	"math"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

var valueClaims = []claim{
	{"every value comes back as it was", valuesComeBack},
	{"64-bit numbers are exact", numbersAreExact},
	{"32 levels of lists and maps come back", depthComesBack},
}

func valuesComeBack(b *bench) {
	item := store.Item{
		"empty text": "",
		"text":       "plain",
		"unicode":    "é 日本語 😀 \u0000 \u2028 <&>\"\\",
		"long":       strings.Repeat("界", 10_000),
		"yes":        true,
		"no":         false,
		"zero":       int64(0),
		"empty list": []any{},
		"list":       []any{"", int64(1), false, []any{[]any{}}, map[string]any{"k": "v"}},
		"empty map":  map[string]any{},
		"map":        map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": int64(-1)}}}, "日本": "", "x.y#z": true},
	}
	put, set := b.key("P", "put"), b.key("P", "set")
	b.mustPut(put, item)
	b.wantItem(put, item)
	b.mustWrite(store.Write{Kind: store.Update, Key: set, Set: item})
	b.wantItem(set, item)
	page, err := b.table.Query(b.Context(), store.Query{PK: put.PK, Limit: 10})
	if err != nil || len(page.Entries) != 2 {
		b.Fatalf("got %v, %v, want two entries", page, err)
	}
	for _, e := range page.Entries {
		if !same(unstamped(e.Item), item) {
			b.Errorf("query: got %v, want %v", e.Item, item)
		}
	}
	err = b.write(store.Write{Kind: store.Put, Key: put, If: store.Absent()})
	b.wantRefusal(err, map[int]store.Item{0: item})
}

func numbersAreExact(b *bench) {
	key := b.key("P", "S")
	numbers := []any{
		int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64 - 1),
		int64(1<<53 + 1), int64(-1<<53 - 1), int64(1_000_000_000_000_000_000), int64(-1), int64(0),
	}
	item := store.Item{"all": numbers, "max": int64(math.MaxInt64), "min": int64(math.MinInt64)}
	b.mustPut(key, item)
	b.wantItem(key, item)
	b.mustWrite(store.Write{
		Kind: store.Update, Key: key, Add: map[string]int64{"max": -1, "min": 1},
		If: store.All(store.Equal("max", int64(math.MaxInt64)), store.Equal("min", int64(math.MinInt64)),
			store.AtLeast("max", math.MaxInt64), store.Less("min", math.MinInt64+1)),
	})
	b.wantItem(key, store.Item{"all": numbers, "max": int64(math.MaxInt64 - 1), "min": int64(math.MinInt64 + 1)})
}

func depthComesBack(b *bench) {
	key := b.key("P", "S")
	var v any = "bottom"
	for i := range 31 {
		if i%2 == 0 {
			v = []any{v}
		} else {
			v = map[string]any{"m": v}
		}
	}
	b.mustPut(key, store.Item{"v": v})
	b.wantItem(key, store.Item{"v": v})
}
