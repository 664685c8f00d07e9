package inventory

import "github.com/kessai/kessai/internal/store"

// The merchant is part of every key, so another merchant's row is not even
// looked at. Identifiers hold no "#" (command.ValidID); a SKU may, and comes last.

func stockKey(merchant, sku string) store.Key {
	return store.Key{PK: "STOCK#" + merchant + "#" + sku, SK: "STATE"}
}

func reservationKey(merchant, checkout string) store.Key {
	return store.Key{PK: "RESERVATION#" + merchant + "#" + checkout, SK: "STATE"}
}

// Attributes of a stock row.
const (
	attrAvailable = "available"
	attrReserved  = "reserved"
	attrSold      = "sold"
)

// Attributes of a reservation's record.
const (
	attrStatus    = "status"
	attrLines     = "lines"
	attrLacking   = "lacking"
	attrSKU       = "sku"
	attrQuantity  = "quantity"
	attrCreatedAt = "created_at" // Unix milliseconds
	attrUpdatedAt = "updated_at" // Unix milliseconds
)

// ifUntouched: the first to write a checkout's record decides, be it a
// reservation, a refusal or a tombstone.
func ifUntouched() store.Condition { return store.Absent() }

// ifStill: a record leaves a status once, so its stock moves once.
func ifStill(s Status) store.Condition { return store.Equal(attrStatus, string(s)) }

// ifAvailable: no more is taken than is there. It does not hold for an unknown SKU.
func ifAvailable(quantity int64) store.Condition { return store.AtLeast(attrAvailable, quantity) }

// ifReserved: no more is moved on than is held. It holds while every reserved
// record has its pieces on the row, so its failure is news of damage.
func ifReserved(quantity int64) store.Condition { return store.AtLeast(attrReserved, quantity) }
