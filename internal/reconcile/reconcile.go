/*
Package reconcile finishes what nobody finished.

Whatever is not at rest has a due date in a sparse index. A sweep reads what is
due, reads each thing again, and hands it to the flow that owns it: a payment in
doubt or past its deadline, an inbox item that was not applied, a checkout that
stands still. Repairs go through the same doors as everything else. The outbox has
its part in it: its heartbeats are due every few minutes, and what the stream lost is
sent again by a recovery that stays due until it is done, a part of it each sweep.

The sweep decides nothing by itself, takes no action on an index entry alone, and
is safe to run twice at once. What fails is put off by the flow, with back-off, so
that it never starves the rest; what panics or hangs takes one worker for a while,
and the rest goes on. A sweep ends before its time does; the next one goes on.
*/
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what a due thing is.
type Kind string

// Kinds of due things.
const (
	KindPayment  Kind = "payment"
	KindWebhook  Kind = "webhook"
	KindCheckout Kind = "checkout"
	KindDelivery Kind = "delivery"
	// KindHeartbeat is of the outbox, and so is KindRecovery.
	KindHeartbeat Kind = "heartbeat"
	KindRecovery  Kind = "recovery"
)

// Due is one thing that is due.
type Due struct {
	Kind Kind
	ID   string // as the owning flow knows it
}

// Index finds what is due.
type Index interface {
	// DuePage reads one page of one shard, oldest first.
	DuePage(ctx context.Context, shard int, at time.Time, limit int, cursor string) ([]Due, string, error)
	Shards() int
}

// Repair brings one due thing on. It reads it again first, and it moves its due
// date, also when it fails.
type Repair func(ctx context.Context, id string) error

// Meter counts what an operator wants to see.
type Meter interface {
	Count(name string, n int64)
}

// Metrics of the sweep.
const (
	MetricSwept  = "Swept"       // due things looked at
	MetricFailed = "SweepFailed" // repairs that ended in an error; they are due again
)

const (
	// pageSize is what one query reads at a time: small, since the page ages
	// while it is worked on.
	pageSize = 50
	// workers is how many repairs of one shard run at once: a repair mostly waits for
	// a PSP.
	workers = 8
	// repairTimeout bounds one repair: longer than a look-up and what follows from
	// it, so that only what hangs is cut off.
	repairTimeout = 30 * time.Second
	// lastStart is how long before the sweep's end no repair begins any more: a call
	// to a PSP would be cut off in its middle, and leave a doubt that nobody needs.
	lastStart = 16 * time.Second
	// reserve is how long before the sweep's end what is still under way is cut off:
	// time to end in order.
	reserve = time.Second
)

// Sweeper runs sweeps.
type Sweeper struct {
	Index   Index
	Repairs map[Kind]Repair
	Now     func() time.Time
	Meter   Meter
	Log     *slog.Logger
}

// Report counts what one sweep did.
type Report struct {
	Swept  int64
	Failed int64
	// Unfinished says that time ran out; the next sweep goes on.
	Unfinished bool
}

// Sweep looks at everything that is due when it starts, all shards at once, until
// the context's deadline is near. Its error says which shards the index gave no
// answer for; the others were swept.
func (s *Sweeper) Sweep(ctx context.Context) (Report, error) {
	run := &run{s: s, at: s.Now()}
	if deadline, bounded := ctx.Deadline(); bounded {
		run.last = deadline.Add(-lastStart)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-reserve))
		defer cancel()
	}
	var shards sync.WaitGroup
	errs := make([]error, s.Index.Shards())
	for n := range errs {
		shards.Go(func() {
			if err := run.shard(ctx, n); err != nil {
				errs[n] = fmt.Errorf("sweep shard %d: %w", n, err)
			}
		})
	}
	shards.Wait()
	report := Report{Swept: run.swept.Load(), Failed: run.failed.Load(), Unfinished: run.unfinished.Load()}
	s.Meter.Count(MetricSwept, report.Swept)
	if report.Failed > 0 {
		s.Meter.Count(MetricFailed, report.Failed)
	}
	return report, errors.Join(errs...)
}

// run is one sweep.
type run struct {
	s             *Sweeper
	at            time.Time
	last          time.Time // when the last repair may begin, zero when there is no end
	swept, failed atomic.Int64
	unfinished    atomic.Bool
}

// shard sweeps one shard, page by page. A repair that takes long keeps its worker
// and nothing else.
func (r *run) shard(ctx context.Context, n int) error {
	var repairs sync.WaitGroup
	defer repairs.Wait()
	slots := make(chan struct{}, workers)
	cursor := ""
	for !r.late(ctx) {
		page, next, err := r.s.Index.DuePage(ctx, n, r.at, pageSize, cursor)
		if err != nil {
			return err
		}
		for _, due := range page {
			slots <- struct{}{}
			if r.late(ctx) {
				return nil
			}
			repairs.Go(func() {
				defer func() { <-slots }()
				r.repair(ctx, due)
			})
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
	return nil
}

func (r *run) repair(ctx context.Context, due Due) {
	repair, known := r.s.Repairs[due.Kind]
	if !known {
		return // newer code's kind: its own sweep comes to it
	}
	r.swept.Add(1)
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			r.failed.Add(1)
			r.s.Log.ErrorContext(ctx, "repair panicked", append(due.named(), "stack", string(debug.Stack()))...)
		}
	}()
	if err := repair(ctx, due.ID); err != nil {
		r.failed.Add(1)
		r.s.Log.WarnContext(ctx, "repair failed", append(due.named(), "reason", err.Error())...)
	}
}

// named is a due thing in a log line. A payment and a checkout have the names there
// that every line about them has.
func (d Due) named() []any {
	attrs := []any{"kind", string(d.Kind), "due_id", d.ID}
	switch d.Kind {
	case KindPayment:
		return append(attrs, "payment_id", d.ID)
	case KindCheckout:
		return append(attrs, "checkout_id", d.ID)
	case KindWebhook, KindDelivery, KindHeartbeat, KindRecovery:
	}
	return attrs
}

// late reports whether no repair may begin any more.
func (r *run) late(ctx context.Context) bool {
	now := time.Now() //nolint:forbidigo // compared with a deadline of the context, which is of this clock
	if ctx.Err() == nil && (r.last.IsZero() || now.Before(r.last)) {
		return false
	}
	r.unfinished.Store(true)
	return true
}
