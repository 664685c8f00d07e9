package charge_test

import (
	"sync"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

// dead is a payment that the merchant was told is canceled, and whose money has
// come all the same: its event is the provider's last.
func dead(t *testing.T) (*World, payment.ID, psptest.Event) {
	t.Helper()
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenLateCaptured, Reference: "order-42"}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Want(p.ID, payment.StatusCanceled)
	w.PSP.Drain()
	w.PSP.CaptureLate(string(p.ID))
	return w, p.ID, w.PSP.Take(0)
}

// wantReturned ends the test unless late money went back by one refund.
func wantReturned(t *testing.T, w *World, id payment.ID) {
	t.Helper()
	p := w.Want(id, payment.StatusRefunded)
	if len(p.Refunds) != 1 || p.Refunds[0].ID != payment.LateRefundID(id) || p.Refunds[0].Reason != payment.ReasonLateCapture {
		t.Errorf("got refunds %+v, want the one of late money", p.Refunds)
	}
	if n := len(w.PSP.Charges()[0].Refunds); n != 1 {
		t.Errorf("got %d refunds at the psp, want 1", n)
	}
	if n := w.Meter.Of(journal.MetricLateCapture); n > 1 {
		t.Errorf("got %d late captures counted, want 1", n)
	}
	late := 0
	for _, kind := range w.Types(id) {
		if kind == string(payment.EventLateCaptured) {
			late++
		}
	}
	if late != 1 {
		t.Errorf("got %d rows of late money, want 1", late)
	}
	w.WantRest(id)
}

func TestLateMoneyGoesBackAtOnce(t *testing.T) {
	w, id, success := dead(t)
	w.Deliver(success)
	wantReturned(t, w, id)
	if n := w.Meter.Of(journal.MetricLateCapture); n != 1 {
		t.Errorf("got %d late captures counted, want 1", n)
	}
	if w.Payment(id).HoldsReference {
		t.Error("the reference is held")
	}
}

func TestLateMoneyGoesBackOnceHoweverOftenItIsTold(t *testing.T) {
	w, id, success := dead(t)
	var all sync.WaitGroup
	for range 4 { // the same event, the same news as another event, and sweeps
		again := w.PSP.Push(success.Event)
		w.Receive(success, again)
		for _, e := range []psptest.Event{success, again} {
			all.Go(func() {
				if err := w.Applier.Apply(w.Context(), PSP, e.ID); err != nil {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if _, err := w.Charges.Drive(w.Context(), id, journal.SourceReconciler); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	w.Pass(5 * time.Minute)
	wantReturned(t, w, id)
}

func TestLateMoneyIsRefundedAlsoWhenItsFinderDies(t *testing.T) {
	for name, dies := range map[string]func(w *World){
		"before the decision":     func(w *World) { w.Store.Before(Row(payment.EventLateCaptured), w.Die) },
		"after the decision":      func(w *World) { w.Store.After(Row(payment.EventLateCaptured), w.Die) },
		"before the refund call":  func(w *World) { w.OnCall(psptest.OperationRefund, w.Die) },
		"before its answer":       func(w *World) { w.OnAnswer(psptest.OperationRefund, w.Die) },
		"before it is recorded":   func(w *World) { w.Store.Before(Row(payment.EventRefundSucceeded), w.Die) },
		"before the item is done": func(w *World) { w.Store.Before(Saved, w.Die) },
	} {
		t.Run(name, func(t *testing.T) {
			w, id, success := dead(t)
			w.Crash(func() {
				dies(w)
				w.Deliver(success)
			})
			w.Pass(10 * time.Minute)
			wantReturned(t, w, id)
			w.WantItem(success, webhook.StatusApplied)
		})
	}
}

func TestTheDecisionToRefundLateMoneyIsOneTransactionWithTheNews(t *testing.T) {
	w, id, success := dead(t)
	w.OnCall(psptest.OperationRefund, Then(func() {
		p := w.Payment(id)
		if p.Status != payment.StatusCanceled || len(p.Refunds) != 1 || p.DueAt.IsZero() {
			t.Errorf("got %s with refunds %+v due at %s, want it dead, with one that is due", p.Status, p.Refunds, p.DueAt)
		}
	}))
	w.Deliver(success)
	wantReturned(t, w, id)
}

func TestLateMoneyWhoseRefundIsInDoubtIsAskedForOnce(t *testing.T) {
	w, id, success := dead(t)
	w.OnAnswer(psptest.OperationRefund, Lost)
	w.Deliver(success)
	w.Want(id, payment.StatusCanceled)
	w.Pass(5 * time.Minute)
	wantReturned(t, w, id)
	w.WantCalls(psptest.OperationRefund, 1) // the look-up found it
}

func TestADeadPaymentIsWatchedUntilItsKeysWindowHasPassed(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Pass(23*time.Hour + 59*time.Minute)
	looks := len(w.Calls(psptest.OperationLookup))
	if looks < 5 || looks > 15 {
		t.Errorf("got %d look-ups in a day, want a few", looks)
	}
	if w.Payment(p.ID).DueAt.IsZero() {
		t.Error("it is at rest before the window has passed")
	}
	w.Pass(2 * time.Minute)
	w.WantRest(p.ID)
	if n := len(w.Calls(psptest.OperationLookup)); n != looks+1 {
		t.Errorf("got %d look-ups, want one more at the end of the window", n-looks)
	}
	w.Pass(48 * time.Hour)
	if n := len(w.Calls(psptest.OperationLookup)); n != looks+1 {
		t.Errorf("got %d look-ups at rest, want none", n-looks-1)
	}
	// And a webhook still brings late money back.
	w.PSP.CaptureLate(string(p.ID))
	w.Deliver(w.PSP.Push(capturedAs(w.PSP.Charges()[0])))
	wantReturned(t, w, p.ID)
}

// capturedAs is the news of a charge as it is.
func capturedAs(c psp.Charge) psp.Event { return psp.Event{Status: c.Status, Charge: c} }

func TestMoneyForADeclinedPaymentGoesBack(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenDeclined}, payment.StatusFailed)
	w.WantRest(p.ID)
	w.PSP.Drain()
	w.PSP.CaptureLate(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	wantReturned(t, w, p.ID)
	if f := w.Payment(p.ID).Failure; f == nil || f.Code != payment.FailureDeclined {
		t.Errorf("got failure %+v, want it kept", f)
	}
}

func TestFundsHeldForADeadPaymentAreLetGo(t *testing.T) {
	w := New(t)
	w.Line.Hold(psptest.OperationCreate)
	p := w.Charged("k", Order{Manual: true}, payment.StatusProcessing)
	w.Clock.Advance(Arrival)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Want(p.ID, payment.StatusCanceled)
	w.Line.Arrive()
	w.OnCall(psptest.OperationCancel, Lost) // the first void is lost
	w.Deliver(w.PSP.Drain()...)
	w.Pass(10 * time.Minute)
	if c := w.PSP.Charges()[0]; c.Status != psp.StatusCanceled {
		t.Errorf("the psp's charge is %s, want it voided", c.Status)
	}
	calls := w.Calls(psptest.OperationCancel)
	if len(calls) != 2 || calls[0].Key != calls[1].Key {
		t.Errorf("got voids %+v, want the same one again", calls)
	}
}
