package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kessai/kessai/internal/store"
)

// Handler carries out a batch of changes. An error fails all of them, a
// *store.BatchError only those it names, and a panic counts as an error.
// The context ends at Close.
type Handler func(ctx context.Context, batch []store.Change) error

// Defaults of Options.
const (
	defaultBatchSize = 10 // of the deployed stream mappings
	defaultWorkers   = 16 // a batch may wait for a PSP; others must go on
	defaultAttempts  = 6  // with the pauses below: given up within about two seconds

	pauseBase = 50 * time.Millisecond
	pauseCap  = 5 * time.Second
)

func (o Options) withDefaults() Options {
	if o.BatchSize == 0 {
		o.BatchSize = defaultBatchSize
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Attempts == 0 {
		o.Attempts = defaultAttempts
	}
	if o.Pause == nil {
		o.Pause = jitter
	}
	if o.OnFailure == nil {
		o.OnFailure = func(string, store.Change, error) {}
	}
	return o
}

func jitter(attempt int) time.Duration {
	ceiling := pauseBase << min(attempt-1, 16) // 16: no overflow, long past the cap
	return rand.N(min(ceiling, pauseCap))
}

// Subscribe hands every change committed from now on to the handler, at least
// once and in order per key. The name tells subscriptions apart in OnFailure.
func (t *Table) Subscribe(name string, h func(ctx context.Context, batch []store.Change) error) {
	s := &subscription{
		name:    name,
		handler: h,
		table:   t,
		lanes:   make(map[string]*lane),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.closed = t.life.Err() != nil
	t.subs = append(t.subs, s)
}

// Drain returns once every change committed so far, and every change that
// handlers made meanwhile, is carried out or given up. It returns the context's
// error if that comes first, and at once after Close.
func (t *Table) Drain(ctx context.Context) error { return t.drain.wait(ctx) }

// Close ends the subscriptions: running handlers see their context end and are
// waited for, what they have not carried out is dropped. Items can still be read
// and written. A second Close does nothing.
func (t *Table) Close() {
	t.cancel()
	t.mu.RLock()
	subs := t.subs
	t.mu.RUnlock()
	for _, s := range subs {
		s.close()
	}
}

// Expire deletes the items whose expires_at lies before now and returns how many
// it deleted. Subscribers see them as Expired. DynamoDB does the same days late.
func (t *Table) Expire() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var due []place
	limit := t.options.Now().Unix()
	t.rows.byExpiry.Scan(func(p place) bool {
		if p.at >= limit {
			return false
		}
		due = append(due, p)
		return true
	})
	for _, p := range due {
		t.replace(store.Change{Key: p.key, Old: t.rows.item(p.key), Expired: true})
	}
	return len(due)
}

// call runs the handler on copies of the changes.
func (s *subscription) call(batch []store.Change) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("memory: handler %q panicked: %v", s.name, r)
		}
	}()
	copies := make([]store.Change, len(batch))
	for i, c := range batch {
		c.Old, c.New = store.Clone(c.Old), store.Clone(c.New)
		copies[i] = c
	}
	return s.handler(s.table.life, copies)
}

// failed says which changes of a batch an error is about. A BatchError that names
// none of them, or an unknown one, is about all: better twice than never.
func failed(batch []store.Change, err error) verdict {
	all := verdict{changes: make(map[string]bool, len(batch)), suspects: len(batch) > 1}
	for _, c := range batch {
		all.changes[c.Sequence] = true
	}
	partial, ok := errors.AsType[*store.BatchError](err)
	if !ok || len(partial.Failed) == 0 {
		return all
	}
	named := verdict{changes: make(map[string]bool, len(partial.Failed))}
	for _, sequence := range partial.Failed {
		if !all.changes[sequence] {
			return all
		}
		named.changes[sequence] = true
	}
	return named
}

// verdict is what a handler's error says about a batch.
type verdict struct {
	changes  map[string]bool // those that failed, by sequence
	suspects bool            // any one of them may have failed the others
}
