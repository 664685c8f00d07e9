package explore

import (
	"context"
	"fmt"
	"iter"
	"runtime"
)

// call is one effect that an actor wants at a port. The scheduler decides in which
// world it takes place, when, and what goes wrong with it. It belongs to no world:
// what it does and what it brings depends on the one that it is given alone.
type call struct {
	name   func() string           // for the trace
	asks   any                     // what it says to the port beyond its name
	site   uint64                  // where in the code it is made, and on whose behalf
	faults []fault                 // that it can have, none first
	guard  func(w *world) bool     // not runnable while false; nil: always
	run    func(w *world) any      // takes effect and brings the answer
	fail   failure                 // of the faults that bring an answer
	digest func(answer any) uint64 // of the answer as the actor sees it
	land   func(w *world)          // of a call that arrives late: its effect alone
	// private calls touch what no other actor of the scenario does: when they happen
	// makes no difference, so they happen at once.
	private bool
	silent  bool // not worth a line of a trace
	waits   bool // the actor has not begun
	sends   bool // to the provider, and money may move
}

// failure is the answer of a fault; ran is what the call has brought if it ran.
type failure func(w *world, f fault, ran any) any

// crash is what a process that dies panics with. The product's flows recover nothing.
type crash struct{}

// actor is what a process is to do: an invocation of a function, the network, the
// clock. Body runs over a world of its own that holds nothing, and learns of the
// explored world by its calls alone.
type actor struct {
	name   string
	id     int // of its ULIDs
	body   func(w *world)
	exempt bool // nothing goes wrong with it: it is no process of ours
}

// life is one life of an actor: a coroutine that stops at each call.
type life struct {
	w       *world // its own
	next    func() (*call, bool)
	stop    func()
	yield   func(*call) bool
	answer  any // of the call it stopped at
	effects []effect
	ids     int
	timed   bool // it looked at the clock since the last answer
	dead    bool
}

// begin starts a process up to its first call.
func begin(s *Scenario, a *actor, reached map[string]int) (*life, *call) {
	p := &life{w: ownWorld(s, reached)}
	p.w.life, p.w.current = p, a
	p.next, p.stop = iter.Pull(iter.Seq[*call](func(yield func(*call) bool) {
		p.yield = yield
		defer func() {
			if cause := recover(); cause != nil && cause != (crash{}) {
				panic(cause)
			}
		}()
		a.body(p.w)
	}))
	c, _ := p.next()
	return p, c
}

// resume gives the process the answer that it waits for, and runs it up to its next
// call, nil at its end.
func (p *life) resume(t heard) *call {
	p.answer, p.w.now = t.answer, t.now
	p.effects, p.timed = nil, false
	c, _ := p.next()
	return c
}

// end kills the process where it stands.
func (p *life) end() {
	p.dead = true
	p.stop()
}

// do is how every port makes a call: by the scheduler when a process runs, at once
// when none does, as in a recovery.
func (w *world) do(c *call) any {
	p := w.life
	if p == nil {
		return c.run(w)
	}
	c.site = site()
	if p.dead || !p.yield(c) {
		p.dead = true
		panic(crash{})
	}
	return p.answer
}

// effect is what an actor does to the explored world beside its ports, such as the
// answer to its client. It happens with the step that led to it.
type effect struct {
	says uint64 // what it does, so that two can be compared
	do   func(w *world)
}

// effect does something to the explored world; of holds what it depends on.
func (w *world) effect(of any, do func(w *world)) {
	if w.life == nil {
		do(w)
		return
	}
	w.life.effects = append(w.life.effects, effect{digestStrings(fmt.Sprintf("%+v", of)), do})
}

// site is where the actor's code stands: the call of the port with all its callers.
func site() uint64 {
	var stack [96]uintptr
	h := uint64(fnvBasis)
	for _, pc := range stack[:runtime.Callers(3, stack[:])] {
		h = digestNumber(h, int64(pc))
	}
	return h
}

// look reads something of the explored world that is none of the product's
// business, at this very moment.
func look[T any](w *world, read func(w *world) T, digest func(T) uint64) T {
	answer, _ := w.do(&call{
		private: true, silent: true, name: func() string { return "looks" }, run: func(w *world) any { return read(w) },
		digest: func(answer any) uint64 { seen, _ := answer.(T); return digest(seen) },
	}).(T)
	return answer
}

// background is the context of every flow: time-outs of the flows are faults of
// ports here, and the clock is the world's.
func background() context.Context { return context.Background() }
