package explore

import (
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

	Scenario string // in which it must be killed
	Faults   int
	Kills    string // the invariant that must catch it
}
