package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
)

// A change that has failed is delivered again without company, whatever is ready
// with it: a batch that fails as a whole would drag the others along.
func TestAChangeThatFailedTravelsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func(name string) store.Key { return store.Key{PK: name, SK: "S"} }
		poison, busy, other := key("P"), key("Q"), key("R")
		table := newTable(t, memory.Options{Attempts: 2, Workers: 1, Pause: func(int) time.Duration { return time.Hour }})
		var batches [][]store.Key
		table.Subscribe("test", func(_ context.Context, batch []store.Change) error {
			var keys []store.Key
			for _, c := range batch {
				keys = append(keys, c.Key)
			}
			batches = append(batches, keys)
			for _, c := range batch {
				switch c.Key {
				case poison:
					return errors.New("poison")
				case busy:
					time.Sleep(time.Minute) // meanwhile the others become ready
				}
			}
			return nil
		})
		put(t, table, poison, store.Item{"n": int64(1)})
		time.Sleep(time.Hour - time.Second)
		put(t, table, busy, store.Item{"n": int64(1)})
		synctest.Wait()
		put(t, table, other, store.Item{"n": int64(1)})
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := [][]store.Key{{poison}, {busy}, {other}, {poison}}
		if len(batches) != len(want) {
			t.Fatalf("got batches %v, want %v", batches, want)
		}
		for i := range want {
			if len(batches[i]) != 1 || batches[i][0] != want[i][0] {
				t.Errorf("got batches %v, want %v", batches, want)
			}
		}
	})
}
