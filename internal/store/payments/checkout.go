package payments

import (
	"context"
	"errors"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

const attrExecutions = "executions"

// encodeCheckout is c as attributes of its STATE item, without the counter of
// its executions, which has a condition of its own.
func encodeCheckout(c checkout.Checkout) store.Item {
	f := fields{}
	f.str("id", c.ID)
	f.str("merchant_id", c.MerchantID)
	f.num(attrVersion, c.Version)
	f.str(attrStatus, string(c.Status))
	f.str(attrDirection, string(c.Direction))
	items := make([]any, 0, len(c.Items))
	for _, item := range c.Items {
		items = append(items, map[string]any{"sku": item.SKU, "quantity": item.Quantity, "unit_amount": item.UnitAmount})
	}
	f["items"] = items
	f.num("amount", c.Amount.Minor)
	f.str("currency", string(c.Amount.Currency))
	f.str("reference", c.Reference)
	f.str("email", c.Email.Reveal())
	f.str(attrPaymentID, string(c.PaymentID))
	f.flag("reserved", c.Reserved)
	f.flag("charged", c.Charged)
	f.flag("undone", c.Undone)
	f.num("resumes", int64(c.Resumes))
	f.str("order_id", c.OrderID)
	if c.Failure != nil {
		f["failure"] = encodeFailure(*c.Failure)
	}
	f.time("created_at", c.CreatedAt)
	f.time("updated_at", c.UpdatedAt)
	f.num(attrTries, int64(c.Tries))
	f.dueCheckout(c)
	return store.Item(f)
}

func decodeCheckout(item store.Item) checkout.Checkout {
	r := reader(item)
	c := checkout.Checkout{
		ID: r.str("id"), MerchantID: r.str("merchant_id"), Version: r.num(attrVersion),
		Status: checkout.Status(r.str(attrStatus)), Direction: checkout.Direction(r.str(attrDirection)),
		Amount:    money.Amount{Minor: r.num("amount"), Currency: money.Currency(r.str("currency"))},
		Reference: r.str("reference"), Email: customer.Email(r.str("email")), PaymentID: payment.ID(r.str(attrPaymentID)),
		Reserved: r.flag("reserved"), Charged: r.flag("charged"), Undone: r.flag("undone"), Resumes: int(r.num("resumes")),
		OrderID: r.str("order_id"), Failure: decodeFailure(r.sub("failure")), Executions: r.num(attrExecutions),
		CreatedAt: r.time("created_at"), UpdatedAt: r.time("updated_at"), DueAt: r.nextLook(), Tries: int(r.num(attrTries)),
	}
	items, _ := r["items"].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		sub := reader(m)
		c.Items = append(c.Items, checkout.Item{SKU: sub.str("sku"), Quantity: sub.num("quantity"), UnitAmount: sub.num("unit_amount")})
	}
	return c
}

func encodeFailure(f payment.Failure) map[string]any {
	sub := fields{}
	sub.str("code", f.Code)
	sub.str("decline_code", f.DeclineCode)
	sub.flag("retryable", f.Retryable)
	return sub
}

func decodeFailure(r reader) *payment.Failure {
	if r == nil {
		return nil
	}
	return &payment.Failure{Code: r.str("code"), DeclineCode: r.str("decline_code"), Retryable: r.flag("retryable")}
}

// Checkout reads a checkout consistently, or returns checkout.ErrNotFound.
func (t *Table) Checkout(ctx context.Context, id string) (checkout.Checkout, error) {
	item, err := t.table.Get(ctx, checkoutKey(id))
	if errors.Is(err, store.ErrNotFound) {
		return checkout.Checkout{}, checkout.ErrNotFound
	}
	if err != nil {
		return checkout.Checkout{}, err
	}
	return decodeCheckout(item), nil
}

// CreateCheckout writes a checkout, its payment, their first rows, the record of
// the request and the reference guard in one transaction.
func (t *Table) CreateCheckout(ctx context.Context, c checkout.Creation) error {
	parts, err := commitParts(journal.Change{After: c.Payment, Row: c.PaymentRow, Source: journal.SourceAPI, Claim: &c.Claim})
	if err != nil {
		return err
	}
	row, err := checkoutRow(c.Checkout, journal.SourceAPI, c.Row)
	if err != nil {
		return err
	}
	item := encodeCheckout(c.Checkout)
	item[attrExecutions] = c.Checkout.Executions
	state := store.Write{Kind: store.Put, Key: checkoutKey(c.Checkout.ID), Item: item, If: store.Absent()}
	return t.commit(ctx, append(parts, part{state, movedOn}, row))
}

func checkoutRow(c checkout.Checkout, source journal.Source, r checkout.Row) (part, error) {
	return rowPart(stored{
		pk: pkCheckout + c.ID, merchantID: c.MerchantID, checkoutID: c.ID,
		version: r.Version, kind: string(r.Type), at: r.At, source: source, data: r.Data,
	})
}

// CommitCheckout writes a change of a checkout on the version that was seen.
func (t *Table) CommitCheckout(ctx context.Context, c checkout.Change) error {
	row, err := checkoutRow(c.After, c.Source, c.Row)
	if err != nil {
		return err
	}
	set, remove := changes(encodeCheckout(c.Before), encodeCheckout(c.After))
	state := store.Write{
		Kind: store.Update, Key: checkoutKey(c.After.ID), Set: set, Remove: remove, If: store.Equal(attrVersion, c.Before.Version),
	}
	parts := []part{{state, movedOn}, row}
	if c.Claim != nil {
		parts = append(parts, claimPart(*c.Claim))
	}
	return t.commit(ctx, parts)
}

// RaiseExecutions adds one to a checkout's counter of executions. It is no new
// version: starting an execution is no news.
func (t *Table) RaiseExecutions(ctx context.Context, id string, seen int64, claim *idempotency.Claim) error {
	raise := store.Write{
		Kind: store.Update, Key: checkoutKey(id), Set: store.Item{attrExecutions: seen + 1},
		// Whoever raised it since starts an execution that sees all that we know.
		If: store.Equal(attrExecutions, seen),
	}
	parts := []part{{raise, movedOn}}
	if claim != nil {
		parts = append(parts, claimPart(*claim))
	}
	return t.commit(ctx, parts)
}

// PostponeCheckout moves the due date of a checkout that is still at that
// version; a zero time takes it out of the index.
func (t *Table) PostponeCheckout(ctx context.Context, id string, version int64, at time.Time, tries int) error {
	key := checkoutKey(id)
	w := store.Write{Kind: store.Update, Key: key, Set: store.Item{attrTries: int64(tries)}, If: store.Equal(attrVersion, version)}
	if at.IsZero() {
		w.Remove = []string{store.AttrDueShard, store.AttrDueAt}
	} else {
		fields(w.Set).due(queueDue, key, at)
	}
	return ignoreCondition(t.table.Write(ctx, w))
}

// CheckoutRows reads the journal of a checkout, oldest first, a page at a time.
func (t *Table) CheckoutRows(ctx context.Context, id, cursor string, limit int) ([]Row, string, error) {
	return t.rows(ctx, pkCheckout+id, cursor, limit)
}

var _ checkout.Store = (*Table)(nil)
