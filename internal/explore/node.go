package explore

import (
	"fmt"
	"slices"
	"time"
)

// node is a point in the lives of an actor: what it was told on one way there, and
// the call that it makes then. An actor is a function of what it is told, so its code
// runs once for each step between nodes, however many worlds bring it there.
type node struct {
	actor   *actor
	parent  *node
	heard   heard  // that led here from the parent
	says    uint64 // what the actor did on its last step here
	pending *call  // nil: it is at its end
	point   uint64 // where it stands in its code, and what it asks for
	streak  int    // how often it has stood there in a row
	shows   uint64 // both of that: all that can be seen of it
	told    uint64 // all that it was told
	id      uint64 // the same for nodes from which it goes on alike
	steps   []*step
	byNews  map[uint64]*step // the first by what was heard
	life    *life            // that stands here, nil when it went on or was ended
}

// heard is what an actor was told, and when.
type heard struct {
	answer any
	now    time.Time
}

// step is where an answer leads, and what the actor does on its way.
type step struct {
	heard   heard
	news    uint64 // of what was heard, and when if that was looked at
	says    uint64
	to      *node
	effects []effect
	// timed steps looked at the clock. Most do not: they go the same way whatever it shows.
	timed bool
	at    map[int64]*step // of one that looks
}

// maxLives is how many processes stand still at nodes where another answer may come.
const maxLives = 4096

// lives are all nodes of all actors.
type lives struct {
	scenario *Scenario
	reached  map[string]int
	roots    map[string]*step
	standing []*node   // with a process, the oldest first
	plain    bool      // every step runs the code anew, and no two nodes are one
	likeness *likeness // nil: no two nodes are alike
}

func newLives(s *Scenario, reached map[string]int, plain bool) *lives {
	return &lives{scenario: s, reached: reached, roots: map[string]*step{}, plain: plain}
}

// root is where an actor's lives begin.
func (l *lives) root(a *actor) *step {
	key := fmt.Sprint(a.id, a.name)
	if s := l.roots[key]; s != nil {
		return s
	}
	n := &node{actor: a, heard: heard{now: start}}
	p, c := begin(l.scenario, a, l.reached)
	s := &step{to: n, effects: p.effects}
	l.roots[key] = s
	n.arrive(c)
	n.told = digestString(n.shows, "root")
	n.id = n.told
	l.stand(n, p)
	return s
}

// arrive is the call that the actor makes at the node, nil for none.
func (n *node) arrive(c *call) {
	n.pending = c
	n.point = c.point(n.actor)
	if n.parent != nil && n.parent.point == n.point {
		n.streak = n.parent.streak + 1
	}
	n.shows = digestNumber(n.point, int64(n.streak))
}

// point is what can be seen of an actor that makes a call.
func (c *call) point(a *actor) uint64 {
	h := digestNumber(digestStrings(a.name), int64(a.id))
	if c == nil {
		return h
	}
	return mix(digestNumber(h, int64(c.site)) ^ digestStrings(c.name(), fmt.Sprintf("%+v", c.asks)))
}

// sayings is what effects do.
func sayings(effects []effect) uint64 {
	h := uint64(fnvBasis)
	for _, e := range effects {
		h = digestNumber(h, int64(e.says))
	}
	return h
}

// follow is where an answer leads.
func (l *lives) follow(from *node, h heard) *step {
	news := from.pending.digest(h.answer)
	s := from.byNews[news]
	if s != nil && !l.plain {
		if !s.timed {
			return s
		}
		if s := s.at[h.now.UnixMilli()]; s != nil {
			return s
		}
	}
	p := l.processAt(from)
	n := p.goOn(from, h)
	next := &step{heard: h, says: n.says, effects: p.effects, timed: p.timed}
	from.keep(news, next)
	if p.timed {
		news = digestNumber(news, h.now.UnixMilli())
	}
	next.news = news
	n.told = mix(from.told*fnvPrime ^ news)
	n.id = n.told
	l.settle(next, n, p)
	return next
}

// goOn is where the process comes to from a node when it is told something.
func (p *life) goOn(from *node, h heard) *node {
	n := &node{actor: from.actor, parent: from, heard: h}
	n.arrive(p.resume(h))
	n.says = sayings(p.effects)
	return n
}

// keep notes the step for the next time.
func (n *node) keep(news uint64, s *step) {
	if n.byNews == nil {
		n.byNews = map[uint64]*step{}
	}
	n.steps = append(n.steps, s)
	first := n.byNews[news]
	if first == nil {
		first = s
		n.byNews[news] = s
	}
	if s.timed {
		first.timed = true
		first.at = with(first.at, s.heard.now.UnixMilli(), s)
	}
}

// settle says which node a step leads to: one from which the actor goes on alike if
// there is one, else n, where its process stands.
func (l *lives) settle(s *step, n *node, p *life) {
	s.to = n
	if n.pending == nil {
		p.end()
		return // where it stands then makes no difference
	}
	l.stand(n, p)
	if l.likeness == nil {
		return
	}
	if like := l.likeness.of(l, n); like != n {
		l.leave(n)
		s.to = like
		l.likeness.joints = append(l.likeness.joints, joint{s, n})
	}
}

// path is what led to the node, from the first.
func (n *node) path() []*node {
	var path []*node
	for at := n; at.parent != nil; at = at.parent {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

// processAt is a process that stands at a node: the one that does, or a new one.
func (l *lives) processAt(n *node) *life {
	if p := n.life; p != nil {
		n.life = nil
		return p
	}
	p := l.another(n)
	p.w.reached = l.reached
	return p
}

// another is a new process that is told the same from the beginning.
func (l *lives) another(n *node) *life {
	p, c := begin(l.scenario, n.actor, map[string]int{}) // what it reaches again does not count
	for _, at := range n.path() {
		c = p.resume(at.heard)
	}
	if c.point(n.actor) != n.point {
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
