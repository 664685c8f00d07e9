package inventory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/store/dynamo"
)

// busyDynamoDB has stock without end and keeps DynamoDB's rule about transactions:
// of two that touch one item at the same time, the later is canceled.
type busyDynamoDB struct {
	dynamo.API
	takes time.Duration // a transaction, from its first item to its last

	mu       sync.Mutex
	inFlight map[string]bool
	attempts int
	commits  int
}

func (d *busyDynamoDB) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	var keys []string
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			keys = append(keys, w.Put.Item["pk"].(*types.AttributeValueMemberS).Value)
		case w.Update != nil:
			keys = append(keys, w.Update.Key["pk"].(*types.AttributeValueMemberS).Value)
		}
	}
	if reasons := d.enter(keys); reasons != nil {
		return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	<-time.NewTimer(d.takes).C
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		delete(d.inFlight, k)
	}
	d.commits++
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// enter begins a transaction, or tells which items another one holds.
func (d *busyDynamoDB) enter(keys []string) []types.CancellationReason {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts++
	busy := false
	reasons := make([]types.CancellationReason, len(keys))
	for i, k := range keys {
		reasons[i].Code = aws.String("None")
		if d.inFlight[k] {
			busy, reasons[i].Code = true, aws.String("TransactionConflict")
		}
	}
	if busy {
		return reasons
	}
	for _, k := range keys {
		d.inFlight[k] = true
	}
	return nil
}

// Everybody wants the same SKU at the same moment, and only one transaction at a
// time gets it. The pauses spread the buyers out: each commits, at the price of a
// few attempts, and who runs out of them is repeated by the saga once or twice.
func TestSixtyFourConflictingBuyersNeedFewAttempts(t *testing.T) {
	const (
		buyers      = 64
		mostPerSale = 10 // attempts per commit; 6 to 7 measured
		mostRepeats = 4  // of one buyer's command by the saga; 1 measured
	)
	synctest.Test(t, func(t *testing.T) {
		table := &busyDynamoDB{takes: 10 * time.Millisecond, inFlight: map[string]bool{}}
		h := inventory.NewHandler(inventory.New(dynamo.New(table, "inventory", dynamo.Options{}), clock))
		begun := time.Now()
		var all sync.WaitGroup
		var repeats atomic.Int64
		for i := range buyers {
			all.Go(func() {
				payload := fmt.Sprintf(`{"command":"reserve","merchant_id":"alpha","checkout_id":"chk_%d","lines":[{"sku":"tee","quantity":1}]}`, i)
				for repeat := 0; ; repeat++ {
					got, err := h.Invoke(t.Context(), []byte(payload))
					if err == nil {
						if want := fmt.Sprintf(`{"outcome":"reserved","checkout_id":"chk_%d","lacking":[]}`, i); string(got) != want {
							t.Errorf("got %s, want %s", got, want)
						}
						return
					}
					repeats.Add(1)
					if failure(err) != "UnavailableError" || repeat == mostRepeats {
						t.Errorf("buyer %d, repeat %d: %v", i, repeat, err)
						return
					}
					<-time.NewTimer(rand.N(time.Second << repeat)).C // as the saga's Retry with full jitter
				}
			})
		}
		all.Wait()
		perSale := float64(table.attempts) / buyers
		t.Logf("%.1f attempts per commit, %d repeats by the saga, %s", perSale, repeats.Load(), time.Since(begun))
		if table.commits != buyers || perSale > mostPerSale {
			t.Errorf("got %d commits of %d attempts, want %d of at most %d each", table.commits, table.attempts, buyers, mostPerSale)
		}
	})
}
