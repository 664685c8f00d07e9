package reconcile_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/store/storetest"
)

// most is the largest sweep measured. With 100000 it takes half a minute of a
// processor: go test ./internal/reconcile -run CostsTheSame -v -most 100000.
var most = flag.Int("most", 10_000, "open items of the largest sweep that is measured")

var (
	endpoint = flag.String("endpoint", "", "sweep this DynamoDB, such as http://127.0.0.1:4566, in place of the embedded store")
	slice    = flag.Duration("slice", 0, "end sweeps after this time, as a function's does, and measure the first two; 0 sweeps everything at once")
)

const smallest = 1_000

// perItem is what sweeping n open payments costs for each, in hundredths of a
// call. None of them has an outcome before it, and all of them have one after it.
func perItem(t *testing.T, n int) (reads, writes, units int) {
	t.Helper()
	clock := flowtest.Start
	now := func() time.Time { return clock }
	meter := storetest.NewMeter(opened(t, n, now))
	core := bootstrap.Core{
		Payments: payments.New(meter), Durations: flowtest.Durations, Now: now, Meter: quiet{}, Log: slog.New(slog.DiscardHandler),
		Providers: map[string]psp.Provider{flowtest.PSP: psptest.NewFake(flowtest.PSP)},
	}
	clock = clock.Add(time.Minute)
	swept := 0
	for sweeps := 0; swept < n && (sweeps < 2 || *slice == 0); sweeps++ {
		report := sweep(t, core)
		if report.Failed != 0 || report.Swept == 0 || report.Unfinished && *slice == 0 {
			t.Fatalf("%d open: got %+v, want them swept", n, report)
		}
		swept += int(report.Swept)
	}
	if swept > n {
		t.Fatalf("%d open: got %d repairs, want each once", n, swept)
	}
	cost := meter.Count()
	if swept == n {
		if again := sweep(t, core); again.Swept != 0 {
			t.Fatalf("%d open: got %+v, want nothing left", n, again)
		}
	}
	return cost.Reads * 100 / swept, cost.Writes * 100 / swept, cost.WriteUnits * 100 / swept
}

func sweep(t *testing.T, core bootstrap.Core) reconcile.Report {
	t.Helper()
	ctx := t.Context()
	if *slice > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *slice)
		defer cancel()
	}
	report, err := core.Sweeper(core.Charges(), core.Checkouts(nil, nil)).Sweep(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// opened is a table with n payments that are open, and due in a minute.
func opened(t *testing.T, n int, now func() time.Time) store.Table {
	t.Helper()
	table := memory.New(memory.Options{Now: now})
	due := now().Add(time.Minute)
	for i := range n {
		p, row := payment.New(payment.Terms{
			ID: payment.ID("pay_" + flowtest.ULID(int64(i))), MerchantID: flowtest.Merchant, Amount: money.Amount{Minor: 1, Currency: "JPY"},
			CaptureMethod: payment.CaptureAutomatic, PaymentMethod: psptest.TokenCaptured, PSP: flowtest.PSP, ExpiresAt: due,
		}, now())
		p.DueAt = due
		if err := payments.New(table).Commit(t.Context(), journal.Change{After: p, Row: row, Source: journal.SourceAPI}); err != nil {
			t.Fatal(err)
		}
	}
	if *endpoint == "" {
		return table
	}
	return copied(t, table)
}

// copied is a table of DynamoDB with the items of another.
func copied(t *testing.T, from store.Table) store.Table {
	t.Helper()
	client := patient(dynamo.NewClient(dynamo.Config{Region: "us-east-1", AccessKeyID: "test", SecretAccessKey: "test", Endpoint: *endpoint}))
	name := fmt.Sprintf("sweep-%d", time.Now().UnixNano())
	if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
		t.Fatal(err)
	}
	to := dynamo.New(client, name, dynamo.Options{})
	for s := (store.Scan{Limit: store.MaxWrites}); ; {
		page, err := from.Scan(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		var writes []store.Write
		for _, e := range page.Entries {
			writes = append(writes, store.Write{Kind: store.Put, Key: e.Key, Item: e.Item})
		}
		if len(writes) > 0 {
			if err := to.Write(t.Context(), writes...); err != nil {
				t.Fatal(err)
			}
		}
		if s.Cursor = page.Cursor; s.Cursor == "" {
			return to
		}
	}
}

// patient lets an emulator be slow, as one is that reads all of a large table for
// each page of an index.
func patient(client *dynamodb.Client) *dynamodb.Client {
	o := client.Options()
	slow := *o.HTTPClient.(*http.Client)
	slow.Timeout = 5 * time.Minute
	o.HTTPClient = &slow
	return dynamodb.New(o)
}

type quiet struct{}

func (quiet) Count(string, int64) {}

// An item costs the same however many there are: the sweep pages through its shards,
// and nothing of it grows with what is open.
func TestASweepCostsTheSameForEachItemHoweverManyThereAre(t *testing.T) {
	var first string
	for n := smallest; n <= *most; n *= 10 {
		reads, writes, units := perItem(t, n)
		t.Logf("%d open: %d.%02d reads, %d.%02d writes, %d.%02d write units for each", n, reads/100, reads%100, writes/100, writes%100, units/100, units%100)
		// A page's read is shared by fifty items; the last page of a shard by fewer.
		got := fmt.Sprintf("%d reads, %d writes, %d units", reads/100, writes/100, units/100)
		if first == "" {
			first = got
		}
		if got != first {
			t.Errorf("%d open: got %s for each, want %s as for %d", n, got, first, smallest)
		}
	}
}
