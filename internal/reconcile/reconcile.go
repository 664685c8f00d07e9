/*
Package reconcile finishes what nobody finished.

Whatever is not at rest has a due date in a sparse index. A sweep reads what is
due, reads each thing again, and hands it to the flow that owns it: a payment in
doubt or past its deadline, an inbox item that was not applied, a checkout that
stands still. Repairs go through the same doors as everything else.

The sweep decides nothing by itself, takes no action on an index entry alone, and
is safe to run twice at once. What fails is put off by the flow, with back-off, so
that it never starves the rest. A sweep ends before its time does; the next one
goes on.
*/
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
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
	// workers is how many repairs of one shard run at once: a repair mostly waits
	// for a PSP.
	workers = 8
	// reserve is the time kept at the end of a sweep for what is under way.
	reserve = 5 * time.Second
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

// Sweep looks at everything that is due when it starts, shard by shard at once,
// until the context's deadline is near. Its error says that the index gave no
// answer for some shard; the others were swept.
func (s *Sweeper) Sweep(ctx context.Context) (Report, error) {
	started := s.Now()
	run := &run{s: s, at: started}
	var shards sync.WaitGroup
	errs := make([]error, s.Index.Shards())
	for n := range errs {
		shards.Go(func() { errs[n] = run.shard(ctx, n) })
	}
	shards.Wait()
	report := Report{Swept: run.swept.Load(), Failed: run.failed.Load(), Unfinished: run.unfinished.Load()}
	s.Meter.Count(MetricSwept, report.Swept)
	if report.Failed > 0 {
		s.Meter.Count(MetricFailed, report.Failed)
	}
	for n, err := range errs {
		if err != nil {
			return report, fmt.Errorf("sweep shard %d: %w", n, err)
		}
	}
	return report, nil
}

// run is one sweep.
type run struct {
	s             *Sweeper
	at            time.Time
	swept, failed atomic.Int64
	unfinished    atomic.Bool
}

func (r *run) shard(ctx context.Context, n int) error {
	cursor := ""
	for {
		if r.late(ctx) {
			return nil
		}
		page, next, err := r.s.Index.DuePage(ctx, n, r.at, pageSize, cursor)
		if err != nil {
			return err
		}
		r.page(ctx, page)
		if cursor = next; cursor == "" {
			return nil
		}
	}
}

func (r *run) page(ctx context.Context, page []Due) {
	slots := make(chan struct{}, workers)
	var repairs sync.WaitGroup
	for _, due := range page {
		if r.late(ctx) {
			break
		}
		slots <- struct{}{}
		repairs.Go(func() {
			defer func() { <-slots }()
			r.repair(ctx, due)
		})
	}
	repairs.Wait()
}

func (r *run) repair(ctx context.Context, due Due) {
	repair, known := r.s.Repairs[due.Kind]
	if !known {
		return // newer code's kind: its own sweep comes to it
	}
	r.swept.Add(1)
	if err := repair(ctx, due.ID); err != nil {
		r.failed.Add(1)
		r.s.Log.WarnContext(ctx, "repair failed", "kind", string(due.Kind), "due_id", due.ID, "reason", err.Error())
	}
}

// late reports whether the sweep must end.
func (r *run) late(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	if ctx.Err() == nil && (!bounded || time.Until(deadline) > reserve) {
		return false
	}
	r.unfinished.Store(true)
	return true
}
