package explore

import (
	"cmp"
	"slices"

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
	exact bool   // no two points of an actor's lives count as alike
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
	likeness *likeness // nil: no two points of an actor's lives count as alike
	full     *explorer // to which no two are alike, once it was needed
	origin   *world    // before anything happened
	path     []int     // of decisions that led to where the search is
	// seen are the states that were searched, with how many faults were left then: to
	// come back with as many or fewer adds nothing.
	seen   map[uint64]int8
	ends   map[uint64]struct{}
	sample [][]int // paths of some runs
	limit  int     // of runs, of the search
	halted bool
	result Result
}

// Explore runs every schedule of the scenario's actors with every placement of up
// to options.Faults faults, and recovers from each different end three ways.
func Explore(s Scenario, o Options) Result {
	x := newExplorer(s, o)
	defer x.end()
	x.explore()
	return x.result
}

func newExplorer(s Scenario, o Options) *explorer {
	s.mutant, s.mute = o.Mutant, o.mute
	if o.plain {
		s.Private, s.Timeless = nil, false
	}
	x := &explorer{scenario: s, options: o}
	if !o.plain && !o.exact && o.Mutant == nil {
		x.likeness = newLikeness()
	}
	// A search that cannot be finished sees one corner of the tree: some of its runs
	// are drawn from the whole of it, the same ones each time.
	x.limit = o.MaxRuns - min(o.MaxRuns/2, maxDraws)
	x.begin()
	return x
}

// begin begins anew, with what was learnt of what is alike.
func (x *explorer) begin() {
	x.seen, x.ends, x.sample, x.path, x.halted = map[uint64]int8{}, map[uint64]struct{}{}, nil, nil, false
	x.result = Result{Scenario: x.scenario.Name, Reached: map[string]int{}}
	x.lives = newLives(&x.scenario, x.result.Reached, x.options.plain)
	if x.likeness != nil {
		x.likeness.begin()
		x.lives.likeness = x.likeness
	}
	x.origin = newWorld(&x.scenario, x.result.Reached)
	for i, a := range x.scenario.Actors() {
		a.id = i + 1
		x.enter(x.origin, a)
	}
}

// end ends every process.
func (x *explorer) end() {
	x.lives.end()
	if x.full != nil {
		x.full.end()
	}
}

// explore searches until nothing that counts as alike is in doubt, a small part of the
// tree first: most of what is alike is learnt there.
func (x *explorer) explore() {
	limit := x.limit
	for part := firstPart; ; {
		if x.likeness != nil {
			x.limit = part
			if limit > 0 {
				x.limit = min(part, limit)
			}
		}
		x.search(x.origin.clone(), x.options.Faults)
		if x.likeness == nil {
			break
		}
		if !x.doubt() {
			if !x.halted || x.limit == limit || x.stop() {
				break
			}
			part *= nextPart
		}
		x.lives.end()
		x.begin()
	}
	x.result.Complete = !x.halted
	x.fill()
	x.result.States, x.result.Ends = len(x.seen), len(x.ends)
}

// How many runs the first part of the tree has, and how many times more the next.
const (
	firstPart = 4000
	nextPart  = 8
)

// fill draws runs where the search was not finished.
func (x *explorer) fill() {
	full := x
	if x.full != nil {
		full = x.full
	}
	for x.halted && !x.stop() && x.result.Runs < x.options.MaxRuns {
		d := draw(x.result.Runs, x.options.Faults)
		w := full.walk(full.origin.clone(), d)
		x.path = d.path
		x.leaf(w)
	}
	if x.full == nil {
		return
	}
	for name, n := range full.result.Reached {
		x.result.Reached[name] += n
	}
}

// withoutLikeness is an explorer of the same to which no two points of an actor's
// lives are alike.
func (x *explorer) withoutLikeness() *explorer {
	o := x.options
	o.exact = true
	return newExplorer(x.scenario, o)
}

// stop reports whether a violation is enough.
func (x *explorer) stop() bool { return x.options.First && len(x.result.Violations) > 0 }

// sortedViolations is for reports.
func sortedViolations(vs []Violation) []Violation {
	return slices.SortedFunc(slices.Values(vs), func(a, b Violation) int { return cmp.Compare(a.Invariant, b.Invariant) })
}
