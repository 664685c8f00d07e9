package dynamo_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kessai/kessai/internal/store"
)

// killed is a process that ends where it stands: out of memory, or out of time.
type killed struct{}

// A process that is killed within a transaction has sent all of it or nothing:
// there is one request, and before it none.
func TestF16_AProcessKilledWithinATransactionHasSentAllOfItOrNothing(t *testing.T) {
	table, f := newTable(t, func(string) error { panic(killed{}) })
	key := func(sk string) store.Key { return store.Key{PK: "PAYMENT#1", SK: sk} }
	writes := []store.Write{
		{Kind: store.Update, Key: key("STATE"), Set: store.Item{"version": int64(2)}, If: store.Equal("version", int64(1))},
		{Kind: store.Put, Key: key("EVENT#0000000002"), If: store.Absent()},
		{Kind: store.Delete, Key: key("LIVE"), If: store.Exists()},
		{Kind: store.Check, Key: key("CHECKOUT"), If: store.Exists()},
	}
	func() {
		defer func() {
			if cause := recover(); cause != (killed{}) {
				t.Errorf("got %v, want the process killed", cause)
			}
		}()
		_ = table.Write(t.Context(), writes...)
	}()
	if len(f.sent) != 1 {
		t.Fatalf("got %d requests, want one", len(f.sent))
	}
	in, ok := f.sent[0].(*dynamodb.TransactWriteItemsInput)
	if !ok || len(in.TransactItems) != len(writes) {
		t.Errorf("got %T, want one transaction of %d writes", f.sent[0], len(writes))
	}
}
