package explore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
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

// state is what a run is cut at when it was there before.
type state struct {
	world  uint64
	actors uint64
	budget int
}

// explorer is one exploration.
type explorer struct {
	scenario Scenario
	options  Options
	tree     *choices
	seen     map[state]struct{}
	ends     map[uint64]struct{}
	result   Result
	trace    *[]string
}

// Explore runs every schedule of the scenario's actors with every placement of up
// to options.Faults faults, and recovers from each different end three ways.
func Explore(s Scenario, o Options) Result {
	s.mutant = o.Mutant
	x := &explorer{scenario: s, options: o, tree: &choices{}, seen: map[state]struct{}{}, ends: map[uint64]struct{}{}}
	x.result.Scenario, x.result.Reached = s.Name, map[string]int{}
	searching := true
	for {
		x.result.Runs++
		x.run(searching)
		if len(x.result.Violations) > 0 && o.First || o.MaxRuns > 0 && x.result.Runs >= o.MaxRuns {
			break
		}
		// A search that cannot be finished sees one corner of the tree: the rest of its
		// runs are drawn from the whole of it, the same ones each time.
		if searching && o.MaxRuns > 0 && x.result.Runs >= o.MaxRuns/2 {
			searching = false
		}
		if !searching {
			x.tree = &choices{random: rand.New(rand.NewPCG(uint64(x.result.Runs), uint64(o.Faults)))}
			continue
		}
		if !x.tree.next() {
			x.result.Complete = true
			break
		}
	}
	x.result.States, x.result.Ends = len(x.seen), len(x.ends)
	return x.result
}

// run is one run to its end, or to a state that was seen before.
func (x *explorer) run(prune bool) {
	w, cut := x.play(x.tree, prune)
	if cut {
		return
	}
	found := x.judge(w)
	if !found {
		end := w.digest()
		if _, seen := x.ends[end]; seen {
			return
		}
		x.ends[end] = struct{}{}
		for r := byAll; r <= byReconciler && !found; r++ {
			if r != byAll {
				again := &choices{path: x.tree.path, widths: slices.Clone(x.tree.widths)}
				w, _ = x.play(again, false)
			}
			w.finish(r)
			found = x.judgeAs(w, r)
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

func (x *explorer) judge(w *world) bool { return x.judgeAs(w, -1) }

// judgeAs keeps the first violation of each invariant.
func (x *explorer) judgeAs(w *world, r recovery) bool {
	if len(w.violations) == 0 {
		return false
	}
	x.result.Violating++
	for _, v := range w.violations {
		if slices.ContainsFunc(x.result.Violations, func(k Violation) bool { return k.Invariant == v.Invariant }) {
			continue
		}
		v.Replay = x.replay()
		if r >= 0 {
			v.Detail += " (recovery: " + r.String() + ")"
		}
		x.result.Violations = append(x.result.Violations, v)
	}
	return true
}

func (x *explorer) replay() string {
	mutant := ""
	if x.scenario.mutant != nil {
		mutant = x.scenario.mutant.Name
	}
	return fmt.Sprintf("%s@%d/%s:%s", strings.ReplaceAll(x.scenario.Name, " ", "_"), x.options.Faults, mutant, x.tree)
}

// play runs the scenario along the tree of decisions. With prune it ends at a state
// that was seen before, and reports it.
func (x *explorer) play(tree *choices, prune bool) (w *world, cut bool) {
	w = newWorld(&x.scenario, x.result.Reached)
	w.trace = x.trace
	defer func() {
		for _, a := range w.actors {
			if !a.over() {
				a.kill()
			}
		}
	}()
	budget := x.options.Faults
	if tree.random != nil {
		tree.calm = tree.random.IntN(maxCalm)
	}
	for len(w.violations) == 0 {
		for _, a := range w.spawned {
			w.actors = append(w.actors, a)
			a.start(w)
		}
		w.spawned = nil
		ready, alone := w.ready()
		ways := len(ready)
		if len(w.air) > 0 && !alone {
			ways++ // the network is an actor too
		}
		if ways == 0 {
			break
		}
		if prune && tree.fresh() {
			s := state{w.digest(), w.actorsDigest(), budget}
			if _, seen := x.seen[s]; seen {
				return w, true
			}
			x.seen[s] = struct{}{}
		}
		pick := tree.choose(ways)
		if pick == len(ready) {
			w.arrive(tree)
			continue
		}
		if w.take(ready[pick], tree, budget > 0) != none {
			budget--
		}
	}
	return w, false
}

// ready are the actors that can make their next call. One whose call is private
// goes alone.
func (w *world) ready() (ready []*actor, alone bool) {
	for _, a := range w.actors {
		if !a.runnable() {
			continue
		}
		if a.pending.private {
			return []*actor{a}, true
		}
		ready = append(ready, a)
	}
	return ready, false
}

// arrive lets one call in the air reach its end.
func (w *world) arrive(tree *choices) {
	n := tree.choose(len(w.air))
	f := w.air[n]
	w.air = slices.Delete(slices.Clone(w.air), n, n+1)
	w.note("network", f.name+" arrives", none)
	w.reach("a late call arrived")
	f.land(w)
}

// take lets an actor make its call, with whatever goes wrong with it.
func (w *world) take(a *actor, tree *choices, faulty bool) fault {
	c := a.pending
	f := none
	if faulty && !a.exempt && len(c.faults) > 0 {
		f = c.faults[tree.fault(len(c.faults))]
	}
	if w.trace != nil {
		w.note(a.name, c.name(), f)
	}
	switch f {
	case none:
		c.apply()
	case crashBefore:
	case crashAfter:
		c.apply()
	case lost, throttled, stale:
		c.fail(f)
	case applied, refused:
		c.apply()
		c.fail(f)
	case late:
		w.air = append(w.air, inFlight{a.name + "'s " + c.name(), c.land})
		c.fail(f)
	}
	if f == crashBefore || f == crashAfter {
		a.kill()
		return f
	}
	a.seen = mix(digestNumber(a.seen*fnvPrime^c.digest(), w.now.UnixMilli()))
	a.step(w)
	return f
}

// actorsDigest is where every actor stands: what it has seen is all its state.
func (w *world) actorsDigest() uint64 {
	h := uint64(fnvBasis) // a sum: who was spawned first makes no difference
	for _, a := range w.actors {
		mark := int64(0)
		if a.over() {
			mark = 1
		}
		h += mix(digestNumber(digestString(a.seen, a.name), mark))
	}
	return h
}

// note writes a line of the trace.
func (w *world) note(who, what string, f fault) {
	if w.trace == nil {
		return
	}
	line := fmt.Sprintf("%3d  %-12s %s", len(*w.trace)+1, who, what)
	if f != none {
		line += "  ← " + strings.ToUpper(f.String())
	}
	*w.trace = append(*w.trace, line)
}

// sortedViolations is for reports.
func sortedViolations(vs []Violation) []Violation {
	return slices.SortedFunc(slices.Values(vs), func(a, b Violation) int { return cmp.Compare(a.Invariant, b.Invariant) })
}
