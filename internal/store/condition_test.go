package store_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/store"
)

func TestAConditionHoldsOfAnItem(t *testing.T) {
	item := store.Item{"s": "b", "n": int64(5), "t": true, "l": []any{}, "empty": ""}
	never, always := store.Any(), store.All()
	cases := []struct {
		name   string
		c      store.Condition
		item   bool // of the item above
		absent bool // of no item
	}{
		{"zero", store.Condition{}, true, true},
		{"exists", store.Exists(), true, false},
		{"absent", store.Absent(), false, true},
		{"has", store.Has("n"), true, false},
		{"has an empty string", store.Has("empty"), true, false},
		{"has what is absent", store.Has("x"), false, false},
		{"has no", store.HasNo("n"), false, true},
		{"has no of what is absent", store.HasNo("x"), true, true},
		{"equal string", store.Equal("s", "b"), true, false},
		{"equal number", store.Equal("n", int64(5)), true, false},
		{"equal bool", store.Equal("t", true), true, false},
		{"equal other value", store.Equal("n", int64(6)), false, false},
		{"equal other type", store.Equal("n", "5"), false, false},
		{"equal to a list", store.Equal("l", ""), false, false},
		{"equal absent", store.Equal("x", ""), false, false},
		{"not equal", store.NotEqual("n", int64(6)), true, true},
		{"not equal to itself", store.NotEqual("n", int64(5)), false, true},
		{"not equal other type", store.NotEqual("n", "5"), true, true},
		{"not equal absent", store.NotEqual("x", int64(0)), true, true},
		{"less", store.Less("n", 6), true, false},
		{"less at the bound", store.Less("n", 5), false, false},
		{"less of a string", store.Less("s", 6), false, false},
		{"less absent", store.Less("x", 6), false, false},
		{"at least at the bound", store.AtLeast("n", 5), true, false},
		{"at least below", store.AtLeast("n", 6), false, false},
		{"at least of a bool", store.AtLeast("t", 0), false, false},
		{"at least absent", store.AtLeast("x", -1), false, false},
		{"strings compare by bytes", store.Condition{Op: store.OpLess, Attr: "s", Value: "c"}, true, false},
		{"all", store.All(store.Has("s"), store.Has("n")), true, false},
		{"all but one", store.All(store.Has("s"), store.Has("x")), false, false},
		{"any", store.Any(store.Has("x"), store.Has("n")), true, false},
		{"any of none", never, false, false},
		{"all of none", always, true, true},
		{"nested", store.Any(store.Absent(), store.All(store.Has("t"), store.Less("n", 9))), true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.c.Holds(item); got != c.item {
				t.Errorf("of the item: got %v, want %v", got, c.item)
			}
			if got := c.c.Holds(nil); got != c.absent {
				t.Errorf("of no item: got %v, want %v", got, c.absent)
			}
		})
	}
}

func TestAnItemWithoutAttributesExists(t *testing.T) {
	if !store.Exists().Holds(store.Item{}) {
		t.Error("got absent, want an empty item to exist")
	}
}

// conditions draws conditions with constants in all places.
func conditions() *rapid.Generator[store.Condition] {
	leaf := rapid.SampledFrom([]store.Condition{
		{}, store.Any(), store.All(), store.Exists(), store.Has("a"), store.Equal("a", int64(1)), store.Less("a", 2),
	})
	var node func(depth int) *rapid.Generator[store.Condition]
	node = func(depth int) *rapid.Generator[store.Condition] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf, rapid.Custom(func(t *rapid.T) store.Condition {
			op := rapid.SampledFrom([]store.Op{store.OpAll, store.OpAny}).Draw(t, "op")
			return store.Condition{Op: op, Terms: rapid.SliceOfN(node(depth-1), 0, 3).Draw(t, "terms")}
		}))
	}
	return node(3)
}

func TestSimplifyKeepsTheMeaningAndLeavesNoConstantInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := conditions().Draw(t, "condition")
		s := c.Simplify()
		for _, item := range []store.Item{nil, {}, {"a": int64(1)}, {"a": int64(2)}, {"a": "1"}} {
			if got, want := s.Holds(item), c.Holds(item); got != want {
				t.Errorf("of %v: got %v from %v, want %v from %v", item, got, s, want, c)
			}
		}
		for _, term := range s.Terms {
			assertNoConstant(t, term)
		}
		if again := s.Simplify(); !reflect.DeepEqual(again, s) {
			t.Errorf("got %v of %v, want it unchanged", again, s)
		}
	})
}

func assertNoConstant(t *rapid.T, c store.Condition) {
	combines := c.Op == store.OpAll || c.Op == store.OpAny
	if c.Op == store.OpAlways || (combines && len(c.Terms) == 0) {
		t.Errorf("got the constant %v inside", c)
	}
	for _, term := range c.Terms {
		assertNoConstant(t, term)
	}
}
