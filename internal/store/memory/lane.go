package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kessai/kessai/internal/store"
)

// subscription is one handler with the changes that wait for it. Its lock is
// taken inside the table's, never the other way round.
type subscription struct {
	name    string
	handler Handler
	table   *Table

	mu      sync.Mutex
	closed  bool
	lanes   map[string]*lane // by partition, only those with something in them
	ready   []*lane          // lanes that may have a change to deliver, first come first served
	running int              // workers
	workers sync.WaitGroup
}

// lane is the changes of one partition in the order of their commits.
type lane struct {
	partition string
	waiting   []store.Change
	taken     []store.Change           // in the batch that runs now
	failing   map[store.Key]*suspicion // keys whose first change failed before
	queued    bool                     // is in subscription.ready
}

// suspicion is what is known of a key whose first change has failed, or was in a
// batch that did.
type suspicion struct {
	attempts int         // that were its own fault
	resting  *time.Timer // nil once the pause is over
}

// add appends one change. The table's lock makes that the order of commits.
func (s *subscription) add(c store.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	l := s.lanes[c.Key.PK]
	if l == nil {
		l = &lane{partition: c.Key.PK, failing: make(map[store.Key]*suspicion)}
		s.lanes[c.Key.PK] = l
	}
	l.waiting = append(l.waiting, c)
	s.table.drain.add(1)
	s.wake(l)
}

// wake queues a lane and starts a worker for it if one is free to start.
func (s *subscription) wake(l *lane) {
	if s.closed || l.queued || len(l.taken) > 0 {
		return // the batch that runs wakes it when it is done
	}
	l.queued = true
	s.ready = append(s.ready, l)
	if s.running < s.table.options.Workers {
		s.running++
		s.workers.Go(s.work)
	}
}

// work delivers batches until no lane is ready.
func (s *subscription) work() {
	for {
		s.mu.Lock()
		batch, lanes := s.take()
		if len(batch) == 0 {
			s.running--
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		err := s.call(batch)
		s.settle(batch, lanes, err)
	}
}

// take forms a batch from the ready lanes.
func (s *subscription) take() (batch []store.Change, lanes []*lane) {
	room := s.table.options.BatchSize
	for room > 0 && len(s.ready) > 0 && !s.closed {
		l := s.ready[0]
		taken, alone := l.take(room, len(batch) == 0)
		if len(taken) == 0 && alone {
			return batch, lanes // it needs a batch of its own: it stays first
		}
		s.ready[0] = nil
		s.ready = s.ready[1:]
		l.queued = false
		if len(taken) == 0 {
			continue
		}
		batch = append(batch, taken...)
		lanes = append(lanes, l)
		room -= len(taken)
		if alone {
			return batch, lanes
		}
	}
	return batch, lanes
}

// take moves up to room changes into the batch that runs, in order, leaving out
// keys that rest. A change that failed before travels alone: a batch that fails
// as a whole must not drag others into its attempts.
func (l *lane) take(room int, batchEmpty bool) (taken []store.Change, alone bool) {
	var rest []store.Change // stays, before what the loop has not seen
	seen := 0
	for _, c := range l.waiting {
		if len(taken) == room || alone {
			break
		}
		f := l.failing[c.Key]
		switch {
		case f == nil:
			taken = append(taken, c)
		case f.resting != nil || len(taken) > 0:
			rest = append(rest, c)
		case !batchEmpty:
			return nil, true
		default:
			taken, alone = append(taken, c), true
		}
		seen++
	}
	l.taken = taken
	l.waiting = prepend(rest, l.waiting[seen:])
	return taken, alone
}

func prepend(first, then []store.Change) []store.Change {
	if len(first) == 0 {
		return then
	}
	return slices.Concat(first, then)
}

// settle files what became of a batch: what is done, what is given up, and what
// waits to be delivered again before anything newer of its key.
func (s *subscription) settle(batch []store.Change, lanes []*lane, err error) {
	var v verdict
	if err != nil {
		v = failed(batch, err)
	}
	var givenUp []store.Change
	again := 0
	s.mu.Lock()
	for _, l := range lanes {
		kept, lost := s.sift(l, v)
		if s.closed {
			kept = nil
		}
		again += len(kept)
		givenUp = append(givenUp, lost...)
		l.taken, l.waiting = nil, prepend(kept, l.waiting)
		if len(l.waiting) == 0 {
			delete(s.lanes, l.partition)
			continue
		}
		s.wake(l)
	}
	s.mu.Unlock()
	for _, c := range givenUp {
		s.table.options.OnFailure(s.name, c, err)
	}
	s.table.drain.add(again - len(batch))
}

// sift goes through the changes of a lane that a batch has delivered. From the
// first failed one of a key on, all of that key stay.
func (s *subscription) sift(l *lane, v verdict) (kept, lost []store.Change) {
	held := make(map[store.Key]bool)
	for _, c := range l.taken {
		switch {
		case held[c.Key]:
			kept = append(kept, c)
		case !v.changes[c.Sequence]:
			delete(l.failing, c.Key)
		case v.suspects:
			held[c.Key] = true
			l.failing[c.Key] = &suspicion{}
			kept = append(kept, c)
		case s.rest(l, c.Key):
			held[c.Key] = true
			kept = append(kept, c)
		default:
			held[c.Key] = true
			delete(l.failing, c.Key)
			lost = append(lost, c)
		}
	}
	return kept, lost
}

// rest counts a failure of a key's first change and lets the key rest; false says
// that it has had its last attempt.
func (s *subscription) rest(l *lane, key store.Key) bool {
	f := l.failing[key]
	if f == nil {
		f = &suspicion{}
		l.failing[key] = f
	}
	f.attempts++
	if f.attempts >= s.table.options.Attempts {
		return false
	}
	if s.closed {
		return true
	}
	f.resting = time.AfterFunc(s.table.options.Pause(f.attempts), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.resting = nil
		s.wake(l)
	})
	return true
}

// close drops what waits and waits for what runs.
func (s *subscription) close() {
	s.mu.Lock()
	dropped := 0
	s.closed = true
	for _, l := range s.lanes {
		dropped += len(l.waiting)
		l.waiting = nil
		for _, f := range l.failing {
			if f.resting != nil {
				f.resting.Stop()
			}
		}
	}
	s.ready = nil
	s.mu.Unlock()
	s.table.drain.add(-dropped)
	s.workers.Wait()
}

// drain counts changes that are not carried out yet, over all subscriptions.
type drain struct {
	mu    sync.Mutex
	open  int
	empty chan struct{} // closed when open falls to 0; nil when nobody waits
}

func (d *drain) add(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open += n
	if d.open == 0 && d.empty != nil {
		close(d.empty)
		d.empty = nil
	}
}

func (d *drain) wait(ctx context.Context) error {
	d.mu.Lock()
	if d.open == 0 {
		d.mu.Unlock()
		return nil
	}
	if d.empty == nil {
		d.empty = make(chan struct{})
	}
	empty := d.empty
	d.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
