// Package storetest is the contract that every store.Table keeps. An adapter's
// test calls Run; what Run does not check, no caller may rely on.
//
// The claims use keys of their own, so a table may be shared by all of them and
// need not be empty. Meter counts what a flow costs on any table.
package storetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/kessai/kessai/internal/store"
)

// Run checks every claim of the contract against tables that newTable makes; it
// may return the same one each time. A table that implements AnswerLoser is also
// checked against lost answers.
func Run(t *testing.T, newTable func(t *testing.T) store.Table) {
	type group struct {
		name   string
		claims []claim
	}
	groups := []group{
		{"conditions", conditionClaims},
		{"writes", writeClaims},
		{"transactions", transactionClaims},
		{"values", valueClaims},
		{"limits", limitClaims},
		{"queries", queryClaims},
		{"scans", scanClaims},
		{"due", dueClaims},
		{"contention", contentionClaims},
		{"model", modelClaims},
	}
	if _, ok := newTable(t).(AnswerLoser); ok {
		groups = append(groups, group{"lost answers", lostAnswerClaims})
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.claims {
				t.Run(c.name, func(t *testing.T) {
					c.check(&bench{T: t, table: newTable(t), space: newSpace()})
				})
			}
		})
	}
}

// claim is one thing that holds of every table.
type claim struct {
	name  string
	check func(b *bench)
}

// bench is one claim's table, and its own space of keys in it.
type bench struct {
	*testing.T
	table store.Table
	space string
}

var spaces atomic.Int64

// newSpace returns a prefix of partitions and shards that nothing else uses.
func newSpace() string { return fmt.Sprintf("SPACE#%d#", spaces.Add(1)) }

// key returns a key of the claim's own space.
func (b *bench) key(pk, sk string) store.Key { return store.Key{PK: b.space + pk, SK: sk} }

func (b *bench) write(writes ...store.Write) error {
	return b.table.Write(b.Context(), writes...)
}

// mustWrite fails the test when the write does.
func (b *bench) mustWrite(writes ...store.Write) {
	b.Helper()
	if err := b.write(writes...); err != nil {
		b.Fatalf("write: %v", err)
	}
}

// mustPut puts an item without a condition; nil makes sure that there is none.
func (b *bench) mustPut(key store.Key, item store.Item) {
	b.Helper()
	if item == nil {
		b.mustWrite(store.Write{Kind: store.Delete, Key: key})
		return
	}
	b.mustWrite(store.Write{Kind: store.Put, Key: key, Item: item})
}

// read returns the item without its writer, nil when it is absent.
func (b *bench) read(key store.Key) store.Item {
	b.Helper()
	item, err := b.table.Get(b.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		b.Fatalf("get %s: %v", key, err)
	}
	return unstamped(item)
}

// wantItem checks what is stored under a key; nil means nothing.
func (b *bench) wantItem(key store.Key, want store.Item) {
	b.Helper()
	if got := b.read(key); !same(got, want) {
		b.Errorf("item %s: got %v, want %v", key, got, want)
	}
}

// wantRefusal checks that an error is a ConditionError of exactly these writes,
// each with the item that refused it.
func (b *bench) wantRefusal(err error, want map[int]store.Item) {
	b.Helper()
	refusal, ok := errors.AsType[*store.ConditionError](err)
	if !ok {
		b.Errorf("got %v, want a ConditionError", err)
		return
	}
	if len(refusal.Failed) != len(want) {
		b.Errorf("got %v, want the refusal of writes %v", err, want)
	}
	for i, old := range want {
		got, ok := refusal.At(i)
		if !ok || !same(unstamped(got), old) {
			b.Errorf("write %d: got %v, %v, want it refused by %v", i, got, ok, old)
		}
	}
}

// unstamped returns the item as its writer gave it.
func unstamped(item store.Item) store.Item {
	if item == nil {
		return nil
	}
	out := maps.Clone(item)
	delete(out, store.AttrWriter)
	return out
}

// same compares items deeply; absent and without attributes are different.
func same(a, b store.Item) bool {
	if (a == nil) != (b == nil) || len(a) != len(b) {
		return false
	}
	return len(a) == 0 || reflect.DeepEqual(a, b)
}
