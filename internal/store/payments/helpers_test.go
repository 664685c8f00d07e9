package payments_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
)

var (
	start  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	yen    = money.Amount{Minor: 5000, Currency: "JPY"}
	policy = payment.Policy{PSPTimeout: 10 * time.Second, ReconcileAfter: time.Minute, KeyLifetime: 24 * time.Hour, AuthoritativeLookup: true}
)

const (
	merchant  = "m_alpha"
	reference = "order-42"
	firstID   = payment.ID("pay_01KDYAK348M9S346Q3D2000001")
	secondID  = payment.ID("pay_01KDYAK348M9S346Q3D2000002")
)

// bench is a table in memory and its meaning.
type bench struct {
	*testing.T
	raw   store.Table
	table *payments.Table
}

func newBench(t *testing.T) *bench {
	raw := memory.New(memory.Options{Now: func() time.Time { return start }})
	return &bench{T: t, raw: raw, table: payments.New(raw)}
}

// change is version 1 of a payment with a reference.
func change(id payment.ID) journal.Change {
	p, row := payment.NewSent(payment.Terms{
		ID: id, MerchantID: merchant, Amount: yen, CaptureMethod: payment.CaptureAutomatic, PaymentMethod: "tok_canary",
		Reference: reference, ReturnURL: "https://shop.example/return", PSP: "simulator",
		Metadata: map[string]string{"k": "v"}, ExpiresAt: start.Add(30 * time.Minute),
	}, start)
	p.DueAt = p.Look(policy)
	return journal.Change{After: p, Row: row, Source: journal.SourceAPI}
}

// next is the change that an event makes of p.
func (b *bench) next(p payment.Payment, e payment.Event) journal.Change {
	b.Helper()
	if e.At.IsZero() {
		e.At = start.Add(time.Second)
	}
	after, row, changed, err := p.Apply(e)
	if err != nil || !changed {
		b.Fatalf("apply %s: got changed %t, %v", e.Type, changed, err)
	}
	after.DueAt = after.Look(policy)
	return journal.Change{Before: p, After: after, Row: row, Source: journal.SourceWebhook}
}

func (b *bench) commit(c journal.Change) payment.Payment {
	b.Helper()
	if err := b.table.Commit(b.Context(), c); err != nil {
		b.Fatalf("commit: %v", err)
	}
	return c.After
}

// conflict ends the test unless the change lost a race, and returns why.
func (b *bench) conflict(c journal.Change) journal.Conflict {
	b.Helper()
	err := b.table.Commit(b.Context(), c)
	conflict, ok := errors.AsType[*journal.Conflict](err)
	if !ok {
		b.Fatalf("commit: got %v, want a conflict", err)
	}
	return *conflict
}

func (b *bench) read(id payment.ID) payment.Payment {
	b.Helper()
	p, err := b.table.Payment(b.Context(), id)
	if err != nil {
		b.Fatalf("read %s: %v", id, err)
	}
	return p
}

// item is the item with that key as it is stored, nil when there is none.
func (b *bench) item(pk, sk string) store.Item {
	b.Helper()
	item, err := b.raw.Get(b.Context(), store.Key{PK: pk, SK: sk})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		b.Fatalf("read %s/%s: %v", pk, sk, err)
	}
	return item
}

// put changes a stored item behind the table's back.
func (b *bench) set(pk, sk string, item store.Item) {
	b.Helper()
	w := store.Write{Kind: store.Update, Key: store.Key{PK: pk, SK: sk}, Set: item}
	if err := b.raw.Write(b.Context(), w); err != nil {
		b.Fatal(err)
	}
}

func captured() payment.Event {
	return payment.Event{Type: payment.EventCaptured, PSPReference: "ch_1", Amount: yen, Captured: yen.Minor}
}

func claim(key, resource string) *idempotency.Claim {
	scope := idempotency.Scope{MerchantID: merchant, Method: "POST", Route: "/v1/payments", Key: key}
	return &idempotency.Claim{Record: idempotency.Record{
		MerchantID: merchant, Hash: scope.Hash(), Fingerprint: "print", ResourceID: resource,
		CreatedAt: start, InProgressUntil: start.Add(30 * time.Second),
	}}
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// disordered is a table whose index gives entries of the same time in another
// order each page's worth of shards: no order is promised there.
type disordered struct{ store.Table }

func (d disordered) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Index != store.IndexDue || !q.Descending {
		return d.Table.Query(ctx, q)
	}
	// Upwards, then turned around by time only: equal times keep the upward order.
	up := q
	up.Descending, up.Cursor, up.Limit = false, "", 1000
	all, err := d.Table.Query(ctx, up)
	if err != nil {
		return store.Page{}, err
	}
	var turned []store.Entry
	for _, e := range all.Entries {
		at := 0
		for at < len(turned) && turned[at].Item[store.AttrDueAt].(int64) >= e.Item[store.AttrDueAt].(int64) {
			at++
		}
		turned = append(turned[:at], append([]store.Entry{e}, turned[at:]...)...)
	}
	page := store.Page{}
	from, resumed, err := q.Position()
	if err != nil {
		return page, err
	}
	for _, e := range turned {
		if resumed {
			resumed = e.Key != from.Key
			continue
		}
		if len(page.Entries) == q.Limit {
			last := page.Entries[q.Limit-1]
			page.Cursor = q.CursorAfter(store.Position{Key: last.Key, DueAt: last.Item[store.AttrDueAt].(int64)})
			break
		}
		page.Entries = append(page.Entries, e)
	}
	return page, nil
}

// late is the table for a caller who is overtaken between his reading and his
// next write.
func (b *bench) late(between func()) *payments.Table {
	return payments.New(&interrupted{Table: b.raw, between: between})
}

// interrupted is a table on which something happens before the first write.
type interrupted struct {
	store.Table
	between func()
}

func (i *interrupted) Write(ctx context.Context, writes ...store.Write) error {
	if do := i.between; do != nil {
		i.between = nil
		do()
	}
	return i.Table.Write(ctx, writes...)
}

// staleIndex is a table whose index still has an item that is gone.
type staleIndex struct {
	store.Table
	gone store.Key
}

func (s staleIndex) Get(ctx context.Context, key store.Key) (store.Item, error) {
	if key == s.gone {
		return nil, store.ErrNotFound
	}
	return s.Table.Get(ctx, key)
}
