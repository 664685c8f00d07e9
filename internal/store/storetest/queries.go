package storetest

import (
	"context"
	"fmt"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

var queryClaims = []claim{
	{"a partition is read in the order of bytes", orderOfBytes},
	{"pages follow each other in both directions", pagesFollow},
	{"a prefix bounds a query", prefixBounds},
	{"a cursor survives changes before and after it", cursorSurvives},
	{"an absent partition is one empty page", absentPartition},
	{"a page of large items ends early", largePages},
}

// pages reads a query to its end.
func pages(ctx context.Context, table store.Table, q store.Query) ([][]store.Entry, error) {
	var out [][]store.Entry
	for {
		page, err := table.Query(ctx, q)
		if err != nil {
			return nil, err
		}
		out = append(out, page.Entries)
		if page.Cursor == "" {
			return out, nil
		}
		if page.Cursor == q.Cursor {
			return nil, fmt.Errorf("cursor %q leads to itself", q.Cursor)
		}
		q.Cursor = page.Cursor
	}
}

// mustRead reads a query to its end as sort keys, and checks the pages' sizes:
// full up to the last, which is empty only when it is the first.
func (b *bench) mustRead(q store.Query) []string {
	b.Helper()
	read, err := pages(b.Context(), b.table, q)
	if err != nil {
		b.Fatalf("query %+v: %v", q, err)
	}
	got := []string{}
	for i, entries := range read {
		last := i == len(read)-1
		if (!last && len(entries) != q.Limit) || len(entries) > q.Limit || (last && i > 0 && len(entries) == 0) {
			b.Errorf("query %+v: got %d entries on page %d of %d", q, len(entries), i+1, len(read))
		}
		for _, e := range entries {
			got = append(got, e.Key.SK)
		}
	}
	return got
}

func (b *bench) wantKeys(q store.Query, want ...string) {
	b.Helper()
	if got := b.mustRead(q); strings.Join(got, ",") != strings.Join(want, ",") {
		b.Errorf("query %+v: got %q, want %q", q, got, want)
	}
}

func orderOfBytes(b *bench) {
	// By UTF-8 bytes: capitals first, then digits as text, then beyond ASCII, where
	// UTF-16 would put the emoji before the private-use character.
	sorted := []string{"A", "a", "a#1", "a#10", "a#2", "b", "é", "\ue000", "😀"}
	for _, i := range []int{3, 0, 8, 5, 1, 7, 2, 6, 4} {
		b.mustPut(b.key("P", sorted[i]), store.Item{})
		b.mustPut(b.key("P2", sorted[i]), store.Item{}) // a neighbour with the same beginning
	}
	q := store.Query{PK: b.space + "P", Limit: 100}
	b.wantKeys(q, sorted...)
	q.Descending = true
	b.wantKeys(q, reversed(sorted)...)
}

func reversed(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[len(in)-1-i] = s
	}
	return out
}

func pagesFollow(b *bench) {
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprintf("EVENT#%03d", i))
		b.mustPut(b.key("P", keys[i]), store.Item{"n": int64(i)})
	}
	for _, limit := range []int{1, 2, 3, 5, 9, 10, 11, 1000} {
		q := store.Query{PK: b.space + "P", Limit: limit}
		b.wantKeys(q, keys...)
		q.Descending = true
		b.wantKeys(q, reversed(keys)...)
	}
}

func prefixBounds(b *bench) {
	for _, sk := range []string{"EVEN", "EVENT", "EVENT#1", "EVENT#2", "EVENT#3", "EVENT$", "EVENU", "😀"} {
		b.mustPut(b.key("P", sk), store.Item{})
	}
	for _, limit := range []int{1, 2, 3, 100} {
		q := store.Query{PK: b.space + "P", SKPrefix: "EVENT#", Limit: limit}
		b.wantKeys(q, "EVENT#1", "EVENT#2", "EVENT#3")
		q.Descending = true
		b.wantKeys(q, "EVENT#3", "EVENT#2", "EVENT#1")
		q.SKPrefix = "EVENT#2"
		b.wantKeys(q, "EVENT#2")
		q.SKPrefix = "NONE"
		b.wantKeys(q)
		q.SKPrefix = "😀"
		b.wantKeys(q, "😀")
	}
}

func cursorSurvives(b *bench) {
	for _, sk := range []string{"b", "d", "f"} {
		b.mustPut(b.key("P", sk), store.Item{})
	}
	q := store.Query{PK: b.space + "P", Limit: 2}
	page, err := b.table.Query(b.Context(), q)
	if err != nil || len(page.Entries) != 2 || page.Cursor == "" {
		b.Fatalf("got %v, %v, want two entries and more", page, err)
	}
	b.mustPut(b.key("P", "d"), nil) // the very item that the cursor names
	b.mustPut(b.key("P", "a"), store.Item{})
	b.mustPut(b.key("P", "e"), store.Item{})
	q.Cursor = page.Cursor
	b.wantKeys(q, "e", "f")
}

func absentPartition(b *bench) {
	b.wantKeys(store.Query{PK: b.space + "P", Limit: 10})
	b.wantKeys(store.Query{PK: b.space + "P", Limit: 10, Descending: true})
}

// largePages: a page is at most about 1 MB, so callers follow the cursor instead
// of counting entries.
func largePages(b *bench) {
	for i := range 5 {
		key := b.key("P", fmt.Sprint(i))
		b.mustPut(key, store.Item{"a": filler(key, 390<<10)})
	}
	q := store.Query{PK: b.space + "P", Limit: 5}
	read, err := pages(b.Context(), b.table, q)
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, entries := range read {
		for _, e := range entries {
			got = append(got, e.Key.SK)
		}
	}
	if strings.Join(got, "") != "01234" || len(read) < 2 {
		b.Errorf("got %q on %d pages, want all five in order on several", got, len(read))
	}
}
