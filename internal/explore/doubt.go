package explore

// What counts as alike is doubted after each search. How many runs are lived in full
// for that, where no two points count as alike:
const (
	everySample = 50   // of the runs that end where the search was before
	maxSample   = 2000 // of those runs; each different end and each violation comes to it
	drawnLives  = 300
)

// doubt reports whether anything that counts as alike went another way. What is learnt
// then is for the next search.
func (x *explorer) doubt() bool {
	if x.full == nil {
		x.full = x.withoutLikeness()
	}
	for _, path := range x.sample {
		x.compare(x.full.walk(x.full.origin.clone(), &choices{path: path}))
	}
	for i := range drawnLives {
		x.compare(x.full.walk(x.full.origin.clone(), draw(i, x.options.Faults)))
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
