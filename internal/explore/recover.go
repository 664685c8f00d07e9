package explore

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
)

// maxSweeps bounds a recovery. A payment that was declared dead is looked up about
// a dozen times before its key's window is over.
const maxSweeps = 60

// recover does what the platform does in the end, free of faults.
func (w *world) recover(r recovery) {
	w.current = nil
	w.mover = ""
	w.spawned = nil // an execution that never came to run: the sweep starts another
	w.land()
	w.advance(durations.LeaseTTL + time.Second)
	switch r {
	case byAll:
		for range 2 {
			w.redeliver(true)
			w.sweepUntilRest()
			w.carry()
		}
		w.converge()
	case byWebhooks:
		for range 2 {
			w.redeliver(false)
		}
	case byReconciler:
		w.sweepUntilRest()
		w.converge()
	}
}

// land lets everything arrive that is still in the air.
func (w *world) land() {
	for len(w.air) > 0 {
		f := w.air[0]
		w.air = w.air[1:]
		w.note("network", f.name+" arrives", none)
		f.land(w)
	}
}

// redeliver sends events again, the newest first: all, or those that were never
// acknowledged. What was stored and not applied comes again out of the stream.
func (w *world) redeliver(all bool) {
	for _, e := range slices.Backward(w.told) {
		if all || !w.acked[e.ID] {
			w.note("recovery", "deliver "+e.ID+" "+e.Type, none)
			if _, err := w.ingest.Receive(background(), provider, w.delivery(e, w.now)); err != nil {
				w.violate("L-WEBHOOK-DRAINED", "%s was refused: %v", e.ID, err)
			}
			w.acked = with(w.acked, e.ID, true)
		}
		_ = w.applier.Apply(background(), provider, e.ID) // the sweep comes to what fails
		w.happened()
	}
}

// nextDue is when something is due next, ok false when nothing is.
func (w *world) nextDue() (at time.Time, ok bool) {
	least := int64(math.MaxInt64)
	for _, item := range w.rows.rows {
		queue, _ := item[store.AttrDueShard].(string)
		due, has := item[store.AttrDueAt].(int64)
		swept := strings.HasPrefix(queue, "due#") || strings.HasPrefix(queue, "webhook-received#")
		// What only waits for its merchant is looked at once a day for ever.
		held := text(item, "status") == "authorized" && due-w.now.UnixMilli() > time.Hour.Milliseconds()
		if has && swept && !held {
			least = min(least, due)
		}
	}
	return time.UnixMilli(least).UTC(), least != math.MaxInt64
}

// maxRecovery bounds the time of a recovery: a key's life at the provider, in which
// a dead payment is watched, and the rest of a checkout's pauses.
const maxRecovery = 72 * time.Hour

func (w *world) sweepUntilRest() {
	began := w.now
	for range maxSweeps {
		at, ok := w.nextDue()
		if !ok || at.Sub(began) > maxRecovery {
			return
		}
		if at.After(w.now) {
			w.advance(at.Sub(w.now))
		}
		w.sweep(background())
		w.runExecutions()
	}
}

// sweep is one sweep as one worker makes it, one thing after the other.
func (w *world) sweep(ctx context.Context) {
	for shard := range w.table.Shards() {
		page, _, err := w.table.DuePage(ctx, shard, w.now, 50, "")
		if err != nil {
			continue
		}
		for _, due := range page {
			w.repair(ctx, due)
		}
	}
}

func (w *world) repair(ctx context.Context, due reconcile.Due) {
	if w.current == nil {
		w.note("sweep", string(due.Kind)+" "+due.ID, none)
	}
	_ = w.sweeper.Repairs[due.Kind](ctx, due.ID) // it has put itself off
}

// converge is L-RECON-CONVERGES: another sweep finds nothing to do.
func (w *world) converge() {
	before := w.rows.digest
	w.advance(time.Second)
	w.sweep(background())
	if w.rows.digest != before {
		w.violate("L-RECON-CONVERGES", "a second sweep changed something")
	}
}
