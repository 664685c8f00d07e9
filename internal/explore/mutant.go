package explore

import (
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/store"
)

// Mutant is one deliberate defect, put between the flows and their ports.
type Mutant struct {
	Name     string
	Table    func(w *world, t store.Table) store.Table
	Provider func(w *world, p psp.Provider) psp.Provider
	Policy   func(p payment.Policy) payment.Policy
	Wire     func(w *world)
	Shop     func(w *world, name string, t store.Table) store.Table // of the participants
	Relay    func(w *world, r *outbox.Relay)
	Webhooks func(w *world, h psp.Webhooks) psp.Webhooks
	Careless bool // the API takes card numbers
	Eventual bool // reads show what was there before the last write

	Answer func(w *world, p payment.Payment, key string) payment.Payment // what a repeat is told

	Scenario string // in which it must be killed
	Faults   int
	Killer   []string // the invariants of which one must catch it
	Alone    bool     // no other invariant sees it
}
