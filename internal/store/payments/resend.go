package payments

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store"
)

func encodeRecovery(r outbox.Recovery) store.Item {
	f := fields{}
	f.num(attrVersion, r.Version)
	f.time("from", r.From)
	f.time("to", r.To)
	f.str("cursor", r.Cursor)
	f.num("pages", r.Pages)
	f.num("sent", r.Sent)
	f.time("opened_at", r.OpenedAt)
	f.time("updated_at", r.UpdatedAt)
	f.due(queueDue, recoveryKey, r.DueAt)
	return store.Item(f)
}

// Recovery reads consistently; Version is 0 when there was never one.
func (t *Table) Recovery(ctx context.Context) (outbox.Recovery, error) {
	item, err := t.table.Get(ctx, recoveryKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return outbox.Recovery{}, err
	}
	r := reader(item)
	return outbox.Recovery{
		Gap: outbox.Gap{From: r.time("from"), To: r.time("to")}, Cursor: r.str("cursor"), Pages: r.num("pages"), Sent: r.num("sent"),
		DueAt: r.time(store.AttrDueAt), OpenedAt: r.time("opened_at"), UpdatedAt: r.time("updated_at"), Version: r.num(attrVersion),
	}, nil
}

// SaveRecovery writes a recovery that is still at Version-1, or returns
// outbox.ErrMoved. Versions rise for ever: the item stays when the work is done.
func (t *Table) SaveRecovery(ctx context.Context, r outbox.Recovery) error {
	unmoved := store.Equal(attrVersion, r.Version-1)
	if r.Version == 1 {
		unmoved = store.Absent()
	}
	err := t.table.Write(ctx, store.Write{Kind: store.Put, Key: recoveryKey, Item: encodeRecovery(r), If: unmoved})
	if _, lost := errors.AsType[*store.ConditionError](err); lost {
		return outbox.ErrMoved
	}
	return err
}

const (
	// resendPage is how many items a page of the table is: DynamoDB ends one at a
	// megabyte, which is not many more.
	resendPage = 1000
	// resendWorkers is how many rows are written at once: each waits for one trip, and
	// the relay has to keep up with them.
	resendWorkers = 8
)

// ResendPage brings the journal rows of one page of the table that were made within
// the gap back into the stream. Rows are hours old when that happens, so that an
// eventually consistent page has them.
func (t *Table) ResendPage(ctx context.Context, g outbox.Gap, cursor string) (sent int64, next string, err error) {
	page, err := t.table.Scan(ctx, store.Scan{
		SKPrefix: skEvent, Limit: resendPage, Cursor: cursor,
		Where: store.All(store.AtLeast("at", g.From.UnixMilli()), store.Less("at", g.To.UnixMilli()+1)),
	})
	if err != nil {
		return 0, "", fmt.Errorf("scan journal rows: %w", err)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, resendWorkers)
	errs := make([]error, len(page.Entries))
	for i, row := range page.Entries {
		if _, ok := RowChange(store.Change{Key: row.Key, New: row.Item}); !ok {
			continue
		}
		sent++
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = t.wakeRow(ctx, row.Key)
		})
	}
	all.Wait()
	for _, failed := range errs {
		if failed != nil {
			sent--
		}
	}
	return sent, page.Cursor, errors.Join(errs...)
}

// wakeRow brings a journal row into the table's stream again, by a counter that
// means nothing else: whoever carries rows out does so once more. A row that is gone
// meanwhile stays gone.
func (t *Table) wakeRow(ctx context.Context, key store.Key) error {
	err := t.table.Write(ctx, store.Write{Kind: store.Update, Key: key, Add: map[string]int64{attrWake: 1}, If: store.Exists()})
	if err := ignoreCondition(err); err != nil {
		return fmt.Errorf("send %s again: %w", key, err)
	}
	return nil
}

var (
	_ outbox.Gaps    = (*Table)(nil)
	_ outbox.Rows    = (*Table)(nil)
	_ outbox.Records = (*Table)(nil)
)
