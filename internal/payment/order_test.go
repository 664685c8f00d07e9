package payment_test

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// outcome is what every order of one history must agree about.
type outcome struct {
	status             payment.Status
	captured, refunded int64
	refunds            int // how many refunds are known
	disputed           bool
}

func outcomeOf(p payment.Payment) outcome {
	return outcome{p.Status, p.AmountCaptured, p.AmountRefunded(), len(p.Refunds), p.Disputed()}
}

// history is what a PSP says of one charge, in the order in which it happened.
type history struct {
	name   string
	from   func(t testing.TB) payment.Payment
	events []payment.Event
	want   outcome
}

func sentAutomatic(testing.TB) payment.Payment { return processing() }
func sentManual(testing.TB) payment.Payment    { return manual() }

// refundsAsked is a captured payment with two refunds of ours on their way.
func refundsAsked(first, second int64) func(testing.TB) payment.Payment {
	return func(t testing.TB) payment.Payment {
		return after(t, processing(), fact(payment.EventCaptured), ask(ours1, first), ask(ours2, second))
	}
}

func canceling(t testing.TB) payment.Payment {
	return after(t, processing(), cancel(payment.CancelByMerchant))
}

func chargeHistories() []history {
	return []history{
		{"3-D Secure", sentAutomatic, []payment.Event{
			fact(payment.EventActionRequired), fact(payment.EventAuthorized), fact(payment.EventCaptured),
		}, outcome{status: payment.StatusCaptured, captured: whole}},
		{"pending through all the stages", sentAutomatic, []payment.Event{
			fact(payment.EventPending), fact(payment.EventActionRequired), fact(payment.EventAuthorized), fact(payment.EventCaptured),
		}, outcome{status: payment.StatusCaptured, captured: whole}},
		{"manual, captured in part", sentManual, []payment.Event{
			fact(payment.EventPending), fact(payment.EventAuthorized), capturedOnly(4000),
		}, outcome{status: payment.StatusCaptured, captured: 4000}},
		{"manual, held", sentManual, []payment.Event{
			fact(payment.EventPending), fact(payment.EventActionRequired), fact(payment.EventAuthorized),
		}, outcome{status: payment.StatusAuthorized}},
		{"pending, then captured", sentAutomatic, []payment.Event{
			fact(payment.EventPending), fact(payment.EventCaptured),
		}, outcome{status: payment.StatusCaptured, captured: whole}},
		{"the answer is lost, the webhook is not", sentAutomatic, []payment.Event{
			missed(payment.EventUnanswered, payment.OperationCreate, 1), fact(payment.EventAuthorized), fact(payment.EventCaptured),
		}, outcome{status: payment.StatusCaptured, captured: whole}},
		{"declined after 3-D Secure", sentAutomatic, []payment.Event{
			fact(payment.EventPending), fact(payment.EventActionRequired), fact(payment.EventDeclined),
		}, outcome{status: payment.StatusFailed}},
		{"abandoned at the redirect", sentAutomatic, []payment.Event{
			fact(payment.EventPending), fact(payment.EventActionRequired), fact(payment.EventVoided),
		}, outcome{status: payment.StatusCanceled}},
		{"the hold lapses", sentManual, []payment.Event{
			fact(payment.EventActionRequired), fact(payment.EventAuthorized), fact(payment.EventVoided),
		}, outcome{status: payment.StatusCanceled}},
		{"voided on our request", canceling, []payment.Event{
			fact(payment.EventPending), fact(payment.EventAuthorized), fact(payment.EventVoided),
		}, outcome{status: payment.StatusCanceled}},
		{"captured before our cancel came", canceling, []payment.Event{
			fact(payment.EventActionRequired), fact(payment.EventAuthorized), fact(payment.EventCaptured),
		}, outcome{status: payment.StatusCaptured, captured: whole}},
	}
}

func lateHistories() []history {
	late := payment.LateRefundID(paymentID)
	returned := refund(payment.EventRefundSucceeded, late, "rf_late", whole)
	return []history{
		{"money for a dead payment goes back", canceledBySilence, []payment.Event{
			fact(payment.EventAuthorized), fact(payment.EventCaptured),
			refund(payment.EventRefundPending, late, "rf_late", whole), returned,
		}, outcome{status: payment.StatusRefunded, captured: whole, refunded: whole, refunds: 1}},
		{"money for a dead payment cannot go back", canceledBySilence, []payment.Event{
			fact(payment.EventPending), fact(payment.EventCaptured),
			refund(payment.EventRefundPending, late, "rf_late", whole), refund(payment.EventRefundFailed, late, "rf_late", whole),
		}, outcome{status: payment.StatusCanceled, captured: whole, refunds: 1}},
		{"held for a dead payment, then voided", canceledBySilence, []payment.Event{
			fact(payment.EventPending), fact(payment.EventAuthorized), fact(payment.EventVoided),
		}, outcome{status: payment.StatusCanceled}},
		{"held for a dead payment, then lapsed", canceledBySilence, []payment.Event{
			fact(payment.EventPending), fact(payment.EventAuthorized), fact(payment.EventDeclined),
		}, outcome{status: payment.StatusCanceled}},
		{
			"captured after a confirmed void", func(t testing.TB) payment.Payment {
				return after(t, canceling(t), fact(payment.EventVoided))
			},
			[]payment.Event{fact(payment.EventAuthorized), fact(payment.EventCaptured), returned},
			outcome{status: payment.StatusRefunded, captured: whole, refunded: whole, refunds: 1},
		},
		{
			"captured after a decline", func(t testing.TB) payment.Payment {
				return after(t, processing(), fact(payment.EventDeclined))
			},
			[]payment.Event{fact(payment.EventCaptured), returned},
			outcome{status: payment.StatusRefunded, captured: whole, refunded: whole, refunds: 1},
		},
	}
}

func refundHistories() []history {
	asked := refundsAsked(2000, 1000)
	return []history{
		{"refunds of ours and one made outside", asked, []payment.Event{
			refund(payment.EventRefundPending, ours1, "rf_1", 2000), refund(payment.EventRefundSucceeded, "", "rf_1", 2000),
			refund(payment.EventRefundSucceeded, ours2, "rf_2", 1000), refund(payment.EventRefundSucceeded, "", "rf_outside", 500),
		}, outcome{status: payment.StatusCaptured, captured: whole, refunded: 3500, refunds: 3}},
		{"S17: ours without our id is not counted twice", refundsAsked(2000, 2000), []payment.Event{
			refund(payment.EventRefundSucceeded, "", "rf_1", 2000), refund(payment.EventRefundPending, ours1, "rf_1", 2000),
			refund(payment.EventRefundSucceeded, "", "rf_2", 2000), refund(payment.EventRefundSucceeded, ours2, "rf_2", 2000),
		}, outcome{status: payment.StatusCaptured, captured: whole, refunded: 4000, refunds: 2}},
		{"a refund fails after it succeeded", asked, []payment.Event{
			refund(payment.EventRefundPending, ours1, "rf_1", 2000), refund(payment.EventRefundSucceeded, ours1, "rf_1", 2000),
			refund(payment.EventRefundFailed, ours1, "rf_1", 2000), refund(payment.EventRefundPending, ours2, "rf_2", 1000),
		}, outcome{status: payment.StatusCaptured, captured: whole, refunds: 2}},
		{"two refunds of ours are the whole", refundsAsked(3000, 2000), []payment.Event{
			refund(payment.EventRefundPending, ours1, "rf_1", 3000), refund(payment.EventRefundSucceeded, ours1, "rf_1", 3000),
			refund(payment.EventRefundPending, ours2, "rf_2", 2000), refund(payment.EventRefundSucceeded, ours2, "rf_2", 2000),
		}, outcome{status: payment.StatusRefunded, captured: whole, refunded: whole, refunds: 2}},
		{"made outside, before we know of the capture", sentAutomatic, []payment.Event{
			fact(payment.EventCaptured), refund(payment.EventRefundPending, "", "rf_a", 4000),
			refund(payment.EventRefundSucceeded, "", "rf_a", 4000), refund(payment.EventRefundSucceeded, "", "rf_b", 1000),
		}, outcome{status: payment.StatusRefunded, captured: whole, refunded: whole, refunds: 2}},
		{"S9: disputes only end", sentAutomatic, []payment.Event{
			fact(payment.EventCaptured), dispute(payment.EventDisputeOpened, "dp_1", ""),
			dispute(payment.EventDisputeClosed, "dp_1", "won"),
		}, outcome{status: payment.StatusCaptured, captured: whole}},
		{"one of two disputes is open", sentAutomatic, []payment.Event{
			fact(payment.EventCaptured), dispute(payment.EventDisputeOpened, "dp_1", ""),
			dispute(payment.EventDisputeClosed, "dp_1", "lost"), dispute(payment.EventDisputeOpened, "dp_2", ""),
		}, outcome{status: payment.StatusCaptured, captured: whole, disputed: true}},
		{"S9: refund and dispute together", refundsAsked(2000, 1000), []payment.Event{
			refund(payment.EventRefundSucceeded, ours1, "rf_1", 2000), refund(payment.EventRefundFailed, ours1, "rf_1", 2000),
			dispute(payment.EventDisputeOpened, "dp_1", ""), dispute(payment.EventDisputeClosed, "dp_1", "won"),
		}, outcome{status: payment.StatusCaptured, captured: whole, refunds: 2}},
	}
}

// Every order of one history, each event once or twice, ends the same: in one
// outcome, and in one payment as its merchant sees it.
func TestOrderAndRepetitionDoNotMatter(t *testing.T) {
	for _, group := range [][]history{chargeHistories(), lateHistories(), refundHistories()} {
		for _, h := range group {
			t.Run(h.name, func(t *testing.T) {
				from := h.from(t)
				want := ""
				for order := range orders(len(h.events)) {
					p := deliver(t, from, h.events, order)
					if got := outcomeOf(p); got != h.want {
						t.Fatalf("order %v: got %+v, want %+v", order, got, h.want)
					}
					got := timeless(t, p)
					if want == "" {
						want = got
					}
					if got != want {
						t.Fatalf("order %v: got %s, want %s as in the first order", order, got, want)
					}
				}
			})
		}
	}
}

// timeless is a payment's view and what it holds, without what tells how often and
// when it was changed.
func timeless(t testing.TB, p payment.Payment) string {
	v := p.View()
	v.Version, v.UpdatedAt = 0, time.Time{}
	if p.Status == payment.StatusCanceled && p.CancelCause == "" {
		v.Failure = nil // why the PSP ended it itself is told as it was known then
	}
	for i := range v.Refunds {
		v.Refunds[i].CreatedAt, v.Refunds[i].UpdatedAt = time.Time{}, time.Time{}
	}
	slices.SortFunc(v.Refunds, func(a, b payment.RefundView) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(v.Disputes, func(a, b payment.DisputeView) int { return cmp.Compare(a.ID, b.ID) })
	return fmt.Sprintf("%s holds reference %t, funds late %t", encode(t, v), p.HoldsReference, p.LateHold)
}

// A full refund that fails after it succeeded is the one place where order shows
// in the status: whoever was told refunded is not told otherwise. The money is
// the same in every order.
func TestFullRefundThatFailsKeepsOnlyTheStatus(t *testing.T) {
	from := after(t, processing(), fact(payment.EventCaptured), ask(ours1, whole))
	events := []payment.Event{
		refund(payment.EventRefundPending, ours1, "rf_1", whole), refund(payment.EventRefundSucceeded, ours1, "rf_1", whole),
		refund(payment.EventRefundFailed, ours1, "rf_1", whole),
	}
	seen := map[payment.Status]bool{}
	for order := range orders(len(events)) {
		p := deliver(t, from, events, order)
		seen[p.Status] = true
		if p.AmountRefunded() != 0 || p.Refundable() != whole {
			t.Fatalf("order %v: got %d refunded, %d refundable; want 0 and %d", order, p.AmountRefunded(), p.Refundable(), whole)
		}
	}
	want := map[payment.Status]bool{payment.StatusCaptured: true, payment.StatusRefunded: true}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("got statuses %v, want %v", seen, want)
	}
}

// deliver gives p the events in that order as the inbox does: what comes too
// early waits, and is tried again until nothing changes any more.
func deliver(t testing.TB, p payment.Payment, events []payment.Event, order []int) payment.Payment {
	t.Helper()
	waiting := make([]payment.Event, 0, len(order))
	for _, i := range order {
		waiting = append(waiting, events[i])
	}
	for {
		var early []payment.Event
		for _, e := range waiting {
			next, r, changed, err := p.Apply(e)
			if te, ok := errors.AsType[*payment.TransitionError](err); ok && te.Early {
				early = append(early, e)
				continue
			}
			if err != nil {
				t.Fatalf("order %v: %v", order, err)
			}
			if changed && (next.Version != p.Version+1 || r.Version != next.Version) {
				t.Fatalf("order %v, %s: version %d became %d, row %d", order, e.Type, p.Version, next.Version, r.Version)
			}
			if !changed && (next.Version != p.Version || outcomeOf(next) != outcomeOf(p)) {
				t.Fatalf("order %v: old news %s changed the payment", order, e.Type)
			}
			p = next
		}
		if len(early) == 0 {
			return p
		}
		if len(early) == len(waiting) {
			t.Fatalf("order %v: %s waits for ever", order, early[0].Type)
		}
		waiting = early
	}
}

// orders yields every order of n events, each of them once or twice.
func orders(n int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for times := range 1 << n {
			left := make([]int, n)
			for i := range left {
				left[i] = 1 + times>>i&1
			}
			if !arrange(left, nil, yield) {
				return
			}
		}
	}
}

// arrange yields head followed by every distinct order of what is left.
func arrange(left, head []int, yield func([]int) bool) bool {
	ended := true
	for i := range left {
		if left[i] == 0 {
			continue
		}
		ended = false
		left[i]--
		if !arrange(left, append(head[:len(head):len(head)], i), yield) {
			return false
		}
		left[i]++
	}
	return !ended || yield(head)
}
