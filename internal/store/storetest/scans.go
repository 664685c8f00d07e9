package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

var scanClaims = []claim{
	{"a scan reads every item once, whatever its partition", scanReadsAll},
	{"a scan picks by sort key and condition", scanPicks},
	{"a page of which nothing fits is not the end", scanGoesOn},
	{"a scan goes on after changes before and after it", scanSurvives},
	{"a page of a scan ends early when its items are large", scanLarge},
	{"malformed scans are refused", malformedScans},
}

// mustScan reads a scan to its end. The table may hold what is not the claim's own:
// that is left out. It returns the entries and how many pages there were.
func (b *bench) mustScan(s store.Scan) (own []store.Entry, pages int) {
	b.Helper()
	for {
		page, err := b.table.Scan(b.Context(), s)
		if err != nil {
			b.Fatalf("scan %+v: %v", s, err)
		}
		pages++
		if len(page.Entries) > s.Limit {
			b.Errorf("scan %+v: got %d entries on a page", s, len(page.Entries))
		}
		for _, e := range page.Entries {
			if strings.HasPrefix(e.Key.PK, b.space) {
				own = append(own, e)
			}
		}
		if page.Cursor == "" {
			return own, pages
		}
		if page.Cursor == s.Cursor {
			b.Fatalf("cursor %q leads to itself", s.Cursor)
		}
		s.Cursor = page.Cursor
	}
}

// wantScan checks what a scan picks of the claim's own items, in any order.
func (b *bench) wantScan(s store.Scan, want ...store.Key) {
	b.Helper()
	entries, _ := b.mustScan(s)
	var got, wanted []string
	for _, e := range entries {
		got = append(got, e.Key.String())
	}
	for _, key := range want {
		wanted = append(wanted, key.String())
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		b.Errorf("scan %+v: got %q, want %q", s, got, wanted)
	}
}

func scanReadsAll(b *bench) {
	items := map[store.Key]store.Item{}
	var keys []store.Key
	for i := range 12 {
		key := b.key(fmt.Sprint("P", i%5), fmt.Sprint("S", i))
		items[key] = store.Item{"n": int64(i), "list": []any{"x"}}
		keys = append(keys, key)
		b.mustPut(key, items[key])
	}
	for _, limit := range []int{1, 5, 12, 1000} {
		b.wantScan(store.Scan{Limit: limit}, keys...)
	}
	entries, _ := b.mustScan(store.Scan{Limit: 1000})
	for _, e := range entries {
		if !same(unstamped(e.Item), items[e.Key]) {
			b.Errorf("%s: got %v, want %v", e.Key, e.Item, items[e.Key])
		}
	}
}

func scanPicks(b *bench) {
	put := func(pk, sk string, item store.Item) store.Key {
		key := b.key(pk, sk)
		b.mustPut(key, item)
		return key
	}
	low := put("P", "EVENT#1", store.Item{"at": int64(10)})
	high := put("P", "EVENT#2", store.Item{"at": int64(20)})
	other := put("Q", "EVENT#1", store.Item{"at": int64(15), "status": "x"})
	none := put("Q", "EVENT#2", store.Item{})
	text := put("Q", "EVENT#3", store.Item{"at": "15"})
	state := put("Q", "STATE", store.Item{"at": int64(15)})
	between := store.All(store.AtLeast("at", 10), store.Less("at", 20))
	for _, limit := range []int{1, 3, 1000} {
		b.wantScan(store.Scan{SKPrefix: "EVENT#", Limit: limit}, low, high, other, none, text)
		b.wantScan(store.Scan{SKPrefix: "EVENT#", Where: between, Limit: limit}, low, other)
		b.wantScan(store.Scan{Where: between, Limit: limit}, low, other, state)
		b.wantScan(store.Scan{SKPrefix: "EVENT#", Where: store.Any(store.Equal("status", "x"), store.HasNo("at")), Limit: limit}, other, none)
		b.wantScan(store.Scan{SKPrefix: "EVENT#", Where: store.Any(), Limit: limit})
	}
}

func scanGoesOn(b *bench) {
	for i := range 20 {
		b.mustPut(b.key("P", fmt.Sprintf("%03d", i)), store.Item{})
	}
	found := b.key("P", "019")
	b.mustPut(found, store.Item{"here": true})
	s := store.Scan{Where: store.Has("here"), Limit: 2}
	b.wantScan(s, found)
	page, err := b.table.Scan(b.Context(), store.Scan{Where: store.Any(), Limit: 2})
	if err != nil || len(page.Entries) != 0 || page.Cursor == "" {
		b.Errorf("got %v, %v, want no entry and a cursor", page, err)
	}
}

func scanSurvives(b *bench) {
	for i := range 9 {
		b.mustPut(b.key("P", fmt.Sprint(i)), store.Item{})
	}
	s := store.Scan{Limit: 1}
	seen := map[store.Key]bool{}
	for {
		page, err := b.table.Scan(b.Context(), s)
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range page.Entries {
			if strings.HasPrefix(e.Key.PK, b.space) {
				seen[e.Key] = true
				b.mustPut(e.Key, nil) // the very item that the cursor names
			}
		}
		if s.Cursor = page.Cursor; s.Cursor == "" {
			break
		}
	}
	if len(seen) != 9 {
		b.Errorf("got %d items, want all 9 that were there", len(seen))
	}
}

func scanLarge(b *bench) {
	for i := range 5 {
		key := b.key("P", fmt.Sprint(i))
		b.mustPut(key, store.Item{"a": filler(key, 390<<10)})
	}
	entries, pages := b.mustScan(store.Scan{Limit: 1000})
	if len(entries) != 5 || pages < 2 {
		b.Errorf("got %d entries on %d pages, want five on several", len(entries), pages)
	}
}

func malformedScans(b *bench) {
	for name, s := range map[string]store.Scan{
		"no limit":          {},
		"a limit too large": {Limit: 1001},
		"unknown condition": {Limit: 1, Where: store.Condition{Op: 17}},
		"not UTF-8":         {Limit: 1, SKPrefix: "\xff"},
	} {
		if _, err := b.table.Scan(b.Context(), s); !errors.Is(err, store.ErrInvalid) {
			b.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	due := b.due("0").CursorAfter(store.Position{Key: b.key("P", "S"), DueAt: 1})
	partition := store.Query{PK: b.space, Limit: 1}.CursorAfter(store.Position{Key: b.key("P", "S")})
	for _, cursor := range []string{"x", "!", "e30", due, partition} {
		if _, err := b.table.Scan(b.Context(), store.Scan{Limit: 1, Cursor: cursor}); !errors.Is(err, store.ErrCursor) {
			b.Errorf("cursor %q: got %v, want ErrCursor", cursor, err)
		}
	}
}
