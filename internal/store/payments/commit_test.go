package payments_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

func TestACommitIsWholeOrNothing(t *testing.T) {
	b := newBench(t)
	c := change(firstID)
	c.Claim = claim("k", string(firstID))
	b.commit(c)
	for _, key := range []store.Key{
		{PK: "PAYMENT#" + string(firstID), SK: "STATE"},
		{PK: "PAYMENT#" + string(firstID), SK: "EVENT#0000000001"},
		{PK: "IDEMPOTENCY#" + merchant + "#" + c.Claim.Record.Hash, SK: "RECORD"},
		{PK: "REFERENCE#" + merchant + "#" + reference, SK: "LIVE"},
		{PK: "REFERENCE#" + merchant + "#" + reference, SK: "PAYMENT#" + string(firstID)},
	} {
		if b.item(key.PK, key.SK) == nil {
			t.Errorf("%s is not there", key)
		}
	}
	// The reference refuses: nothing of the second is there.
	other := change(secondID)
	other.Claim = claim("k2", string(secondID))
	b.conflict(other)
	if b.item("PAYMENT#"+string(secondID), "STATE") != nil || b.item("PAYMENT#"+string(secondID), "EVENT#0000000001") != nil {
		t.Error("the refused payment is there")
	}
	if _, err := b.table.Record(t.Context(), merchant, other.Claim.Record.Hash); !errors.Is(err, idempotency.ErrNoRecord) {
		t.Errorf("record: got %v, want %v", err, idempotency.ErrNoRecord)
	}
}

func TestAConflictSaysWhichPartRefused(t *testing.T) {
	b := newBench(t)
	first := change(firstID)
	first.Claim = claim("k", string(firstID))
	p := b.commit(first)
	b.set("CHECKOUT#chk_1", "STATE", store.Item{"direction": "backward", "status": "pending"})

	t.Run("the same payment", func(t *testing.T) {
		c := change(firstID)
		c.After.Reference, c.After.HoldsReference = "", false
		same(t, "conflict", b.conflict(c), journal.Conflict{Version: true})
	})
	t.Run("the same payment without its first row", func(t *testing.T) {
		b := newBench(t)
		b.commit(change(firstID))
		row := store.Key{PK: "PAYMENT#" + string(firstID), SK: "EVENT#0000000001"}
		if err := b.raw.Write(t.Context(), store.Write{Kind: store.Delete, Key: row}); err != nil {
			t.Fatal(err)
		}
		c := change(firstID)
		c.After.Reference, c.After.HoldsReference = "", false
		same(t, "conflict", b.conflict(c), journal.Conflict{Version: true})
	})
	t.Run("version", func(t *testing.T) {
		c := b.next(p, captured())
		c.Before.Version = 7
		same(t, "conflict", b.conflict(c), journal.Conflict{Version: true})
	})
	t.Run("a row that is there", func(t *testing.T) {
		c := b.next(p, captured())
		c.Row.Version = 1
		same(t, "conflict", b.conflict(c), journal.Conflict{Version: true})
	})
	t.Run("record", func(t *testing.T) {
		c := change(secondID)
		c.After.Reference, c.After.HoldsReference = "", false
		c.Claim = claim("k", string(secondID))
		same(t, "conflict", b.conflict(c), journal.Conflict{Record: &first.Claim.Record})
	})
	t.Run("reference", func(t *testing.T) {
		c := change(secondID)
		c.Claim = claim("k2", string(secondID))
		same(t, "conflict", b.conflict(c), journal.Conflict{Holder: firstID})
	})
	t.Run("record and reference", func(t *testing.T) {
		c := change(secondID)
		c.Claim = claim("k", string(secondID))
		same(t, "conflict", b.conflict(c), journal.Conflict{Record: &first.Claim.Record, Holder: firstID})
	})
	t.Run("gate", func(t *testing.T) {
		for _, kind := range []journal.GateKind{journal.GateForward, journal.GateClosed} {
			c := b.next(p, captured())
			c.Gate = &journal.Gate{CheckoutID: "chk_1", Kind: kind}
			same(t, string(kind), b.conflict(c), journal.Conflict{Gate: true})
		}
	})
	t.Run("fence", func(t *testing.T) {
		c := b.next(p, captured())
		c.Fence = 3
		same(t, "conflict", b.conflict(c), journal.Conflict{Version: true})
	})
	if got := b.read(firstID); got.Version != 1 {
		t.Errorf("got version %d, want 1: every one was refused", got.Version)
	}
}

func TestAGateHoldsWhatItSays(t *testing.T) {
	for _, c := range []struct {
		kind              journal.GateKind
		direction, status string
		holds             bool
	}{
		{journal.GateForward, "forward", "pending", true},
		{journal.GateForward, "backward", "pending", false},
		{journal.GateForward, "", "", false}, // no such checkout
		{journal.GateClosed, "forward", "pending", false},
		{journal.GateClosed, "forward", "requires_action", false},
		{journal.GateClosed, "forward", "completed", true},
		{journal.GateClosed, "backward", "failed", true},
		{journal.GateClosed, "backward", "needs_review", true},
	} {
		t.Run(fmt.Sprintf("%s %s %s", c.kind, c.direction, c.status), func(t *testing.T) {
			b := newBench(t)
			if c.status != "" {
				b.set("CHECKOUT#chk_1", "STATE", store.Item{"direction": c.direction, "status": c.status})
			}
			change := change(firstID)
			change.Gate = &journal.Gate{CheckoutID: "chk_1", Kind: c.kind}
			err := b.table.Commit(t.Context(), change)
			if (err == nil) != c.holds {
				t.Errorf("got %v, want it to hold %t", err, c.holds)
			}
		})
	}
}

func TestATakeoverNeedsTheRecordAsItWasSeen(t *testing.T) {
	b := newBench(t)
	first := change(firstID)
	first.Claim = claim("k", string(firstID))
	p := b.commit(first)
	seen := first.Claim.Record
	takeover := seen
	takeover.InProgressUntil = seen.InProgressUntil.Add(time.Minute)

	c := b.next(p, payment.Event{Type: payment.EventSent})
	c.Claim = &idempotency.Claim{Record: takeover, Seen: &seen}
	p = b.commit(c)
	got, err := b.table.Record(t.Context(), merchant, seen.Hash)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "record", got, takeover)

	again := b.next(p, payment.Event{Type: payment.EventSent})
	again.Claim = &idempotency.Claim{Record: takeover, Seen: &seen} // what was seen is old
	same(t, "conflict", b.conflict(again), journal.Conflict{Record: &takeover})

	stranger := takeover
	stranger.ResourceID = string(secondID)
	again.Claim = &idempotency.Claim{Record: stranger, Seen: &stranger}
	same(t, "conflict", b.conflict(again), journal.Conflict{Record: &takeover})

	older := takeover
	older.CreatedAt = takeover.CreatedAt.Add(-time.Hour)
	again.Claim = &idempotency.Claim{Record: older, Seen: &older}
	same(t, "conflict", b.conflict(again), journal.Conflict{Record: &takeover})
}

func TestAnExpiredRecordIsReplacedWhole(t *testing.T) {
	b := newBench(t)
	first := change(firstID)
	first.Claim = claim("k", string(firstID))
	first.Claim.Record.RefundID, first.Claim.Record.Attempt = "re_1", 2
	b.commit(first)
	second := change(secondID)
	second.After.Reference, second.After.HoldsReference = "", false
	second.Claim = claim("k", string(secondID))
	second.Claim.Record.CreatedAt = start.Add(25 * time.Hour)
	second.Claim.Record.InProgressUntil = start.Add(26 * time.Hour)
	second.Claim.Seen = &first.Claim.Record
	b.commit(second)
	got, err := b.table.Record(t.Context(), merchant, first.Claim.Record.Hash)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "record", got, second.Claim.Record)
}

func TestARecordThatIsGoneIsDecidedAnew(t *testing.T) {
	b := newBench(t)
	c := change(firstID)
	c.Claim = claim("k", string(firstID))
	c.Claim.Seen = &c.Claim.Record
	same(t, "conflict", b.conflict(c), journal.Conflict{Version: true})
}

func TestARecordOutlivesTheLongestDoubt(t *testing.T) {
	b := newBench(t)
	c := change(firstID)
	c.Claim = claim("k", string(firstID))
	b.commit(c)
	item := b.item("IDEMPOTENCY#"+merchant+"#"+c.Claim.Record.Hash, "RECORD")
	if got, want := item[store.AttrExpiresAt], start.Add(90*24*time.Hour).Unix(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	for name, value := range item {
		if strings.Contains(fmt.Sprint(value), "canary") || name == "key" {
			t.Errorf("the record holds %s", name)
		}
	}
}

func TestOnlyTheHolderFreesTheReference(t *testing.T) {
	b := newBench(t)
	p := b.commit(change(firstID))
	guard := func() string {
		id, _ := b.item("REFERENCE#"+merchant+"#"+reference, "LIVE")["payment_id"].(string)
		return id
	}
	declined := payment.Event{Type: payment.EventDeclined, PSPReference: "ch_1", Amount: yen, Failure: &payment.Failure{Code: "card_declined"}}
	p = b.commit(b.next(p, declined))
	if guard() != "" {
		t.Fatal("the guard is there, want it gone with its payment")
	}
	second := b.commit(change(secondID))
	late := b.commit(b.next(p, captured())) // money for the first, which holds nothing any more
	refunded := payment.Event{
		Type: payment.EventRefundSucceeded, PSPReference: "ch_1",
		Refund: payment.RefundEvent{ID: payment.LateRefundID(firstID), PSPReference: "rf_1", Amount: yen.Minor},
	}
	b.commit(b.next(late, refunded))
	if guard() != string(secondID) {
		t.Fatalf("got guard of %q, want the second's", guard())
	}
	// And a holder whose guard is a stranger's does not take it away.
	b.set("REFERENCE#"+merchant+"#"+reference, "LIVE", store.Item{"payment_id": string(firstID)})
	same(t, "conflict", b.conflict(b.next(second, declined)), journal.Conflict{Version: true})
	if guard() != string(firstID) {
		t.Errorf("got guard of %q, want it untouched", guard())
	}
}

func TestARefundedPaymentFreesItsReference(t *testing.T) {
	b := newBench(t)
	p := b.commit(b.next(b.commit(change(firstID)), captured()))
	p = b.commit(b.next(p, payment.Event{Type: payment.EventRefundRequested, Refund: payment.RefundEvent{ID: "re_1", Amount: yen.Minor}}))
	if b.item("REFERENCE#"+merchant+"#"+reference, "LIVE") == nil {
		t.Fatal("the guard is gone before the money is")
	}
	b.commit(b.next(p, payment.Event{
		Type: payment.EventRefundSucceeded, PSPReference: "ch_1",
		Refund: payment.RefundEvent{ID: "re_1", PSPReference: "rf_1", Amount: yen.Minor},
	}))
	if b.item("REFERENCE#"+merchant+"#"+reference, "LIVE") != nil {
		t.Error("the guard is there, want it gone")
	}
	b.commit(change(secondID))
	list, _, err := b.table.PaymentsByReference(t.Context(), merchant, reference, "", 10)
	if err != nil || len(list) != 2 || list[0].ID != secondID || list[1].ID != firstID {
		t.Errorf("got %d payments, %v, want both, newest first", len(list), err)
	}
}

func TestListsByReferenceArePagedAndTheMerchantsOwn(t *testing.T) {
	b := newBench(t)
	for n := range 5 {
		c := change(payment.ID(fmt.Sprintf("pay_01KDYAK348M9S346Q3D200000%d", n)))
		c.After.HoldsReference = false
		b.commit(c)
		if err := b.raw.Write(t.Context(), store.Write{Kind: store.Delete, Key: store.Key{PK: "REFERENCE#" + merchant + "#" + reference, SK: "LIVE"}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	cursor := ""
	for {
		list, next, err := b.table.PaymentsByReference(t.Context(), merchant, reference, cursor, 2)
		if err != nil || len(list) > 2 {
			t.Fatalf("got %d, %v", len(list), err)
		}
		for _, p := range list {
			got = append(got, string(p.ID[len(p.ID)-1]))
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	same(t, "list", strings.Join(got, ""), "43210")
	list, _, err := b.table.PaymentsByReference(t.Context(), "m_beta", reference, "", 10)
	if err != nil || len(list) != 0 {
		t.Errorf("other merchant: got %d, %v, want none", len(list), err)
	}
	if _, _, err := b.table.PaymentsByReference(t.Context(), merchant, reference, "!", 10); !errors.Is(err, store.ErrCursor) {
		t.Errorf("bad cursor: got %v, want %v", err, store.ErrCursor)
	}
}

func TestRowsArePagedOldestFirst(t *testing.T) {
	b := newBench(t)
	p := b.commit(change(firstID))
	for range 11 { // past the point where 10 would sort before 9
		p = b.commit(b.next(p, payment.Event{Type: payment.EventSent}))
	}
	var versions []int64
	cursor := ""
	for {
		rows, next, err := b.table.PaymentRows(t.Context(), firstID, cursor, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			versions = append(versions, r.Version)
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	same(t, "versions", versions, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
}

func TestAPaymentThatIsNotThere(t *testing.T) {
	b := newBench(t)
	if _, err := b.table.Payment(t.Context(), firstID); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("got %v, want %v", err, journal.ErrNotFound)
	}
	if _, err := b.table.AcquireLease(t.Context(), firstID, start, start); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("lease: got %v, want %v", err, journal.ErrNotFound)
	}
}
