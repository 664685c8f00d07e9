package explore

import (
	"maps"
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
