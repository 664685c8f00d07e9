package payments

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// Sort keys and prefixes of the table.
const (
	skState  = "STATE"
	skRecord = "RECORD"
	skLive   = "LIVE"
	skInbox  = "INBOX"

	pkPayment     = "PAYMENT#"
	pkCheckout    = "CHECKOUT#"
	pkWebhook     = "WEBHOOK#"
	pkIdempotency = "IDEMPOTENCY#"
	pkReference   = "REFERENCE#"
	skEvent       = "EVENT#"
)

func paymentKey(id payment.ID) store.Key { return store.Key{PK: pkPayment + string(id), SK: skState} }

func checkoutKey(id string) store.Key { return store.Key{PK: pkCheckout + id, SK: skState} }

// eventKey is the place of a journal row: ten digits keep the order of versions.
func eventKey(pk string, version int64) store.Key {
	return store.Key{PK: pk, SK: fmt.Sprintf("%s%010d", skEvent, version)}
}

func recordKey(merchantID, hash string) store.Key {
	return store.Key{PK: pkIdempotency + merchantID + "#" + hash, SK: skRecord}
}

// referencePK is safe to join: a merchant's id has no "#".
func referencePK(merchantID, reference string) string {
	return pkReference + merchantID + "#" + reference
}

func liveKey(merchantID, reference string) store.Key {
	return store.Key{PK: referencePK(merchantID, reference), SK: skLive}
}

func referenceKey(merchantID, reference string, id payment.ID) store.Key {
	return store.Key{PK: referencePK(merchantID, reference), SK: pkPayment + string(id)}
}

func inboxKey(psp, eventID string) store.Key {
	return store.Key{PK: pkWebhook + psp + "#" + eventID, SK: skInbox}
}

// Places of the outbox. Each heartbeat is in a partition of its own, so that they are
// spread over the parts of the table's stream, whose filter knows their sort key.
const (
	pkHeartbeat = "HEARTBEAT#"
	skBeat      = "BEAT"
	pkRecovery  = "OUTBOX#"
)

func heartbeatKey(n int) store.Key { return store.Key{PK: pkHeartbeat + strconv.Itoa(n), SK: skBeat} }

// recoveryKey is the place of the recovery; there is one.
var recoveryKey = store.Key{PK: pkRecovery + "recovery", SK: "GAP"}

// Shards of each queue of IndexDue. Eight keep each below a partition's 1,000
// write units a second at 8,000 changes of due dates a second in all.
const Shards = 8

// Queues of IndexDue: what is due, what waits for a person, and one for each status
// of inbox items, which is the operator's list of them. The queue of received items is
// swept as well.
const (
	queueDue     = "due"
	queueReview  = "review"
	queueWebhook = "webhook-"
)

func queueOf(status webhook.Status) string { return queueWebhook + string(status) }

// sweptQueues are the queues that a sweep reads.
var sweptQueues = []string{queueDue, queueOf(webhook.StatusReceived)}

func shardOf(queue string, key store.Key) string {
	h := fnv.New32a()
	h.Write([]byte(key.PK))
	return shard(queue, int(h.Sum32()%Shards))
}

func shard(queue string, n int) string { return fmt.Sprintf("%s#%d", queue, n) }

func idOf(key store.Key, prefix string) (string, bool) { return strings.CutPrefix(key.PK, prefix) }
