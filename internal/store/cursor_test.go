package store_test

import (
	"encoding/base64"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/kessai/kessai/internal/store"
)

func TestACursorLeadsBackToItsPosition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 40, 100)
		q := store.Query{PK: "P", Limit: 1}
		want := store.Position{Key: store.Key{PK: "P", SK: text.Draw(t, "sk")}}
		if rapid.Bool().Draw(t, "index") {
			q.Index = store.IndexDue
			want.Key.PK = text.Draw(t, "pk")
			want.DueAt = rapid.Int64().Draw(t, "due_at")
		}
		q.Cursor = q.CursorAfter(want)
		got, ok, err := q.Position()
		if err != nil || !ok || got != want {
			t.Errorf("got %v, %v, %v, want %v", got, ok, err, want)
		}
	})
}

func TestAForgedCursorIsRefusedOrStaysWithinItsPartition(t *testing.T) {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	table := store.Query{PK: "P", SKPrefix: "E#", Limit: 1}
	index := store.Query{PK: "0", Index: store.IndexDue, AtMost: 10, Limit: 1}
	cases := []struct {
		name   string
		query  store.Query
		cursor string
	}{
		{"no base64", table, "!"},
		{"padded", table, encode(`{"s":"E#1"}`) + "="},
		{"no JSON", table, encode(`x`)},
		{"no sort key", table, encode(`{}`)},
		{"another type", table, encode(`{"s":1}`)},
		{"not UTF-8", table, encode("{\"s\":\"E#\\ud800\"")},
		{"outside the prefix", table, encode(`{"s":"STATE"}`)},
		{"of the index", table, encode(`{"p":"X","s":"E#1","d":1}`)},
		{"of another partition", table, encode(`{"p":"X","s":"E#1"}`)},
		{"of the table", index, encode(`{"s":"E#1"}`)},
		{"index without a time", index, encode(`{"p":"X","s":"E#1"}`)},
		{"past the bound", index, encode(`{"p":"X","s":"E#1","d":11}`)},
	}
	for _, c := range cases {
		c.query.Cursor = c.cursor
		if _, _, err := c.query.Position(); !errors.Is(err, store.ErrCursor) {
			t.Errorf("%s: got %v, want ErrCursor", c.name, err)
		}
	}
	table.Cursor = encode(`{"s":"E#1"}`)
	if p, ok, err := table.Position(); err != nil || !ok || p.Key.PK != "P" {
		t.Errorf("got %v, %v, %v, want the query's own partition", p, ok, err)
	}
}

func TestAMalformedQueryIsRefused(t *testing.T) {
	cases := map[string]store.Query{
		"no partition":       {Limit: 1},
		"unknown index":      {PK: "P", Index: "x", Limit: 1},
		"prefix on index":    {PK: "P", Index: store.IndexDue, SKPrefix: "x", Limit: 1},
		"bound on the table": {PK: "P", AtMost: 1, Limit: 1},
		"no limit":           {PK: "P"},
		"limit above 1000":   {PK: "P", Limit: 1001},
		"prefix not UTF-8":   {PK: "P", SKPrefix: "\xff", Limit: 1},
	}
	for name, q := range cases {
		if err := q.Validate(); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	for _, q := range []store.Query{
		{PK: "P", Limit: 1000},
		{PK: "P", SKPrefix: "x", Limit: 1},
		{PK: "0", Index: store.IndexDue, AtMost: math.MaxInt64, Limit: 1},
	} {
		if err := q.Validate(); err != nil {
			t.Errorf("got %v of %+v, want nil", err, q)
		}
	}
}
