package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newTable(t *testing.T, o memory.Options) *memory.Table {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return start }
	}
	table := memory.New(o)
	t.Cleanup(table.Close)
	return table
}

func put(t *testing.T, table store.Table, key store.Key, item store.Item) {
	t.Helper()
	if err := table.Write(t.Context(), store.Write{Kind: store.Put, Key: key, Item: item}); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func TestASumBeyond64BitsIsRefusedAndChangesNothing(t *testing.T) {
	table := newTable(t, memory.Options{})
	key := store.Key{PK: "P", SK: "S"}
	put(t, table, key, store.Item{"n": int64(1<<63 - 1)})
	err := table.Write(t.Context(), store.Write{Kind: store.Update, Key: key, Add: map[string]int64{"n": 1}})
	if !errors.Is(err, store.ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
	item, err := table.Get(t.Context(), key)
	if err != nil || item["n"] != int64(1<<63-1) {
		t.Errorf("got %v, %v, want the number as it was", item, err)
	}
}

func TestAnEndedContextDoesNothing(t *testing.T) {
	table := newTable(t, memory.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	key := store.Key{PK: "P", SK: "S"}
	err := table.Write(ctx, store.Write{Kind: store.Put, Key: key})
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrUnavailable and the context's error", err)
	}
	if _, err := table.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v, want nothing written", err)
	}
}

func TestExpireDeletesOnlyWhatIsPastItsTime(t *testing.T) {
	now := start
	table := newTable(t, memory.Options{Now: func() time.Time { return now }})
	old, young := store.Key{PK: "P", SK: "old"}, store.Key{PK: "P", SK: "young"}
	put(t, table, old, store.Item{store.AttrExpiresAt: start.Unix()})
	put(t, table, young, store.Item{store.AttrExpiresAt: start.Unix() + 1})
	put(t, table, store.Key{PK: "P", SK: "eternal"}, store.Item{})
	if n := table.Expire(); n != 0 {
		t.Fatalf("got %d deleted at the very second, want 0", n)
	}
	now = now.Add(time.Second)
	seen := make(chan store.Change, 10)
	table.Subscribe("test", func(_ context.Context, batch []store.Change) error {
		for _, c := range batch {
			seen <- c
		}
		return nil
	})
	if n := table.Expire(); n != 1 {
		t.Fatalf("got %d deleted, want 1", n)
	}
	if err := table.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := <-seen
	if c.Key != old || !c.Expired || c.New != nil || c.Old == nil {
		t.Errorf("got %+v, want the expiry of %s", c, old)
	}
	if _, err := table.Get(t.Context(), young); err != nil {
		t.Errorf("got %v, want the young item kept", err)
	}
}

// With 100,000 items an operation stays within microseconds.
func BenchmarkTable(b *testing.B) {
	table := memory.New(memory.Options{Now: time.Now})
	const items = 100_000
	key := func(i int) store.Key { return store.Key{PK: fmt.Sprintf("PAYMENT#%06d", i%items), SK: "STATE"} }
	for i := range items {
		err := table.Write(b.Context(), store.Write{Kind: store.Put, Key: key(i), Item: store.Item{
			"version": int64(0), store.AttrDueShard: "0", store.AttrDueAt: int64(i),
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("get", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := table.Get(b.Context(), key(i*7919)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("update", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			err := table.Write(b.Context(), store.Write{
				Kind: store.Update, Key: key(i * 7919), If: store.Exists(),
				Set: store.Item{store.AttrDueAt: int64(i)}, Add: map[string]int64{"version": 1},
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("due", func(b *testing.B) {
		for b.Loop() {
			q := store.Query{PK: "0", Index: store.IndexDue, Limit: 25, AtMost: 1 << 40}
			if p, err := table.Query(b.Context(), q); err != nil || len(p.Entries) != 25 {
				b.Fatal(err, len(p.Entries))
			}
		}
	})
}
