package payments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store"
)

// subjectPK is the partition of a journal: of a checkout, or of a payment.
func subjectPK(subject string) string {
	if strings.HasPrefix(subject, "chk_") {
		return pkCheckout + subject
	}
	return pkPayment + subject
}

// Resend sends the events of a payment or checkout out again whose rows were
// committed in a period and never got out. Whether one got out is read off the
// feed of its merchant, where the relay puts each: no row is marked for this while
// all is well. It returns how many were sent. Safe to repeat: an event keeps its id.
func (t *Table) Resend(ctx context.Context, subject string, from, to time.Time) (sent int64, err error) {
	q := store.Query{PK: subjectPK(subject), SKPrefix: skEvent, Limit: maxPage}
	for {
		page, err := t.table.Query(ctx, q)
		if err != nil {
			return sent, fmt.Errorf("read journal of %s: %w", subject, err)
		}
		for _, row := range page.Entries {
			e, ok := RowChange(store.Change{Key: row.Key, New: row.Item})
			if !ok || e.At.Before(from) || e.At.After(to) {
				continue
			}
			out, err := t.announced(ctx, e)
			if err == nil && !out {
				sent++
				err = t.wakeRow(ctx, row.Key)
			}
			if err != nil {
				return sent, err
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return sent, nil
		}
	}
}

// announced reports, read consistently, whether an event is in its merchant's feed.
func (t *Table) announced(ctx context.Context, e outbox.Event) (bool, error) {
	_, err := t.table.Get(ctx, feedKey(e.MerchantID, e.At, e.ID))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s in the feed: %w", e.ID, err)
	}
	return true, nil
}

// wakeRow brings a journal row into the table's stream again, by a counter that
// means nothing else: whoever carries rows out does so once more.
func (t *Table) wakeRow(ctx context.Context, key store.Key) error {
	err := t.table.Write(ctx, store.Write{Kind: store.Update, Key: key, Add: map[string]int64{attrWake: 1}, If: store.Exists()})
	if err != nil {
		return fmt.Errorf("send %s again: %w", key, err)
	}
	return nil
}
