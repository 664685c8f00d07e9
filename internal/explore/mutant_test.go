package explore

import (
	"slices"
	"testing"
)

// maxMutantRuns is enough to kill every mutant in its scenario.
const maxMutantRuns = 4000

func TestEveryMutantIsKilled(t *testing.T) {
	all := Mutants()
	if len(all) < 25 {
		t.Errorf("got %d mutants, want at least 25", len(all))
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			s, err := scenarioOf(m.Scenario)
			if err != nil {
				t.Fatal(err)
			}
			r := Explore(*s, Options{Faults: m.Faults, MaxRuns: maxMutantRuns, First: true, Mutant: &m})
			var by []string
			for _, v := range r.Violations {
				by = append(by, v.Invariant)
			}
			if !slices.ContainsFunc(by, func(name string) bool { return slices.Contains(m.Killer, name) }) {
				t.Errorf("got %v in %d runs of %s, want one of %v", r.Violations, r.Runs, m.Scenario, m.Killer)
			}
			if !m.Alone {
				return
			}
			r = Explore(*s, Options{Faults: m.Faults, MaxRuns: maxMutantRuns, First: true, Mutant: &m, mute: m.Killer[0]})
			if len(r.Violations) != 0 {
				t.Errorf("got %v, want it seen by %s alone", r.Violations, m.Killer[0])
			}
		})
	}
}
