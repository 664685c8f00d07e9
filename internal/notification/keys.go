package notification

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/kessai/kessai/internal/store"
)

// The merchant is part of every key, so another merchant's row is not even
// looked at. Identifiers hold no "#" (command.ValidID).

func checkoutPartition(merchant, checkout string) string {
	return "CHECKOUT#" + merchant + "#" + checkout
}

func key(merchant, checkout string, kind Kind) store.Key {
	return store.Key{PK: checkoutPartition(merchant, checkout), SK: keyPrefix + string(kind)}
}

const keyPrefix = "NOTIFICATION#"

const idPrefix = "ntf_"

// id is derived, so that whoever sends a checkout's notification sends the same:
// the first 16 bytes of a hash, written like a ULID.
func id(merchant, checkout string, kind Kind) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{merchant, checkout, string(kind)}, "\x00")))
	return idPrefix + ulid.ULID(sum[:16]).String()
}

// dueShards spreads the index of what is not delivered: every row passes through
// it, and one partition of an index takes about a thousand writes a second.
const dueShards = 8

func dueShard(n int) string { return fmt.Sprintf("NOTIFICATION#%d", n) }

func dueShardOf(id string) string {
	h := fnv.New32a()
	h.Write([]byte(id))
	return dueShard(int(h.Sum32() % dueShards))
}

// Attributes of a row.
const (
	attrID          = "notification_id"
	attrMerchantID  = "merchant_id"
	attrCheckoutID  = "checkout_id"
	attrKind        = "kind"
	attrTo          = "to"
	attrOrderID     = "order_id"
	attrReference   = "reference"
	attrAmount      = "amount"
	attrCurrency    = "currency"
	attrStatus      = "status"
	attrAttempts    = "attempts"     // begun so far
	attrCreatedAt   = "created_at"   // Unix milliseconds
	attrDeliveredAt = "delivered_at" // Unix milliseconds
)

// ifUntouched: a checkout is told a thing once.
func ifUntouched() store.Condition { return store.Absent() }

// ifAttempt: an attempt belongs to who counted it, and none is made of a row that
// somebody delivered.
func ifAttempt(seen int64) store.Condition {
	return store.All(store.Equal(attrAttempts, seen), ifUndelivered())
}

// ifUndelivered: delivered_at is the first delivery's. It does not hold for a row
// that is gone, which an update would bring back empty.
func ifUndelivered() store.Condition {
	return store.Any(store.Equal(attrStatus, string(Pending)), store.Equal(attrStatus, string(Failed)))
}
