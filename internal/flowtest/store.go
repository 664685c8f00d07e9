package flowtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

// ErrSilent is a table that gave no answer.
var ErrSilent = fmt.Errorf("flowtest: no answer from the table: %w", store.ErrUnavailable)

// Refused is a table that says of a transaction's first write, the state, that its
// condition did not hold, though it did.
func Refused() error { return &store.ConditionError{Failed: []store.Failed{{Index: 0}}} }

// Refusing is a table that says so of that write alone, whose item it was.
func Refusing(index int, old store.Item) error {
	return &store.ConditionError{Failed: []store.Failed{{Index: index, Old: old}}}
}

// Store is the table with moments to hook into. It is safe for concurrent use; a
// hook may use the table again.
type Store struct {
	table store.Table // as the flows use it
	plain store.Table // the same, uncounted

	mu      sync.Mutex
	dead    bool
	before  []hook
	after   []hook
	reads   []hook
	keys    map[store.Key]bool // everything ever written
	changes []store.Change     // not taken yet
}

var _ store.Table = (*Store)(nil)

// hook runs once, at its moment.
type hook struct {
	at  Moment
	get func(store.Key) bool
	do  func() error
}

func newStore(table, plain store.Table) *Store {
	return &Store{table: table, plain: plain, keys: map[store.Key]bool{}}
}

// Moment picks a write to the table by what is written.
type Moment func(writes []store.Write) bool

// Row is the moment at which a journal row of one of those types is written.
func Row(types ...payment.EventType) Moment {
	return func(writes []store.Write) bool {
		return slices.ContainsFunc(writes, func(w store.Write) bool {
			kind, _ := w.Item["type"].(string)
			return strings.HasPrefix(w.Key.SK, "EVENT#") && slices.Contains(types, payment.EventType(kind))
		})
	}
}

// Inserted is the moment at which an item with that sort key is put.
func Inserted(sk string) Moment {
	return func(writes []store.Write) bool {
		return slices.ContainsFunc(writes, func(w store.Write) bool { return w.Key.SK == sk && w.Kind == store.Put })
	}
}

// Sets is the moment at which an item with that sort key is written alone, with a
// value for the attribute.
func Sets(sk, attribute string) Moment {
	return func(writes []store.Write) bool {
		_, set := writes[0].Set[attribute]
		return len(writes) == 1 && writes[0].Key.SK == sk && set
	}
}

// Moments of single writes.
var (
	Lease     = Sets("STATE", "lease_until")    // a lease is taken
	Postponed = Sets("STATE", "tries")          // a due date is put off
	Saved     = Sets("INBOX", "attempts")       // an inbox item is marked
	Released  = removes("STATE", "lease_until") // a lease is let go
)

func removes(sk, attribute string) Moment {
	return func(writes []store.Write) bool {
		return len(writes) == 1 && writes[0].Key.SK == sk && slices.Contains(writes[0].Remove, attribute)
	}
}

// Before runs do once, before the next write of that moment. Its error is the
// caller's answer, and nothing was written.
func (s *Store) Before(at Moment, do func() error) { s.hook(&s.before, hook{at: at, do: do}) }

// After runs do once, after the next write of that moment, which took place. Its
// error is the caller's answer: the true one is lost.
func (s *Store) After(at Moment, do func() error) { s.hook(&s.after, hook{at: at, do: do}) }

// BeforeGet runs do once, before the next read of such a key. Its error is the answer.
func (s *Store) BeforeGet(of func(store.Key) bool, do func() error) {
	s.hook(&s.reads, hook{get: of, do: do})
}

func (s *Store) hook(list *[]hook, h hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, h)
}

// Hooks is how many hooks have not run yet.
func (s *Store) Hooks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.before) + len(s.after) + len(s.reads)
}

func (s *Store) run(list *[]hook, fits func(hook) bool) error {
	s.mu.Lock()
	at := slices.IndexFunc(*list, fits)
	if at < 0 {
		s.mu.Unlock()
		return nil
	}
	h := (*list)[at]
	*list = slices.Delete(*list, at, at+1)
	s.mu.Unlock()
	return h.do()
}

var errDead = errors.New("flowtest: this process is dead")

func (s *Store) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errDead
	}
	return nil
}

func (s *Store) setDead(dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = dead
}

// Get reads an item.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if err := s.run(&s.reads, func(h hook) bool { return h.get(key) }); err != nil {
		return nil, err
	}
	return s.table.Get(ctx, key)
}

// Query reads a page.
func (s *Store) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := s.alive(); err != nil {
		return store.Page{}, err
	}
	return s.table.Query(ctx, q)
}

// Scan reads a page of everything.
func (s *Store) Scan(ctx context.Context, scan store.Scan) (store.Page, error) {
	if err := s.alive(); err != nil {
		return store.Page{}, err
	}
	return s.table.Scan(ctx, scan)
}

// Write writes, with the hooks of its moment around.
func (s *Store) Write(ctx context.Context, writes ...store.Write) error {
	if err := s.alive(); err != nil {
		return err
	}
	fits := func(h hook) bool { return h.at(writes) }
	if err := s.run(&s.before, fits); err != nil {
		return err
	}
	olds := s.items(ctx, writes)
	if err := s.table.Write(ctx, writes...); err != nil {
		return err
	}
	s.note(writes, olds, s.items(ctx, writes))
	return s.run(&s.after, fits)
}

func (s *Store) items(ctx context.Context, writes []store.Write) []store.Item {
	items := make([]store.Item, len(writes))
	for i, w := range writes {
		items[i], _ = s.plain.Get(ctx, w.Key) // absent reads as nil
	}
	return items
}

// note keeps what was changed, for the stream.
func (s *Store) note(writes []store.Write, olds, news []store.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, w := range writes {
		s.keys[w.Key] = true
		if w.Kind != store.Check {
			s.changes = append(s.changes, store.Change{Key: w.Key, Old: olds[i], New: news[i], Sequence: fmt.Sprintf("%021d", len(s.changes))})
		}
	}
}

// TakeChanges removes and returns what was changed since the last time, in order.
func (s *Store) TakeChanges() []store.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.changes
	s.changes = nil
	return all
}

// Items are all items as they are now.
func (s *Store) Items(ctx context.Context) map[store.Key]store.Item {
	s.mu.Lock()
	keys := slices.Collect(maps.Keys(s.keys))
	s.mu.Unlock()
	all := map[store.Key]store.Item{}
	for _, key := range keys {
		if item, err := s.plain.Get(ctx, key); err == nil {
			all[key] = item
		}
	}
	return all
}

// Delete removes every item with that sort key, as the table may when its time to
// live is over.
func (s *Store) Delete(ctx context.Context, sk string) {
	for key := range s.Items(ctx) {
		if key.SK == sk {
			if err := s.plain.Write(ctx, store.Write{Kind: store.Delete, Key: key}); err != nil {
				panic(err)
			}
		}
	}
}

// Forget drops the hooks that have not run.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after, s.reads = nil, nil, nil
}
