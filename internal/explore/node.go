package explore

import (
	"fmt"
	"time"
)

// node is a point in the lives of an actor: everything it was told so far, and the
// call that it makes then. An actor is a function of what it is told, so its code
// runs once for each node, however many worlds bring it there.
type node struct {
	actor   *actor
	parent  *node
	answer  any       // that led here from the parent
	now     time.Time // the actor's clock since then
	seen    uint64    // digest of all answers, and of the time where it was looked at
	pending *call     // nil: it is at its end
	effects []func(w *world)
	next    map[uint64]*step
	life    *life // that stands here, nil when it went on or was ended
}

// step is where an answer leads. Most actors that get it do not look at the clock then:
// they go the same way whatever it shows.
type step struct {
	to    *node
	timed bool
	at    map[int64]*node // of one that looks
}

// maxLives is how many processes stand still at nodes where another answer may come.
const maxLives = 4096

// lives are all nodes of all actors.
type lives struct {
	scenario *Scenario
	reached  map[string]int
	roots    map[string]*node
	standing []*node // with a process, the oldest first
	started  int
	forget   bool // every step runs the code anew
}

// root is where an actor's lives begin.
func (l *lives) root(a *actor) *node {
	key := fmt.Sprint(a.id, a.name)
	if n := l.roots[key]; n != nil {
		return n
	}
	n := &node{actor: a, now: start, next: map[uint64]*step{}}
	l.roots[key] = n
	p, c := l.begin(n)
	n.pending, n.effects = c, p.effects
	l.stand(n, p)
	return n
}

func (l *lives) begin(root *node) (*life, *call) {
	l.started++
	return begin(l.scenario, root.actor, l.reached)
}

// follow is where an answer leads.
func (l *lives) follow(from *node, answer any, now time.Time) *node {
	told := mix(from.seen*fnvPrime ^ from.pending.digest(answer))
	s := from.next[told]
	if s != nil && !l.forget {
		if !s.timed {
			return s.to
		}
		if n := s.at[now.UnixMilli()]; n != nil {
			return n
		}
	}
	n := &node{actor: from.actor, parent: from, answer: answer, now: now, seen: told}
	p := l.processAt(from)
	n.pending = p.resume(n)
	n.effects = p.effects
	if from.next == nil {
		from.next = map[uint64]*step{}
	}
	if s == nil {
		s = &step{to: n, timed: p.timed}
		from.next[told] = s
	}
	if s.timed {
		n.seen = digestNumber(told, now.UnixMilli())
		s.at = with(s.at, now.UnixMilli(), n)
	}
	l.stand(n, p)
	return n
}

// processAt is a process that stands at a node: the one that does, or a new one that
// is told the same from the beginning.
func (l *lives) processAt(n *node) *life {
	if p := n.life; p != nil {
		n.life = nil
		return p
	}
	var path []*node
	at := n
	for ; at.parent != nil; at = at.parent {
		path = append(path, at)
	}
	p, c := l.begin(at)
	for i := len(path) - 1; i >= 0; i-- {
		c = p.resume(path[i])
	}
	if c == nil || c.name() != n.pending.name() {
		panic("explore: " + n.actor.name + " is no function of what it is told")
	}
	return p
}

// stand keeps a process where it is.
func (l *lives) stand(n *node, p *life) {
	if n.pending == nil {
		p.end()
		return
	}
	n.life = p
	l.standing = append(l.standing, n)
	if len(l.standing) > maxLives {
		l.leave(l.standing[0])
		l.standing = l.standing[1:]
	}
}

func (l *lives) leave(n *node) {
	if n.life != nil {
		n.life.end()
		n.life = nil
	}
}

// end ends every process.
func (l *lives) end() {
	for _, n := range l.standing {
		l.leave(n)
	}
}
