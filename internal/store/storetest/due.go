package storetest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/store"
)

var dueClaims = []claim{
	{"the index holds only items with both attributes", indexIsSparse},
	{"the index is ordered by due time within a shard", indexOrder},
	{"the index follows each change", indexFollows},
	{"an entry of the index holds its key and place only", indexEntries},
	{"pages of the index follow each other in both directions", indexPages},
}

// The index is eventually consistent: a claim about it waits this long for it to
// come true, looking again every few milliseconds.
const (
	indexPatience = 10 * time.Second
	indexGlance   = 20 * time.Millisecond
)

// eventually repeats a look until it finds nothing wrong, and returns the last
// complaint when patience ends.
func eventually(ctx context.Context, look func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	for {
		wrong := look(ctx)
		if wrong == nil {
			return nil
		}
		pause := time.NewTimer(indexGlance)
		select {
		case <-ctx.Done():
			pause.Stop()
			return wrong
		case <-pause.C:
		}
	}
}

func (b *bench) eventually(look func(ctx context.Context) error) {
	b.Helper()
	if wrong := eventually(b.Context(), look); wrong != nil {
		b.Error(wrong)
	}
}

func (b *bench) due(shard string) store.Query {
	return store.Query{PK: b.space + shard, Index: store.IndexDue, Limit: 100}
}

// wantDue waits until a query of the index gives these sort keys.
func (b *bench) wantDue(q store.Query, want ...string) {
	b.Helper()
	b.eventually(func(ctx context.Context) error {
		read, err := pages(ctx, b.table, q)
		if err != nil {
			return err
		}
		var got []string
		for _, entries := range read {
			for _, e := range entries {
				got = append(got, e.Key.SK)
			}
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			return fmt.Errorf("query %+v: got %q, want %q", q, got, want)
		}
		return nil
	})
}

func (b *bench) dueItem(shard string, at int64) store.Item {
	return store.Item{store.AttrDueShard: b.space + shard, store.AttrDueAt: at, "other": "x"}
}

func indexIsSparse(b *bench) {
	b.mustPut(b.key("P", "none"), store.Item{"a": "x"})
	b.mustPut(b.key("P", "shard only"), store.Item{store.AttrDueShard: b.space + "0"})
	b.mustPut(b.key("P", "time only"), store.Item{store.AttrDueAt: int64(1)})
	b.mustPut(b.key("P", "both"), b.dueItem("0", 1))
	b.wantDue(b.due("0"), "both")
}

func indexOrder(b *bench) {
	times := []int64{5, -1, 1_767_322_445_000, 0, 10}
	for _, at := range times {
		b.mustPut(b.key(fmt.Sprint("P", at), fmt.Sprint(at)), b.dueItem("0", at))
	}
	b.mustPut(b.key("P", "other shard"), b.dueItem("1", 3))
	b.wantDue(b.due("0"), "-1", "0", "5", "10", "1767322445000")
	q := b.due("0")
	q.AtMost = 5
	b.wantDue(q, "-1", "0", "5")
	q.Descending = true
	b.wantDue(q, "5", "0", "-1")
	q.AtMost = math.MaxInt64
	b.wantDue(q, "1767322445000", "10", "5", "0", "-1")
	q.AtMost = -2
	b.wantDue(q)
	b.wantDue(b.due("1"), "other shard")
}

func indexFollows(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, b.dueItem("0", 7))
	b.mustPut(b.key("P", "mark"), b.dueItem("0", 8))
	b.wantDue(b.due("0"), "S", "mark")
	b.mustWrite(store.Write{Kind: store.Update, Key: key, Set: store.Item{store.AttrDueAt: int64(9)}})
	b.wantDue(b.due("0"), "mark", "S")
	b.mustWrite(store.Write{Kind: store.Update, Key: key, Add: map[string]int64{store.AttrDueAt: -2}})
	b.wantDue(b.due("0"), "S", "mark")
	b.mustWrite(store.Write{Kind: store.Update, Key: key, Set: store.Item{store.AttrDueShard: b.space + "1"}})
	b.wantDue(b.due("0"), "mark")
	b.wantDue(b.due("1"), "S")
	b.mustWrite(store.Write{Kind: store.Update, Key: key, Remove: []string{store.AttrDueShard, store.AttrDueAt}})
	b.wantDue(b.due("1"))
	b.mustPut(key, b.dueItem("1", 1))
	b.wantDue(b.due("1"), "S")
	b.mustPut(key, store.Item{"a": "x"})
	b.wantDue(b.due("1"))
	b.mustWrite(store.Write{Kind: store.Delete, Key: b.key("P", "mark")})
	b.wantDue(b.due("0"))
}

func indexEntries(b *bench) {
	key := b.key("P", "S")
	b.mustPut(key, b.dueItem("0", 7))
	b.wantDue(b.due("0"), "S")
	page, err := b.table.Query(b.Context(), b.due("0"))
	if err != nil || len(page.Entries) != 1 {
		b.Fatalf("got %v, %v, want one entry", page, err)
	}
	want := store.Item{store.AttrDueShard: b.space + "0", store.AttrDueAt: int64(7)}
	if e := page.Entries[0]; e.Key != key || !same(e.Item, want) {
		b.Errorf("got %v, want %v of %s", e, want, key)
	}
}

func indexPages(b *bench) {
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprint(i))
		b.mustPut(b.key(fmt.Sprint("P", i%3), keys[i]), b.dueItem("0", int64(i*100)))
	}
	for _, limit := range []int{1, 3, 5, 10, 100} {
		q := b.due("0")
		q.Limit = limit
		b.wantDue(q, keys...)
		b.wantKeys(q, keys...)
		q.Descending = true
		b.wantKeys(q, reversed(keys)...)
		q.Descending, q.AtMost = false, 400
		b.wantKeys(q, keys[:5]...)
	}
	// Entries of the same time are each read once, in whatever order.
	for i := range 7 {
		b.mustPut(b.key("Q", fmt.Sprint(i)), b.dueItem("same", 1))
	}
	q := b.due("same")
	q.Limit = 2
	b.eventually(func(ctx context.Context) error {
		read, err := pages(ctx, b.table, q)
		if err != nil {
			return err
		}
		seen := make(map[string]bool)
		n := 0
		for _, entries := range read {
			for _, e := range entries {
				seen[e.Key.SK] = true
				n++
			}
		}
		if len(seen) != 7 || n != 7 {
			return fmt.Errorf("got %d entries, %d different, want each of 7 once", n, len(seen))
		}
		return nil
	})
}
