package simulator

import (
	"context"
	"sync"
	"time"
)

// world is all the PSP knows, from one reset to the next. mu guards every field
// below it and everything reached through them.
type world struct {
	config Config
	sender *sender
	ctx    context.Context // ends with the world: the lifetime of its timers and deliveries
	stop   context.CancelFunc
	tasks  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	charges []*charge // oldest first
	byID    map[string]*charge
	calls   []*callRow // oldest first
	keys    map[string]*keyRecord
	refused map[refusedOnce]bool
	faults  map[operation]fault
	pause   pause
}

// refusedOnce is a first answer already given: by key, and by reference.
type refusedOnce struct{ token, key, reference string }

func newWorld(config Config, sender *sender) *world {
	ctx, stop := context.WithCancel(context.Background())
	return &world{
		config: config, sender: sender, ctx: ctx, stop: stop,
		byID: map[string]*charge{}, keys: map[string]*keyRecord{},
		refused: map[refusedOnce]bool{}, faults: map[operation]fault{}, pause: newPause(),
	}
}

// close ends the world and waits until nothing of it moves.
func (w *world) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.stop()
	w.tasks.Wait()
}

// spawn runs a task of the world's lifetime. mu is held.
func (w *world) spawn(task func()) {
	if w.closed {
		return
	}
	w.tasks.Go(task)
}

// later runs an action under mu after a delay, unless the world has ended. mu is held.
func (w *world) later(delay time.Duration, action func()) {
	w.spawn(func() {
		if !rest(w.ctx, delay) {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.closed {
			action()
		}
	})
}

// rest waits, and says whether the wait ran its course.
func rest(ctx context.Context, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
