package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

// Table is the table "payments" with its meaning. Safe for concurrent use.
type Table struct {
	table store.Table
}

// New gives t its meaning.
func New(t store.Table) *Table { return &Table{table: t} }

// Payment reads a payment consistently, or returns journal.ErrNotFound.
func (t *Table) Payment(ctx context.Context, id payment.ID) (payment.Payment, error) {
	item, err := t.table.Get(ctx, paymentKey(id))
	if err != nil {
		return payment.Payment{}, notFound(err)
	}
	return decodePayment(item), nil
}

func notFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return journal.ErrNotFound
	}
	return err
}

// part is one write of a commit and what its refusal means.
type part struct {
	write   store.Write
	refused func(c *journal.Conflict, old store.Item)
}

// Commit writes a change in one transaction: state, journal row, and with them
// the idempotency record, the reference guard, the checkout's condition.
func (t *Table) Commit(ctx context.Context, c journal.Change) error {
	parts, err := commitParts(c)
	if err != nil {
		return err
	}
	return t.commit(ctx, parts)
}

func (t *Table) commit(ctx context.Context, parts []part) error {
	writes := make([]store.Write, len(parts))
	for i, p := range parts {
		writes[i] = p.write
	}
	err := t.table.Write(ctx, writes...)
	refused, ok := errors.AsType[*store.ConditionError](err)
	if !ok {
		return err
	}
	conflict := &journal.Conflict{}
	for _, f := range refused.Failed {
		parts[f.Index].refused(conflict, f.Old)
	}
	return conflict
}

func commitParts(c journal.Change) ([]part, error) {
	row, err := paymentRow(c.After, c.Source, c.Row)
	if err != nil {
		return nil, err
	}
	parts := []part{statePart(c), row}
	if c.Claim != nil {
		parts = append(parts, claimPart(*c.Claim))
	}
	parts = append(parts, referenceParts(c)...)
	if c.Gate != nil {
		parts = append(parts, gatePart(*c.Gate))
	}
	return parts, nil
}

func movedOn(c *journal.Conflict, _ store.Item) { c.Version = true }

// statePart writes the state on condition of the version that was seen, and of
// the fence for an intent under a lease.
func statePart(c journal.Change) part {
	key := paymentKey(c.After.ID)
	after := encodePayment(c.After)
	if c.Before.Version == 0 {
		return part{store.Write{Kind: store.Put, Key: key, Item: after, If: store.Absent()}, movedOn}
	}
	set, remove := changes(encodePayment(c.Before), after)
	seen := store.Equal(attrVersion, c.Before.Version)
	if c.Fence > 0 {
		seen = store.All(seen, store.Equal(attrLeaseFence, c.Fence))
	}
	return part{store.Write{Kind: store.Update, Key: key, Set: set, Remove: remove, If: seen}, movedOn}
}

func paymentRow(p payment.Payment, source journal.Source, r payment.Row) (part, error) {
	return rowPart(stored{
		pk: pkPayment + string(p.ID), merchantID: p.MerchantID, checkoutID: p.CheckoutID,
		version: r.Version, kind: string(r.Type), at: r.At, source: source, data: r.Data,
	})
}

// stored is a journal row of whatever it is about.
type stored struct {
	pk, merchantID, checkoutID string
	version                    int64
	kind                       string
	at                         time.Time
	source                     journal.Source
	data                       any
}

// rowPart writes a journal row, which is the outbox row too.
func rowPart(r stored) (part, error) {
	data, err := document(r.data)
	if err != nil {
		return part{}, err
	}
	item := fields{"data": data}
	item.str("type", r.kind)
	item.num(attrVersion, r.version)
	item.time("at", r.at)
	item.str("source", string(r.source))
	item.str("merchant_id", r.merchantID)
	item.str("checkout_id", r.checkoutID)
	// Absent: a version is written once, whoever writes it.
	return part{store.Write{Kind: store.Put, Key: eventKey(r.pk, r.version), Item: store.Item(item), If: store.Absent()}, movedOn}, nil
}

// recordForget is how much longer than the configured time a record stays before
// the table may delete it: its resource may come to rest late.
const recordForget = 90 * 24 * time.Hour

// claimPart writes an idempotency record where there is none, or in place of the
// very one that was seen.
func claimPart(c idempotency.Claim) part {
	r := c.Record
	f := fields{}
	f.str("fingerprint", r.Fingerprint)
	f.str("resource_id", r.ResourceID)
	f.str("refund_id", r.RefundID)
	f.num("attempt", int64(r.Attempt))
	f.time("created_at", r.CreatedAt)
	f.time("in_progress_until", r.InProgressUntil)
	f[store.AttrExpiresAt] = r.CreatedAt.Add(recordForget).Unix()
	w := store.Write{Kind: store.Update, Key: recordKey(r.MerchantID, r.Hash), Set: store.Item(f), If: store.Absent()}
	if c.Seen != nil {
		w.If = store.All(
			store.Equal("resource_id", c.Seen.ResourceID),
			store.Equal("created_at", c.Seen.CreatedAt.UnixMilli()),
			store.Equal("in_progress_until", c.Seen.InProgressUntil.UnixMilli()))
		if r.RefundID == "" && c.Seen.RefundID != "" {
			w.Remove = append(w.Remove, "refund_id")
		}
		if r.Attempt == 0 && c.Seen.Attempt != 0 {
			w.Remove = append(w.Remove, "attempt")
		}
	}
	return part{w, func(conflict *journal.Conflict, old store.Item) {
		if old == nil {
			conflict.Version = true // deleted meanwhile: decide anew
			return
		}
		rec := decodeRecord(r.MerchantID, r.Hash, old)
		conflict.Record = &rec
	}}
}

func decodeRecord(merchantID, hash string, item store.Item) idempotency.Record {
	r := reader(item)
	return idempotency.Record{
		MerchantID: merchantID, Hash: hash, Fingerprint: r.str("fingerprint"), ResourceID: r.str("resource_id"),
		RefundID: r.str("refund_id"), Attempt: int(r.num("attempt")), CreatedAt: r.time("created_at"), InProgressUntil: r.time("in_progress_until"),
	}
}

// Record reads an idempotency record consistently, or returns idempotency.ErrNoRecord.
func (t *Table) Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error) {
	item, err := t.table.Get(ctx, recordKey(merchantID, hash))
	if errors.Is(err, store.ErrNotFound) {
		return idempotency.Record{}, idempotency.ErrNoRecord
	}
	if err != nil {
		return idempotency.Record{}, err
	}
	return decodeRecord(merchantID, hash, item), nil
}

// referenceParts take the reference for a new payment, and let go of it with the
// change that ends the hold. Only the holder lets go: LIVE must be its own.
func referenceParts(c journal.Change) []part {
	p := c.After
	own := store.Item{attrPaymentID: string(p.ID)}
	switch {
	case c.Before.Version == 0 && p.Reference != "":
		taken := func(conflict *journal.Conflict, old store.Item) {
			conflict.Holder = payment.ID(reader(old).str(attrPaymentID))
		}
		return []part{
			{store.Write{Kind: store.Put, Key: liveKey(p.MerchantID, p.Reference), Item: own, If: store.Absent()}, taken},
			{store.Write{Kind: store.Put, Key: referenceKey(p.MerchantID, p.Reference, p.ID), Item: own}, movedOn},
		}
	case c.Before.HoldsReference && !p.HoldsReference:
		free := store.Write{Kind: store.Delete, Key: liveKey(p.MerchantID, p.Reference), If: store.Equal(attrPaymentID, string(p.ID))}
		return []part{{free, movedOn}}
	}
	return nil
}

// gatePart holds a checkout to a condition without changing it.
func gatePart(g journal.Gate) part {
	holds := store.Equal(attrDirection, "forward")
	if g.Kind == journal.GateClosed {
		holds = store.All(store.NotEqual(attrStatus, "pending"), store.NotEqual(attrStatus, "requires_action"))
	}
	return part{
		store.Write{Kind: store.Check, Key: checkoutKey(g.CheckoutID), If: holds},
		func(c *journal.Conflict, _ store.Item) { c.Gate = true },
	}
}

// maxPage bounds a list, so that its pages stay within one query.
const maxPage = 100

// rows reads the journal of a payment or checkout, oldest first.
func (t *Table) rows(ctx context.Context, pk, cursor string, limit int) ([]Row, string, error) {
	page, err := t.table.Query(ctx, store.Query{PK: pk, SKPrefix: skEvent, Limit: min(limit, maxPage), Cursor: cursor})
	if err != nil {
		return nil, "", fmt.Errorf("read journal: %w", err)
	}
	rows := make([]Row, 0, len(page.Entries))
	for _, e := range page.Entries {
		rows = append(rows, decodeRow(e.Item))
	}
	return rows, page.Cursor, nil
}

// Row is one journal row as it is stored.
type Row struct {
	Version int64
	Type    string
	At      time.Time
	Source  journal.Source
	Data    map[string]any
}

func decodeRow(item store.Item) Row {
	r := reader(item)
	return Row{
		Version: r.num(attrVersion), Type: r.str("type"), At: r.time("at"),
		Source: journal.Source(r.str("source")), Data: r.sub("data"),
	}
}

// PaymentRows reads the journal of a payment, oldest first, a page at a time.
func (t *Table) PaymentRows(ctx context.Context, id payment.ID, cursor string, limit int) ([]Row, string, error) {
	return t.rows(ctx, pkPayment+string(id), cursor, limit)
}

// PaymentsByReference lists a merchant's payments with that reference, newest first.
func (t *Table) PaymentsByReference(ctx context.Context, merchantID, reference, cursor string, limit int) ([]payment.Payment, string, error) {
	page, err := t.table.Query(ctx, store.Query{
		PK: referencePK(merchantID, reference), SKPrefix: pkPayment, Descending: true, Limit: min(limit, maxPage), Cursor: cursor,
	})
	if err != nil {
		return nil, "", fmt.Errorf("list by reference: %w", err)
	}
	list := make([]payment.Payment, 0, len(page.Entries))
	for _, e := range page.Entries {
		p, err := t.Payment(ctx, payment.ID(reader(e.Item).str(attrPaymentID)))
		if err != nil {
			return nil, "", fmt.Errorf("list by reference: %w", err)
		}
		list = append(list, p)
	}
	return list, page.Cursor, nil
}
