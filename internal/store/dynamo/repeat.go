package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/store"
)

// Limits of repeats.
const (
	// maxAttempts is how often a call is sent at most: with the pauses below about
	// two seconds of conflicts or throttling, well within an API request.
	maxAttempts = 8
	// maxLost is after how many lost answers a call gives up: each may have taken a
	// whole time-out, and a table that is out is better told early.
	maxLost = 3

	pauseBase = 25 * time.Millisecond // a few times what a transaction takes
	pauseCap  = time.Second
)

// call is one request that may be sent several times.
type call struct {
	doing      string // for errors
	send       func(ctx context.Context) error
	judge      func(err error) verdict
	exact      bool // a repeat after a lost answer can't be mistaken: it has a token
	repeatable bool // may be sent again after a lost answer
}

// verdict is what one answer means.
type verdict struct {
	fate fate
	err  error // of answered: nil for success; else what went wrong, for the caller's error
}

type fate int

const (
	lost     fate = iota // no answer: it may have happened, and may yet; the zero value
	answered             // it is decided
	refused              // a condition did not hold
	unclear              // a condition did not hold beside a conflict: see doc.go
	again                // it changed nothing and may be sent again
)

// repeat sends a call until it is decided, or attempts or time have run out.
func (t *Table) repeat(ctx context.Context, c call) error {
	losses, lastLoss := 0, error(nil)
	for attempt := 1; ; attempt++ {
		v := c.judge(c.send(ctx))
		switch v.fate {
		case answered:
			if v.err != nil {
				return fmt.Errorf("dynamo: %s: %w", c.doing, v.err)
			}
			return nil
		case refused:
			if losses > 0 && !c.exact {
				return unavailable(c, fmt.Errorf("refused, perhaps by itself, after a lost answer: %w", lastLoss))
			}
			return v.err
		case lost:
			losses, lastLoss = losses+1, v.err
			if !c.repeatable || losses == maxLost {
				return unavailable(c, v.err)
			}
		case unclear, again:
		}
		if ctx.Err() != nil {
			return unavailable(c, fmt.Errorf("%w after: %w", ctx.Err(), v.err))
		}
		if attempt < maxAttempts && t.pause(ctx, attempt) {
			continue
		}
		if v.fate == unclear {
			return v.err
		}
		return unavailable(c, v.err)
	}
}

func unavailable(c call, err error) error {
	return fmt.Errorf("dynamo: %s: %w: %w", c.doing, store.ErrUnavailable, err)
}

// pause rests before the next attempt; false says that the context would end
// first.
func (t *Table) pause(ctx context.Context, attempt int) bool {
	rest := t.jitter(min(pauseBase<<(attempt-1), pauseCap))
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= rest {
		return false
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
