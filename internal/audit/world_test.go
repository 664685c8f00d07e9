package audit_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// world is a house with a shop and an auditor.
type world struct {
	*sagatest.World
	audit *audit.Service
	shop  *shop
	runs  int
}

// feed is an event bus whose events end in their merchants' feeds.
type feed struct{ w *sagatest.World }

func (f feed) Publish(ctx context.Context, events []outbox.Event) []error {
	errs := make([]error, len(events))
	for i, e := range events {
		if e.MerchantID != "" {
			errs[i] = f.w.Table.AddToFeed(ctx, e)
		}
	}
	return errs
}

// shop is the participants, with what a test says of them.
type shop struct {
	*sagatest.World
	lost map[string]bool             // orders that are gone
	held map[string]inventory.Status // reservations that stand elsewhere
}

func (s *shop) Get(ctx context.Context, merchantID, id string) (order.Order, error) {
	if s.lost[id] {
		return order.Order{}, order.ErrNotFound
	}
	return s.Orders.Get(ctx, merchantID, id)
}

func (s *shop) Held(ctx context.Context, merchantID, id string) (inventory.Status, error) {
	if status, set := s.held[id]; set {
		return status, nil
	}
	return s.Stock.Held(ctx, merchantID, id)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: sagatest.New(t)}
	w.Supply(sagatest.Tee, 100)
	w.Relay.Publisher = feed{w.World}
	w.shop = &shop{World: w.World, lost: map[string]bool{}, held: map[string]inventory.Status{}}
	for _, id := range []string{flowtest.Merchant, flowtest.OtherMerchant} {
		keys := &merchant.Service{Store: w.Table, Now: w.Clock.Now}
		if err := keys.Seed(t.Context(), id, "sk_test_"+id, merchant.RoleMerchant); err != nil {
			t.Fatal(err)
		}
	}
	var ids int64 = 900_000
	w.audit = &audit.Service{
		Store: w.Table, Charges: w.Charges, Checkouts: w.Checkouts, Orders: w.shop, Stock: w.shop,
		Providers: map[string]psp.Provider{flowtest.PSP: w.PSP}, Listers: map[string]audit.Lister{flowtest.PSP: w.PSP},
		Webhooks: map[string]psp.Webhooks{flowtest.PSP: w.PSP}, Applier: w.Applier, ReconcileAfter: flowtest.Durations.ReconcileAfter,
		IdempotencyTTL: 24 * time.Hour, NewULID: func() string { ids++; return flowtest.ULID(ids) },
		Now: w.Clock.Now, Meter: w.Meter, Log: slog.New(slog.DiscardHandler),
	}
	return w
}

// request asks for the whole of the world's time.
func (w *world) request(key string) audit.Request {
	return audit.Request{
		Scope:       idempotency.Scope{MerchantID: "@operator", Method: "POST", Route: "/v1/reconciliations", Key: key},
		Fingerprint: "f", PSP: flowtest.PSP, From: flowtest.Start.Add(-time.Hour), To: w.Clock.Now().Add(time.Hour), Repair: true,
	}
}

// run is a whole run.
func (w *world) run(change func(*audit.Request)) audit.Run {
	w.Helper()
	w.runs++
	r := w.request(fmt.Sprint("key-", w.runs))
	if change != nil {
		change(&r)
	}
	run, _, err := w.audit.Start(w.Context(), r)
	if err != nil {
		w.Fatalf("start: %v", err)
	}
	return run
}

// completed is a whole run that comes to its end.
func (w *world) completed() audit.Run {
	w.Helper()
	run := w.run(nil)
	if run.Status != audit.StatusCompleted {
		w.Fatalf("got %+v, want it completed", run)
	}
	return run
}

// findings are all findings of a run, sorted, each in one line: what, and what became of it.
func (w *world) findings(run audit.Run) []string {
	w.Helper()
	var all []string
	for _, f := range w.raw(run) {
		end := string(f.Repair)
		if f.NeedsReview {
			end += "needs_review"
		}
		all = append(all, fmt.Sprintf("%s %s", f.Kind, end))
	}
	slices.Sort(all)
	return all
}

func (w *world) raw(run audit.Run) []audit.Finding {
	w.Helper()
	var all []audit.Finding
	cursor := ""
	for {
		page, next, err := w.Table.Findings(w.Context(), run.ID, cursor, 3)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, page...)
		if cursor = next; cursor == "" {
			return all
		}
	}
}

// wantFindings holds a run's findings, and its counts of them, to that.
func (w *world) wantFindings(run audit.Run, want ...string) {
	w.Helper()
	got := w.findings(run)
	if !slices.Equal(got, want) {
		w.Fatalf("got findings %q, want %q: %+v", got, want, w.raw(run))
	}
	var sum, repaired, review int64
	for _, n := range run.Counts {
		sum += n
	}
	for _, line := range want {
		if strings.HasSuffix(line, "needs_review") {
			review++
		} else if !strings.HasSuffix(line, " ") {
			repaired++
		}
	}
	if sum != int64(len(want)) || run.Repaired != repaired || run.Review != review {
		w.Fatalf("got counts %v, %d repaired, %d to review, want those of %q", run.Counts, run.Repaired, run.Review, want)
	}
}

// charged is a payment, with everything that follows from it.
func (w *world) charged(key, token string, status payment.Status) payment.Payment {
	w.Helper()
	p := w.Charged(key, flowtest.Order{Token: token}, status)
	w.Settle()
	return p
}
