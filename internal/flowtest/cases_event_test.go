package flowtest_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/webhook"
)

// Faults that others had with what a PSP tells.

func TestAnEventWhoseApplyingFailsOnceIsAppliedByItsRedelivery(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.Deliver(w.PSP.Drain()...)
	w.PSP.Approve(string(p.ID))
	event := w.PSP.Take(0)
	for range 8 { // every attempt that one applying makes
		w.Store.Before(Row(payment.EventCaptured), Silent)
	}
	w.Deliver(event)
	w.WantItem(event, webhook.StatusReceived)
	w.Want(p.ID, payment.StatusProcessing)
	w.Deliver(event)
	w.WantItem(event, webhook.StatusApplied)
	w.Want(p.ID, payment.StatusCaptured)
}

func TestAnEventReceivedByAProcessThatDiedIsDrivenOn(t *testing.T) {
	for _, by := range []string{"redelivery", "sweep"} {
		t.Run(by, func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
			w.PSP.Drain()
			w.PSP.Approve(string(p.ID))
			event := w.PSP.Take(0)
			w.Crash(func() {
				w.Store.After(Inserted("INBOX"), w.Die)
				w.Receive(event)
			})
			w.Store.TakeChanges() // and the stream lost it
			switch by {
			case "redelivery":
				w.Deliver(event)
			case "sweep":
				w.Pass(time.Minute)
			}
			w.WantItem(event, webhook.StatusApplied)
			w.Want(p.ID, payment.StatusCaptured)
		})
	}
}

func TestTwentyDeliveriesAtOnceAreOneTransition(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.PSP.Drain()
	w.PSP.Approve(string(p.ID))
	event := w.PSP.Take(0)
	var posts sync.WaitGroup
	for range 20 {
		posts.Go(func() {
			if _, err := w.Ingest.Receive(w.Context(), PSP, w.PSP.Delivery(event, w.Clock.Now())); err != nil {
				t.Errorf("post: got %v, want an acknowledgement", err)
			}
			if err := w.Applier.Apply(w.Context(), PSP, event.ID); err != nil {
				t.Errorf("apply: %v", err)
			}
		})
	}
	posts.Wait()
	w.WantItem(event, webhook.StatusApplied)
	w.Want(p.ID, payment.StatusCaptured) // one row of it: see Check
	if n := w.Meter.Of(webhook.MetricDuplicate); n != 19 {
		t.Errorf("got %d duplicates, want 19", n)
	}
}

func TestAnEventBeforeItsPaymentWaitsAndIsApplied(t *testing.T) {
	w := New(t)
	id := payment.IDPrefix + ULID(1)
	event := w.PSP.Push(capturedEvent(id, "ch_000001", 5000))
	w.Deliver(event)
	w.WantItem(event, webhook.StatusReceived)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	if string(p.ID) != id {
		t.Fatalf("got id %s, want %s", p.ID, id)
	}
	w.PSP.Approve(id)
	w.Clock.Advance(time.Minute)
	w.Sweep()
	w.WantItem(event, webhook.StatusApplied)
	w.Want(p.ID, payment.StatusCaptured)
}

// capturedEvent is a notification of the test's making.
func capturedEvent(paymentID, reference string, minor int64) psp.Event {
	return psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{
		Reference: reference, PaymentID: paymentID, Status: psp.StatusCaptured,
		Amount: money.Amount{Minor: minor, Currency: "JPY"}, Captured: minor,
	}}
}

func TestASuccessForAnAbandonedPaymentIsRefundedAndNotRetried(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenLateCaptured}, payment.StatusProcessing)
	if _, err := w.Cancel("c", p.ID); err != nil {
		t.Fatal(err)
	}
	w.Want(p.ID, payment.StatusCanceled)
	w.PSP.Drain()
	w.PSP.CaptureLate(string(p.ID))
	event := w.PSP.Take(0)
	w.Deliver(event)
	w.WantItem(event, webhook.StatusApplied)
	w.Want(p.ID, payment.StatusRefunded)
	w.WantCalls(psptest.OperationRefund, 1)
}

func TestAuthorizedAfterCapturedIsOldNews(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenTimeoutCapturedSilent}, payment.StatusProcessing)
	yen := money.Amount{Minor: 5000, Currency: "JPY"}
	captured := w.PSP.Push(capturedEvent(string(p.ID), "ch_000001", 5000))
	authorized := w.PSP.Push(psp.Event{Status: psp.StatusAuthorized, Charge: psp.Charge{
		Reference: "ch_000001", PaymentID: string(p.ID), Status: psp.StatusAuthorized, Amount: yen,
	}})
	w.Deliver(captured)
	version := w.Want(p.ID, payment.StatusCaptured).Version
	w.Deliver(authorized)
	if got := w.Want(p.ID, payment.StatusCaptured).Version; got != version {
		t.Errorf("got version %d, want it to stay %d", got, version)
	}
	w.WantItem(authorized, webhook.StatusApplied)
}

func TestTheBuyerSeesSuccessWhenTheWebhookWins(t *testing.T) {
	w := New(t)
	w.OnAnswer(psptest.OperationCreate, Then(func() { w.Deliver(w.PSP.Drain()...) }))
	p := w.Charged("k", Order{Token: psptest.TokenWebhookFirst}, payment.StatusCaptured)
	if got := w.Types(p.ID); len(got) != 2 {
		t.Errorf("got rows %v, want two: what the answer said was old news", got)
	}
}

func TestAPaymentWhoseWebhookIsLostForGoodIsCapturedByTheSweep(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	if p.InDoubt() {
		t.Error("a pending payment is in doubt, want it pending")
	}
	w.PSP.Approve(string(p.ID))
	w.Pass(time.Minute)
	w.Want(p.ID, payment.StatusCaptured)
	w.WantRest(p.ID)
}

func TestASignedSuccessOfOtherMoneyIsQuarantined(t *testing.T) {
	for _, money := range []money.Amount{{Minor: 1, Currency: "JPY"}, {Minor: 5000, Currency: "USD"}} {
		t.Run(string(money.Currency), func(t *testing.T) {
			w := New(t)
			p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
			e := capturedEvent(string(p.ID), "ch_000001", money.Minor)
			e.Charge.Amount = money
			event := w.PSP.Push(e)
			w.Deliver(event)
			w.WantItem(event, webhook.StatusQuarantined)
			w.Want(p.ID, payment.StatusProcessing)
			if n := w.Meter.Of(webhook.MetricQuarantined); n != 1 {
				t.Errorf("got %d alarms, want 1", n)
			}
		})
	}
}

func TestWithoutASecretEveryDeliveryIsRefused(t *testing.T) {
	w := New(t)
	event := w.PSP.Push(psp.Event{})
	delivery := w.PSP.Delivery(event, w.Clock.Now())
	if _, err := w.Ingest.Receive(w.Context(), Secretless, delivery); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("no secret: got %v, want %v", err, psp.ErrSignature)
	}
	delivery.Header = nil
	if _, err := w.Ingest.Receive(w.Context(), PSP, delivery); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("no header: got %v, want %v", err, psp.ErrSignature)
	}
	if items := w.Store.Items(w.Context()); len(items) != 0 {
		t.Errorf("got %d items stored, want none", len(items))
	}
}
