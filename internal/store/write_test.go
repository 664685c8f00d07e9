package store_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/store"
)

var key = store.Key{PK: "P", SK: "S"}

// nested returns a value of that many lists within each other.
func nested(depth int) any {
	var v any = "x"
	for range depth {
		v = []any{v}
	}
	return v
}

func put(item store.Item) store.Write {
	return store.Write{Kind: store.Put, Key: key, Item: item}
}

func TestAMalformedWriteIsRefused(t *testing.T) {
	type named string
	update := func(w store.Write) store.Write {
		w.Kind, w.Key = store.Update, key
		return w
	}
	cases := map[string]store.Write{
		"empty partition":              {Kind: store.Put, Key: store.Key{SK: "S"}},
		"empty sort key":               {Kind: store.Put, Key: store.Key{PK: "P"}},
		"long partition":               {Kind: store.Put, Key: store.Key{PK: strings.Repeat("x", 2049), SK: "S"}},
		"long sort key":                {Kind: store.Put, Key: store.Key{PK: "P", SK: strings.Repeat("x", 1025)}},
		"key not UTF-8":                {Kind: store.Put, Key: store.Key{PK: "P\xff", SK: "S"}},
		"unknown kind":                 {Kind: 9, Key: key},
		"nil value":                    put(store.Item{"a": nil}),
		"int instead of int64":         put(store.Item{"a": 1}),
		"float":                        put(store.Item{"a": 1.5}),
		"named string type":            put(store.Item{"a": named("x")}),
		"string not UTF-8":             put(store.Item{"a": "\xff"}),
		"wrong type in a list":         put(store.Item{"a": []any{"x", 1}}),
		"wrong type in a map":          put(store.Item{"a": map[string]any{"b": nil}}),
		"empty map key":                put(store.Item{"a": map[string]any{"": "x"}}),
		"too deep":                     put(store.Item{"a": nested(32)}),
		"empty attribute name":         put(store.Item{"": "x"}),
		"attribute pk":                 put(store.Item{"pk": "x"}),
		"attribute sk":                 put(store.Item{"sk": "x"}),
		"empty due_shard":              put(store.Item{store.AttrDueShard: ""}),
		"due_shard a number":           put(store.Item{store.AttrDueShard: int64(1)}),
		"due_at a string":              put(store.Item{store.AttrDueAt: "1"}),
		"expires_at a string":          put(store.Item{store.AttrExpiresAt: "1"}),
		"put that sets":                {Kind: store.Put, Key: key, Set: store.Item{"a": "x"}},
		"put that removes":             {Kind: store.Put, Key: key, Remove: []string{"a"}},
		"put that adds":                {Kind: store.Put, Key: key, Add: map[string]int64{"a": 1}},
		"update with an item":          update(store.Write{Item: store.Item{"a": "x"}}),
		"delete with an item":          {Kind: store.Delete, Key: key, Item: store.Item{}},
		"update sets wrong type":       update(store.Write{Set: store.Item{"a": 1}}),
		"update sets and removes":      update(store.Write{Set: store.Item{"a": "x"}, Remove: []string{"a"}}),
		"update sets and adds":         update(store.Write{Set: store.Item{"a": int64(1)}, Add: map[string]int64{"a": 1}}),
		"update removes twice":         update(store.Write{Remove: []string{"a", "a"}}),
		"update removes the key":       update(store.Write{Remove: []string{"pk"}}),
		"update removes the writer":    update(store.Write{Remove: []string{store.AttrWriter}}),
		"update adds to the writer":    update(store.Write{Add: map[string]int64{store.AttrWriter: 1}}),
		"update adds to due_shard":     update(store.Write{Add: map[string]int64{store.AttrDueShard: 1}}),
		"check without a condition":    {Kind: store.Check, Key: key},
		"check of All()":               {Kind: store.Check, Key: key, If: store.All()},
		"condition of unknown op":      {Kind: store.Delete, Key: key, If: store.Condition{Op: 99}},
		"condition without attribute":  {Kind: store.Delete, Key: key, If: store.Equal("", "x")},
		"condition of wrong type":      {Kind: store.Delete, Key: key, If: store.Equal("a", 1)},
		"condition of named string":    {Kind: store.Delete, Key: key, If: store.Equal("a", named("x"))},
		"condition orders bools":       {Kind: store.Delete, Key: key, If: store.Condition{Op: store.OpLess, Attr: "a", Value: true}},
		"condition on the key":         {Kind: store.Delete, Key: key, If: store.Has("pk")},
		"wrong condition in another":   {Kind: store.Delete, Key: key, If: store.Any(store.All(store.Equal("a", nil)))},
		"condition value not UTF-8":    {Kind: store.Delete, Key: key, If: store.Equal("a", "\xff")},
		"attribute name not UTF-8":     put(store.Item{"\xff": "x"}),
		"map key not UTF-8":            put(store.Item{"a": map[string]any{"\xff": "x"}}),
		"check with additions":         {Kind: store.Check, Key: key, If: store.Exists(), Add: map[string]int64{"a": 1}},
		"update adds to an empty name": update(store.Write{Add: map[string]int64{"": 1}}),
	}
	for name, w := range cases {
		t.Run(name, func(t *testing.T) {
			if err := store.ValidateWrites([]store.Write{w}); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("got %v, want ErrInvalid", err)
			}
		})
	}
}

func TestAWellFormedWriteIsAccepted(t *testing.T) {
	cases := map[string]store.Write{
		"no attributes": put(nil),
		"all types":     put(store.Item{"s": "", "n": int64(math.MinInt64), "b": false, "l": []any{}, "m": map[string]any{"é": "😀"}}),
		"deep":          put(store.Item{"a": nested(31)}),
		"index":         put(store.Item{store.AttrDueShard: "0", store.AttrDueAt: int64(0), store.AttrExpiresAt: int64(1)}),
		"longest key":   {Kind: store.Put, Key: store.Key{PK: strings.Repeat("x", 2048), SK: strings.Repeat("x", 1024)}},
		"given writer":  put(store.Item{store.AttrWriter: "somebody before"}),
		"empty update":  {Kind: store.Update, Key: key},
		"moved due":     {Kind: store.Update, Key: key, Add: map[string]int64{store.AttrDueAt: 1}, Remove: []string{store.AttrExpiresAt}},
		"check":         {Kind: store.Check, Key: key, If: store.Absent()},
		"order of text": {Kind: store.Delete, Key: key, If: store.Condition{Op: store.OpAtLeast, Attr: "a", Value: "x"}},
	}
	for name, w := range cases {
		t.Run(name, func(t *testing.T) {
			if err := store.ValidateWrites([]store.Write{w}); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

func TestATransactionHasOneTo100DifferentKeys(t *testing.T) {
	writes := make([]store.Write, store.MaxWrites+1)
	for i := range writes {
		writes[i] = store.Write{Kind: store.Delete, Key: store.Key{PK: "P", SK: strings.Repeat("x", i+1)}}
	}
	if err := store.ValidateWrites(writes[:store.MaxWrites]); err != nil {
		t.Errorf("got %v of 100, want nil", err)
	}
	if err := store.ValidateWrites(writes); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v of 101, want ErrInvalid", err)
	}
	if err := store.ValidateWrites(nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v of none, want ErrInvalid", err)
	}
	writes[1].Key = writes[0].Key
	if err := store.ValidateWrites(writes[:2]); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v of one key twice, want ErrInvalid", err)
	}
}

func TestSizeCountsByDynamoDBsRules(t *testing.T) {
	base := len("pkPskS")
	cases := []struct {
		name  string
		value any
		want  int
	}{
		{"empty string", "", 0},
		{"UTF-8 bytes", "é😀", 6},
		{"bool", true, 1},
		{"zero", int64(0), 1},
		{"one digit", int64(7), 2},
		{"two digits", int64(99), 2},
		{"three digits", int64(999), 3},
		{"zeros at the end are free", int64(5_000_000), 2},
		{"minus sign", int64(-5), 3},
		{"longest number", int64(math.MinInt64), 12},
		{"empty list", []any{}, 3},
		{"list", []any{"ab", true}, 3 + 1 + 2 + 1 + 1},
		{"map", map[string]any{"k": "ab"}, 3 + 1 + 1 + 2},
	}
	for _, c := range cases {
		if got := store.Size(key, store.Item{"a": c.value}); got != base+1+c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, base+1+c.want)
		}
	}
}

func TestAnItemOfExactly400KBIsTheLargestPut(t *testing.T) {
	room := store.MaxItemBytes - len("pkPskSa")
	if err := store.ValidateWrites([]store.Write{put(store.Item{"a": strings.Repeat("x", room)})}); err != nil {
		t.Errorf("got %v of exactly 400 KB, want nil", err)
	}
	err := store.ValidateWrites([]store.Write{put(store.Item{"a": strings.Repeat("x", room+1)})})
	if !errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrInvalid) {
		t.Errorf("got %v of a byte more, want ErrTooLarge alone", err)
	}
}

func TestATransactionOfMoreThan4MBIsTooLarge(t *testing.T) {
	var writes []store.Write
	for i := range 11 {
		w := put(store.Item{"a": strings.Repeat("x", 390<<10)})
		w.Key.SK = strings.Repeat("k", i+1)
		writes = append(writes, w)
	}
	if err := store.ValidateWrites(writes[:10]); err != nil {
		t.Errorf("got %v below the limit, want nil", err)
	}
	if err := store.ValidateWrites(writes); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}

func TestACloneSharesNothing(t *testing.T) {
	item := store.Item{"m": map[string]any{"l": []any{map[string]any{"x": int64(1)}}}}
	clone := store.Clone(item)
	clone["m"].(map[string]any)["l"].([]any)[0].(map[string]any)["x"] = int64(2)
	if got := item["m"].(map[string]any)["l"].([]any)[0].(map[string]any)["x"]; got != int64(1) {
		t.Errorf("got %v in the original, want 1", got)
	}
	if store.Clone(nil) != nil {
		t.Error("got an item of nil, want nil")
	}
}
