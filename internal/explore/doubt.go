package explore

// What counts as alike is doubted after each search: some of its runs, and others that
// are drawn, are lived in full, where no two points count as alike; and each point that
// counts as like another is told all that the other was told. Whatever then goes another
// way is learnt, and the search begins anew. So a violation is one of a run that was
// lived in full, and a search has ended when nothing is left that went another way.

const (
	everySample = 50   // of the runs that end where the search was before
	maxSample   = 2000 // of those runs; each different end and each violation comes to it
	drawnLives  = 300
)

// doubt reports whether there was anything to learn.
func (x *explorer) doubt() bool {
	full := x.full()
	defer full.end()
	for _, path := range x.sample {
		x.compare(full.walk(full.origin.clone(), &choices{path: path}))
	}
	for i := range drawnLives {
		x.compare(full.walk(full.origin.clone(), draw(i, x.options.Faults)))
	}
	x.likeness.doubt(x.lives)
	return len(x.likeness.fresh) > 0
}

// compare holds every life of a run that was lived in full to what it comes to where
// points count as alike.
func (x *explorer) compare(w *world) {
	for _, s := range w.actors {
		x.likeness.hold(x.lives, s.at)
	}
}
