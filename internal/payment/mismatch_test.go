package payment_test

import (
	"errors"
	"math"
	"testing"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
)

// chargeFacts are the events in which a PSP speaks of the charge and its money.
var chargeFacts = []payment.EventType{
	payment.EventPending, payment.EventActionRequired, payment.EventAuthorized,
	payment.EventCaptured, payment.EventDeclined, payment.EventVoided,
}

// S-AMOUNT-FIXED: what a PSP says of other money is refused in every status in
// which the event means anything, also where it would be old news.
func TestOtherMoneyIsRefusedInEveryStatus(t *testing.T) {
	tests := []struct {
		field string
		alter func(*payment.Event)
	}{
		{"amount", func(e *payment.Event) { e.Amount.Minor++ }},
		{"amount", func(e *payment.Event) { e.Amount.Minor-- }},
		{"amount", func(e *payment.Event) { e.Amount.Minor = 0 }},
		{"currency", func(e *payment.Event) { e.Amount.Currency = "USD" }},
		{"currency", func(e *payment.Event) { e.Amount = money.Amount{} }},
		{"psp_reference", func(e *payment.Event) { e.PSPReference = "ch_other" }},
	}
	for status, p := range inStatus(t) {
		for _, kind := range chargeFacts {
			if _, verdict := payment.Next(status, kind); verdict == payment.Illegal {
				continue
			}
			for _, tt := range tests {
				if tt.field == "psp_reference" && p.PSPReference == "" {
					continue // nothing to disagree with yet
				}
				e := fact(kind)
				tt.alter(&e)
				mismatched(t, p, e, tt.field)
			}
		}
	}
}

func TestAnotherCapturedAmountIsRefused(t *testing.T) {
	all := inStatus(t)
	all["late"] = after(t, canceledBySilence(t), fact(payment.EventCaptured))
	for status, p := range all {
		if _, verdict := payment.Next(p.Status, payment.EventCaptured); verdict == payment.Illegal {
			continue
		}
		for _, minor := range []int64{-1, 0, whole + 1, math.MaxInt64} {
			mismatched(t, p, capturedOnly(minor), "captured")
		}
		if p.CaptureMethod == payment.CaptureAutomatic {
			mismatched(t, p, capturedOnly(whole-1), "captured")
		} else if got := after(t, p, capturedOnly(1)).AmountCaptured; got != 1 {
			t.Errorf("%s: got %d captured, want 1", status, got)
		}
	}
	partly := after(t, manual(), capturedOnly(4000))
	oldNews(t, partly, capturedOnly(4000))
	mismatched(t, partly, capturedOnly(3000), "captured")
	mismatched(t, partly, capturedOnly(whole), "captured")
}

// A payment without a capture method is nobody's; nothing is captured for it.
func TestUnknownCaptureMethodCapturesNothing(t *testing.T) {
	p, _ := payment.NewSent(terms(""), start)
	mismatched(t, p, fact(payment.EventCaptured), "captured")
}

func TestEveryEventOfAnotherChargeIsRefused(t *testing.T) {
	for status, p := range inStatus(t) {
		if p.PSPReference == "" {
			continue
		}
		for _, kind := range payment.EventTypes() {
			if _, verdict := payment.Next(status, kind); verdict == payment.Illegal || verdict == payment.TooEarly {
				continue
			}
			mismatched(t, p, payment.Event{Type: kind, At: start, PSPReference: "ch_other", Amount: yen, Captured: whole}, "psp_reference")
		}
	}
}

// S10: the end of a charge of other money is believed, else the payment would
// have none. What it holds or took never is.
func TestAChargeOfOtherMoneyCanEnd(t *testing.T) {
	doubtful := after(t, processing(), intent(payment.EventMismatched), cancel(payment.CancelByExpiry))
	for _, kind := range chargeFacts {
		e := fact(kind)
		e.Amount.Minor = 1
		if kind == payment.EventVoided || kind == payment.EventDeclined {
			p := after(t, doubtful, e)
			if !p.Status.Dead() || p.InDoubt() || p.Amount != yen || p.AmountCaptured != 0 {
				t.Errorf("%s: got %s, in doubt %v, amount %s; want a dead payment of its own amount", kind, p.Status, p.InDoubt(), p.Amount)
			}
			oldNews(t, p, e)
			continue
		}
		mismatched(t, doubtful, e, "amount")
	}
	other := after(t, processing(), fact(payment.EventPending), intent(payment.EventMismatched))
	stranger := fact(payment.EventVoided)
	stranger.PSPReference = "ch_other"
	mismatched(t, other, stranger, "psp_reference")
}

func TestARefundOfOtherMoneyIsRefused(t *testing.T) {
	captured := inStatus(t)[payment.StatusCaptured]
	asked := after(t, captured, ask(ours1, 2000))
	known := after(t, asked, refund(payment.EventRefundPending, ours1, "rf_1", 2000))
	two := after(t, known, ask(ours2, 2000), refund(payment.EventRefundPending, ours2, "rf_2", 2000))
	outside := after(t, captured, refund(payment.EventRefundPending, "", "rf_9", 700))
	for _, kind := range []payment.EventType{payment.EventRefundPending, payment.EventRefundSucceeded, payment.EventRefundFailed} {
		mismatched(t, asked, refund(kind, ours1, "rf_1", 1999), "refund")
		mismatched(t, known, refund(kind, "", "rf_1", 2001), "refund")
		mismatched(t, known, refund(kind, ours1, "rf_other", 2000), "refund")
		mismatched(t, captured, refund(kind, ours1, "rf_1", 2000), "refund") // an id we never gave
		mismatched(t, captured, refund(kind, "", "", 2000), "refund")
		mismatched(t, captured, refund(kind, "", "rf_9", 0), "refund")
		mismatched(t, captured, refund(kind, "", "rf_9", -1), "refund")
		mismatched(t, outside, refund(kind, "", "rf_9", 701), "refund")
		mismatched(t, two, refund(kind, ours1, "rf_2", 2000), "refund")
		mismatched(t, two, refund(kind, ours2, "rf_1", 2000), "refund")
		mismatched(t, after(t, known, ask(ours2, 2000)), refund(kind, ours2, "rf_1", 2000), "refund")
	}
	for _, kind := range []payment.EventType{payment.EventRefundSent, payment.EventRefundUnanswered} {
		mismatched(t, captured, refundCall(kind, ours1, 1), "refund")
		mismatched(t, captured, refundCall(kind, "", 1), "refund")
		mismatched(t, outside, refundCall(kind, payment.OutsideRefundID("simulator", "rf_9"), 0), "refund")
	}
}

// No PSP gives back more than was captured: one refund of more disagrees, and one that
// is too much beside those that succeeded waits, as one of them may have failed since.
func TestAbsurdRefundsAreRefused(t *testing.T) {
	p := inStatus(t)[payment.StatusCaptured]
	captured := p.AmountCaptured
	for _, minor := range []int64{captured + 1, money.Max + 1, math.MaxInt64} {
		for _, kind := range []payment.EventType{payment.EventRefundPending, payment.EventRefundSucceeded, payment.EventRefundFailed} {
			mismatched(t, p, refund(kind, "", "rf_9", minor), "refund")
		}
	}
	p = after(t, p, refund(payment.EventRefundSucceeded, "", "rf_a", captured-1))
	for _, kind := range []payment.EventType{payment.EventRefundPending, payment.EventRefundSucceeded} {
		_, _, changed, err := p.Apply(refund(kind, "", "rf_b", 2))
		if te, ok := errors.AsType[*payment.TransitionError](err); changed || !ok || !te.Early {
			t.Errorf("%s: got changed %v, %v; want it to wait", kind, changed, err)
		}
	}
	if after(t, p, refund(payment.EventRefundFailed, "", "rf_b", 2)).AmountRefunded() != captured-1 {
		t.Error("got one that failed counted")
	}
	p = after(t, p, refund(payment.EventRefundFailed, "", "rf_a", captured-1), refund(payment.EventRefundSucceeded, "", "rf_b", 2))
	if p.AmountRefunded() != 2 {
		t.Errorf("got %d refunded, want the one that did not fail", p.AmountRefunded())
	}
}

func TestErrorsSayWhatWasRefused(t *testing.T) {
	_, _, _, err := created().Apply(fact(payment.EventCaptured))
	if got, want := err.Error(), "payment: payment.captured is illegal in status created"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, _, _, err = processing().Apply(refund(payment.EventRefundSucceeded, "", "rf_1", 1))
	if te, ok := errors.AsType[*payment.TransitionError](err); !ok || !te.Early {
		t.Errorf("got %v, want a refund before the capture to be too early", err)
	}
	if got, want := err.Error(), "payment: refund.succeeded comes too early in status processing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_, _, _, err = processing().Apply(capturedOnly(1))
	if got, want := err.Error(), "payment: payment.captured disagrees about the captured"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
