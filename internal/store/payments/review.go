package payments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
)

// Review is something that waits for a person: a checkout that needs review, or a dead
// payment whose money could not be given back.
type Review struct {
	Kind  reconcile.Kind // KindCheckout or KindPayment
	ID    string
	Since time.Time
	// Reason is what the checkout's journal says, in our words; "" for a payment.
	Reason string
}

// nextLook is the due date of a state. What waits for a person has a place in the index
// too, which is a list and no due date.
func (r reader) nextLook() time.Time {
	if strings.HasPrefix(r.str(store.AttrDueShard), queueReview+"#") {
		return time.Time{}
	}
	return r.time(store.AttrDueAt)
}

// dueCheckout puts a checkout where the sweep or an operator finds it. Status and place
// are written together, so that the list needs no write of its own.
func (f fields) dueCheckout(c checkout.Checkout) {
	if c.Status == checkout.StatusNeedsReview && c.DueAt.IsZero() {
		f.due(queueReview, checkoutKey(c.ID), c.UpdatedAt)
		return
	}
	f.due(queueDue, checkoutKey(c.ID), c.DueAt)
}

// duePayment is dueCheckout for a payment.
func (f fields) duePayment(p payment.Payment) {
	if p.Stranded() && p.DueAt.IsZero() {
		f.due(queueReview, paymentKey(p.ID), p.UpdatedAt)
		return
	}
	f.due(queueDue, paymentKey(p.ID), p.DueAt)
}

// InReview lists what waits for a person, longest first, at most limit, and whether
// there is more. The index is a hint: each is read again, and one that waits no more is
// passed over.
func (t *Table) InReview(ctx context.Context, limit int) (waiting []Review, more bool, err error) {
	var all []store.Entry
	for n := range Shards {
		page, err := t.table.Query(ctx, store.Query{PK: shard(queueReview, n), Index: store.IndexDue, Limit: limit})
		if err != nil {
			return nil, false, fmt.Errorf("list what needs review: %w", err)
		}
		all, more = append(all, page.Entries...), more || page.Cursor != ""
	}
	slices.SortFunc(all, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(positionOf(a).at, positionOf(b).at), strings.Compare(a.Key.PK, b.Key.PK))
	})
	if len(all) > limit {
		all, more = all[:limit], true
	}
	for _, e := range all {
		r, still, err := t.review(ctx, e.Key)
		if err != nil {
			return nil, false, fmt.Errorf("list what needs review: %w", err)
		}
		if still {
			waiting = append(waiting, r)
		}
	}
	return waiting, more, nil
}

// review reads what has a place in the list; still is false if it waits no more.
func (t *Table) review(ctx context.Context, key store.Key) (r Review, still bool, err error) {
	if id, ok := idOf(key, pkPayment); ok {
		p, err := t.Payment(ctx, payment.ID(id))
		if errors.Is(err, journal.ErrNotFound) {
			return Review{}, false, nil
		}
		return Review{Kind: reconcile.KindPayment, ID: id, Since: p.UpdatedAt}, err == nil && p.Stranded(), err
	}
	id, ok := idOf(key, pkCheckout)
	if !ok {
		return Review{}, false, nil // of newer code
	}
	c, err := t.Checkout(ctx, id)
	if errors.Is(err, checkout.ErrNotFound) || err == nil && c.Status != checkout.StatusNeedsReview {
		return Review{}, false, nil
	}
	if err != nil {
		return Review{}, false, err
	}
	// Nothing changes it while it waits, so its last row is the one that says why.
	row, err := t.table.Get(ctx, eventKey(key.PK, c.Version))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Review{}, false, err
	}
	reason := reader(decodeRow(row).Data).str("reason")
	return Review{Kind: reconcile.KindCheckout, ID: id, Since: c.UpdatedAt, Reason: reason}, true, nil
}
