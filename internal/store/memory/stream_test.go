package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
)

// recorder is a handler's memory: what it was given and what it carried out.
type recorder struct {
	mu   sync.Mutex
	seen []store.Change
}

func (r *recorder) note(c store.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, c)
}

func (r *recorder) numbers(key store.Key) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []int64
	for _, c := range r.seen {
		if c.Key == key {
			out = append(out, c.New["n"].(int64))
		}
	}
	return out
}

func count(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

func TestEveryChangeOfAKeyArrivesOnceInOrderWhenNothingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, memory.Options{})
		var r recorder
		table.Subscribe("test", func(_ context.Context, batch []store.Change) error {
			for _, c := range batch {
				r.note(c)
			}
			return nil
		})
		var writers sync.WaitGroup
		keys := make([]store.Key, 20)
		for k := range keys {
			keys[k] = store.Key{PK: fmt.Sprint("P", k%5), SK: fmt.Sprint("S", k)}
			writers.Go(func() {
				for n := range 30 {
					put(t, table, keys[k], store.Item{"n": int64(n)})
				}
			})
		}
		writers.Wait()
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if got := r.numbers(key); !slices.Equal(got, count(30)) {
				t.Errorf("%s: got %v, want 0..29 in order", key, got)
			}
		}
	})
}

func TestAChangeCarriesBothImagesAndNoChangeIsNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, memory.Options{})
		var r recorder
		table.Subscribe("test", func(_ context.Context, batch []store.Change) error {
			for _, c := range batch {
				r.note(c)
				c.New["n"] = int64(99) // a handler's copy is its own
			}
			return nil
		})
		key := store.Key{PK: "P", SK: "S"}
		put(t, table, key, store.Item{"n": int64(1)})
		put(t, table, key, store.Item{"n": int64(2)})
		absent := store.Key{PK: "P", SK: "absent"}
		err := table.Write(t.Context(),
			store.Write{Kind: store.Check, Key: key, If: store.Exists()},
			store.Write{Kind: store.Delete, Key: absent})
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(r.seen) != 2 || r.seen[0].Old != nil || r.seen[1].Old["n"] != int64(1) {
			t.Fatalf("got %v, want an insert and a change from 1", r.seen)
		}
		if r.seen[0].Sequence >= r.seen[1].Sequence {
			t.Errorf("got sequences %q, %q, want them to rise", r.seen[0].Sequence, r.seen[1].Sequence)
		}
	})
}

func TestAPoisonKeyIsGivenUpAndNeverBlocksAnotherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		poison, neighbour := store.Key{PK: "P", SK: "poison"}, store.Key{PK: "P", SK: "good"}
		stranger := store.Key{PK: "Q", SK: "good"}
		var r recorder
		delivered := 0
		var lost []store.Change
		table := newTable(t, memory.Options{
			Attempts:  4,
			Workers:   1, // one worker would be blocked by anything that blocks
			Pause:     func(int) time.Duration { return time.Hour },
			OnFailure: func(_ string, c store.Change, _ error) { lost = append(lost, c) },
		})
		table.Subscribe("test", func(_ context.Context, batch []store.Change) error {
			for _, c := range batch {
				if c.Key == poison && c.New["n"] == int64(0) {
					delivered++
					return errors.New("poison")
				}
			}
			for _, c := range batch {
				r.note(c)
			}
			return nil
		})
		for n := range 3 {
			for _, key := range []store.Key{poison, neighbour, stranger} {
				put(t, table, key, store.Item{"n": int64(n)})
			}
		}
		began := time.Now()
		synctest.Wait()
		if got := r.numbers(stranger); !slices.Equal(got, count(3)) {
			t.Errorf("got %v of another partition at once, want all", got)
		}
		if got := r.numbers(neighbour); !slices.Equal(got, count(3)) {
			t.Errorf("got %v of the same partition at once, want all", got)
		}
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Its first delivery may have been in company, which doesn't count.
		if delivered < 4 || delivered > 5 || time.Since(began) != 3*time.Hour {
			t.Errorf("got %d deliveries in %v, want 4 or 5 in 3h", delivered, time.Since(began))
		}
		if len(lost) != 1 || lost[0].Key != poison || lost[0].New["n"] != int64(0) {
			t.Errorf("got %v given up, want the first change of the poison key", lost)
		}
		if got := r.numbers(poison); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("got %v of the poison key, want the later changes in order", got)
		}
	})
}

func TestAPartialFailureRepeatsOnlyTheFailedAndWhatFollowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := store.Key{PK: "P", SK: "a"}, store.Key{PK: "P", SK: "b"}
		var r recorder
		hold := make(chan struct{})
		calls := 0
		table := newTable(t, memory.Options{})
		table.Subscribe("test", func(_ context.Context, batch []store.Change) error {
			calls++
			if calls == 1 {
				<-hold // until the rest has gathered for the next batch
			}
			var failed []string
			for _, c := range batch {
				r.note(c)
				if c.Key == a && c.New["n"] == int64(1) && calls == 2 {
					failed = append(failed, c.Sequence)
				}
			}
			if failed != nil {
				return &store.BatchError{Failed: failed}
			}
			return nil
		})
		for n := range 3 {
			put(t, table, a, store.Item{"n": int64(n)})
			put(t, table, b, store.Item{"n": int64(n)})
			synctest.Wait()
		}
		close(hold)
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := r.numbers(a), []int64{0, 1, 2, 1, 2}; !slices.Equal(got, want) {
			t.Errorf("got %v of the key that failed, want %v", got, want)
		}
		if got, want := r.numbers(b), count(3); !slices.Equal(got, want) {
			t.Errorf("got %v of the other key, want %v", got, want)
		}
	})
}

func TestABatchErrorThatNamesNothingKnownFailsTheBatch(t *testing.T) {
	for _, failed := range [][]string{nil, {""}, {"no such sequence"}} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			table := newTable(t, memory.Options{})
			table.Subscribe("test", func(context.Context, []store.Change) error {
				calls++
				if calls == 1 {
					return &store.BatchError{Failed: failed}
				}
				return nil
			})
			put(t, table, store.Key{PK: "P", SK: "S"}, nil)
			if err := table.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			if calls != 2 {
				t.Errorf("got %d deliveries after %q, want 2", calls, failed)
			}
		})
	}
}

func TestAPanickingHandlerIsAFailedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reason error
		table := newTable(t, memory.Options{
			Attempts:  2,
			OnFailure: func(_ string, _ store.Change, err error) { reason = err },
		})
		table.Subscribe("test", func(context.Context, []store.Change) error { panic("boom") })
		put(t, table, store.Key{PK: "P", SK: "S"}, nil)
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if reason == nil {
			t.Error("got no failure, want the panic told to OnFailure")
		}
	})
}

func TestDrainWaitsForWhatHandlersWriteAndForTheirRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, memory.Options{})
		var r recorder
		failedOnce := false
		table.Subscribe("chain", func(ctx context.Context, batch []store.Change) error {
			for _, c := range batch {
				n := c.New["n"].(int64)
				if n == 3 && !failedOnce {
					failedOnce = true
					return errors.New("once")
				}
				r.note(c)
				if n < 5 {
					put(t, table, c.Key, store.Item{"n": n + 1})
				}
			}
			return nil
		})
		key := store.Key{PK: "P", SK: "S"}
		put(t, table, key, store.Item{"n": int64(0)})
		if err := table.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.numbers(key); !slices.Equal(got, count(6)) {
			t.Errorf("got %v, want the whole chain 0..5", got)
		}
	})
}

func TestCloseEndsRunningHandlersAndDropsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, memory.Options{BatchSize: 1})
		calls := 0
		ended := false
		table.Subscribe("test", func(ctx context.Context, _ []store.Change) error {
			calls++
			<-ctx.Done()
			ended = true
			return ctx.Err()
		})
		key := store.Key{PK: "P", SK: "S"}
		put(t, table, key, nil)
		put(t, table, key, nil)
		synctest.Wait()
		table.Close()
		if calls != 1 || !ended {
			t.Errorf("got %d calls, ended %v, want one that Close ended and waited for", calls, ended)
		}
		put(t, table, key, nil)
		if err := table.Drain(t.Context()); err != nil {
			t.Errorf("got %v, want nothing left to drain", err)
		}
		if _, err := table.Get(t.Context(), key); err != nil {
			t.Errorf("got %v, want items still readable", err)
		}
	})
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(t, memory.Options{})
		table.Subscribe("test", func(ctx context.Context, _ []store.Change) error {
			<-ctx.Done()
			return nil
		})
		put(t, table, store.Key{PK: "P", SK: "S"}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := table.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		table.Close()
	})
}
