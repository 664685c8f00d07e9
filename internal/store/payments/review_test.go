package payments_test

import (
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// inReview is the list of what waits for a person.
func (b *bench) inReview() []payments.Review {
	b.Helper()
	list, more, err := b.table.InReview(b.Context(), 10)
	if err != nil || more {
		b.Fatalf("got more %t, %v, want the whole list", more, err)
	}
	return list
}

// swept counts what a sweep at the end of time would come to.
func (b *bench) swept(kind reconcile.Kind) (n int) {
	b.Helper()
	for shard := range b.table.Shards() {
		page, _, err := b.table.DuePage(b.Context(), shard, start.AddDate(100, 0, 0), 50, "")
		if err != nil {
			b.Fatal(err)
		}
		for _, due := range page {
			if due.Kind == kind {
				n++
			}
		}
	}
	return n
}

// reviewed is a checkout that cannot go on by itself.
func (b *bench) reviewed() checkout.Checkout {
	b.Helper()
	seen := b.created(checkout.Checkout{ID: checkoutID, Version: 1, Status: checkout.StatusPending, PaymentID: firstID, DueAt: start.Add(time.Minute)})
	after := seen
	after.Status, after.DueAt, after.UpdatedAt, after.Version = checkout.StatusNeedsReview, time.Time{}, start.Add(time.Hour), 2
	row := checkout.Row{Version: 2, Type: checkout.EventNeedsReview, At: after.UpdatedAt, Data: checkout.RowData{Reason: "no progress"}}
	err := b.table.CommitCheckout(b.Context(), checkout.Change{Before: seen, After: after, Row: row, Source: journal.SourceReconciler})
	if err != nil {
		b.Fatal(err)
	}
	return b.checkout()
}

func TestACheckoutThatNeedsReviewIsListedAndNotSwept(t *testing.T) {
	b := newBench(t)
	c := b.reviewed()
	want := payments.Review{Kind: reconcile.KindCheckout, ID: checkoutID, Since: start.Add(time.Hour), Reason: "no progress"}
	same(t, "list", b.inReview(), []payments.Review{want})
	if !c.DueAt.IsZero() {
		t.Errorf("got due at %s, want its place in the list to be no due date", c.DueAt)
	}
	if n := b.swept(reconcile.KindCheckout); n != 0 {
		t.Errorf("a sweep comes to it")
	}
}

func TestACheckoutLeavesTheListWhenItGoesOn(t *testing.T) {
	b := newBench(t)
	c := b.reviewed()
	resumed := c
	resumed.Status, resumed.DueAt = checkout.StatusPending, start.Add(2*time.Hour)
	if err := b.moved(c, resumed); err != nil {
		t.Fatal(err)
	}
	same(t, "list", b.inReview(), nil)
	if n := b.swept(reconcile.KindCheckout); n != 1 {
		t.Errorf("got it swept %d times, want its due date back", n)
	}
	if got := b.checkout(); !got.DueAt.Equal(resumed.DueAt) {
		t.Errorf("got due at %s, want %s", got.DueAt, resumed.DueAt)
	}
	ended := b.checkout()
	ended.Status, ended.DueAt = checkout.StatusFailed, time.Time{}
	if err := b.moved(b.checkout(), ended); err != nil {
		t.Fatal(err)
	}
	same(t, "list after its end", b.inReview(), nil)
	if item := b.item(checkoutPK, "STATE"); item["due_shard"] != nil || item["due_at"] != nil {
		t.Errorf("got %v at %v, want it out of the index", item["due_shard"], item["due_at"])
	}
}

func TestADeadPaymentWhoseRefundFailedIsListedUntilItsMoneyIsBack(t *testing.T) {
	b := newBench(t)
	p := b.commit(change(firstID))
	p = b.commit(b.next(p, payment.Event{Type: payment.EventDeclined, Amount: yen, Failure: &payment.Failure{Code: "declined"}}))
	p = b.commit(b.next(p, payment.Event{Type: payment.EventCaptured, PSPReference: "ch_1", Amount: yen, Captured: yen.Minor}))
	same(t, "list while its refund is under way", b.inReview(), nil)
	refund := p.Refunds[0]
	p = b.commit(b.next(p, payment.Event{Type: payment.EventRefundFailed, Refund: payment.RefundEvent{ID: refund.ID, PSPReference: "re_1", Amount: refund.Amount}}))
	want := payments.Review{Kind: reconcile.KindPayment, ID: string(firstID), Since: p.UpdatedAt}
	same(t, "list", b.inReview(), []payments.Review{want})
	if got := b.read(firstID); !got.DueAt.IsZero() || b.swept(reconcile.KindPayment) != 0 {
		t.Errorf("got due at %s, want it at rest", got.DueAt)
	}
	p = b.commit(b.next(p, payment.Event{Type: payment.EventRefundSucceeded, Refund: payment.RefundEvent{PSPReference: "re_2", Amount: refund.Amount}}))
	if p.AmountRefunded() != yen.Minor {
		t.Fatalf("got %d refunded, want all", p.AmountRefunded())
	}
	same(t, "list when the money is back", b.inReview(), nil)
}

func TestWhatTheIndexStillListsIsReadAgain(t *testing.T) {
	b := newBench(t)
	b.created(checkout.Checkout{ID: checkoutID, Version: 1, Status: checkout.StatusPending, PaymentID: firstID})
	stale := store.Item{store.AttrDueShard: "review#0", store.AttrDueAt: start.UnixMilli()}
	b.set(checkoutPK, "STATE", stale)
	b.set("PAYMENT#"+string(firstID), "STATE", stale)
	b.set("GIFT#1", "STATE", stale) // of newer code
	same(t, "list", b.inReview(), nil)
}

func TestAListOfManyShowsThoseThatWaitLongest(t *testing.T) {
	b := newBench(t)
	b.reviewed()
	second := change(secondID)
	second.After.Reference, second.After.HoldsReference = "", false
	p := b.commit(second)
	p = b.commit(b.next(p, payment.Event{Type: payment.EventDeclined, Amount: yen, Failure: &payment.Failure{Code: "declined"}}))
	p = b.commit(b.next(p, captured()))
	b.commit(b.next(p, payment.Event{Type: payment.EventRefundFailed, Refund: payment.RefundEvent{ID: p.Refunds[0].ID, PSPReference: "re_1", Amount: yen.Minor}}))
	list, more, err := b.table.InReview(t.Context(), 1)
	if err != nil || !more || len(list) != 1 || list[0].ID != string(secondID) {
		t.Errorf("got %+v, more %t, %v, want the payment, which waits longest, and more", list, more, err)
	}
}
