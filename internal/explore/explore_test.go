package explore

import (
	"strings"
	"testing"
)

// budget of runs for each scenario: a few seconds for all of them. The program run
// explores them all to their ends.
const budget = 500

func TestEveryScheduleHolds(t *testing.T) {
	scenarios := Scenarios()
	for i, c := range exploreAll(scenarios, Options{MaxRuns: budget}) {
		hold(t, scenarios[i], <-c)
	}
}

func TestAFaultAtAnyCallLosesNothing(t *testing.T) {
	reached := map[string]int{}
	scenarios := Scenarios()
	for i, c := range exploreAll(scenarios, Options{Faults: 1, MaxRuns: budget, exact: true}) {
		r := <-c
		hold(t, scenarios[i], r)
		for name, n := range r.Reached {
			reached[name] += n
		}
	}
	for _, name := range missed(reached, "") {
		t.Errorf("%q was never reached", name)
	}
}

func hold(t *testing.T, s Scenario, r Result) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("%s, %s: %s\nmake explore REPLAY='%s'", s.Name, v.Invariant, v.Detail, v.Replay)
	}
}

func TestOtherDesignsAreFoundOut(t *testing.T) {
	for _, s := range baselines() {
		if r := Explore(s, Options{Faults: 1, MaxRuns: 2000}); r.Violating == 0 {
			t.Errorf("%s: got no violation", s.Name)
		}
	}
}

func TestAViolationIsReplayed(t *testing.T) {
	m, err := mutantOf("time_out_is_decline")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenarioOf(m.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	r := Explore(*s, Options{Faults: m.Faults, First: true, Mutant: m})
	if len(r.Violations) == 0 {
		t.Fatal("got no violation")
	}
	trace, err := Replay(r.Violations[0].Replay)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"psp create", "VIOLATED " + r.Violations[0].Invariant} {
		if !strings.Contains(trace, want) {
			t.Errorf("got\n%s\nwant %q in it", trace, want)
		}
	}
}

func TestAReplayStringIsStrict(t *testing.T) {
	for _, text := range []string{"", "pay", "pay@1", "pay@x/:", "nobody@1/:0", "pay@1/nobody:0", "pay@1/:0.x", "pay@1/:-1"} {
		if _, err := Replay(text); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}

func TestARunIsTheSameEachTime(t *testing.T) {
	s, err := scenarioOf("pay retry clock")
	if err != nil {
		t.Fatal(err)
	}
	first, second := Explore(*s, Options{Faults: 1, MaxRuns: budget}), Explore(*s, Options{Faults: 1, MaxRuns: budget})
	if first.Runs != second.Runs || first.States != second.States || first.Ends != second.Ends {
		t.Errorf("got %d runs, %d states, %d ends, then %d, %d, %d", first.Runs, first.States, first.Ends, second.Runs, second.States, second.Ends)
	}
}
