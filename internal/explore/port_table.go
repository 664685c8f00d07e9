package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

// tablePort is a table as an actor reaches it: every call is a point at which
// another actor may come first, and at which something may go wrong.
type tablePort struct {
	w     *world
	name  string
	table *table
}

var _ store.Table = (*tablePort)(nil)

var errNoAnswer = fmt.Errorf("explore: no answer from the table: %w", store.ErrUnavailable)

func (p *tablePort) Get(ctx context.Context, key store.Key) (item store.Item, err error) {
	p.w.do(&call{
		private: p.w.private(key),
		name:    func() string { return fmt.Sprintf("read %s %s", p.name, key) },
		faults:  readFaults,
		apply:   func() { item, err = p.table.Get(ctx, key) },
		fail:    func(fault) { item, err = nil, errNoAnswer },
		digest:  func() uint64 { return digestItem(key, item) ^ digestError(err) },
	})
	return item, err
}

func (p *tablePort) Query(ctx context.Context, q store.Query) (page store.Page, err error) {
	c := &call{
		name:   func() string { return fmt.Sprintf("query %s %s%s", p.name, q.Index, q.PK) },
		faults: readFaults,
		apply:  func() { page, err = p.table.query(q, false) },
		fail: func(f fault) {
			if f == stale {
				page, err = p.table.query(q, true)
				return
			}
			err = errNoAnswer
		},
		digest: func() uint64 {
			h := digestError(err)
			for _, e := range page.Entries {
				h = mix(h*fnvPrime ^ digestItem(e.Key, e.Item))
			}
			return h
		},
	}
	if q.Index == store.IndexDue {
		c.faults = indexFaults
	}
	p.w.do(c)
	return page, err
}

func (p *tablePort) Write(ctx context.Context, writes ...store.Write) (err error) {
	p.w.do(&call{
		private: len(writes) == 1 && p.w.private(writes[0].Key),
		name:    func() string { return fmt.Sprintf("write %s %s", p.name, describe(writes)) },
		faults:  writeFaults,
		apply: func() {
			if err = p.table.Write(ctx, writes...); err != nil && names(writes[0].If, "lease_fence") {
				p.w.reach("fence lost")
			}
			if err == nil && p.name == "inventory" && text(writes[0].Set, "status") == "released" {
				p.w.reach("stock released")
			}
		},
		fail: func(f fault) {
			if f == refused && err == nil {
				p.w.reach("own write refused")
				err = p.ownWriteRefused(writes)
				return
			}
			if f != refused {
				err = errNoAnswer
			}
		},
		digest: func() uint64 { return digestError(err) },
		land:   func(*world) { _ = p.table.Write(ctx, writes...) },
	})
	return err
}

func (w *world) private(key store.Key) bool {
	return w.scenario.Private != nil && w.scenario.Private(key)
}

// ownWriteRefused is what a client library that repeats a write by itself makes of
// one whose first answer was lost: the condition fails on its own item. The table's
// adapter recognises itself; this is one that does not.
func (p *tablePort) ownWriteRefused(writes []store.Write) error {
	refusal := &store.ConditionError{}
	for i, w := range writes {
		if now := p.table.rows[w.Key]; !w.If.Holds(now) {
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
	return mix(h)
}
