package explore

import (
	"context"
	"slices"

	"github.com/kessai/kessai/internal/store"
)

// Scan reads one page of everything, as an actor reaches it.
func (p *tablePort) Scan(ctx context.Context, s store.Scan) (store.Page, error) {
	answer, _ := p.w.do(&call{
		name:   func() string { return "scan " + p.name + " " + s.SKPrefix },
		faults: readFaults, asks: s,
		run: func(w *world) any {
			page, err := w.tableOf(p.name).Scan(ctx, s)
			return paged{page, err}
		},
		fail:   func(*world, fault, any) any { return paged{store.Page{}, errNoAnswer} },
		digest: digestPaged,
	}).(paged)
	return answer.clone(), answer.err
}

// Scan reads one page of everything, in the order of keys.
func (t *table) Scan(_ context.Context, s store.Scan) (page store.Page, err error) {
	if err := s.Validate(); err != nil {
		return store.Page{}, err
	}
	from, resumed, err := s.Position()
	if err != nil {
		return store.Page{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []store.Key
	for key := range t.rows {
		if !resumed || compare(store.Position{Key: key}, store.Position{Key: from}) > 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b store.Key) int { return compare(store.Position{Key: a}, store.Position{Key: b}) })
	bytes := 0
	for n, key := range keys {
		if n == s.Limit || bytes > maxPageBytes {
			page.Cursor = s.CursorAfter(keys[n-1])
			break
		}
		item := t.rows[key]
		if s.Fits(key, item) {
			page.Entries = append(page.Entries, store.Entry{Key: key, Item: store.Clone(item)})
		}
		bytes += store.Size(key, item)
	}
	return page, nil
}
