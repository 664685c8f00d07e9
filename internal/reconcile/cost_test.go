package reconcile_test

import (
	"flag"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/store/storetest"
)

// perItem is what one sweep of n open payments costs for each, in hundredths of a
// call. None of them has an outcome before it, and all of them have one after it.
func perItem(t *testing.T, n int) (reads, writes, units int) {
	t.Helper()
	clock := flowtest.Start
	now := func() time.Time { return clock }
	meter := storetest.NewMeter(memory.New(memory.Options{Now: now}))
	table := payments.New(meter)
	fake := psptest.NewFake(flowtest.PSP)
	core := bootstrap.Core{
		Payments: table, Durations: flowtest.Durations, Now: now, Meter: quiet{}, Log: slog.New(slog.DiscardHandler),
		Providers: map[string]psp.Provider{flowtest.PSP: fake},
	}
	due := clock.Add(time.Minute)
	for i := range n {
		p, row := payment.New(payment.Terms{
			ID: payment.ID("pay_" + flowtest.ULID(int64(i))), MerchantID: flowtest.Merchant, Amount: money.Amount{Minor: 1, Currency: "JPY"},
			CaptureMethod: payment.CaptureAutomatic, PaymentMethod: psptest.TokenCaptured, PSP: flowtest.PSP, ExpiresAt: due,
		}, clock)
		p.DueAt = due
		if err := table.Commit(t.Context(), journal.Change{After: p, Row: row, Source: journal.SourceAPI}); err != nil {
			t.Fatal(err)
		}
	}
	clock = due
	meter.Reset()
	report, err := core.Sweeper(core.Charges(), core.Checkouts(nil, nil)).Sweep(t.Context())
	if err != nil || report.Swept != int64(n) || report.Failed != 0 || report.Unfinished {
		t.Fatalf("%d open: got %+v, %v, want all swept", n, report, err)
	}
	cost := meter.Count()
	if again, err := core.Sweeper(core.Charges(), core.Checkouts(nil, nil)).Sweep(t.Context()); err != nil || again.Swept != 0 {
		t.Fatalf("%d open: got %+v, %v, want nothing left", n, again, err)
	}
	return cost.Reads * 100 / n, cost.Writes * 100 / n, cost.WriteUnits * 100 / n
}

// most is the largest sweep measured. With 100000 it takes half a minute of a
// processor: go test ./internal/reconcile -run CostsTheSame -v -most 100000.
var most = flag.Int("most", 10_000, "open items of the largest sweep that is measured")

const smallest = 1_000

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
