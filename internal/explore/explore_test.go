package explore

import (
	"testing"
)

func TestEveryScheduleHolds(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			r := Explore(s, Options{Faults: 1, MaxRuns: 3000})
			for _, v := range r.Violations {
				t.Errorf("%s: %s\nmake explore REPLAY='%s'", v.Invariant, v.Detail, v.Replay)
			}
			t.Logf("%d runs, %d states, %d ends, complete %t", r.Runs, r.States, r.Ends, r.Complete)
		})
	}
}
