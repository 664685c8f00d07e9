package notification

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/store"
)

const (
	// minPause between two attempts is longer than one takes, so a sweep never
	// begins an attempt while another may still be on its way.
	minPause = 30 * time.Second

	// basePause doubles with every attempt up to maxPause; a random part of it is
	// added to minPause, so that what failed together is not tried again together.
	basePause = time.Minute
	maxPause  = 6 * time.Hour

	// maxAttempts before the sweep gives up: about two days on average.
	maxAttempts = 24

	// sweepLimit of one shard in one sweep keeps it within the function's time.
	sweepLimit = 25
)

// Swept is what a Sweep did.
type Swept struct {
	Delivered int `json:"delivered"`
	Postponed int `json:"postponed"` // failed, to be tried again
	GivenUp   int `json:"given_up"`  // failed too often: a person has to look
}

// Sweep makes one attempt for each notification that is due, a bounded number of
// them; the rest is the next sweep's. Its error is of the table alone, and what
// Swept counts happened all the same. Safe to repeat and to run twice at once.
func (p *Participant) Sweep(ctx context.Context) (Swept, error) {
	var swept Swept
	var failures []error
	for n := range dueShards {
		page, err := p.o.Table.Query(ctx, store.Query{
			PK: dueShard(n), Index: store.IndexDue, AtMost: p.o.Now().UnixMilli(), Limit: sweepLimit,
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("notification: sweep: %w", err))
			continue
		}
		for _, e := range page.Entries {
			if ctx.Err() != nil {
				return swept, errors.Join(failures...) // out of time: what is left is the next sweep's
			}
			if err := p.sweepOne(ctx, e.Key, &swept); err != nil {
				failures = append(failures, fmt.Errorf("notification: sweep: %w", err))
			}
		}
	}
	return swept, errors.Join(failures...)
}

// sweepOne reads the row again, for the index is only a hint.
func (p *Participant) sweepOne(ctx context.Context, key store.Key, swept *Swept) error {
	item, err := p.o.Table.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r := decode(item)
	if r.Status != Pending || r.dueAt > p.o.Now().UnixMilli() {
		return nil
	}
	if r.attempts >= maxAttempts {
		return p.giveUp(ctx, r, swept)
	}
	err = p.begin(ctx, r)
	if errors.Is(err, errOvertaken) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.deliver(ctx, r); err != nil {
		p.o.Log.WarnContext(ctx, "notification postponed", "notification_id", r.ID,
			"checkout_id", r.CheckoutID, "attempts", r.attempts+1, "error", err.Error())
		swept.Postponed++
		return nil
	}
	swept.Delivered++
	return nil
}

func (p *Participant) giveUp(ctx context.Context, r row, swept *Swept) error {
	err := p.change(ctx, store.Write{
		Kind: store.Update, Key: r.key(), If: ifAttempt(r.attempts),
		Set:    store.Item{attrStatus: string(Failed)},
		Remove: []string{store.AttrDueShard, store.AttrDueAt},
	})
	if errors.Is(err, errOvertaken) {
		return nil
	}
	if err != nil {
		return err
	}
	p.o.Log.ErrorContext(ctx, "notification given up", "notification_id", r.ID,
		"checkout_id", r.CheckoutID, "attempts", r.attempts)
	swept.GivenUp++
	return nil
}

// nextAttempt returns when to look again if the attempt-th attempt, from 1, comes
// to nothing, in Unix milliseconds.
func (p *Participant) nextAttempt(attempt int64) int64 {
	pause := basePause
	for range attempt - 1 {
		pause = min(2*pause, maxPause)
	}
	return p.o.Now().Add(minPause).UnixMilli() + p.o.Jitter(pause.Milliseconds())
}
