package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Marks is where the relay notes how far it has got.
type Marks interface {
	// SaveSeen notes the beat of h as seen while the last one seen is before. If it is
	// not, it returns the heartbeat as it is, zero when there is none.
	SaveSeen(ctx context.Context, h Heartbeat, before int64) (known Heartbeat, ok bool, err error)
}

// Failure is an event that could not be carried out.
type Failure struct {
	Event Event
	Since time.Time // when the stream got it; zero when that is not known
}

const (
	// stuckAfter is how long a batch fails before it opens a gap: longer than a bus
	// that throttles, shorter than the attempts that the stream makes.
	stuckAfter = time.Minute
	// maxAgain is how often an event that fails is brought back into the stream.
	maxAgain = 3
)

// Watch notes what the stream brought and what it did not. Safe for concurrent use;
// every call is safe to repeat.
type Watch struct {
	Marks Marks
	Gaps  Gaps
	Now   func() time.Time
	Meter Meter
	Log   *slog.Logger
}

// Arrived notes a beat after everything in its batch was carried out, and opens a gap
// if beats before it never came. In the usual case it is one write. An error says
// that the beat must come again.
func (w *Watch) Arrived(ctx context.Context, h Heartbeat) error {
	for before := h.Beat - 1; ; {
		known, ok, err := w.Marks.SaveSeen(ctx, h, before)
		if err != nil {
			return fmt.Errorf("note beat %d of heartbeat %d: %w", h.Beat, h.N, err)
		}
		if ok || known.Beat == 0 || known.Seen >= h.Beat {
			return nil
		}
		// The gap comes first: if the note is lost then, the beat comes again.
		if known.Seen < h.Beat-1 {
			gap := Gap{known.SeenAt, h.BeatAt}.widened()
			w.Log.ErrorContext(ctx, "the stream has a gap", "heartbeat", h.N, "beat", h.Beat, "seen", known.Seen, "from", gap.From, "to", gap.To)
			if err := w.open(ctx, gap); err != nil {
				return err
			}
		}
		before = known.Seen // rises, and not beyond the beat: the loop ends
	}
}

// Failed notes what could not be carried out. It opens a gap when that has gone on
// for a while: the stream may give the batch up.
func (w *Watch) Failed(ctx context.Context, failures []Failure) error {
	now := w.Now()
	var gap Gap
	for _, f := range failures {
		if now.Sub(f.Since) < stuckAfter || f.Event.Again >= maxAgain {
			continue
		}
		if gap.To.IsZero() || f.Event.At.Before(gap.From) {
			gap = Gap{f.Event.At, now}
		}
	}
	if gap.To.IsZero() {
		return nil
	}
	return w.open(ctx, gap.widened())
}

func (w *Watch) open(ctx context.Context, g Gap) error {
	now := w.Now()
	_, err := open(ctx, w.Gaps, w.Meter, g, now.Add(settle), now)
	return err
}
