package payments_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// fill sets every field of a value to something that is not zero, and different
// from its neighbours.
func fill(v reflect.Value, n *int64) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Second)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{fmt.Sprint(*n): "value", "empty": ""}))
	case reflect.String:
		v.SetString(fmt.Sprintf("word-%09d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	default:
		panic(v.Kind())
	}
}

// full is a payment with every field set.
func full() payment.Payment {
	var p payment.Payment
	var n int64
	fill(reflect.ValueOf(&p).Elem(), &n)
	p.Version = 1
	return p
}

func TestEveryFieldOfAPaymentSurvives(t *testing.T) {
	b := newBench(t)
	want := full()
	b.commit(journal.Change{After: want, Row: payment.Row{Version: 1, At: start}})
	want.LeaseUntil, want.LeaseFence = time.Time{}, 0 // the lease's own
	same(t, "payment", b.read(want.ID), want)
}

func TestEveryFieldOfAPaymentCanBeChangedAndCleared(t *testing.T) {
	b := newBench(t)
	before := full()
	before.HoldsReference = false
	b.commit(journal.Change{After: before, Row: payment.Row{Version: 1, At: start}})
	seen := b.read(before.ID)
	cleared := payment.Payment{ID: before.ID, Version: 2}
	b.commit(journal.Change{Before: seen, After: cleared, Row: payment.Row{Version: 2, At: start}})
	same(t, "cleared", b.read(before.ID), cleared)
	filled := full()
	filled.Version, filled.HoldsReference = 3, false
	b.commit(journal.Change{Before: cleared, After: filled, Row: payment.Row{Version: 3, At: start}})
	filled.LeaseUntil, filled.LeaseFence = time.Time{}, 0
	same(t, "filled", b.read(before.ID), filled)
}

// What newer code wrote beside is kept by every change that older code makes.
func TestUnknownAttributesSurviveEveryUpdate(t *testing.T) {
	b := newBench(t)
	first := change(firstID)
	first.Claim = claim("k", string(firstID))
	p := b.commit(first)
	newer := store.Item{"newer": "kept", "refund_policy": map[string]any{"days": int64(14)}}
	state, record := "PAYMENT#"+string(firstID), "IDEMPOTENCY#"+merchant+"#"+first.Claim.Record.Hash
	b.set(state, "STATE", newer)
	b.set(record, "RECORD", newer)
	kept := func(what, pk, sk string) {
		t.Helper()
		item := b.item(pk, sk)
		for name, value := range newer {
			if !reflect.DeepEqual(item[name], value) {
				t.Errorf("%s: got %s %v, want it kept", what, name, item[name])
			}
		}
	}
	fence, err := b.table.AcquireLease(t.Context(), firstID, start, start.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	kept("lease", state, "STATE")
	seen := first.Claim.Record
	takeover := b.next(p, payment.Event{Type: payment.EventSent})
	takeover.Claim = claim("k", string(firstID))
	takeover.Claim.Record.InProgressUntil = start.Add(time.Hour)
	takeover.Claim.Seen = &seen
	p = b.commit(takeover)
	kept("takeover", state, "STATE")
	kept("takeover", record, "RECORD")
	p = b.commit(b.next(p, captured()))
	kept("captured", state, "STATE")
	p = b.commit(b.next(p, payment.Event{Type: payment.EventRefundRequested, Refund: payment.RefundEvent{ID: "re_1", Amount: 1}}))
	kept("refund", state, "STATE")
	if err := b.table.Postpone(t.Context(), firstID, p.Version, start.Add(time.Hour), 3); err != nil {
		t.Fatal(err)
	}
	kept("postponed", state, "STATE")
	if err := b.table.ReleaseLease(t.Context(), firstID, fence); err != nil {
		t.Fatal(err)
	}
	kept("released", state, "STATE")
}

func TestAWriterThatKnowsNothingOfARefundLeavesItAlone(t *testing.T) {
	b := newBench(t)
	p := b.commit(b.next(b.commit(change(firstID)), captured()))
	b.set("PAYMENT#"+string(firstID), "STATE", store.Item{"refund#re_newer": map[string]any{"status": "pending", "amount": int64(7)}})
	b.commit(b.next(p, payment.Event{Type: payment.EventRefundRequested, Refund: payment.RefundEvent{ID: "re_1", Amount: 1}}))
	if got := b.read(firstID); len(got.Refunds) != 2 {
		t.Errorf("got refunds %+v, want both", got.Refunds)
	}
}

func TestAStatusOfNewerCodeIsParked(t *testing.T) {
	b := newBench(t)
	b.commit(change(firstID))
	b.set("PAYMENT#"+string(firstID), "STATE", store.Item{"status": "frozen"})
	p := b.read(firstID)
	if _, _, changed, err := p.Apply(captured()); err == nil || changed {
		t.Errorf("got changed %t, %v, want it refused", changed, err)
	}
	if p.Status.Terminal() || p.Status.Dead() {
		t.Errorf("got %s for terminal, want it open", p.Status)
	}
}

// A due date is put off without a new version, so a change that was decided on
// an older one must not lose its own.
func TestAChangeSetsItsOwnDueDateWhateverWasPutOffMeanwhile(t *testing.T) {
	for name, put := range map[string]time.Time{"put off": start.Add(time.Hour), "taken out": {}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			p := b.commit(change(firstID))
			if err := b.table.Postpone(t.Context(), firstID, 1, put, 4); err != nil {
				t.Fatal(err)
			}
			c := b.next(p, payment.Event{Type: payment.EventSent})
			c.After.DueAt = p.DueAt // the same as was read
			b.commit(c)
			got := b.read(firstID)
			if !got.DueAt.Equal(p.DueAt) || got.Tries != 0 {
				t.Errorf("got due at %s after %d tries, want %s and none", got.DueAt, got.Tries, p.DueAt)
			}
			page, _, err := b.table.DuePage(t.Context(), shardOf(t, b, firstID), start.Add(2*time.Hour), 10, "")
			if err != nil || len(page) != 1 {
				t.Errorf("got %d due, %v, want it in the index", len(page), err)
			}
		})
	}
	t.Run("comes to rest", func(t *testing.T) {
		b := newBench(t)
		p := b.commit(change(firstID))
		p.DueAt = time.Time{} // as another reader saw it
		c := b.next(p, captured())
		b.commit(c)
		if got := b.read(firstID); !got.DueAt.IsZero() {
			t.Errorf("got due at %s, want it at rest", got.DueAt)
		}
	})
}

// shardOf is the shard in which the payment is due.
func shardOf(t *testing.T, b *bench, id payment.ID) int {
	t.Helper()
	for n := range b.table.Shards() {
		page, _, err := b.table.DuePage(t.Context(), n, start.Add(1000*time.Hour), 100, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, due := range page {
			if due.ID == string(id) {
				return n
			}
		}
	}
	return 0
}

func TestNoRowHoldsASecret(t *testing.T) {
	b := newBench(t)
	p := b.commit(change(firstID))
	p = b.commit(b.next(p, payment.Event{
		Type: payment.EventActionRequired, PSPReference: "ch_1", Amount: yen,
		RedirectURL: "https://psp.example/canary", ClientSecret: "canary_secret",
	}))
	if got := b.read(firstID); got.RedirectURL != "https://psp.example/canary" || got.ClientSecret != "canary_secret" {
		t.Fatalf("got %q %q, want them kept while the customer must act", got.RedirectURL.Reveal(), got.ClientSecret.Reveal())
	}
	b.commit(b.next(p, captured()))
	state := fmt.Sprint(b.item("PAYMENT#"+string(firstID), "STATE"))
	if strings.Contains(state, "canary") && !strings.Contains(state, "tok_canary") || strings.Contains(state, "psp.example") {
		t.Errorf("the state holds %s", state)
	}
	rows, _, err := b.table.PaymentRows(t.Context(), firstID, "", 100)
	if err != nil || len(rows) != 3 {
		t.Fatalf("got %d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); strings.Contains(text, "canary") || strings.Contains(text, "psp.example") || strings.Contains(text, "redacted") {
			t.Errorf("row %d holds a secret: %s", r.Version, text)
		}
	}
}

func TestARowIsTheEventThatLeaves(t *testing.T) {
	b := newBench(t)
	b.commit(change(firstID))
	key := store.Key{PK: "PAYMENT#" + string(firstID), SK: "EVENT#0000000001"}
	event, ok := payments.RowChange(store.Change{Key: key, New: b.item(key.PK, key.SK)})
	if !ok {
		t.Fatal("the row is no event")
	}
	if event.ID != outbox.EventID(string(firstID), 1) || event.Version != 1 || event.Type != "payment.created" || event.MerchantID != merchant || event.Status != "processing" {
		t.Errorf("got %+v", event)
	}
	for name, c := range map[string]store.Change{
		"a removal":      {Key: key, Old: b.item(key.PK, key.SK)},
		"an overwrite":   {Key: key, Old: store.Item{}, New: b.item(key.PK, key.SK)},
		"a state":        {Key: store.Key{PK: key.PK, SK: "STATE"}, New: store.Item{}},
		"something else": {Key: store.Key{PK: "MERCHANT#m", SK: "EVENT#0000000001"}, New: store.Item{}},
	} {
		if _, ok := payments.RowChange(c); ok {
			t.Errorf("%s is an event", name)
		}
	}
}
