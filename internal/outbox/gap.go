package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Gap is a time whose events may not have got out, both ends included.
type Gap struct{ From, To time.Time }

// margin widens a gap that was found: a row's time is taken before it is committed,
// on another clock, and parts of the stream may be read at different speeds. An hour
// is far more than a relay that works is ever late.
const margin = time.Hour

func (g Gap) widened() Gap { return Gap{g.From.Add(-margin), g.To.Add(margin)} }

// settle is how long a gap rests after it was last opened: longer than Interval, so
// that every heartbeat has found its part, and the trouble is over.
const settle = Interval + 5*time.Minute

// Recovery is the work on a gap. There is one, and it stays when it is done.
type Recovery struct {
	Gap
	Cursor string // of the table's pages, "" for the first
	Pages  int64  // done since the gap was last widened
	Sent   int64  // events sent again since it was opened
	// DueAt is when the work may go on; zero means that it is done.
	DueAt     time.Time
	OpenedAt  time.Time
	UpdatedAt time.Time
	Version   int64 // counts commits; a write needs the version it has seen
}

// Done reports whether nothing is left to do.
func (r Recovery) Done() bool { return r.DueAt.IsZero() }

// with is the recovery with another gap. It begins anew if that makes it wider, and
// is not due before both were.
func (r Recovery) with(g Gap, due, now time.Time) Recovery {
	if r.Done() {
		return Recovery{Gap: g, DueAt: due, OpenedAt: now, UpdatedAt: now, Version: r.Version}
	}
	if g.From.Before(r.From) {
		r.From, r.Cursor, r.Pages = g.From, "", 0
	}
	if g.To.After(r.To) {
		r.To, r.Cursor, r.Pages = g.To, "", 0
	}
	if due.After(r.DueAt) {
		r.DueAt = due
	}
	r.UpdatedAt = now
	return r
}

// ErrMoved says that another worker changed the recovery meanwhile.
var ErrMoved = errors.New("outbox: recovery has moved on")

// Gaps keeps the recovery.
type Gaps interface {
	// Recovery reads consistently; Version is 0 when there was never one.
	Recovery(ctx context.Context) (Recovery, error)
	// SaveRecovery writes one that is still at Version-1, or returns ErrMoved.
	SaveRecovery(ctx context.Context, r Recovery) error
}

// Metrics of what was lost.
const (
	MetricGap    = "OutboxGap"    // a gap was opened
	MetricResent = "EventsResent" // events brought into the stream again
	MetricBehind = "OutboxBehind" // a heartbeat whose beats have not been seen for an hour
)

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// maxRaces bounds how often a gap is merged anew because another was faster: every
// batch of a stream in trouble opens it.
const maxRaces = 16

// open opens a gap, or merges it into the one that is open.
func open(ctx context.Context, gaps Gaps, meter Meter, g Gap, due, now time.Time) (Recovery, error) {
	for range maxRaces {
		known, err := gaps.Recovery(ctx)
		if err != nil {
			return Recovery{}, fmt.Errorf("read recovery: %w", err)
		}
		next := known.with(g, due, now)
		next.Version++
		err = gaps.SaveRecovery(ctx, next)
		if errors.Is(err, ErrMoved) {
			continue
		}
		if err != nil {
			return Recovery{}, fmt.Errorf("open gap: %w", err)
		}
		if known.Done() {
			meter.Count(MetricGap, 1)
		}
		return next, nil
	}
	return Recovery{}, fmt.Errorf("open gap: %w", ErrMoved)
}
