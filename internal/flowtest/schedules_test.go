package flowtest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// Schedules that broke earlier drafts of the design. R is a request, P a payment,
// W a worker, S the sweep.

func TestSchedule01DeadAndForgotten(t *testing.T) {
	w := New(t)
	order := Order{Reference: "order-42", Token: psptest.TokenTimeoutCapturedSilent}
	// R1 commits P1 and freezes before its bytes leave.
	w.Line.Hold(psptest.OperationCreate)
	first, err := w.Charge("k1", order)
	if err != nil {
		t.Fatal(err)
	}
	p1 := first.Payment.ID
	w.PSP.Before(psptest.OperationCreate, func() error { return &psp.Error{Operation: "create", Outcome: psp.OutcomeThrottled} })
	w.Pass(Durations.PaymentExpiry + 2*time.Minute) // no re-sending gets through either
	w.PSP.Before(psptest.OperationCreate, nil)
	w.Want(p1, payment.StatusCanceled)

	p2 := w.Charged("k2", Order{Reference: "order-42"}, payment.StatusCaptured)
	w.Line.Arrive() // R1's bytes; its webhook is lost
	if n := w.PSP.LiveCaptures(string(p1)); n != 1 {
		t.Fatalf("got %d captures of P1, want the late one", n)
	}
	w.Pass(24 * time.Hour)
	w.Want(p1, payment.StatusRefunded)
	w.WantCalls(psptest.OperationRefund, 1)
	w.WantRest(p1)
	w.Want(p2.ID, payment.StatusCaptured)
}

func TestSchedule01AConfirmedVoidIsNotBelievedForEver(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Want(p.ID, payment.StatusCanceled)
	w.Pass(10 * time.Hour)
	w.PSP.CaptureLate(string(p.ID))
	w.Pass(14 * time.Hour)
	w.Want(p.ID, payment.StatusRefunded)
	w.WantCalls(psptest.OperationRefund, 1)
	w.WantRest(p.ID)
}

func TestSchedule02TakeoverAgainstCancel(t *testing.T) {
	w := New(t)
	w.Crash(func() {
		w.OnCall(psptest.OperationCreate, w.Die)
		w.Charge("k", Order{Reference: "order-42"})
	})
	id := payment.ID(payment.IDPrefix + ULID(1))
	w.Clock.Advance(Durations.InProgressTTL)
	// R2 takes over and is about to send when the cancel comes, looks up, finds
	// nothing and answers.
	w.OnCall(psptest.OperationCreate, Then(func() {
		r, err := w.Cancel("c", id)
		if err != nil || !r.Payment.Status.Open() {
			t.Fatalf("cancel: got %s, %v, want it open: a charge may be on its way", r.Payment.Status, err)
		}
		if _, err := w.Charge("k2", Order{Reference: "order-42"}); err == nil {
			t.Fatal("the reference is free while a charge may be on its way")
		}
	}))
	r, err := w.Charge("k", Order{Reference: "order-42"})
	if err != nil || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s, %v, want captured: it ran", r.Payment.Status, err)
	}
	// And the other way round: after the cancel no charge leaves any more.
	t.Run("cancel first", func(t *testing.T) {
		w := New(t)
		w.Crash(func() {
			w.OnCall(psptest.OperationCreate, w.Die)
			w.Charge("k", Order{})
		})
		w.Clock.Advance(Durations.InProgressTTL)
		w.Store.Before(Row(payment.EventSent), Then(func() {
			if _, err := w.Cancel("c", id); err != nil {
				t.Fatal(err)
			}
		}))
		r, err := w.Charge("k", Order{})
		if err != nil || r.Payment.Status != payment.StatusCanceled {
			t.Fatalf("got %s, %v, want canceled", r.Payment.Status, err)
		}
		if n := len(w.PSP.Charges()); n != 0 {
			t.Errorf("got %d charges, want none", n)
		}
	})
}

func TestSchedule03AStrangerDoesNotFreeTheGuard(t *testing.T) {
	w := New(t)
	p1 := w.Charged("k1", Order{Reference: "order-42", Token: psptest.TokenLateCaptured}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p1.ID); err != nil {
		t.Fatal(err)
	}
	p2 := w.Charged("k2", Order{Reference: "order-42"}, payment.StatusCaptured)
	w.PSP.CaptureLate(string(p1.ID))
	w.Deliver(w.PSP.Drain()...)
	w.Want(p1.ID, payment.StatusRefunded)
	_, err := w.Charge("k3", Order{Reference: "order-42"})
	if used, ok := errors.AsType[*charge.ReferenceInUseError](err); !ok || used.PaymentID != p2.ID {
		t.Fatalf("third key: got %v, want the reference in use by %s", err, p2.ID)
	}
}

// down takes the provider off the net until up.
func down(w *World) {
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, Lost)
	}
}

func up(w *World) {
	for _, operation := range psptest.Operations() {
		w.PSP.Before(operation, nil)
	}
}

func TestSchedule11ALostFenceDoesNotRefuseTheTruth(t *testing.T) {
	w := New(t)
	w.OnCall(psptest.OperationCreate, Lost)
	first, err := w.Charge("k", Order{})
	if err != nil {
		t.Fatal(err)
	}
	id := first.Payment.ID
	// W, a sweep, sends again and freezes past its lease; S takes the lease and
	// looks up before W's bytes are there.
	w.OnCall(psptest.OperationCreate, Then(func() {
		w.Clock.Advance(Durations.PaymentExpiry)
		w.Sweep()
	}))
	w.Clock.Advance(time.Minute)
	w.Sweep()
	// What W heard is recorded by W, before anybody looks again.
	w.Want(id, payment.StatusCanceled)
	if types := w.Types(id); types[len(types)-1] != string(payment.EventLateCaptured) {
		t.Fatalf("got journal %v, want W's answer at its end", types)
	}
	w.Pass(time.Minute)
	w.Want(id, payment.StatusRefunded)
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestSchedule12InFlightIsReadOffTheOperation(t *testing.T) {
	w := New(t)
	w.OnAnswer(psptest.OperationCreate, Then(func() {
		w.Deliver(w.PSP.Drain()...)
		r, err := w.Charge("k", Order{}) // while R1 is still on the line
		if err != nil || r.Payment.Status != payment.StatusCaptured || !r.Replayed {
			t.Errorf("got %s, %v, want captured at once", r.Payment.Status, err)
		}
	}))
	w.Charged("k", Order{}, payment.StatusCaptured)
}

func TestSchedule13OneOfTwoSimultaneousRequestsWins(t *testing.T) {
	w := New(t)
	w.Store.Before(Row(payment.EventCreated), Then(func() { w.Charged("k", Order{}, payment.StatusCaptured) }))
	r, err := w.Charge("k", Order{})
	if err != nil || !r.Replayed || r.Payment.Status != payment.StatusCaptured {
		t.Fatalf("got %s replayed %t, %v, want the winner's payment", r.Payment.Status, r.Replayed, err)
	}
	w.WantCalls(psptest.OperationCreate, 1)
}

func TestSchedule14AKeyDoesNotExpireInDoubt(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenRefundPendingFailed}, payment.StatusCaptured)
	refund := w.Refunded("r", p.ID, 2000, payment.RefundPending)
	w.Pass(3 * Durations.IdempotencyTTL)
	again, err := w.Refund("r", p.ID, 2000)
	if err != nil || !again.Replayed || again.RefundID != refund.ID {
		t.Fatalf("pending: got %s replayed %t, %v, want a replay of %s", again.RefundID, again.Replayed, err, refund.ID)
	}
	if _, err := w.Refund("r", p.ID, 1000); !errors.Is(err, idempotency.ErrKeyReused) {
		t.Fatalf("pending, other body: got %v, want %v", err, idempotency.ErrKeyReused)
	}
	w.PSP.SettleRefund(string(refund.ID), psp.RefundFailed)
	w.Deliver(w.PSP.Drain()...)
	w.WantRest(p.ID)
	other, err := w.Refund("r", p.ID, 1000)
	if err != nil || other.Replayed || other.RefundID == refund.ID {
		t.Fatalf("at rest: got %s replayed %t, %v, want a new refund", other.RefundID, other.Replayed, err)
	}
}

func TestSchedule15AnOldFenceIsNotBroughtBack(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	// A webhook reads the payment; before it writes, a lease is taken.
	event := w.PSP.Push(capturedEvent(string(p.ID), "ch_000001", 5000))
	w.Store.Before(Row(payment.EventCaptured), Then(func() {
		if _, err := w.Charges.Leases.Acquire(w.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
	}))
	w.Deliver(event)
	got := w.Want(p.ID, payment.StatusCaptured)
	if got.LeaseFence != p.LeaseFence+1 || got.LeaseUntil.IsZero() {
		t.Errorf("got fence %d until %s, want the lease kept", got.LeaseFence, got.LeaseUntil)
	}
}

func TestSchedule16WhatFailsDoesNotStayAtTheHeadOfTheLine(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	down(w)
	var looks []time.Duration
	before := 0
	for range 60 {
		w.Clock.Advance(time.Minute)
		w.Sweep()
		if n := len(w.Calls(psptest.OperationLookup)); n > before {
			before = n
			looks = append(looks, w.Clock.Now().Sub(Start))
		}
	}
	want := []time.Duration{1, 2, 4, 8, 16, 30} // minutes; the last is the deadline, then double again
	if len(looks) != len(want) {
		t.Fatalf("got looks at %v, want at minutes %v", looks, want)
	}
	for i := range want {
		if looks[i] != want[i]*time.Minute {
			t.Fatalf("got looks at %v, want at minutes %v", looks, want)
		}
	}
	up(w)
	w.Pass(time.Hour)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestSchedule18AuthorizedLateIsVoided(t *testing.T) {
	w := New(t)
	w.Line.Hold(psptest.OperationCreate)
	first, err := w.Charge("k", Order{Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	id := first.Payment.ID
	if _, err := w.Cancel("c", id); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
	w.Want(id, payment.StatusCanceled)
	w.Line.Arrive() // held at the PSP, for nobody
	w.Deliver(w.PSP.Drain()...)
	w.Pass(time.Minute)
	if c := w.PSP.Charges()[0]; c.Status != psp.StatusCanceled {
		t.Errorf("the psp's charge is %s, want it voided", c.Status)
	}
	w.Want(id, payment.StatusCanceled)
	if w.Payment(id).LateHold {
		t.Error("the funds count as held, want them let go")
	}
}
