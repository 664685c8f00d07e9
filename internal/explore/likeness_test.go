package explore

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/kessai/kessai/internal/store"
)

func at(name string) store.Key { return store.Key{PK: "PLACE#" + name, SK: "IT"} }

// remembering has an actor that reads one place, then another as often as it says, and
// only then tells what it read at first.
func remembering(looks int) Scenario {
	return Scenario{Name: "remembering", Timeless: true, End: func(*world, recovery) {}, Actors: func() []*actor {
		return []*actor{
			process("rememberer", nil, func(w *world) {
				t := &tablePort{w: w, name: "payments"}
				_, first := t.Get(background(), at("first"))
				for range looks {
					_, _ = t.Get(background(), at("second"))
				}
				_ = t.Write(background(), store.Write{Kind: store.Put, Key: at("told"), Item: store.Item{"empty": first != nil}})
			}),
			process("writer", nil, func(w *world) {
				t := &tablePort{w: w, name: "payments"}
				_ = t.Write(background(), store.Write{Kind: store.Put, Key: at("first"), Item: store.Item{"n": int64(1)}})
			}),
		}
	}}
}

// What an actor remembers and does not show is found out when it matters.
func TestWhatAnActorRemembersIsLearnt(t *testing.T) {
	for _, looks := range []int{1, 3, 10} {
		first := newExplorer(remembering(looks), Options{})
		first.search(first.origin.clone(), 0)
		first.end()
		if len(first.ends) != 1 {
			t.Errorf("%d looks: got %d ends before anything is doubted, want the one of two", looks, len(first.ends))
		}
		x := newExplorer(remembering(looks), Options{})
		x.explore()
		x.end()
		if len(x.ends) != 2 || x.halted {
			t.Errorf("%d looks: got %d ends, want two", looks, len(x.ends))
		}
	}
}

// stepsAlone doubts by steps alone, until there is nothing to learn.
func stepsAlone(x *explorer) {
	for range 10 {
		x.search(x.origin.clone(), 0)
		if x.likeness.doubt(x.lives); len(x.likeness.fresh) == 0 {
			return
		}
		x.end()
		x.begin()
	}
}

// A step that shows a difference at once is found without any life lived in full, and
// one that leads to points which are known to differ.
func TestAStepThatGoesElsewhereIsLearnt(t *testing.T) {
	x := newExplorer(remembering(1), Options{})
	stepsAlone(x)
	x.end()
	if len(x.ends) != 2 {
		t.Errorf("one step: got %d ends, want two", len(x.ends))
	}
	x = newExplorer(remembering(2), Options{})
	x.search(x.origin.clone(), 0)
	for _, n := range x.likeness.nodes {
		if s := n.steps; len(s) > 0 && s[0].to.pending != nil && strings.HasPrefix(s[0].to.pending.name(), "write") {
			x.likeness.learn(trial{{n.shows, s[0].heard}})
		}
	}
	x.end()
	x.begin()
	stepsAlone(x)
	x.end()
	if len(x.ends) != 2 {
		t.Errorf("a step before: got %d ends, want two", len(x.ends))
	}
}

// What shows much later is found by lives that are lived in full.
func TestALifeThatGoesElsewhereIsLearnt(t *testing.T) {
	x := newExplorer(remembering(3), Options{})
	full := x.withoutLikeness()
	defer full.end()
	for range 10 {
		x.search(x.origin.clone(), 0)
		for i := range drawnLives {
			x.compare(full.walk(full.origin.clone(), draw(i, 0)))
		}
		if len(x.likeness.fresh) == 0 {
			break
		}
		x.end()
		x.begin()
	}
	x.end()
	if len(x.ends) != 2 {
		t.Errorf("got %d ends, want two", len(x.ends))
	}
}

// With points that count as alike the search comes to the same ends as without.
func TestAlikePointsLoseNoEnd(t *testing.T) {
	for name, faults := range map[string]int{
		"pay": 2, "pay declined": 2, "pay retry clock": 1, "pay cancel webhook": 1, "repeat at once": 2, "cancel in flight": 1,
		"refund refund webhook": 1, "capture cancel": 1, "two sweeps": 0, "outbox relay": 1, "checkout merchant refund": 1,
		"checkout abandoned told late": 0,
	} {
		alike, fewer := endsOf(t, name, Options{Faults: faults})
		exact, more := endsOf(t, name, Options{Faults: faults, exact: true})
		t.Logf("%s, %d faults: %d runs instead of %d, %d ends", name, faults, fewer.Runs, more.Runs, len(exact))
		if !maps.Equal(alike, exact) {
			t.Errorf("%s, %d faults: got %d ends, want the %d that there are", name, faults, len(alike), len(exact))
		}
	}
}

// A write of its own that arrives late may land between two things that an actor
// reads, though nobody else touches them.
func TestAPrivateCallWaitsForWhatIsOnItsWay(t *testing.T) {
	s := Scenario{Name: "late", Timeless: true, Private: func(store.Key) bool { return true }, End: func(*world, recovery) {}, Actors: func() []*actor {
		return []*actor{process("writer", nil, func(w *world) {
			t := &tablePort{w: w, name: "payments"}
			_ = t.Write(background(), store.Write{Kind: store.Put, Key: at("own"), Item: store.Item{"n": int64(1)}})
			_, first := t.Get(background(), at("own"))
			_, second := t.Get(background(), at("own"))
			_ = t.Write(background(), store.Write{Kind: store.Put, Key: at("told"), Item: store.Item{"first": errors.Is(first, store.ErrNotFound), "second": errors.Is(second, store.ErrNotFound)}})
		})}
	}}
	ends := func(o Options) map[uint64]struct{} {
		x := newExplorer(s, o)
		defer x.end()
		x.explore()
		return x.ends
	}
	if got, want := ends(Options{Faults: 1}), ends(Options{Faults: 1, plain: true}); !maps.Equal(got, want) {
		t.Errorf("got %d ends, want the %d that there are", len(got), len(want))
	}
}
