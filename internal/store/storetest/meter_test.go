package storetest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/storetest"
)

func TestAMeteredTableKeepsTheContract(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Table {
		return storetest.NewMeter(memory.New(memory.Options{Now: time.Now}))
	})
}

func TestAWriteCostsByItsSizeTransactionAndIndex(t *testing.T) {
	key := func(sk string) store.Key { return store.Key{PK: "P", SK: sk} }
	large := strings.Repeat("x", 3000)
	due := store.Item{store.AttrDueShard: "0", store.AttrDueAt: int64(1)}
	put := func(sk string, item store.Item) store.Write {
		return store.Write{Kind: store.Put, Key: key(sk), Item: item}
	}
	update := func(sk string, set store.Item) store.Write {
		return store.Write{Kind: store.Update, Key: key(sk), Set: set}
	}
	// In this order, on one table.
	steps := []struct {
		name   string
		writes []store.Write
		want   int
	}{
		{"a small item", []store.Write{put("a", nil)}, 1},
		{"a larger one, by the kilobyte", []store.Write{put("b", store.Item{"x": large})}, 3},
		{"shrinking costs by the old size", []store.Write{put("b", store.Item{})}, 3},
		{"growing by the new", []store.Write{update("b", store.Item{"x": large})}, 3},
		{"a transaction costs double", []store.Write{update("a", nil), update("b", nil)}, 2*1 + 2*3},
		{"a check costs like a write", []store.Write{{Kind: store.Check, Key: key("b"), If: store.Exists()}, update("a", nil)}, 2*3 + 2*1},
		{"entering the index", []store.Write{update("a", due)}, 1 + 1},
		{"staying in place", []store.Write{update("a", store.Item{"y": "z"})}, 1},
		{"moving in the index", []store.Write{update("a", store.Item{store.AttrDueAt: int64(2)})}, 1 + 2},
		{"the index is not doubled", []store.Write{update("a", store.Item{store.AttrDueAt: int64(3)}), put("c", nil)}, 2 + 2 + 2},
		{"leaving the index", []store.Write{{Kind: store.Update, Key: key("a"), Remove: []string{store.AttrDueAt}}}, 1 + 1},
		{"a refusal by the old size", []store.Write{{Kind: store.Delete, Key: key("b"), If: store.Absent()}}, 3},
		{"a delete by the old size", []store.Write{{Kind: store.Delete, Key: key("b")}}, 3},
		{"deleting nothing", []store.Write{{Kind: store.Delete, Key: key("b")}}, 1},
	}
	m := storetest.NewMeter(memory.New(memory.Options{Now: time.Now}))
	for _, s := range steps {
		m.Reset()
		_ = m.Write(t.Context(), s.writes...) // the count says what happened
		want := storetest.Count{Trips: 1, Writes: len(s.writes), WriteUnits: s.want}
		if got := m.Count(); got != want {
			t.Errorf("%s: got %+v, want %+v", s.name, got, want)
		}
	}
}

// slow answers after a second of the test's clock.
type slow struct{ store.Table }

func (s slow) Get(ctx context.Context, key store.Key) (store.Item, error) {
	<-time.NewTimer(time.Second).C
	return s.Table.Get(ctx, key)
}

func TestCallsAtTheSameTimeAreOneTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewMeter(slow{memory.New(memory.Options{Now: time.Now})})
		get := func() { _, _ = m.Get(t.Context(), store.Key{PK: "P", SK: "S"}) }
		get()
		done := make(chan bool)
		for range 3 {
			go func() { get(); done <- true }()
		}
		for range 3 {
			<-done
		}
		get()
		if got := m.Count(); got.Trips != 3 || got.Reads != 5 {
			t.Errorf("got %+v, want 3 trips of 5 reads", got)
		}
	})
}
