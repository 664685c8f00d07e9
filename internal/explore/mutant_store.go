package explore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

// crooked is a table that changes what is written and what is read.
type crooked struct {
	store.Table
	write func(ctx context.Context, writes []store.Write) error
	get   func(ctx context.Context, key store.Key) (store.Item, error)
}

func (c *crooked) Write(ctx context.Context, writes ...store.Write) error {
	if c.write == nil {
		return c.Table.Write(ctx, writes...)
	}
	return c.write(ctx, slices.Clone(writes))
}

func (c *crooked) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if c.get == nil {
		return c.Table.Get(ctx, key)
	}
	return c.get(ctx, key)
}

// edited is a table whose every write goes through edit first; false drops it.
func edited(edit func(w *store.Write) bool) func(*world, store.Table) store.Table {
	return func(_ *world, t store.Table) store.Table {
		return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
			kept := writes[:0]
			for _, w := range writes {
				if edit(&w) {
					kept = append(kept, w)
				}
			}
			if len(kept) == 0 {
				return nil
			}
			return t.Write(ctx, kept...)
		}}
	}
}

// unconditional is a table whose writes of a kind have no condition.
func unconditional(kind func(w *store.Write) bool) func(*world, store.Table) store.Table {
	return edited(func(w *store.Write) bool {
		if kind(w) {
			w.If = store.Condition{}
		}
		return true
	})
}

func isState(w *store.Write) bool { _, ok := cutState(w.Key); return ok }

func isRow(w *store.Write) bool { return strings.HasPrefix(w.Key.SK, "EVENT#") }

// storeMutants are defects of how things are stored.
func storeMutants() []Mutant {
	return []Mutant{
		{
			Name: "no_version_condition", Scenario: "pay cancel webhook", Killer: []string{"S-VERSION-MONOTONE", "S-OUTBOX-ATOMIC", "S-TERMINAL-STABLE"},
			Table: unconditional(func(w *store.Write) bool {
				return isState(w) && w.Kind == store.Update && w.Set["version"] != nil || isRow(w)
			}),
		},
		{
			Name: "no_version_condition_refunds", Scenario: "refund refund webhook", Killer: []string{"S-VERSION-MONOTONE", "S-OUTBOX-ATOMIC", "S-REFUND-BOUND"},
			Table: unconditional(func(w *store.Write) bool {
				return isState(w) && w.Kind == store.Update && w.Set["version"] != nil || isRow(w)
			}),
		},
		{
			Name: "no_journal_row", Scenario: "pay", Killer: []string{"S-OUTBOX-ATOMIC"},
			Table: edited(func(w *store.Write) bool { return !isRow(w) }),
		},
		{Name: "outbox_apart", Scenario: "pay", Killer: []string{"S-OUTBOX-ATOMIC"}, Table: outboxApart},
		{
			Name: "record_overwritten", Scenario: "repeat at once", Killer: []string{"S-IDEM-SAME"},
			Table: unconditional(func(w *store.Write) bool { return w.Key.SK == "RECORD" }),
		},
		{Name: "record_written_first", Scenario: "repeat at once", Killer: []string{"S-ANSWER-TRUE"}, Table: recordFirst},
		{Name: "record_written_last", Scenario: "repeat at once", Killer: []string{"S-IDEM-SAME"}, Table: recordLast},
		{
			Name: "no_reference_guard", Scenario: "two keys one order", Killer: []string{"S-CHARGE-ONCE"},
			Table: unconditional(func(w *store.Write) bool { return w.Key.SK == "LIVE" }),
		},
		{
			Name: "guard_not_freed", Scenario: "pay declined", Killer: []string{"L-GUARD-FREED"},
			Table: edited(func(w *store.Write) bool { return w.Key.SK != "LIVE" || w.Kind != store.Delete }),
		},
		{Name: "whole_item_written", Scenario: "pay cancel webhook", Killer: []string{"S-FENCE-MONOTONE"}, Table: wholeItem},
		{Name: "unknown_attributes_dropped", Scenario: "old and new code", Killer: []string{"S-KEEP-UNKNOWN"}, Table: wholeItemKnown},
		{Name: "eventual_read", Scenario: "action cancel repeat", Killer: []string{"S-SECRET", "S-ANSWER-TRUE"}, Eventual: true},
	}
}

// contentMutants write something else.
func contentMutants() []Mutant {
	return []Mutant{
		{
			Name: "never_due", Scenario: "pay", Faults: 1, Killer: []string{"L-TERMINATES", "L-NO-LOST-MONEY"},
			Table: edited(func(w *store.Write) bool {
				if isState(w) {
					for _, fields := range []store.Item{w.Item, w.Set} {
						delete(fields, store.AttrDueAt)
						delete(fields, store.AttrDueShard)
					}
				}
				return true
			}),
		},
		{
			Name: "never_put_off", Scenario: "action cancel repeat", Killer: []string{"L-RECON-CONVERGES", "L-TERMINATES"},
			Table: edited(func(w *store.Write) bool {
				return !isState(w) || w.Kind != store.Update || w.Set["version"] != nil || w.Set["tries"] == nil
			}),
		},
		{
			Name: "secret_in_the_journal", Scenario: "action two webhooks", Killer: []string{"S-SECRET"},
			Table: edited(func(w *store.Write) bool {
				if isRow(w) {
					w.Item = maps.Clone(w.Item)
					w.Item["redirect_url"] = secretText
				}
				return true
			}),
		},
		{
			Name: "secret_kept", Scenario: "action two webhooks", Killer: []string{"S-SECRET"},
			Table: edited(func(w *store.Write) bool {
				w.Remove = slices.DeleteFunc(slices.Clone(w.Remove), func(name string) bool { return name == "redirect_url" })
				return true
			}),
		},
		{
			Name: "lease_kept", Scenario: "late capture", Killer: []string{"L-LEASE-FREE"},
			Table: edited(func(w *store.Write) bool {
				if isState(w) && w.Set["lease_until"] != nil {
					w.Set["lease_until"] = start.AddDate(1, 0, 0).UnixMilli()
				}
				return !isState(w) || !slices.Contains(w.Remove, "lease_until")
			}),
		},
		{
			Name: "inbox_not_saved", Scenario: "pay webhook", Killer: []string{"L-WEBHOOK-DRAINED"},
			Table: edited(func(w *store.Write) bool { return w.Key.SK != "INBOX" || w.Kind == store.Put }),
		},
		{
			Name: "inbox_not_stored", Scenario: "pay webhook", Faults: 1, Killer: []string{"L-NO-LOST-MONEY"},
			Table: edited(func(w *store.Write) bool { return w.Key.SK != "INBOX" || w.Kind != store.Put }),
		},
		{
			Name: "amount_from_request", Scenario: "pay cancel webhook", Killer: []string{"S-AMOUNT-FIXED"},
			Table: edited(func(w *store.Write) bool {
				if isState(w) && w.Kind == store.Update && w.Set["status"] != nil {
					w.Set = maps.Clone(w.Set)
					w.Set["amount"] = amount + 1
				}
				return true
			}),
		},
		{Name: "key_deleted_on_error", Scenario: "repeat at once", Faults: 1, Killer: []string{"S-IDEM-SAME"}, Table: deleteOnError},
	}
}

// outboxApart writes the event in a write of its own, after the state.
func outboxApart(_ *world, t store.Table) store.Table {
	return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
		var state, rows []store.Write
		for _, w := range writes {
			if isRow(&w) {
				rows = append(rows, w)
			} else {
				state = append(state, w)
			}
		}
		if err := t.Write(ctx, state...); err != nil || rows == nil {
			return err
		}
		return t.Write(ctx, rows...)
	}}
}

// recordFirst writes the idempotency record before anything else.
func recordFirst(_ *world, t store.Table) store.Table {
	return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
		at := slices.IndexFunc(writes, func(w store.Write) bool { return w.Key.SK == "RECORD" })
		if at < 0 || len(writes) == 1 {
			return t.Write(ctx, writes...)
		}
		record := writes[at]
		if err := t.Write(ctx, record); err != nil {
			return moved(err, at)
		}
		return t.Write(ctx, slices.Delete(writes, at, at+1)...)
	}}
}

// recordLast writes it when everything else is there.
func recordLast(_ *world, t store.Table) store.Table {
	return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
		at := slices.IndexFunc(writes, func(w store.Write) bool { return w.Key.SK == "RECORD" })
		if at < 0 || len(writes) == 1 {
			return t.Write(ctx, writes...)
		}
		record := writes[at]
		if err := t.Write(ctx, slices.Delete(writes, at, at+1)...); err != nil {
			return err
		}
		_ = t.Write(ctx, record)
		return nil
	}}
}

// moved gives a refusal of one write its place among all of them.
func moved(err error, at int) error {
	if refusal, ok := errors.AsType[*store.ConditionError](err); ok {
		for i := range refusal.Failed {
			refusal.Failed[i].Index = at
		}
	}
	return err
}

// wholeItem writes back the whole state as it was read, with the change in it: an
// old lease comes back with it.
func wholeItem(w *world, t store.Table) store.Table { return writeBack(w, t, false) }

// wholeItemKnown writes back what this code knows of it.
func wholeItemKnown(w *world, t store.Table) store.Table { return writeBack(w, t, true) }

func writeBack(w *world, t store.Table, drop bool) store.Table {
	read := map[*actor]store.Item{}
	return &crooked{
		Table: t,
		get: func(ctx context.Context, key store.Key) (store.Item, error) {
			item, err := t.Get(ctx, key)
			if _, ok := cutState(key); ok && err == nil {
				read[w.current] = store.Clone(item)
			}
			return item, err
		},
		write: func(ctx context.Context, writes []store.Write) error {
			for i, x := range writes {
				seen := read[w.current]
				if !isState(&x) || x.Kind != store.Update || x.Set["version"] == nil || seen == nil {
					continue
				}
				whole := store.Clone(seen)
				maps.Copy(whole, x.Set)
				for _, name := range x.Remove {
					delete(whole, name)
				}
				if drop {
					delete(whole, newer)
				}
				writes[i] = store.Write{Kind: store.Put, Key: x.Key, Item: whole, If: x.If}
				read[w.current] = whole
			}
			return t.Write(ctx, writes...)
		},
	}
}

// deleteOnError frees the key when the store gave no answer, so that the client may
// try again.
func deleteOnError(_ *world, t store.Table) store.Table {
	return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
		err := t.Write(ctx, writes...)
		at := slices.IndexFunc(writes, func(w store.Write) bool { return w.Key.SK == "RECORD" })
		if at >= 0 && errors.Is(err, store.ErrUnavailable) {
			_ = t.Write(ctx, store.Write{Kind: store.Delete, Key: writes[at].Key})
		}
		return err
	}}
}
