package psptest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kessai/kessai/internal/psp"
)

// Clone is the provider as it is now with a life of its own: what happens to one of
// the two does not happen to the other. Hooks are shared.
func (f *Fake) Clone() *Fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	twin := &Fake{
		name: f.name, capabilities: f.capabilities, forgotten: f.forgotten, refundCount: f.refundCount,
		charges: make([]*charge, len(f.charges)),
		answers: maps.Clone(f.answers), refused: maps.Clone(f.refused), events: maps.Clone(f.events),
		calls: slices.Clone(f.calls), pending: slices.Clone(f.pending),
		before: maps.Clone(f.before), after: maps.Clone(f.after), alter: maps.Clone(f.alter), alterRefund: f.alterRefund,
		disputes: make(map[string]*dispute, len(f.disputes)),
	}
	moved := make(map[*charge]*charge, len(f.charges))
	for i, c := range f.charges {
		copied := *c
		copied.Charge = c.snapshot()
		twin.charges[i], moved[c] = &copied, &copied
	}
	for reference, d := range f.disputes {
		twin.disputes[reference] = &dispute{d.Dispute, moved[d.charge]}
	}
	return twin
}

// Answered are the idempotency keys that have an answer, with the charge or refund
// that it names, "" for a refusal: what a call with each of them would get again.
func (f *Fake) Answered() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(map[string]string, len(f.answers))
	for key, s := range f.answers {
		all[key] = describe(s.answer)
	}
	return all
}

func describe(a answer) string {
	if a.err != nil {
		return fmt.Sprintf("outcome %d", psp.OutcomeOf(a.err))
	}
	return a.charge.Reference + " " + string(a.charge.Status) + a.refund.Reference + " " + string(a.refund.Status)
}
