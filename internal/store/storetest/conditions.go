package storetest

import (
	"fmt"

	"github.com/kessai/kessai/internal/store"
)

var conditionClaims = []claim{
	{"a put holds its condition", conditionsOf(store.Put)},
	{"an update holds its condition", conditionsOf(store.Update)},
	{"a delete holds its condition", conditionsOf(store.Delete)},
	{"a check holds its condition", conditionsOf(store.Check)},
	{"conditions may name reserved words", reservedNames},
}

// conditioned is the item that the conditions below are about.
var conditioned = store.Item{
	"text": "b", "number": int64(5), "yes": true, "no": false, "list": []any{}, "empty": "",
}

// conditions are all operators, over present and absent attributes, equal and
// other values and types, and in each other.
var conditions = []store.Condition{
	{},
	store.Exists(),
	store.Absent(),
	store.Has("number"),
	store.Has("empty"),
	store.Has("list"),
	store.Has("missing"),
	store.HasNo("number"),
	store.HasNo("missing"),
	store.Equal("text", "b"),
	store.Equal("text", "B"),
	store.Equal("empty", ""),
	store.Equal("number", int64(5)),
	store.Equal("number", int64(6)),
	store.Equal("number", "5"),
	store.Equal("yes", true),
	store.Equal("no", true),
	store.Equal("list", ""),
	store.Equal("missing", ""),
	store.NotEqual("text", "b"),
	store.NotEqual("text", "a"),
	store.NotEqual("number", "5"),
	store.NotEqual("missing", int64(0)),
	store.Less("number", 5),
	store.Less("number", 6),
	store.Less("text", 6),
	store.Less("missing", 6),
	store.AtLeast("number", 5),
	store.AtLeast("number", 6),
	store.AtLeast("yes", 0),
	store.AtLeast("missing", -1),
	{Op: store.OpLess, Attr: "text", Value: "c"},
	{Op: store.OpLess, Attr: "text", Value: "b"},
	{Op: store.OpAtLeast, Attr: "text", Value: "b"},
	{Op: store.OpAtLeast, Attr: "number", Value: "b"},
	store.All(),
	store.Any(),
	store.All(store.Exists(), store.Equal("text", "b"), store.AtLeast("number", 1)),
	store.All(store.Exists(), store.Has("missing")),
	store.Any(store.Absent(), store.Equal("text", "b")),
	store.Any(store.Has("missing"), store.Less("number", 5)),
	store.All(store.Has("text"), store.Any(store.Has("missing"), store.All(store.Has("number"), store.HasNo("missing")))),
	store.Any(store.All(store.Absent(), store.Any()), store.All(store.Condition{}, store.HasNo("text"))),
}

// conditionsOf tries every condition on a present and an absent item and expects
// what store.Condition.Holds says.
func conditionsOf(kind store.Kind) func(b *bench) {
	return func(b *bench) {
		for n, c := range conditions {
			if kind == store.Check && c.Simplify().Op == store.OpAlways {
				continue
			}
			for _, old := range []store.Item{conditioned, nil} {
				b.conditionOf(kind, fmt.Sprintf("%d", n), c, old)
			}
		}
	}
}

func (b *bench) conditionOf(kind store.Kind, name string, c store.Condition, old store.Item) {
	b.Helper()
	key := b.key(name, fmt.Sprint(old != nil))
	if old != nil {
		b.mustPut(key, old)
	}
	w := store.Write{Kind: kind, Key: key, If: c}
	want := old
	switch kind {
	case store.Put:
		w.Item = store.Item{"new": int64(1)}
		want = w.Item
	case store.Update:
		w.Set = store.Item{"new": int64(1)}
		want = store.Clone(old)
		if want == nil {
			want = store.Item{}
		}
		want["new"] = int64(1)
	case store.Delete:
		want = nil
	case store.Check:
	}
	err := b.write(w)
	if c.Holds(old) {
		if err != nil {
			b.Errorf("%+v of %v: got %v, want it to hold", c, old, err)
		}
		b.wantItem(key, want)
		return
	}
	if err == nil {
		b.Errorf("%+v of %v: got nil, want a refusal", c, old)
	}
	b.wantRefusal(err, map[int]store.Item{0: old})
	b.wantItem(key, old)
}

// reservedNames are words of DynamoDB's expression language, and names that its
// grammar would not take.
func reservedNames(b *bench) {
	key := b.key("reserved", "S")
	item := store.Item{}
	var all []store.Condition
	for _, name := range []string{"status", "name", "ttl", "size", "and", "a.b", "a-b", "#a", ":a", "with space", "日本", "attribute_exists"} {
		item[name] = "x"
		all = append(all, store.Equal(name, "x"))
	}
	b.mustWrite(store.Write{Kind: store.Update, Key: key, Set: item})
	b.wantItem(key, item)
	b.mustWrite(store.Write{Kind: store.Check, Key: key, If: store.All(all...)})
	b.mustWrite(store.Write{Kind: store.Update, Key: key, Remove: []string{"status", "a.b"}, Add: map[string]int64{"count": 1}})
	delete(item, "status")
	delete(item, "a.b")
	item["count"] = int64(1)
	b.wantItem(key, item)
}
