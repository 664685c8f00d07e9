package explore

import (
	"maps"
	"testing"
)

// endsOf are the different ends of all runs.
func endsOf(t *testing.T, name string, o Options) (map[uint64]struct{}, Result) {
	t.Helper()
	s, err := scenarioOf(name)
	if err != nil {
		t.Fatal(err)
	}
	x := newExplorer(*s, o)
	defer x.end()
	x.explore()
	return x.ends, x.result
}

// What makes the search fast loses nothing: where every order is tried, each run goes
// from its start to its end, and all code runs anew, the ends are the same.
func TestTheFastSearchReachesEveryEnd(t *testing.T) {
	for name, faults := range map[string]int{
		"pay": 2, "pay webhook": 1, "two keys one order": 1, "repeat at once": 1,
		"cancel in flight": 0, "outbox relay": 0, "pay retry clock": 0, "pay reconciler": 0,
	} {
		fast, fastly := endsOf(t, name, Options{Faults: faults})
		slow, slowly := endsOf(t, name, Options{Faults: faults, plain: true})
		t.Logf("%s: %d runs of %d, %d ends", name, fastly.Runs, slowly.Runs, len(slow))
		if !maps.Equal(fast, slow) {
			t.Errorf("%s: got %d ends, want the %d that there are", name, len(fast), len(slow))
		}
		if fastly.Violating != 0 || slowly.Violating != 0 {
			t.Errorf("%s: got %d and %d violations, want none", name, fastly.Violating, slowly.Violating)
		}
	}
}

func TestAStateIsSearchedAgainWithMoreFaultsLeft(t *testing.T) {
	s, err := scenarioOf("pay")
	if err != nil {
		t.Fatal(err)
	}
	x := newExplorer(*s, Options{Faults: 2})
	defer x.end()
	for i, c := range []struct {
		left int
		want bool
	}{{1, false}, {1, true}, {0, true}, {2, false}, {1, true}, {2, true}} {
		if got := x.before(x.origin, c.left); got != c.want {
			t.Errorf("visit %d with %d faults left: got searched before %t, want %t", i+1, c.left, got, c.want)
		}
	}
}
