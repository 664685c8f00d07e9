package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kessai/kessai/internal/store"
)

// Scenario is some actors over a fresh world.
type Scenario struct {
	Name   string
	PSP    Character
	Shop   *Shop
	Relay  bool
	Before func(w *world)
	Actors func() []*actor
	// End is what must hold after a recovery instead of what the product owes: of
	// other designs.
	End func(w *world, r recovery)
	// Private says which items only one actor touches at all.
	Private func(key store.Key) bool
	// Timeless scenarios have no clock: when an actor starts makes no difference,
	// only when it makes its calls.
	Timeless bool
	// Bounded networks lose what is on its way for longer than the provider's
	// time-out and a half: the clock waits for it.
	Bounded bool

	mutant *Mutant
	mute   string // an invariant that is not looked at
}

// Character is what kind of provider a scenario has.
type Character struct {
	// Blind: "not found" is no proof, and a charge that was just made is not seen.
	Blind bool
}

// Options bound an exploration.
type Options struct {
	Faults  int
	MaxRuns int  // 0: no bound
	First   bool // stop at the first violation
	Mutant  *Mutant

	mute  string // an invariant that is not looked at
	plain bool   // without anything that makes it faster: every order, each run from its start to its end
}

// Result is what an exploration found.
type Result struct {
	Scenario   string
	Runs       int
	States     int
	Ends       int         // different worlds at the end of a run
	Violating  int         // runs that violated something
	Violations []Violation // the first of each invariant
	Complete   bool        // every schedule and fault was tried
	Reached    map[string]int
}

// maxDraws is how many runs are drawn at most. Each goes all the way from the start
// to an end, while the search goes on from where it is.
const maxDraws = 2000

// explorer is one exploration.
type explorer struct {
	scenario Scenario
	options  Options
	lives    *lives
	origin   *world // before anything happened
	path     []int  // of decisions that led to where the search is
	// seen are the states that were searched, with how many faults were left then: to
	// come back with as many or fewer adds nothing.
	seen   map[uint64]int8
	ends   map[uint64]struct{}
	limit  int // of runs, of the search
	halted bool
	result Result
}

// Explore runs every schedule of the scenario's actors with every placement of up
// to options.Faults faults, and recovers from each different end three ways.
func Explore(s Scenario, o Options) Result {
	x := newExplorer(s, o)
	defer x.lives.end()
	// A search that cannot be finished sees one corner of the tree: some of its runs
	// are drawn from the whole of it, the same ones each time.
	x.limit = o.MaxRuns - min(o.MaxRuns/2, maxDraws)
	x.search(x.origin.clone(), o.Faults)
	x.result.Complete = !x.halted
	for x.halted && !x.stop() && x.result.Runs < o.MaxRuns {
		d := draw(x.result.Runs, o.Faults)
		w := x.walk(x.origin.clone(), d)
		x.path = d.path
		x.leaf(w)
	}
	x.result.States, x.result.Ends = len(x.seen), len(x.ends)
	return x.result
}

func newExplorer(s Scenario, o Options) *explorer {
	s.mutant, s.mute = o.Mutant, o.mute
	if o.plain {
		s.Private, s.Timeless = nil, false
	}
	x := &explorer{scenario: s, options: o, seen: map[uint64]int8{}, ends: map[uint64]struct{}{}}
	x.result.Scenario, x.result.Reached = s.Name, map[string]int{}
	x.lives = &lives{scenario: &x.scenario, reached: x.result.Reached, roots: map[string]*node{}, forget: o.plain}
	x.origin = newWorld(&x.scenario, x.result.Reached)
	for i, a := range s.Actors() {
		a.id = i + 1
		x.enter(x.origin, a)
	}
	return x
}

// stop reports whether a violation is enough.
func (x *explorer) stop() bool { return x.options.First && len(x.result.Violations) > 0 }

// search goes every way from a world on, depth first, and ends where it was before.
// The world is its own to change.
func (x *explorer) search(w *world, budget int) {
	for !x.halted {
		ready, ways := w.moves()
		if len(w.violations) > 0 || ways == 0 {
			x.leaf(w)
			break
		}
		if ways == 1 && w.kinds(ready, 0, budget > 0) == 1 { // nothing to decide
			x.move(w, ready, 0, 0)
			continue
		}
		if !x.options.plain && x.before(w, budget) {
			x.result.Runs++
			break
		}
		x.branch(w, ready, ways, budget)
		return
	}
	x.halted = x.halted || x.stop() || x.limit > 0 && x.result.Runs >= x.limit
}

func (x *explorer) branch(w *world, ready []int, ways, budget int) {
	depth := len(x.path)
	for pick := range ways {
		kinds := w.kinds(ready, pick, budget > 0)
		for kind := range kinds {
			x.path = x.path[:depth]
			if ways > 1 {
				x.path = append(x.path, pick)
			}
			if kinds > 1 {
				x.path = append(x.path, kind)
			}
			next, left := w, budget
			if pick < ways-1 || kind < kinds-1 {
				next = w.clone()
			}
			if x.move(next, ready, pick, kind) {
				left--
			}
			x.search(next, left)
			if x.halted {
				return
			}
		}
	}
}

// before reports whether the search was in this state with as many faults left, and
// remembers it. What an index shows that is behind matters while a fault is left.
func (x *explorer) before(w *world, budget int) bool {
	state := mix(w.digest() ^ mix(w.actorsDigest()) + w.answersDigest())
	behind := state
	if budget > 0 {
		behind = mix(state ^ w.staleDigest())
	}
	if left, seen := x.seen[behind]; seen && int(left) >= budget {
		return true
	}
	x.seen[behind] = int8(budget)
	if _, seen := x.seen[state]; !seen {
		x.seen[state] = 0
	}
	return false
}

// walk is one run from a world on as the choices say.
func (x *explorer) walk(w *world, d *choices) *world {
	budget := x.options.Faults
	for len(w.violations) == 0 {
		ready, ways := w.moves()
		if ways == 0 {
			break
		}
		pick := d.choose(ways)
		kinds := w.kinds(ready, pick, budget > 0)
		kind := 0
		if pick == len(ready) {
			kind = d.choose(kinds)
		} else {
			kind = d.fault(kinds)
		}
		if x.move(w, ready, pick, kind) {
			budget--
		}
	}
	return w
}

// leaf holds the end of a run to what must hold, and recovers from one that is not
// the end of another run too.
func (x *explorer) leaf(w *world) {
	x.result.Runs++
	if x.judge(w, "") {
		return
	}
	end := w.digest()
	if _, seen := x.ends[end]; seen {
		return
	}
	x.ends[end] = struct{}{}
	for r := byAll; r <= byReconciler; r++ {
		again := w.clone()
		again.wire()
		again.finish(r)
		if x.judge(again, " (recovery: "+r.String()+")") {
			return
		}
	}
}

// finish recovers the world and holds it to what is owed then.
func (w *world) finish(r recovery) {
	if w.scenario.End != nil {
		w.land()
		w.scenario.End(w, r)
		return
	}
	w.recover(r)
	w.checkEnd(r)
}

// judge keeps the first violation of each invariant.
func (x *explorer) judge(w *world, when string) bool {
	if len(w.violations) == 0 {
		return false
	}
	x.result.Violating++
	for _, v := range w.violations {
		if slices.ContainsFunc(x.result.Violations, func(k Violation) bool { return k.Invariant == v.Invariant }) {
			continue
		}
		v.Replay, v.Detail = x.replay(), v.Detail+when
		x.result.Violations = append(x.result.Violations, v)
	}
	return true
}

func (x *explorer) replay() string {
	mutant := ""
	if x.scenario.mutant != nil {
		mutant = x.scenario.mutant.Name
	}
	return fmt.Sprintf("%s@%d/%s:%s", strings.ReplaceAll(x.scenario.Name, " ", "_"), x.options.Faults, mutant, pathText(x.path))
}

// actorsDigest is where every actor stands: what it was told is all its state, and
// none of that matters when it makes no more calls. A defect may remember more.
func (w *world) actorsDigest() uint64 {
	h := uint64(fnvBasis) // a sum: who was spawned first makes no difference
	for _, s := range w.actors {
		seen, mark := s.at.seen, int64(0)
		if s.over {
			mark = 1
			if w.scenario.mutant == nil {
				seen = 0
			}
		}
		h += mix(digestNumber(digestString(seen, s.at.actor.name), mark))
	}
	return h
}

// sortedViolations is for reports.
func sortedViolations(vs []Violation) []Violation {
	return slices.SortedFunc(slices.Values(vs), func(a, b Violation) int { return cmp.Compare(a.Invariant, b.Invariant) })
}
