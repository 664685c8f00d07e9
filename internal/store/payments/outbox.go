package payments

import (
	"strings"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store"
)

// RowChange reads off a change of the table whether a journal row was written, or
// is to be carried out again, and the event that it is. What a row says is written
// once and never changed; its removal is no event.
func RowChange(c store.Change) (outbox.Event, bool) {
	again := c.Old != nil && reader(c.New).num(attrWake) > reader(c.Old).num(attrWake)
	if c.Old != nil && !again || c.New == nil || !strings.HasPrefix(c.Key.SK, skEvent) {
		return outbox.Event{}, false
	}
	subject, ok := subjectOf(c.Key)
	if !ok {
		return outbox.Event{}, false
	}
	r, row := reader(c.New), decodeRow(c.New)
	return outbox.Event{
		ID: outbox.EventID(subject, row.Version), Type: row.Type, Subject: subject, Version: row.Version, At: row.At,
		Source: string(row.Source), MerchantID: r.str("merchant_id"), CheckoutID: r.str("checkout_id"),
		Status: reader(row.Data).str("status"), Data: row.Data, Again: r.num(attrWake),
	}, true
}

// subjectOf is what a journal row is about.
func subjectOf(key store.Key) (string, bool) {
	for _, prefix := range []string{pkPayment, pkCheckout, pkAudit} {
		if subject, ok := idOf(key, prefix); ok {
			return subject, true
		}
	}
	return "", false
}
