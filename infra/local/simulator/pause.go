package simulator

import "context"

// pause is whether webhooks are kept back. The world's lock guards it; its
// channels are waited for without.
type pause struct {
	off chan struct{} // closed while webhooks flow
	on  chan struct{} // closed while they are kept
}

func newPause() pause {
	off := make(chan struct{})
	close(off)
	return pause{off: off, on: make(chan struct{})}
}

func (p *pause) active() bool {
	select {
	case <-p.on:
		return true
	default:
		return false
	}
}

func (p *pause) set(on bool) {
	if on == p.active() {
		return
	}
	if on {
		p.off = make(chan struct{})
		close(p.on)
		return
	}
	p.on = make(chan struct{})
	close(p.off)
}

// awaitFlow waits until webhooks are not paused, and says false when ctx ended first.
func (w *world) awaitFlow(ctx context.Context) bool {
	for {
		w.mu.Lock()
		paused, off := w.pause.active(), w.pause.off
		w.mu.Unlock()
		if !paused {
			return ctx.Err() == nil
		}
		select {
		case <-off:
		case <-ctx.Done():
			return false
		}
	}
}
