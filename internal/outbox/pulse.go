package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// Heartbeats is how many there are: enough to be spread over the parts of a stream,
	// few enough to cost nothing.
	Heartbeats = 8
	// Interval is between two beats: far shorter than the 24 hours that the stream
	// remembers, so that a gap is known to ten minutes and never escapes between two.
	Interval = 10 * time.Minute
	// lateBeats is how many beats in a row are not seen before the relay is behind: an
	// hour of them.
	lateBeats = int64(time.Hour / Interval)
)

// Heartbeat is an item of the table that changes at intervals, so that the stream
// has something in it by whose number a reader knows whether anything is missing.
type Heartbeat struct {
	N      int   // which, from 0
	Beat   int64 // counts its beats, from 1
	BeatAt time.Time
	Seen   int64     // the last beat that was seen, 0 for none
	SeenAt time.Time // when that beat was made; before any, when the heartbeat was
	DueAt  time.Time // of the next beat
}

// ErrNoHeartbeat says that a heartbeat was not made yet.
var ErrNoHeartbeat = errors.New("outbox: no such heartbeat")

// Hearts keeps the heartbeats.
type Hearts interface {
	// Heartbeat reads consistently, or returns ErrNoHeartbeat.
	Heartbeat(ctx context.Context, n int) (Heartbeat, error)
	// AddHeartbeat writes one that is not there yet.
	AddHeartbeat(ctx context.Context, h Heartbeat) error
	// SaveBeat writes the beat of h if the one before it is still the last.
	SaveBeat(ctx context.Context, h Heartbeat) error
}

// Pulse makes the beats. Safe for concurrent use; every call is safe to repeat.
type Pulse struct {
	Hearts Hearts
	Now    func() time.Time
	Meter  Meter
	Log    *slog.Logger

	started atomic.Bool
}

// Start makes the heartbeats that are not there. Once it has seen that they are, a
// call costs nothing.
func (p *Pulse) Start(ctx context.Context) error {
	if p.started.Load() {
		return nil
	}
	_, err := p.Hearts.Heartbeat(ctx, 0)
	if err != nil && !errors.Is(err, ErrNoHeartbeat) {
		return fmt.Errorf("read heartbeat: %w", err)
	}
	// The first is made last: where it is, all are.
	for n := Heartbeats - 1; err != nil && n >= 0; n-- {
		now := p.Now()
		h := Heartbeat{N: n, Beat: 1, BeatAt: now, SeenAt: now, DueAt: now.Add(Interval)}
		if err := p.Hearts.AddHeartbeat(ctx, h); err != nil {
			return fmt.Errorf("make heartbeat %d: %w", n, err)
		}
	}
	p.started.Store(true)
	return nil
}

// Beat makes the next beat of a heartbeat that is due. It tells when the relay has
// seen none of its last beats.
func (p *Pulse) Beat(ctx context.Context, id string) error {
	n, err := strconv.Atoi(id)
	if err != nil {
		return fmt.Errorf("heartbeat %q: %w", id, err)
	}
	h, err := p.Hearts.Heartbeat(ctx, n)
	if errors.Is(err, ErrNoHeartbeat) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read heartbeat %d: %w", n, err)
	}
	now := p.Now()
	if h.DueAt.After(now) {
		return nil
	}
	if h.Beat-h.Seen >= lateBeats {
		p.Meter.Count(MetricBehind, 1)
		p.Log.ErrorContext(ctx, "the relay is behind", "heartbeat", n, "beat", h.Beat, "seen", h.Seen, "since", h.SeenAt)
	}
	h.Beat, h.BeatAt, h.DueAt = h.Beat+1, now, now.Add(Interval)
	if err := p.Hearts.SaveBeat(ctx, h); err != nil {
		return fmt.Errorf("beat %d of heartbeat %d: %w", h.Beat, n, err)
	}
	return nil
}
