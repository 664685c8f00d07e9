package explore

import (
	"fmt"
	"slices"
	"strings"
)

// standing is where an actor stands in one world.
type standing struct {
	at   *node
	over bool // it ended, or was killed: it makes no more calls
}

// runnable reports whether the actor can make its next call now.
func (w *world) runnable(s standing) bool {
	return !s.over && (s.at.pending.guard == nil || s.at.pending.guard(w))
}

// moves are the actors that can make their next call, and how many ways the world
// can go on: the network is an actor too. One whose call is private goes alone, unless
// something is on its way that may be about the same.
func (w *world) moves() (ready []int, ways int) {
	for i, s := range w.actors {
		if !w.runnable(s) {
			continue
		}
		if s.at.pending.private && len(w.air) == 0 {
			return []int{i}, 1
		}
		ready = append(ready, i)
	}
	ways = len(ready)
	if len(w.air) > 0 {
		ways++
	}
	return ready, ways
}

// kinds is in how many ways a move can go: which late call arrives, or what goes
// wrong with a call.
func (w *world) kinds(ready []int, pick int, faulty bool) int {
	if pick == len(ready) {
		return len(w.air)
	}
	a := w.actors[ready[pick]].at
	if !faulty || a.actor.exempt || len(a.pending.faults) == 0 {
		return 1
	}
	return len(a.pending.faults)
}

// move makes one of the moves, and reports whether something went wrong with it.
func (x *explorer) move(w *world, ready []int, pick, kind int) bool {
	if pick == len(ready) {
		w.arrive(kind)
		return false
	}
	f := none
	i := ready[pick]
	if faults := w.actors[i].at.pending.faults; len(faults) > 0 {
		f = faults[kind]
	}
	x.take(w, i, f)
	for len(w.spawned) > 0 {
		a := w.spawned[0]
		w.spawned = w.spawned[1:]
		x.enter(w, a)
	}
	return f != none
}

// enter puts an actor into the world.
func (x *explorer) enter(w *world, a *actor) {
	w.actors = append(w.actors, standing{})
	w.stand(len(w.actors)-1, x.lives.root(a))
}

// stand brings an actor where a step leads, and does what the actor does on its way.
func (w *world) stand(i int, s *step) {
	w.actors[i] = standing{at: s.to, over: s.to.pending == nil}
	for _, e := range s.effects {
		e.do(w)
	}
}

// arrive lets one call in the air reach its end.
func (w *world) arrive(n int) {
	f := w.air[n]
	w.air = slices.Delete(slices.Clone(w.air), n, n+1)
	w.mover = "network"
	w.note("network", f.name+" arrives", none)
	w.reach("a late call arrived")
	f.land(w)
}

// take lets an actor make its call, with whatever goes wrong with it.
func (x *explorer) take(w *world, i int, f fault) {
	at := w.actors[i].at
	c := at.pending
	w.mover = at.actor.name
	if w.trace != nil && !c.silent {
		w.note(at.actor.name, c.name(), f)
	}
	var answer any
	switch f {
	case none, crashAfter:
		answer = c.run(w)
	case crashBefore:
	case lost, throttled, stale:
		answer = c.fail(w, f, nil)
	case applied, refused:
		answer = c.fail(w, f, c.run(w))
	case late:
		w.air = append(w.air, inFlight{at.actor.name + "'s " + c.name(), c.land})
		answer = c.fail(w, f, nil)
	}
	if f == crashBefore || f == crashAfter {
		w.actors[i].over = true
		return
	}
	w.stand(i, x.lives.follow(at, heard{answer, w.now}))
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
