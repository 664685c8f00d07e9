package explore

import "slices"

// maxForced is how many moves are made without a look whether the search was there
// before: what counts as alike may go in circles until it is known better.
const maxForced = 100

// search goes every way from a world on, depth first, and ends where it was before.
// The world is its own to change.
func (x *explorer) search(w *world, budget int) {
	for moved := 0; !x.halted; moved++ {
		ready, ways := w.moves()
		if len(w.violations) > 0 || ways == 0 {
			x.leaf(w)
			break
		}
		if ways == 1 && w.kinds(ready, 0, budget > 0) == 1 && moved < maxForced { // nothing to decide
			x.move(w, ready, 0, 0)
			continue
		}
		if !x.options.plain && x.before(w, budget) {
			x.result.Runs++
			if x.result.Runs%everySample == 0 && len(x.sample) < maxSample {
				x.sample = append(x.sample, slices.Clone(x.path))
			}
			break
		}
		x.branch(w, ready, ways, budget)
		return
	}
	x.halted = x.halted || x.stop() || x.limit > 0 && x.result.Runs >= x.limit
}

// branch goes every way from a world with more than one.
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

// actorsDigest is where every actor stands: what it was told that still matters is
// all its state, and none of it matters when it makes no more calls. A defect may
// remember more.
func (w *world) actorsDigest() uint64 {
	h := uint64(fnvBasis) // a sum: who was spawned first makes no difference
	for _, s := range w.actors {
		seen, mark := s.at.id, int64(0)
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
