package api

import (
	"context"
	"time"
)

const (
	// maxWaitSeconds is the longest an answer is held: well below the 30 seconds
	// that API Gateway gives an integration.
	maxWaitSeconds = 20
	// firstPause and maxPause are the times between two looks: quick at first, when
	// most outcomes come, and a quarter of a second later on.
	firstPause = 50 * time.Millisecond
	maxPause   = 250 * time.Millisecond
	// waitMargin is kept of the function's time to answer in.
	waitMargin = time.Second
)

// await looks until look says that there is something to tell, or an error, or
// the time is up: limit, or the context's deadline less a margin. It looks at
// least once, and once more at the end of the time.
func await(ctx context.Context, limit time.Duration, look func() (done bool, err error)) error {
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline)-waitMargin)
	}
	end := time.NewTimer(max(0, limit))
	defer end.Stop()
	for pause := firstPause; ; pause = min(pause*5/4, maxPause) {
		if done, err := look(); done || err != nil || limit <= 0 {
			return err
		}
		next := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			next.Stop()
			return ctx.Err()
		case <-end.C:
			next.Stop()
			limit = 0 // one last look
		case <-next.C:
		}
	}
}
