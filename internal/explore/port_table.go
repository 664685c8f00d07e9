package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/store"
)

// tablePort is a table as an actor reaches it: every call is a point at which
// another actor may come first, and at which something may go wrong.
type tablePort struct {
	w    *world
	name string
}

var _ store.Table = (*tablePort)(nil)

var errNoAnswer = fmt.Errorf("explore: no answer from the table: %w", store.ErrUnavailable)

// tableOf is the table of that name in the world.
func (w *world) tableOf(name string) *table {
	switch name {
	case "inventory":
		return w.shop.inventory
	case "orders":
		return w.shop.orders
	case "notifications":
		return w.shop.notices
	}
	return w.rows
}

// found is the answer to a read of one item.
type found struct {
	item store.Item
	err  error
}

func (p *tablePort) Get(_ context.Context, key store.Key) (store.Item, error) {
	eventual := p.w.scenario.mutant != nil && p.w.scenario.mutant.Eventual
	answer, _ := p.w.do(&call{
		private: p.w.private(key),
		name:    func() string { return fmt.Sprintf("read %s %s", p.name, key) },
		faults:  readFaults,
		run: func(w *world) any {
			t := w.tableOf(p.name)
			item, err := t.peek(key)
			if old := t.before[key]; eventual && err == nil && old != nil {
				item = old
			}
			return found{item, err}
		},
		fail: func(*world, fault, any) any { return found{nil, errNoAnswer} },
		digest: func(answer any) uint64 {
			f, _ := answer.(found)
			return digestItem(key, f.item) ^ digestError(f.err)
		},
	}).(found)
	return store.Clone(answer.item), answer.err
}

// paged is the answer to a query.
type paged struct {
	page store.Page
	err  error
}

func digestPaged(answer any) uint64 {
	a, _ := answer.(paged)
	h := digestError(a.err)
	for _, e := range a.page.Entries {
		h = mix(h*fnvPrime ^ digestItem(e.Key, e.Item))
	}
	return digestString(h, a.page.Cursor)
}

// clone is the page for one process, which may change it.
func (a paged) clone() store.Page {
	entries := make([]store.Entry, len(a.page.Entries))
	for i, e := range a.page.Entries {
		entries[i] = store.Entry{Key: e.Key, Item: store.Clone(e.Item)}
	}
	return store.Page{Entries: entries, Cursor: a.page.Cursor}
}

func (p *tablePort) Query(_ context.Context, q store.Query) (store.Page, error) {
	query := func(w *world, behind bool) any {
		page, err := w.tableOf(p.name).query(q, behind)
		return paged{page, err}
	}
	c := &call{
		name:   func() string { return fmt.Sprintf("query %s %s%s", p.name, q.Index, q.PK) },
		faults: readFaults, asks: q,
		run: func(w *world) any { return query(w, false) },
		fail: func(w *world, f fault, _ any) any {
			if f == stale {
				return query(w, true)
			}
			return paged{store.Page{}, errNoAnswer}
		},
		digest: digestPaged,
	}
	if q.Index == store.IndexDue {
		c.faults = indexFaults
	}
	answer, _ := p.w.do(c).(paged)
	return answer.clone(), answer.err
}

func (p *tablePort) Write(_ context.Context, writes ...store.Write) error {
	if err := store.ValidateWrites(writes); err != nil {
		return err
	}
	var known memory
	answer, _ := p.w.do(&call{
		private: !slices.ContainsFunc(writes, func(w store.Write) bool { return !p.w.private(w.Key) }),
		name:    func() string { return fmt.Sprintf("write %s %s", p.name, describe(writes)) },
		faults:  writeFaults, asks: writes,
		run: func(w *world) any {
			err := w.tableOf(p.name).write(writes, &known)
			if err != nil && names(writes[0].If, "lease_fence") {
				w.reach("fence lost")
			}
			if err == nil && p.name == "inventory" && text(writes[0].Set, "status") == "released" {
				w.reach("stock released")
			}
			return failed{err}
		},
		fail: func(w *world, f fault, ran any) any {
			if f != refused {
				return failed{errNoAnswer}
			}
			if r, _ := ran.(failed); r.err != nil {
				return r
			}
			w.reach("own write refused")
			return failed{w.tableOf(p.name).ownWriteRefused(writes)}
		},
		digest: digestFailed,
		land:   func(w *world) { _ = w.tableOf(p.name).write(writes, &known) },
	}).(failed)
	return answer.err
}

// failed is the answer to what brings nothing but an error, or none.
type failed struct{ err error }

func digestFailed(answer any) uint64 {
	f, _ := answer.(failed)
	return digestError(f.err)
}

func (w *world) private(key store.Key) bool {
	return w.scenario.Private != nil && w.scenario.Private(key)
}

// ownWriteRefused is what a client library that repeats a write by itself makes of
// one whose first answer was lost: the condition fails on its own item. The table's
// adapter recognises itself; this is one that does not.
func (t *table) ownWriteRefused(writes []store.Write) error {
	refusal := &store.ConditionError{}
	for i, w := range writes {
		if now := t.rows[w.Key]; !w.If.Holds(now) {
			refusal.Failed = append(refusal.Failed, store.Failed{Index: i, Old: store.Clone(now)})
		}
	}
	if refusal.Failed == nil {
		return nil // a repeat that changes nothing succeeds
	}
	return refusal
}

// names reports whether a condition is about an attribute.
func names(c store.Condition, attr string) bool {
	return c.Attr == attr || slices.ContainsFunc(c.Terms, func(t store.Condition) bool { return names(t, attr) })
}

// describe is a write for people: what became of the states it touches.
func describe(writes []store.Write) string {
	var parts []string
	for _, w := range writes {
		text := [...]string{"put", "update", "delete", "check"}[w.Kind] + " " + w.Key.String()
		for _, fields := range []store.Item{w.Item, w.Set} {
			if kind, ok := fields["type"].(string); ok {
				text += " (" + kind + ")"
			} else if status, ok := fields["status"].(string); ok {
				text += " (" + status + ")"
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// digestError holds all that a flow can tell errors apart by.
func digestError(err error) uint64 {
	if err == nil {
		return 1
	}
	h := digestString(fnvBasis, err.Error())
	if refusal, ok := errors.AsType[*store.ConditionError](err); ok {
		for _, f := range refusal.Failed {
			h = mix(h*fnvPrime ^ digestItem(store.Key{PK: fmt.Sprint(f.Index)}, f.Old))
		}
	}
	if e, ok := errors.AsType[*psp.Error](err); ok { // its text does not say the outcome
		h = digestNumber(digestNumber(h, int64(e.Outcome)), int64(e.RetryAfter))
	}
	return mix(h)
}
