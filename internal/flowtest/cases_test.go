package flowtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// Faults that others had, each retold as a sequence.

func TestAConflictAfterTheAnswerRepeatsOnlyTheLocalWrite(t *testing.T) {
	w := New(t)
	for range 2 {
		w.Store.Before(Row(payment.EventCaptured), Refused)
	}
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	w.WantCalls(psptest.OperationCreate, 1)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAnImpatientBuyerIsChargedOnce(t *testing.T) {
	w := New(t)
	order := Order{Reference: "order-42"}
	ctx, hangUp := context.WithCancel(w.Context())
	w.OnAnswer(psptest.OperationCreate, func() error { // the answer comes after the client gave up
		hangUp()
		return Lost()
	})
	first, err := w.ChargeWith(ctx, "k", order)
	if err != nil || first.Payment.Status != payment.StatusProcessing || !first.Payment.InDoubt() {
		t.Fatalf("first: got %s, %v, want it processing and in doubt", first.Payment.Status, err)
	}
	again, err := w.Charge("k", order)
	if err != nil || again.Payment.ID != first.Payment.ID || !again.Replayed {
		t.Fatalf("same key: got %s replayed %t, %v, want the payment", again.Payment.ID, again.Replayed, err)
	}
	_, err = w.Charge("another", order)
	if used, ok := errors.AsType[*charge.ReferenceInUseError](err); !ok || used.PaymentID != first.Payment.ID {
		t.Fatalf("new key: got %v, want the reference in use by %s", err, first.Payment.ID)
	}
	w.Pass(time.Minute)
	w.Want(first.Payment.ID, payment.StatusCaptured)
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestAKeyIsNotStuckWhenItsFirstRequestDies(t *testing.T) {
	w := New(t)
	w.Crash(func() {
		w.OnCall(psptest.OperationCreate, w.Die)
		w.Charge("k", Order{})
	})
	_, err := w.Charge("k", Order{})
	if e, ok := errors.AsType[*charge.InProgressError](err); !ok || e.RetryAfter != Durations.InProgressTTL {
		t.Fatalf("before the time: got %v, want in progress for %s", err, Durations.InProgressTTL)
	}
	w.Clock.Advance(Durations.InProgressTTL)
	r, err := w.Charge("k", Order{})
	if err != nil || r.Payment.Status != payment.StatusCaptured || !r.Replayed {
		t.Fatalf("after the time: got %s replayed %t, %v, want it captured by a repeat", r.Payment.Status, r.Replayed, err)
	}
	w.WantCalls(psptest.OperationCreate, 2) // with one key: see Check
}

func TestAKeyIsNotFreedWhenTheAnswerIsLostWithTheProcess(t *testing.T) {
	w := New(t)
	w.Crash(func() {
		w.OnAnswer(psptest.OperationCreate, w.Die)
		w.Charge("k", Order{})
	})
	w.Clock.Advance(Durations.InProgressTTL)
	r, err := w.Charge("k", Order{})
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want captured", r.Payment.Status, err)
	}
	if n := len(w.PSP.Charges()); n != 1 {
		t.Errorf("got %d charges, want 1", n)
	}
}

func TestAKeyWithAnotherAmountIsRefusedAndTheFirstOneReplayed(t *testing.T) {
	w := New(t)
	first := w.Charged("k", Order{Amount: 1000}, payment.StatusCaptured)
	if _, err := w.Charge("k", Order{Amount: 2000}); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Fatalf("other amount: got %v, want %v", err, idempotency.ErrKeyReused)
	}
	again, err := w.Charge("k", Order{Amount: 1000})
	if err != nil || !again.Replayed || again.Payment.ID != first.ID {
		t.Fatalf("same amount: got %s replayed %t, %v, want a replay of %s", again.Payment.ID, again.Replayed, err, first.ID)
	}
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestAKeyCountsForOneRouteOnly(t *testing.T) {
	w := New(t)
	p := w.Charged("K", Order{}, payment.StatusCaptured)
	w.Refunded("K", p.ID, 2000, payment.RefundSucceeded)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAReplayOfADeclineIsAReplay(t *testing.T) {
	w := New(t)
	first := w.Charged("k", Order{Token: psptest.TokenInsufficientFunds}, payment.StatusFailed)
	again, err := w.Charge("k", Order{Token: psptest.TokenInsufficientFunds})
	if err != nil || !again.Replayed || again.Payment.ID != first.ID || again.Payment.Status != payment.StatusFailed {
		t.Fatalf("got %s %s replayed %t, %v, want the declined payment replayed", again.Payment.ID, again.Payment.Status, again.Replayed, err)
	}
	if f := again.Payment.Failure; f == nil || f.DeclineCode != "insufficient_funds" {
		t.Errorf("got failure %+v, want insufficient_funds", f)
	}
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestACustomerWhoPaysAfterExpiryGetsTheMoneyBackOnce(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenRequiresAction, Reference: "order-42"}, payment.StatusRequiresAction)
	w.Pass(Durations.PaymentExpiry)
	dead := w.Want(p.ID, payment.StatusCanceled)
	if dead.Failure == nil || dead.Failure.Code != payment.FailureExpired {
		t.Errorf("got failure %+v, want %s", dead.Failure, payment.FailureExpired)
	}
	w.PSP.Drain()
	w.PSP.CaptureLate(string(p.ID))
	success := w.PSP.Take(0)
	for range 3 {
		w.Deliver(success, w.PSP.Push(success.Event)) // the same event, and the same news as another event
	}
	refunded := w.Want(p.ID, payment.StatusRefunded)
	if len(refunded.Refunds) != 1 || refunded.Refunds[0].Reason != payment.ReasonLateCapture {
		t.Errorf("got refunds %+v, want one of the late capture", refunded.Refunds)
	}
	w.WantCalls(psptest.OperationRefund, 1)
	// And who comes back to the page reads so.
	if v := refunded.View(); v.Status != payment.StatusRefunded || v.NextAction != nil || v.AmountRefunded != 5000 {
		t.Errorf("got view %+v, want it refunded", v)
	}
}

func TestASuccessAfterACancelThatFailedGoesBackWithAStableKey(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.OnCall(psptest.OperationCancel, Lost) // the PSP's 500
	r, err := w.Cancel("c", p.ID)
	if err != nil || !r.Payment.Status.Open() || !r.Payment.InDoubt() {
		t.Fatalf("got %s, %v, want it open and in doubt", r.Payment.Status, err)
	}
	w.Pass(2 * time.Minute)
	w.Want(p.ID, payment.StatusCanceled)
	w.PSP.CaptureLate(string(p.ID))
	w.OnAnswer(psptest.OperationRefund, Lost)
	w.Pass(30 * time.Minute)
	w.Want(p.ID, payment.StatusRefunded)
	if n := len(w.PSP.Charges()[0].Refunds); n != 1 {
		t.Errorf("got %d refunds at the psp, want 1", n)
	}
}

func TestACancelThatRacesACaptureLeavesItCaptured(t *testing.T) {
	t.Run("captured first", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{}, payment.StatusCaptured)
		if _, err := w.Cancel("c", p.ID); !errors.Is(err, charge.ErrCaptured) {
			t.Fatalf("got %v, want %v", err, charge.ErrCaptured)
		}
		w.Want(p.ID, payment.StatusCaptured)
	})
	t.Run("cancel first", func(t *testing.T) {
		w := New(t)
		p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
		w.OnCall(psptest.OperationCancel, Then(func() { w.PSP.Approve(string(p.ID)) }))
		if _, err := w.Cancel("c", p.ID); !errors.Is(err, charge.ErrCaptured) {
			t.Fatalf("got %v, want %v", err, charge.ErrCaptured)
		}
		w.Want(p.ID, payment.StatusCaptured)
		w.WantCalls(psptest.OperationRefund, 0)
	})
}

func TestTwoRefundsAtOnceDoNotExceedTheCapture(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Amount: 10000}, payment.StatusCaptured)
	w.Store.Before(Row(payment.EventRefundRequested), Then(func() { w.Refunded("r2", p.ID, 6000, payment.RefundSucceeded) }))
	if _, err := w.Refund("r1", p.ID, 6000); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Fatalf("got %v, want %v", err, payment.ErrAmountTooLarge)
	}
	if refunded := w.PSP.Charges()[0].Refunded; refunded != 6000 {
		t.Errorf("the psp refunded %d, want 6000", refunded)
	}
}

func TestNoRefundOfNothing(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{}, payment.StatusCaptured)
	for _, amount := range []int64{-1, 5001} {
		if _, err := w.Refund("r", p.ID, amount); !errors.Is(err, payment.ErrAmountTooLarge) {
			t.Errorf("refund of %d: got %v, want %v", amount, err, payment.ErrAmountTooLarge)
		}
	}
	w.WantCalls(psptest.OperationRefund, 0)
}

func TestTheProviderSeesMinorUnits(t *testing.T) {
	for _, amount := range []money.Amount{{Minor: 500, Currency: "JPY"}, {Minor: 18600, Currency: "KWD"}} {
		t.Run(string(amount.Currency), func(t *testing.T) {
			w := New(t)
			w.Charged("k", Order{Amount: amount.Minor, Currency: amount.Currency}, payment.StatusCaptured)
			if got := w.PSP.Charges()[0].Amount; got != amount {
				t.Errorf("got %+v, want %+v", got, amount)
			}
		})
	}
}

func TestAPartialCaptureReleasesTheRest(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Amount: 10000, Manual: true}, payment.StatusAuthorized)
	r, err := w.Capture("c", p.ID, 4000)
	if err != nil || r.Payment.Status != payment.StatusCaptured || r.Payment.AmountCaptured != 4000 {
		t.Fatalf("got %s of %d, %v, want 4000 captured", r.Payment.Status, r.Payment.AmountCaptured, err)
	}
	if v := r.Payment.View(); v.Amount != 10000 || v.AmountCaptured != 4000 {
		t.Errorf("got view of %d captured %d, want 10000 and 4000", v.Amount, v.AmountCaptured)
	}
	if c := w.PSP.Charges()[0]; c.Status != psp.StatusCaptured || c.Captured != 4000 {
		t.Errorf("the psp holds %s %d, want 4000 captured and nothing held", c.Status, c.Captured)
	}
	if _, err := w.Refund("r", p.ID, 4001); !errors.Is(err, payment.ErrAmountTooLarge) {
		t.Errorf("refund of more: got %v, want %v", err, payment.ErrAmountTooLarge)
	}
}

func TestNoSecretIsLeftAfterTheEnd(t *testing.T) {
	w := New(t)
	order := Order{Token: psptest.TokenRequiresAction}
	p := w.Charged("K", order, payment.StatusRequiresAction)
	if v := p.View(); v.NextAction == nil || v.NextAction.RedirectURL == "" {
		t.Fatalf("got view %+v, want a redirect while the customer must act", v)
	}
	w.PSP.Approve(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	w.Want(p.ID, payment.StatusCaptured)
	replay, err := w.Charge("K", order)
	if err != nil {
		t.Fatal(err)
	}
	if v := replay.Payment.View(); v.NextAction != nil || v.ClientSecret != nil || replay.Payment.RedirectURL != "" {
		t.Errorf("replay: got %+v, want no secret", v)
	}
	// Rows, records, inbox, index and logs: see Check.
}
