package order

import (
	"fmt"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/store"
)

// The merchant is part of every key, so another merchant's row is not even
// looked at. Identifiers hold no "#" (command.ValidID); a reference may, and
// comes last.

func orderKey(merchant, id string) store.Key {
	return store.Key{PK: "ORDER#" + merchant + "#" + id, SK: "STATE"}
}

func referencePartition(merchant, reference string) string {
	return "REFERENCE#" + merchant + "#" + reference
}

// listKey is an order's place in the list of its reference: by time, then id.
func listKey(o Order) store.Key {
	return store.Key{
		PK: referencePartition(o.MerchantID, o.Reference),
		SK: fmt.Sprintf("%s%013d#%s", listPrefix, o.CreatedAt.UnixMilli(), o.ID),
	}
}

const listPrefix = "ORDER#"

const (
	idPrefix       = "ord_"
	checkoutPrefix = "chk_"
)

// ID returns the id of the order of a checkout: "ord_" and what follows "chk_".
func ID(checkout string) string { return idPrefix + strings.TrimPrefix(checkout, checkoutPrefix) }

// Attributes of a record.
const (
	attrStatus     = "status"
	attrCode       = "code"
	attrID         = "order_id"
	attrMerchantID = "merchant_id"
	attrCheckoutID = "checkout_id"
	attrPaymentID  = "payment_id"
	attrReference  = "reference"
	attrLines      = "lines"
	attrSKU        = "sku"
	attrQuantity   = "quantity"
	attrUnitAmount = "unit_amount"
	attrAmount     = "amount"
	attrCurrency   = "currency"
	attrEmail      = "email"
	attrCreatedAt  = "created_at" // Unix milliseconds
	attrUpdatedAt  = "updated_at" // Unix milliseconds
)

// ifUntouched: the first to write a checkout's record decides, be it an order, a
// refusal or a tombstone.
func ifUntouched() store.Condition { return store.Absent() }

// ifConfirmed: only an order that stands is canceled, and only once.
func ifConfirmed() store.Condition { return store.Equal(attrStatus, string(Confirmed)) }

func millis(item store.Item, attr string) time.Time {
	ms, _ := item[attr].(int64)
	return time.UnixMilli(ms).UTC()
}
