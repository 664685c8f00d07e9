package payment_test

import (
	"testing"
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// now2 is when the events of intent() are recorded.
const now2 = 2 * time.Second

// voidsRefused is p after n voids that the PSP refused.
func voidsRefused(t *testing.T, p payment.Payment, n int) payment.Payment {
	t.Helper()
	for range n {
		p = after(t, p, intent(payment.EventVoidSent))
		p = after(t, p, missedOf(payment.EventVoidRefused, payment.OperationVoid, p.Void))
	}
	return p
}

func TestLook(t *testing.T) {
	all := inStatus(t)
	held, captured := all[payment.StatusAuthorized], all[payment.StatusCaptured]
	notRun := func(o payment.OperationName, retry time.Duration) payment.Event {
		e := missed(payment.EventNotRun, o, 1)
		if retry > 0 {
			e.RetryAt = start.Add(retry)
		}
		return e
	}
	pending := after(t, processing(), fact(payment.EventPending))
	canceling := after(t, pending, cancel(payment.CancelByMerchant))
	lateHold := after(t, canceledBySilence(t), at(time.Minute, fact(payment.EventAuthorized)))
	tests := []struct {
		name string
		p    payment.Payment
		want time.Duration // after the start; never for -1
	}{
		{"created: at its deadline", created(), 30 * time.Minute},
		{"just sent", processing(), time.Minute},
		{"no answer", after(t, processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1)), time.Minute},
		{"sent again: twice the pause", after(t, processing(), at(time.Minute, intent(payment.EventSent))), 3 * time.Minute},
		{"sent a third time", after(t, processing(), at(time.Minute, intent(payment.EventSent)), at(3*time.Minute, intent(payment.EventSent))), 7 * time.Minute},
		{"sent again: not past the deadline", after(t, processing(), at(29*time.Minute, intent(payment.EventSent))), 30 * time.Minute},
		{"throttled: when the PSP said", after(t, processing(), notRun(payment.OperationCreate, 7*time.Second)), 7 * time.Second},
		{"throttled without a time", after(t, processing(), notRun(payment.OperationCreate, 0)), time.Minute},
		{"throttled for long: the deadline", after(t, processing(), notRun(payment.OperationCreate, time.Hour)), 30 * time.Minute},
		{"other money after the deadline", after(t, processing(), at(40*time.Minute, intent(payment.EventMismatched))), 41 * time.Minute},
		{"no answer, noted after the deadline", after(t, processing(), at(40*time.Minute, missed(payment.EventUnanswered, payment.OperationCreate, 1))), time.Minute},
		{"canceling, the call on its way", after(t, processing(), cancel(payment.CancelByMerchant)), arrival},
		{"canceling, no answer", after(t, processing(), missed(payment.EventUnanswered, payment.OperationCreate, 1), cancel(payment.CancelByMerchant)), arrival},
		{"canceling what did not run", after(t, processing(), notRun(payment.OperationCreate, time.Hour), cancel(payment.CancelByMerchant)), now2},
		{"pending", pending, time.Second + time.Minute},
		{"pending, near the deadline", after(t, processing(), at(29*time.Minute+time.Second, fact(payment.EventPending))), 30 * time.Minute},
		{"pending, past the deadline", after(t, processing(), at(31*time.Minute, fact(payment.EventPending))), 32 * time.Minute},
		{"other money", after(t, pending, intent(payment.EventMismatched)), now2 + time.Minute},
		{"requires action", all[payment.StatusRequiresAction], time.Second + time.Minute},
		{"canceling what the PSP has", canceling, now2},
		{"void on its way", after(t, canceling, intent(payment.EventVoidSent)), now2 + time.Minute},
		{"void on its way again", after(t, canceling, intent(payment.EventVoidSent), at(time.Minute, intent(payment.EventVoidSent))), 3 * time.Minute},
		{"void refused: why?", voidsRefused(t, canceling, 1), now2},
		{"void refused twice: later", voidsRefused(t, canceling, 2), now2 + time.Minute},
		{"void refused three times: later still", voidsRefused(t, canceling, 3), now2 + 2*time.Minute},
		{"held: daily", held, time.Second + 24*time.Hour},
		{"capture on its way", after(t, held, capture(whole)), now2 + time.Minute},
		{"capture did not run", after(t, held, capture(whole), notRun(payment.OperationCapture, 9*time.Second)), 9 * time.Second},
		{"capture refused: daily", after(t, held, capture(whole), missed(payment.EventCaptureRefused, payment.OperationCapture, 1)), now2 + 24*time.Hour},
		{"canceling what is held", after(t, held, cancel(payment.CancelByMerchant)), now2},
		{"canceling while a capture is on its way", after(t, held, capture(whole), cancel(payment.CancelByMerchant)), now2 + arrival},
		{"canceling what was not captured", after(t, held, capture(whole), notRun(payment.OperationCapture, time.Hour), cancel(payment.CancelByMerchant)), now2},
		{"captured", captured, -1},
		{"declined", all[payment.StatusFailed], -1},
		{"refunded", all[payment.StatusRefunded], -1},
		{"canceled before anything was sent", after(t, created(), cancel(payment.CancelByMerchant)), -1},
		{"canceled: watched for late money", canceledBySilence(t), now2 + time.Minute},
		{"voided: watched all the same", after(t, canceling, fact(payment.EventVoided)), time.Second + time.Minute},
		{"canceled when the key's window had passed", after(t, processing(), cancel(payment.CancelByExpiry), at(24*time.Hour, fact(payment.EventVoided))), -1},
		{"canceled just before that", after(t, processing(), cancel(payment.CancelByExpiry), at(24*time.Hour-1, fact(payment.EventVoided))), 24*time.Hour - 1 + time.Minute},
		{"held for a dead payment: at once", lateHold, time.Minute},
		{"held for a dead payment, void on its way", after(t, lateHold, at(25*time.Hour, intent(payment.EventVoidSent))), 25*time.Hour + time.Minute},
		{"late money: at once", after(t, canceledBySilence(t), at(time.Hour, fact(payment.EventCaptured))), time.Hour},
		{"refund on its way", after(t, captured, ask(ours1, 1)), now2 + time.Minute},
		{"refund did not run", after(t, captured, ask(ours1, 1), refundThrottled(11*time.Second)), 11 * time.Second},
		{"refund pending at the PSP", after(t, captured, ask(ours1, 1), refund(payment.EventRefundPending, ours1, "rf_1", 1)), 3*time.Second + time.Minute},
		{"refund made outside, pending", after(t, captured, refund(payment.EventRefundPending, "", "rf_9", 1)), 3*time.Second + time.Minute},
		{"the sooner of two refunds", after(t, captured, ask(ours1, 1), refundThrottled(11*time.Second), ask(ours2, 1)), 11 * time.Second},
		{"refund failed", after(t, captured, ask(ours1, 1), refund(payment.EventRefundFailed, ours1, "rf_1", 1)), -1},
		{"late refund failed: an operator's turn", after(t, canceledBySilence(t), fact(payment.EventCaptured),
			refund(payment.EventRefundFailed, payment.LateRefundID(paymentID), "rf_1", whole)), -1},
		{"disputed", after(t, captured, dispute(payment.EventDisputeOpened, "dp_1", "")), -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := start.Add(tt.want)
			if tt.want < 0 {
				want = time.Time{}
			}
			if got := tt.p.Look(policy); !got.Equal(want) {
				t.Errorf("got a look at %s, want %s", got.Sub(start), want.Sub(start))
			}
		})
	}
}

func refundThrottled(retry time.Duration) payment.Event {
	e := refundCall(payment.EventRefundUnanswered, ours1, 1)
	e.Refund.NotRun, e.Refund.RetryAt = true, start.Add(retry)
	return e
}

// Looks that bring nothing come at twice the pause each time, at most daily.
func TestPostponedDoublesUpToADay(t *testing.T) {
	far := terms(payment.CaptureAutomatic)
	far.ExpiresAt = start.Add(1000 * time.Hour)
	p, _ := payment.NewSent(far, start)
	now, want := start, time.Minute
	for n := 1; n <= 40; n++ {
		at, tries := p.Postponed(policy, now)
		if !at.Equal(now.Add(want)) || tries != n {
			t.Fatalf("look %d: got %s later, tries %d; want %s", n, at.Sub(now), tries, want)
		}
		p.DueAt, p.Tries = at, tries
		want = min(2*want, 24*time.Hour)
	}
	if next := after(t, p, fact(payment.EventPending)); next.Tries != 0 {
		t.Errorf("got %d tries after a change, want 0", next.Tries)
	}
}

func TestPostponedIsBoundedForOddPolicies(t *testing.T) {
	p := processing()
	p.Tries = 1 << 20
	for _, reconcile := range []time.Duration{0, 1, time.Minute, 1000 * time.Hour} {
		pol := policy
		pol.ReconcileAfter = reconcile
		at, _ := p.Postponed(pol, expiry)
		if pause := at.Sub(expiry); pause < 0 || pause > 24*time.Hour {
			t.Errorf("reconcile after %s: got a pause of %s, want at most a day", reconcile, pause)
		}
	}
}

func TestPostponedNeverSkipsTheDeadline(t *testing.T) {
	for _, status := range []payment.Status{payment.StatusCreated, payment.StatusProcessing, payment.StatusRequiresAction} {
		p := inStatus(t)[status]
		p.Tries = 9
		at, _ := p.Postponed(policy, expiry.Add(-time.Second))
		if !at.Equal(expiry) {
			t.Errorf("%s: got a look at %s, want at the deadline", status, at)
		}
		at, _ = p.Postponed(policy, expiry)
		if !at.Equal(expiry.Add(policy.ReconcileAfter << 9)) {
			t.Errorf("%s: got a look at %s, want the usual pause once the deadline has come", status, at)
		}
	}
}

func TestPostponedHeldFundsAreLookedUpDaily(t *testing.T) {
	held := inStatus(t)[payment.StatusAuthorized]
	tests := []struct {
		name string
		p    payment.Payment
		want time.Duration
	}{
		{"held", held, 24 * time.Hour},
		{"being captured", after(t, held, capture(whole)), time.Minute},
		{"being canceled", after(t, held, cancel(payment.CancelByMerchant)), time.Minute},
	}
	for _, tt := range tests {
		if at, _ := tt.p.Postponed(policy, expiry); !at.Equal(expiry.Add(tt.want)) {
			t.Errorf("%s: got a pause of %s, want %s", tt.name, at.Sub(expiry), tt.want)
		}
	}
}

// S1: a payment declared dead is looked up until its key's window at the PSP has
// passed since the last sending, the last time right then.
func TestDeadPaymentIsWatchedForTheKeysWindow(t *testing.T) {
	sentAgain := after(t, processing(), at(10*time.Minute, intent(payment.EventSent)))
	p := after(t, sentAgain, at(11*time.Minute, cancel(payment.CancelByExpiry)), at(12*time.Minute, intent(payment.EventAbsent)))
	until := start.Add(10*time.Minute + policy.KeyLifetime)
	due, looks := p.Look(policy), 0
	for !due.IsZero() {
		if due.After(until) {
			t.Fatalf("got a look at %s, want none after %s", due, until)
		}
		looks++
		last := due
		p.DueAt = due
		due, p.Tries = p.Postponed(policy, due)
		if due.IsZero() && !last.Equal(until) {
			t.Errorf("got the last look at %s, want %s", last, until)
		}
	}
	if looks < 5 || looks > 20 || p.Tries != 0 {
		t.Errorf("got %d looks, tries %d at rest; want a handful with back-off, then 0", looks, p.Tries)
	}
}

// What is owed on a dead payment is looked at for as long as it takes.
func TestDeadPaymentThatOwesIsNotForgotten(t *testing.T) {
	long := start.Add(1000 * time.Hour)
	late := after(t, canceledBySilence(t), fact(payment.EventCaptured))
	id := payment.LateRefundID(paymentID)
	for name, p := range map[string]payment.Payment{
		"hold":                          after(t, canceledBySilence(t), fact(payment.EventAuthorized)),
		"refund owed":                   late,
		"refund pending":                after(t, late, refund(payment.EventRefundPending, id, "rf_1", whole)),
		"refund asked for a failed one": after(t, late, refund(payment.EventRefundFailed, id, "rf_1", whole), ask(ours1, whole)),
	} {
		p.Tries = 30
		if at, tries := p.Postponed(policy, long); !at.Equal(long.Add(24*time.Hour)) || tries != 31 {
			t.Errorf("%s: got a look at %s, want a day later", name, at)
		}
	}
}

func TestAtRestIsNotPostponed(t *testing.T) {
	for _, status := range []payment.Status{payment.StatusCaptured, payment.StatusFailed, payment.StatusRefunded} {
		p := inStatus(t)[status]
		p.Tries = 4
		if at, tries := p.Postponed(policy, expiry); !at.IsZero() || tries != 0 {
			t.Errorf("%s: got a look at %s, tries %d; want rest", status, at, tries)
		}
	}
}
