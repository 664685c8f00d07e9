package explore

// likeness knows which nodes of an actor's lives are alike: whatever the actor is told
// from there on, it does the same. It is learnt, as an automaton is learnt from
// queries: nodes that show the same count as alike until a way to go on is found on
// which they differ. That way is a trial then, which all that show the same are put to.
type likeness struct {
	trials map[uint64][]trial // by what nodes show
	nodes  map[uint64]*node   // the first of its kind, by what it shows and how its trials went
	joints []joint
	sure   map[uint64]bool // what was told a node and came to what it should
	fresh  map[uint64]bool // what nodes show that have a new trial
}

// trial is what to tell an actor, one after the other.
type trial []ask

// ask is one question of an actor that stands where shows says, and what it is told.
type ask struct {
	shows uint64
	heard heard
}

// joint is a step that led to a node which counts as like another.
type joint struct {
	step *step
	node *node
}

func newLikeness() *likeness {
	return &likeness{trials: map[uint64][]trial{}, sure: map[uint64]bool{}}
}

// begin forgets all nodes, and keeps the trials.
func (k *likeness) begin() {
	k.nodes, k.joints, k.fresh = map[uint64]*node{}, nil, map[uint64]bool{}
}

// of is the first node that is like n, n itself when it is the first of its kind.
func (k *likeness) of(l *lives, n *node) *node {
	h := k.kind(l, n)
	if first := k.nodes[h]; first != nil {
		return first
	}
	n.id = h
	k.nodes[h] = n
	return n
}

// kind is what a node shows and how its trials go.
func (k *likeness) kind(l *lives, n *node) uint64 {
	h := n.shows
	for _, t := range k.trials[n.shows] {
		all, _ := l.try(n, t)
		h = mix(h*fnvPrime ^ all)
	}
	return h
}

// try puts a node to a trial. All is how it goes, last how it ends, 0 when it does not
// come to that.
func (l *lives) try(n *node, t trial) (all, last uint64) {
	p := l.another(n)
	defer p.end()
	for i, a := range t {
		if n.shows != a.shows {
			return digestNumber(all, int64(n.shows)), 0
		}
		n = p.goOn(n, a.heard)
		last = seen(n.says, n.shows)
		all = digestNumber(all, int64(last))
		if n.pending == nil && i < len(t)-1 {
			return all, 0
		}
	}
	return all, last
}

// seen is what is seen of one step.
func seen(says, shows uint64) uint64 {
	return digestNumber(digestNumber(fnvBasis, int64(says)), int64(shows))
}

// doubt tells each node that counts as like another all that the other was told, and
// learns where it then comes to something else.
func (k *likeness) doubt(l *lives) {
	for _, j := range k.joints {
		for _, s := range j.step.to.steps {
			if k.fresh[j.node.shows] {
				break
			}
			sure := digestNumber(digestNumber(digestNumber(j.node.told, int64(s.news)), int64(s.to.id)), int64(s.says))
			if k.sure[sure] {
				continue
			}
			p := l.another(j.node)
			n := p.goOn(j.node, s.heard)
			p.end()
			way := trial{{j.node.shows, s.heard}}
			switch {
			case n.says != s.says || n.shows != s.to.shows:
				k.learn(way)
			case n.pending != nil && !k.fresh[n.shows] && k.kind(l, n) != s.to.id:
				k.learn(append(way, k.difference(l, n, s.to)...))
			default:
				k.sure[sure] = true
			}
		}
	}
}

// difference is a trial in which two nodes differ that show the same.
func (k *likeness) difference(l *lives, a, b *node) trial {
	for _, t := range k.trials[a.shows] {
		x, _ := l.try(a, t)
		y, _ := l.try(b, t)
		if x != y {
			return t
		}
	}
	return nil
}

// learn adds a trial.
func (k *likeness) learn(t trial) {
	shows := t[0].shows
	if k.fresh[shows] {
		return // what it tells may be told by the other one
	}
	k.fresh[shows] = true
	k.trials[shows] = append(k.trials[shows], t)
}

// hold compares a life that was lived in full with what it comes to where nodes count
// as alike, and learns from the first difference.
func (k *likeness) hold(l *lives, n *node) {
	at := l.root(n.actor).to
	var way trial
	var nodes []*node
	for _, lived := range n.path() {
		s := l.follow(at, lived.heard)
		way, nodes = append(way, ask{at.shows, lived.heard}), append(nodes, at)
		if s.to.shows != lived.shows || s.says != lived.says {
			k.learn(way[l.wrongAt(nodes, way, seen(s.says, s.to.shows)):])
			return
		}
		at = s.to
	}
}

// wrongAt is the first of the nodes from which the rest of the way ends as it is said.
// The one before led to it, and to something else.
func (l *lives) wrongAt(nodes []*node, way trial, end uint64) int {
	for i := range len(way) - 1 {
		if _, last := l.try(nodes[i], way[i:]); last == end {
			return i
		}
	}
	return len(way) - 1
}
