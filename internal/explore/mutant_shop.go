package explore

import (
	"context"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

// of is a crooked table of one participant.
func of(participant string, edit func(w *store.Write) bool) func(*world, string, store.Table) store.Table {
	return func(w *world, name string, t store.Table) store.Table {
		if name != participant {
			return t
		}
		return edited(edit)(w, t)
	}
}

// shopMutants are defects of the saga and its participants.
func shopMutants() []Mutant {
	return []Mutant{
		{
			Name: "stock_not_held", Scenario: "checkout last unit", Killer: []string{"S-STOCK-CONSERVED"},
			Shop: of("inventory", func(w *store.Write) bool {
				if strings.HasPrefix(w.Key.PK, "STOCK#") {
					w.If = store.Condition{}
				}
				return true
			}),
		},
		{
			Name: "stock_moved_twice", Scenario: "checkout two executions", Killer: []string{"S-STOCK-CONSERVED"},
			Shop: of("inventory", func(w *store.Write) bool {
				w.If = store.Condition{}
				return true
			}),
		},
		{
			Name: "stock_not_released", Scenario: "checkout declined", Killer: []string{"L-STOCK-FREED", "S-STOCK-CONSERVED"},
			Shop: of("inventory", func(w *store.Write) bool { return w.Add["reserved"] >= 0 || w.Add["available"] == 0 }),
		},
		{
			Name: "refund_while_open", Scenario: "checkout merchant refund", Killer: []string{"L-SAGA-ENDS"},
			Table: edited(func(w *store.Write) bool { return w.Kind != store.Check }),
		},
		{
			Name: "payment_not_undone", Scenario: "checkout order refused", Killer: []string{"L-NO-LOST-MONEY", "L-SAGA-ENDS"},
			Table: func(_ *world, t store.Table) store.Table {
				return &crooked{Table: t, write: func(ctx context.Context, writes []store.Write) error {
					if slices.ContainsFunc(writes, func(w store.Write) bool { return isRow(&w) && text(w.Item, "type") == "refund.requested" }) {
						return nil
					}
					return t.Write(ctx, writes...)
				}}
			},
		},
	}
}
