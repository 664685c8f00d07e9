package explore

import (
	"context"
	"iter"
)

// call is one effect that an actor wants at a port. The scheduler decides when it
// takes place and what goes wrong with it.
type call struct {
	name   func() string  // for the trace
	faults []fault        // that it can have, none first
	guard  func() bool    // not runnable while false; nil: always
	apply  func()         // takes effect and keeps the answer
	fail   func(f fault)  // keeps the error of a fault
	digest func() uint64  // of the answer as the actor sees it
	land   func(w *world) // of a call that arrives late: its effect alone
	// private calls touch what no other actor of the scenario does: when they happen
	// makes no difference, so they happen at once.
	private bool
	waits   bool // the actor has not begun
	sends   bool // to the provider, and money may move
}

// crash is what a process that dies panics with. The product's flows recover nothing.
type crash struct{}

// actor is one process: an invocation of a function, the network, the clock.
type actor struct {
	name string
	id   int // of its ULIDs
	body func(w *world)

	next    func() (*call, bool)
	stop    func()
	yield   func(*call) bool
	pending *call
	started bool
	done    bool // ended by itself
	dead    bool // was killed
	seen    uint64
	ids     int
	exempt  bool // nothing goes wrong with it: it is no process of ours
}

// over reports whether the actor makes no more calls.
func (a *actor) over() bool { return a.done || a.dead }

// start runs the actor up to its first call.
func (a *actor) start(w *world) {
	a.next, a.stop = iter.Pull(iter.Seq[*call](func(yield func(*call) bool) {
		a.yield = yield
		defer func() {
			switch cause := recover(); cause {
			case nil:
			case crash{}:
				a.dead = true
			default:
				panic(cause)
			}
		}()
		a.body(w)
	}))
	a.started = true
	a.step(w)
}

// step runs the actor from the answer it waits for to its next call.
func (a *actor) step(w *world) {
	w.current = a
	c, more := a.next()
	w.current = nil
	a.pending = c
	a.done = !more && !a.dead
}

// kill ends the process where it stands.
func (a *actor) kill() {
	a.dead = true
	a.stop()
}

// runnable reports whether the actor can make its next call now.
func (a *actor) runnable() bool {
	return !a.over() && (a.pending.guard == nil || a.pending.guard())
}

// do is how every port makes a call: by the scheduler when an actor runs, at once
// when nobody does, as in a recovery.
func (w *world) do(c *call) {
	a := w.current
	if a == nil {
		c.apply()
		return
	}
	if a.dead || !a.yield(c) {
		a.dead = true
		panic(crash{})
	}
}

// background is the context of every flow: time-outs of the flows are faults of
// ports here, and the clock is the world's.
func background() context.Context { return context.Background() }
