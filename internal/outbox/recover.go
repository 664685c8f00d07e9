package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
)

// Rows brings journal rows back into the stream.
type Rows interface {
	// ResendPage brings the rows of one page of the table that were made within the gap
	// back into the stream. It returns how many, also with an error, and the cursor of
	// the next page, "" after the last.
	ResendPage(ctx context.Context, g Gap, cursor string) (sent int64, next string, err error)
}

// Records remembers requests.
type Records interface {
	idempotency.Records
	// Remember writes the claim of a request whose work is done, or returns a
	// *journal.Conflict.
	Remember(ctx context.Context, claim idempotency.Claim) error
}

// lastPage is how long before its time is over a worker begins no page any more: a
// page and its note take a second or two.
const lastPage = 5 * time.Second

// Recoverer sends the events of a gap again. Safe for concurrent use; every call is
// safe to repeat.
type Recoverer struct {
	Gaps           Gaps
	Rows           Rows
	Records        Records
	IdempotencyTTL time.Duration
	Now            func() time.Time
	Meter          Meter
	Log            *slog.Logger
}

// Recover works on the recovery if it is due, page by page, until it is done or the
// context's end is near; another call goes on. It stays due meanwhile, also after an
// error: there is one of it, and nothing waits behind it.
func (r *Recoverer) Recover(ctx context.Context) error {
	work, err := r.Gaps.Recovery(ctx)
	if err != nil {
		return fmt.Errorf("read recovery: %w", err)
	}
	for !work.Done() && !work.DueAt.After(r.Now()) && !late(ctx) {
		sent, next, err := r.Rows.ResendPage(ctx, work.Gap, work.Cursor)
		if sent > 0 {
			r.Meter.Count(MetricResent, sent)
		}
		if err != nil {
			return fmt.Errorf("send events again: %w", err)
		}
		work.Cursor, work.Pages, work.Sent = next, work.Pages+1, work.Sent+sent
		work.UpdatedAt = r.Now()
		if next == "" {
			work.DueAt = time.Time{}
		}
		work.Version++
		err = r.Gaps.SaveRecovery(ctx, work)
		if errors.Is(err, ErrMoved) {
			return nil // wider by now, or in the hands of another
		}
		if err != nil {
			return fmt.Errorf("note recovery: %w", err)
		}
		if work.Done() {
			r.Log.InfoContext(ctx, "events sent again", "from", work.From, "to", work.To, "events", work.Sent)
		}
	}
	return nil
}

func late(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && time.Until(end) < lastPage
}

// ErrNoRecovery says that nothing was ever to be sent again.
var ErrNoRecovery = errors.New("outbox: no recovery")

// Last is the recovery that was opened last, done or not, or ErrNoRecovery.
func (r *Recoverer) Last(ctx context.Context) (Recovery, error) {
	work, err := r.Gaps.Recovery(ctx)
	if err == nil && work.Version == 0 {
		err = ErrNoRecovery
	}
	return work, err
}

// Request is what every changing call carries.
type Request struct {
	Scope       idempotency.Scope
	Fingerprint string
}

// Resend opens a gap for an operator, due at once unless another is open already: then
// they become one. Errors: idempotency.ErrKeyReused, or the store's.
func (r *Recoverer) Resend(ctx context.Context, q Request, g Gap) (work Recovery, replayed bool, err error) {
	for range maxRaces {
		now := r.Now()
		claim, done, err := idempotency.Begin(ctx, r.Records, idempotency.Fresh(q.Scope, q.Fingerprint, q.Scope.Route, now), r.IdempotencyTTL)
		if err != nil {
			return Recovery{}, false, err
		}
		if done != nil {
			work, err = r.Gaps.Recovery(ctx)
			return work, true, err
		}
		if work, err = open(ctx, r.Gaps, r.Meter, g, now, now); err != nil {
			return Recovery{}, false, err
		}
		// Should the note fail, the repeat opens the same gap: no harm.
		err = r.Records.Remember(ctx, *claim)
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			return work, false, err
		}
	}
	return Recovery{}, false, journal.ErrBusy
}
