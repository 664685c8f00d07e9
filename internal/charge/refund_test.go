package charge_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

func TestOnlyCapturedMoneyIsRefunded(t *testing.T) {
	for _, c := range []struct {
		name  string
		order Order
		err   error
	}{
		{"pending", Order{Token: psptest.TokenPending}, charge.ErrInvalidStatus},
		{"held", Order{Manual: true}, charge.ErrInvalidStatus},
		{"declined", Order{Token: psptest.TokenDeclined}, charge.ErrInvalidStatus},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(t)
			r, err := w.Charge("k", c.order)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Refund("r", r.Payment.ID, 0); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
		})
	}
	t.Run("refunded", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{}, payment.StatusCaptured)
		w.Refunded("r", p.ID, 0, payment.RefundSucceeded)
		for _, amount := range []int64{0, 1} {
			if _, err := w.Refund("r2", p.ID, amount); !errors.Is(err, payment.ErrAmountTooLarge) {
				t.Errorf("%d: got %v, want %v", amount, err, payment.ErrAmountTooLarge)
			}
		}
	})
}

func TestRefundsStayWithinTheCapture(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.Refunded("r1", p.ID, 2000, payment.RefundSucceeded)
	if _, err := w.Refund("r2", p.ID, 3001); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Fatalf("got %v, want %v", err, payment.ErrAmountTooLarge)
	}
	rest := w.Refunded("r3", p.ID, 0, payment.RefundSucceeded)
	if rest.Amount != 3000 {
		t.Errorf("got %d for the rest, want 3000", rest.Amount)
	}
	w.Want(p.ID, payment.StatusRefunded)
}

func TestAPendingRefundCountsUntilItFails(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenRefundPendingFailed}, payment.StatusCaptured)
	refund := w.Refunded("r1", p.ID, 0, payment.RefundPending)
	if got := w.Want(p.ID, payment.StatusCaptured); got.AmountRefunded() != 0 {
		t.Errorf("got %d refunded, want 0 while it is pending", got.AmountRefunded())
	}
	if _, err := w.Refund("r2", p.ID, 1); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Fatalf("got %v, want %v while it is pending", err, payment.ErrAmountTooLarge)
	}
	w.PSP.SettleRefund(string(refund.ID), psp.RefundFailed)
	w.Deliver(w.PSP.Drain()...)
	got := w.Want(p.ID, payment.StatusCaptured)
	if r, _ := got.Refund(refund.ID); r.Status != payment.RefundFailed {
		t.Errorf("got %s, want failed", r.Status)
	}
	if n := w.Meter.Of(journal.MetricRefundFailed); n != 1 {
		t.Errorf("got %d alarms, want 1", n)
	}
	w.WantRest(p.ID)
	w.Refunded("r3", p.ID, 0, payment.RefundPending)
}

func TestAPendingRefundWhoseEventIsLostIsFoundByTheSweep(t *testing.T) {
	for _, status := range []psp.RefundStatus{psp.RefundSucceeded, psp.RefundFailed} {
		t.Run(string(status), func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenRefundPendingFailed}, payment.StatusCaptured)
			refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
			w.Pass(time.Hour)
			w.PSP.SettleRefund(string(refund.ID), status)
			w.Pass(2 * time.Hour)
			if got, _ := w.Payment(p.ID).Refund(refund.ID); string(got.Status) != string(status) {
				t.Errorf("got %s, want %s", got.Status, status)
			}
			w.WantRest(p.ID)
			w.WantCalls(psptest.OperationRefund, 1)
		})
	}
}

func TestARefundInDoubtIsLookedUpAndSentAgainWithItsKeyOnlyIfItNeverArrived(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(w *World)
		sends int
	}{
		{"request lost", func(w *World) { w.OnCall(psptest.OperationRefund, Lost) }, 2},
		{"answer lost", func(w *World) { w.OnAnswer(psptest.OperationRefund, Lost) }, 1},
		{"throttled", func(w *World) {
			w.OnCall(psptest.OperationRefund, func() error { return &psp.Error{Operation: "refund", Outcome: psp.OutcomeThrottled} })
		}, 2},
		{"in the air", func(w *World) { w.Line.Hold(psptest.OperationRefund) }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{}, payment.StatusCaptured)
			c.fault(w)
			refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
			w.Pass(2 * time.Minute)
			w.Line.Arrive()
			if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != payment.RefundSucceeded {
				t.Errorf("got %s, want succeeded", got.Status)
			}
			if n := len(w.PSP.Charges()[0].Refunds); n != 1 {
				t.Errorf("got %d refunds at the psp, want 1", n)
			}
			if n := len(w.Calls(psptest.OperationRefund)); c.name != "in the air" && n != c.sends {
				t.Errorf("got %d sendings, want %d", n, c.sends)
			}
			w.WantRest(p.ID)
		})
	}
}

func TestARefundThatThePSPRefusesHasFailed(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, func() error {
		return &psp.Error{Operation: "refund", Outcome: psp.OutcomeRejected, Code: "charge_disputed"}
	})
	w.Refunded("r1", p.ID, 2000, payment.RefundFailed)
	again, err := w.Refund("r1", p.ID, 2000)
	if err != nil || !again.Replayed || again.Refund().Status != payment.RefundFailed {
		t.Errorf("replay: got %s, %v, want failed", again.Refund().Status, err)
	}
	w.WantCalls(psptest.OperationRefund, 1)
	w.Refunded("r2", p.ID, 5000, payment.RefundSucceeded)
}

func TestARefusalOfARepeatedRefundIsFinalOnlyWhenTheFirstIsKnownToHaveDoneNothing(t *testing.T) {
	for proof, want := range map[bool]payment.RefundStatus{false: payment.RefundPending, true: payment.RefundFailed} {
		w := New(t)
		w.PSP.Promise(psp.Capabilities{KeyLifetime: 24 * time.Hour, AuthoritativeLookup: proof})
		p := w.Charged("k", Order{}, payment.StatusCaptured)
		w.OnCall(psptest.OperationRefund, Lost)
		refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
		w.OnCall(psptest.OperationRefund, func() error { return &psp.Error{Operation: "refund", Outcome: psp.OutcomeRejected} })
		w.Pass(time.Minute)
		if got, _ := w.Payment(p.ID).Refund(refund.ID); got.Status != want {
			t.Errorf("look-up is proof %t: got %s, want %s", proof, got.Status, want)
		}
	}
}

// All of it is refunded by us, a part of it at the PSP meanwhile: ours is refused.
func TestARefundThatIsOvertakenByOneMadeAtThePSPFails(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.Crash(func() {
		w.OnCall(psptest.OperationRefund, w.Die)
		w.Refund("r", p.ID, 0)
	})
	w.PSP.RefundDirect(string(p.ID), 500)
	w.Deliver(w.PSP.Drain()...) // it waits: it may be ours
	w.Pass(5 * time.Minute)
	got := w.Want(p.ID, payment.StatusCaptured)
	if got.AmountRefunded() != 500 || len(got.Refunds) != 2 {
		t.Errorf("got refunds %+v, want ours failed and theirs counted", got.Refunds)
	}
	w.WantRest(p.ID)
	w.Refunded("r2", p.ID, 0, payment.RefundSucceeded)
	w.Want(p.ID, payment.StatusRefunded)
}

func TestNoRefundWhileDisputed(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	reference, _ := w.PSP.DisputeOpen(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	if !w.Payment(p.ID).View().Disputed {
		t.Error("the view does not show the dispute")
	}
	if _, err := w.Refund("r", p.ID, 0); !errors.Is(err, payment.ErrDisputed) {
		t.Fatalf("got %v, want %v", err, payment.ErrDisputed)
	}
	w.PSP.DisputeClose(reference, "lost")
	w.Deliver(w.PSP.Drain()...)
	w.Refunded("r", p.ID, 0, payment.RefundSucceeded)
}

func TestARefundMadeAtThePSPCounts(t *testing.T) {
	for _, by := range []string{"event", "look-up"} {
		t.Run(by, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenRefundPendingFailed}, payment.StatusCaptured)
			w.PSP.Drain()
			w.PSP.RefundDirect(string(p.ID), 1500)
			if by == "event" {
				w.Deliver(w.PSP.Drain()...)
			} else {
				w.Refunded("ours", p.ID, 500, payment.RefundPending) // which makes us look
				w.Pass(time.Minute)
			}
			got := w.Payment(p.ID)
			if got.AmountRefunded() != 1500 {
				t.Fatalf("got %d refunded, want 1500", got.AmountRefunded())
			}
			if _, err := w.Refund("r", p.ID, 3501); !errors.Is(err, payment.ErrAmountTooLarge) {
				t.Errorf("got %v, want %v", err, payment.ErrAmountTooLarge)
			}
			w.Deliver(w.PSP.Drain()...)
			if got := w.Payment(p.ID); got.AmountRefunded() != 1500 {
				t.Errorf("got %d refunded, want it counted once", got.AmountRefunded())
			}
		})
	}
}

func TestARefundEventBeforeTheAnswerIsTheSameRefund(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.PSP.Drain()
	w.OnAnswer(psptest.OperationRefund, Then(func() {
		events := w.PSP.Drain()
		w.Deliver(events...)
		w.WantItem(events[0], webhook.StatusApplied)
		r, err := w.Refund("r", p.ID, 2000) // and a repeat need not wait
		if err != nil || r.Refund().Status != payment.RefundSucceeded {
			t.Errorf("repeat: got %s, %v, want succeeded", r.Refund().Status, err)
		}
	}))
	w.Refunded("r", p.ID, 2000, payment.RefundSucceeded)
	if got := w.Payment(p.ID); len(got.Refunds) != 1 || got.AmountRefunded() != 2000 {
		t.Errorf("got %+v, want one refund of 2000", got.Refunds)
	}
}

func TestARefundThatWaitsForAPersonDoesNotHoldUpTheNext(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, Lost)
	first := w.Refunded("r1", p.ID, 1000, payment.RefundPending)
	w.PSP.Before(psptest.OperationLookup, Lost)
	w.Pass(13 * time.Hour) // past half its key's life
	w.PSP.Before(psptest.OperationLookup, nil)
	w.OnCall(psptest.OperationRefund, Lost)
	second := w.Refunded("r2", p.ID, 2000, payment.RefundPending)
	w.Pass(2 * time.Hour)
	got := w.Payment(p.ID)
	if r, _ := got.Refund(second.ID); r.Status != payment.RefundSucceeded {
		t.Errorf("second: got %s, want succeeded", r.Status)
	}
	if r, _ := got.Refund(first.ID); r.Status != payment.RefundPending {
		t.Errorf("first: got %s, want it pending", r.Status)
	}
}

func TestAThrottledRefundIsSentAgainWhenThePSPSaidSo(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, func() error {
		return &psp.Error{Operation: "refund", Outcome: psp.OutcomeThrottled, RetryAfter: 10 * time.Second}
	})
	refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
	if refund.Operation.State != payment.OperationNotRun {
		t.Errorf("got %s, want it known not to have run", refund.Operation.State)
	}
	w.Clock.Advance(10*time.Second - time.Millisecond)
	w.Refunded("r", p.ID, 2000, payment.RefundPending)
	w.WantCalls(psptest.OperationRefund, 1)
	w.Clock.Advance(time.Millisecond)
	w.Refunded("r", p.ID, 2000, payment.RefundSucceeded)
	w.WantCalls(psptest.OperationRefund, 2)
}

func TestALookUpCountsRefundsMadeAtThePSPTogetherWithOurs(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, Then(func() { w.PSP.RefundDirect(string(p.ID), 500) })) // first in the PSP's list
	w.OnAnswer(psptest.OperationRefund, Lost)
	w.Refunded("r", p.ID, 2000, payment.RefundPending)
	w.Pass(time.Minute)
	if got := w.Payment(p.ID); got.AmountRefunded() != 2500 || len(got.Refunds) != 2 {
		t.Errorf("got %d refunded, %+v, want both", got.AmountRefunded(), got.Refunds)
	}
	w.WantRest(p.ID)
}

func TestARefundMadeAtThePSPIsCountedWhenOursIsSettled(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.OnCall(psptest.OperationRefund, Lost)
	w.Refunded("r", p.ID, 2000, payment.RefundPending)
	w.PSP.RefundDirect(string(p.ID), 500) // and its event is lost
	w.Pass(time.Minute)
	if got := w.Payment(p.ID); got.AmountRefunded() != 2500 || len(got.Refunds) != 2 {
		t.Errorf("got %d refunded, %+v, want both", got.AmountRefunded(), got.Refunds)
	}
	w.WantRest(p.ID)
}
