package memory

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

// maxPageBytes ends a page early, like DynamoDB: callers must follow the cursor,
// not count entries.
const maxPageBytes = 1 << 20

// Query reads one page. See store.Table.
func (t *Table) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if err := q.Validate(); err != nil {
		return store.Page{}, err
	}
	from, resumed, err := q.Position()
	if err != nil {
		return store.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Page{}, fmt.Errorf("memory: query %q: %w: %w", q.PK, store.ErrUnavailable, err)
	}
	p := pager{query: q}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if q.Index == store.IndexDue {
		p.scanDue(t.rows, from, resumed)
	} else {
		p.scanPartition(t.rows, from, resumed)
	}
	return p.page, nil
}

// pager collects one page. An entry too many tells that there is another page.
type pager struct {
	query store.Query
	page  store.Page
	last  store.Position
	bytes int
}

func (p *pager) scanPartition(r rows, from store.Position, resumed bool) {
	q := p.query
	take := func(found row) bool {
		if resumed && found.key == from.Key {
			return true
		}
		if found.key.PK != q.PK || !strings.HasPrefix(found.key.SK, q.SKPrefix) {
			return false
		}
		return p.add(found.key, store.Clone(found.item), 0)
	}
	switch {
	case !q.Descending && resumed:
		r.byKey.Ascend(row{key: from.Key}, take)
	case !q.Descending:
		r.byKey.Ascend(row{key: store.Key{PK: q.PK, SK: q.SKPrefix}}, take)
	case resumed:
		r.byKey.Descend(row{key: from.Key}, take)
	default:
		r.byKey.Descend(row{key: store.Key{PK: q.PK, SK: after(q.SKPrefix)}}, take)
	}
}

func (p *pager) scanDue(r rows, from store.Position, resumed bool) {
	q := p.query
	start := place{shard: q.PK, at: math.MinInt64}
	atMost := int64(math.MaxInt64)
	if q.AtMost != 0 {
		atMost = q.AtMost
	}
	if q.Descending {
		start = place{shard: q.PK, at: atMost, key: store.Key{PK: highest}}
	}
	if resumed {
		start = place{shard: q.PK, at: from.DueAt, key: from.Key}
	}
	take := func(found place) bool {
		if resumed && found == start {
			return true
		}
		if found.shard != q.PK || found.at > atMost {
			return false
		}
		return p.add(found.key, store.Item{
			store.AttrDueShard: found.shard,
			store.AttrDueAt:    found.at,
		}, found.at)
	}
	if q.Descending {
		r.byDue.Descend(start, take)
		return
	}
	r.byDue.Ascend(start, take)
}

// highest sorts after every valid key, which is UTF-8.
const highest = "\xff"

// after returns a sort key at or above every one with the prefix.
func after(prefix string) string { return prefix + highest }

// add puts an entry on the page and reports whether to go on.
func (p *pager) add(key store.Key, item store.Item, dueAt int64) bool {
	if len(p.page.Entries) == p.query.Limit || p.bytes > maxPageBytes {
		p.page.Cursor = p.query.CursorAfter(p.last)
		return false
	}
	p.page.Entries = append(p.page.Entries, store.Entry{Key: key, Item: item})
	p.last = store.Position{Key: key, DueAt: dueAt}
	p.bytes += store.Size(key, item)
	return true
}

// Scan reads one page of all items, in the order of their keys. See store.Table.
func (t *Table) Scan(ctx context.Context, s store.Scan) (page store.Page, err error) {
	if err := s.Validate(); err != nil {
		return store.Page{}, err
	}
	from, resumed, err := s.Position()
	if err != nil {
		return store.Page{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Page{}, fmt.Errorf("memory: scan: %w: %w", store.ErrUnavailable, err)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	read, bytes := 0, 0
	t.rows.byKey.Ascend(row{key: from}, func(found row) bool {
		if resumed && found.key == from {
			return true
		}
		if s.Fits(found.key, found.item) {
			page.Entries = append(page.Entries, store.Entry{Key: found.key, Item: store.Clone(found.item)})
		}
		read++
		bytes += store.Size(found.key, found.item)
		if read < s.Limit && bytes <= maxPageBytes {
			return true
		}
		// Like DynamoDB, which doesn't look whether anything follows.
		page.Cursor = s.CursorAfter(found.key)
		return false
	})
	return page, nil
}
