package webhook_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/charge"
	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// pending is a payment that the PSP has just captured, and the event that says so.
func pending(t *testing.T) (*World, payment.ID, psptest.Event) {
	t.Helper()
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.PSP.Drain()
	w.PSP.Approve(string(p.ID))
	return w, p.ID, w.PSP.Take(0)
}

func about(id payment.ID, reference string, minor int64) psp.Event {
	return psp.Event{Status: psp.StatusCaptured, Charge: psp.Charge{
		Reference: reference, PaymentID: string(id), Status: psp.StatusCaptured,
		Amount: money.Amount{Minor: minor, Currency: "JPY"}, Captured: minor,
	}}
}

func TestAnEventOfNoPaymentWaitsAndIsThenQuarantined(t *testing.T) {
	w := New(t)
	event := w.PSP.Push(about("pay_01KDYAK348M9S346Q3D2999999", "ch_9", 5000))
	w.Deliver(event)
	w.WantItem(event, webhook.StatusReceived)
	var tries []int
	for range 29 {
		w.Pass(time.Minute)
		w.WantItem(event, webhook.StatusReceived)
		tries = append(tries, w.Item(event).Attempts)
	}
	if last := tries[len(tries)-1]; last < 4 || last > 7 {
		t.Errorf("got tries %v, want ever fewer", tries)
	}
	w.Pass(time.Minute)
	w.WantItem(event, webhook.StatusQuarantined)
	if n := w.Meter.Of(webhook.MetricQuarantined); n != 1 {
		t.Errorf("got %d alarms, want 1", n)
	}
	if !strings.Contains(w.Logs.Text(), "webhook quarantined") {
		t.Error("it is not in the log")
	}
}

func TestAnEventWithoutAPaymentOfOursWaitsAsWell(t *testing.T) {
	for name, id := range map[string]payment.ID{
		"none": "", "a reference": "order-42", "too short": "pay_x", "other letters": "pay_01KDYAK348M9S346Q3D2\u00e9\u00e9\u00e9",
	} {
		t.Run(name, func(t *testing.T) {
			w := New(t)
			event := w.PSP.Push(about(id, "ch_9", 5000))
			w.Deliver(event)
			w.WantItem(event, webhook.StatusReceived)
			if got := w.Item(event).PaymentID; got != "" {
				t.Errorf("got payment %q, want none", got)
			}
			w.Pass(Durations.PaymentExpiry)
			w.WantItem(event, webhook.StatusQuarantined)
		})
	}
}

func TestAnEventWhoseReferenceFillsItsBodyIsQuarantined(t *testing.T) {
	w := withSimulator(t, currentSecret)
	if err := post(w, currentSecret, Start, strings.Replace(capturedBody, "PAYMENT", strings.Repeat("x", 250_000), 1)); err != nil {
		t.Fatal(err)
	}
	w.Stream()
	w.Pass(Durations.PaymentExpiry)
	items, _, err := w.Table.Webhooks(w.Context(), webhook.StatusQuarantined, "", 10)
	if err != nil || len(items) != 1 {
		t.Errorf("got %d quarantined, %v, want 1", len(items), err)
	}
}

func TestWhatDisagreesIsQuarantinedAtOnce(t *testing.T) {
	for name, change := range map[string]func(e *psp.Event){
		"amount":    func(e *psp.Event) { e.Charge.Amount.Minor, e.Charge.Captured = 1, 1 },
		"currency":  func(e *psp.Event) { e.Charge.Amount.Currency = "USD" },
		"captured":  func(e *psp.Event) { e.Charge.Captured = 4999 },
		"reference": func(e *psp.Event) { e.Charge.Reference = "ch_of_somebody_else" },
		"status":    func(e *psp.Event) { e.Status = "" },
		"refund of another payment": func(e *psp.Event) {
			e.Refund = &psp.Refund{Reference: "rf_9", RefundID: "re_of_somebody_else", Amount: 1, Status: psp.RefundSucceeded}
		},
	} {
		for _, when := range []string{"open", "captured"} {
			t.Run(name+" "+when, func(t *testing.T) {
				w, id, event := pending(t)
				status := payment.StatusProcessing
				if when == "captured" || strings.HasPrefix(name, "refund") {
					w.Deliver(event)
					status = payment.StatusCaptured
				}
				before := w.Payment(id)
				lie := event.Event
				change(&lie)
				lying := w.PSP.Push(lie)
				w.Deliver(lying)
				w.WantItem(lying, webhook.StatusQuarantined)
				if after := w.Want(id, status); after.Version != before.Version {
					t.Errorf("got version %d, want it to stay %d", after.Version, before.Version)
				}
				if it := w.Item(lying); it.Reason == "" || it.PaymentID != id || !it.DueAt.IsZero() {
					t.Errorf("got %+v, want a reason and its payment, and nothing due", it)
				}
			})
		}
	}
}

func TestAnEventOfAnotherPSPIsQuarantined(t *testing.T) {
	w, id, event := pending(t)
	foreign := w.Other.Push(event.Event)
	if _, err := w.Ingest.Receive(w.Context(), OtherPSP, w.Other.Delivery(foreign, w.Clock.Now())); err != nil {
		t.Fatal(err)
	}
	w.Stream()
	it, err := w.Table.Item(w.Context(), OtherPSP, foreign.ID)
	if err != nil || it.Status != webhook.StatusQuarantined {
		t.Errorf("got %s, %v, want it quarantined", it.Status, err)
	}
	w.Want(id, payment.StatusProcessing)
}

func TestAnEventOfAPSPThatIsNoLongerConfiguredIsQuarantined(t *testing.T) {
	w, id, event := pending(t)
	w.Receive(event)
	w.Applier.Providers[PSP] = nil
	w.Stream()
	w.WantItem(event, webhook.StatusQuarantined)
	w.Want(id, payment.StatusProcessing)
}

func TestAnEventThatComesTooEarlyWaitsForItsTurn(t *testing.T) {
	w, id, event := pending(t)
	refund := w.PSP.Push(psp.Event{Charge: event.Event.Charge, Refund: &psp.Refund{Reference: "rf_9", Amount: 100, Status: psp.RefundSucceeded}})
	opened := w.PSP.Push(psp.Event{Charge: event.Event.Charge, Dispute: &psp.Dispute{Reference: "dp_1", Amount: 5000, Status: psp.DisputeOpen}})
	w.Lies = true // the fake knows nothing of that refund
	w.Deliver(refund, opened)
	w.WantItem(refund, webhook.StatusReceived)
	w.WantItem(opened, webhook.StatusReceived)
	w.Deliver(event)
	w.Pass(2 * time.Minute)
	w.WantItem(refund, webhook.StatusApplied)
	w.WantItem(opened, webhook.StatusApplied)
	if p := w.Want(id, payment.StatusCaptured); p.AmountRefunded() != 100 || !p.Disputed() {
		t.Errorf("got refunded %d disputed %t, want 100 and disputed", p.AmountRefunded(), p.Disputed())
	}
}

func TestAnEventThatIsTooEarlyForGoodIsQuarantined(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Manual: true}, payment.StatusAuthorized)
	charge := w.PSP.Charges()[0]
	refund := w.PSP.Push(psp.Event{Charge: charge, Refund: &psp.Refund{Reference: "rf_9", Amount: 100, Status: psp.RefundSucceeded}})
	w.Deliver(refund)
	w.Pass(Durations.PaymentExpiry - time.Minute)
	w.WantItem(refund, webhook.StatusReceived)
	w.Pass(time.Minute)
	w.WantItem(refund, webhook.StatusQuarantined)
	w.Want(p.ID, payment.StatusAuthorized)
}

func TestAnEventThatWaitsIsNotGivenUpBecauseItComesOften(t *testing.T) {
	w := New(t)
	event := w.PSP.Push(about("pay_01KDYAK348M9S346Q3D2999999", "ch_9", 5000))
	for range 20 {
		w.Deliver(event)
	}
	w.WantItem(event, webhook.StatusReceived)
}

func TestOldNewsIsAppliedAndChangesNothing(t *testing.T) {
	w, id, event := pending(t)
	w.Deliver(event)
	before := w.Want(id, payment.StatusCaptured)
	for _, status := range []psp.Status{psp.StatusPending, psp.StatusRequiresAction, psp.StatusAuthorized, psp.StatusFailed, psp.StatusCanceled, psp.StatusCaptured} {
		old := event.Event
		old.Status, old.Charge.Status = status, status
		late := w.PSP.Push(old)
		w.Deliver(late)
		w.WantItem(late, webhook.StatusApplied)
	}
	if after := w.Want(id, payment.StatusCaptured); after.Version != before.Version {
		t.Errorf("got version %d, want it to stay %d", after.Version, before.Version)
	}
}

func TestAnItemThatKeepsFailingIsTriedEverMoreRarelyAndQuarantined(t *testing.T) {
	w, id, event := pending(t)
	w.Receive(event)
	broken := errors.New("broken")
	failing := func() { // every attempt of every try
		for range 8 {
			w.Store.Before(Row(payment.EventCaptured), func() error { return broken })
		}
	}
	failing()
	w.Stream()
	var pauses []time.Duration
	last := w.Clock.Now()
	for w.Item(event).Status == webhook.StatusReceived {
		it := w.Item(event)
		pauses = append(pauses, it.DueAt.Sub(last).Round(time.Minute))
		last = it.DueAt
		failing()
		w.Clock.Advance(it.DueAt.Sub(w.Clock.Now()))
		if err := w.Applier.Apply(w.Context(), PSP, event.ID); err != nil {
			t.Fatal(err)
		}
		if len(pauses) > 20 {
			t.Fatalf("got pauses %v, want an end", pauses)
		}
	}
	w.Store.Forget()
	want := []time.Duration{1, 2, 4, 8, 15, 32, 60, 60, 60}
	for i := range want {
		if i >= len(pauses) || len(pauses) != len(want) || pauses[i] != want[i]*time.Minute {
			t.Fatalf("got pauses %v, want minutes %v", pauses, want)
		}
	}
	w.WantItem(event, webhook.StatusQuarantined)
	w.Want(id, payment.StatusProcessing)
	w.Pass(2 * time.Minute) // the sweep found it meanwhile
	w.Want(id, payment.StatusCaptured)
}

func TestACrashBetweenRecordAndSaveAppliesOnce(t *testing.T) {
	w, id, event := pending(t)
	w.Crash(func() {
		w.Store.Before(Saved, w.Die)
		w.Deliver(event)
	})
	version := w.Want(id, payment.StatusCaptured).Version
	w.WantItem(event, webhook.StatusReceived)
	w.Pass(time.Minute)
	w.WantItem(event, webhook.StatusApplied)
	if got := w.Payment(id).Version; got != version {
		t.Errorf("got version %d, want it to stay %d", got, version)
	}
}

func TestASaveWithoutAnAnswerIsReported(t *testing.T) {
	w, id, event := pending(t)
	w.Receive(event)
	w.Store.Before(Saved, Silent)
	if err := w.Applier.Apply(w.Context(), PSP, event.ID); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v, want %v", err, store.ErrUnavailable)
	}
	w.Want(id, payment.StatusCaptured)
	if err := w.Applier.Apply(w.Context(), PSP, event.ID); err != nil {
		t.Fatal(err)
	}
	w.WantItem(event, webhook.StatusApplied)
}

func TestAReadWithoutAnAnswerIsReportedOrTriedAgain(t *testing.T) {
	w, id, event := pending(t)
	w.Receive(event)
	w.Store.BeforeGet(func(k store.Key) bool { return k.SK == "INBOX" }, Silent)
	if err := w.Applier.Apply(w.Context(), PSP, event.ID); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("item: got %v, want %v", err, store.ErrUnavailable)
	}
	w.Store.BeforeGet(func(k store.Key) bool { return k.SK == "STATE" }, Silent)
	if err := w.Applier.Apply(w.Context(), PSP, event.ID); err != nil {
		t.Fatalf("payment: got %v, want it put off", err)
	}
	w.WantItem(event, webhook.StatusReceived)
	w.Pass(2 * time.Minute)
	w.WantItem(event, webhook.StatusApplied)
	w.Want(id, payment.StatusCaptured)
}

func TestAnItemThatIsGoneIsNoError(t *testing.T) {
	w := New(t)
	if err := w.Applier.Apply(w.Context(), PSP, "evt_of_long_ago"); err != nil {
		t.Errorf("got %v, want nothing done", err)
	}
}

func TestAFinishedItemIsNotAppliedAgain(t *testing.T) {
	w, id, event := pending(t)
	w.Deliver(event)
	before := w.Item(event)
	if err := w.Applier.Apply(w.Context(), PSP, event.ID); err != nil {
		t.Fatal(err)
	}
	if after := w.Item(event); after.Attempts != before.Attempts {
		t.Errorf("got %d attempts, want %d", after.Attempts, before.Attempts)
	}
	w.Want(id, payment.StatusCaptured)
}

func TestAQuarantinedEventIsAppliedByNothingButAReplay(t *testing.T) {
	w := New(t)
	id := payment.ID(payment.IDPrefix + ULID(1))
	event := w.PSP.Push(about(id, "ch_000001", 5000))
	w.Deliver(event)
	w.Pass(Durations.PaymentExpiry)
	w.WantItem(event, webhook.StatusQuarantined)
	w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.PSP.Approve(string(id))
	w.Deliver(event) // the psp sends it again
	if err := w.Applier.Apply(w.Context(), PSP, event.ID); err != nil {
		t.Fatal(err)
	}
	w.WantItem(event, webhook.StatusQuarantined)
	w.Want(id, payment.StatusProcessing)
}

func TestAQuarantinedEventIsAppliedByAReplay(t *testing.T) {
	w := New(t)
	id := payment.ID(payment.IDPrefix + ULID(1))
	event := w.PSP.Push(about(id, "ch_000001", 5000))
	w.Deliver(event)
	w.Pass(Durations.PaymentExpiry)
	w.WantItem(event, webhook.StatusQuarantined)
	w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.PSP.Approve(string(id))
	it := w.Item(event)
	it.WaitUntil, it.DueAt = w.Clock.Now().Add(Durations.PaymentExpiry), w.Clock.Now().Add(time.Minute)
	claim := idempotency.Claim{Record: idempotency.Record{MerchantID: "operator", Hash: "h", ResourceID: it.ID(), CreatedAt: w.Clock.Now(), InProgressUntil: w.Clock.Now()}}
	w.Store.TakeChanges()
	if err := w.Table.Reopen(w.Context(), it, claim); err != nil {
		t.Fatal(err)
	}
	w.Stream()
	w.WantItem(event, webhook.StatusApplied)
	w.Want(id, payment.StatusCaptured)
}

func TestAFactThatAsksForACallIsFollowedAtOnce(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenLateCaptured}, payment.StatusProcessing)
	if _, err := w.Charges.Cancel(w.Context(), cancelRequest(p.ID)); err != nil {
		t.Fatal(err)
	}
	w.PSP.Drain()
	w.PSP.CaptureLate(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	w.Want(p.ID, payment.StatusRefunded)
}

func TestTheJournalSaysWhichWebhookBroughtIt(t *testing.T) {
	w, id, event := pending(t)
	w.Deliver(event)
	rows := w.Rows(id)
	last := rows[len(rows)-1]
	if last.Source != "webhook" || last.Data["webhook_id"] != w.Item(event).ID() {
		t.Errorf("got source %s webhook %v, want %s", last.Source, last.Data["webhook_id"], w.Item(event).ID())
	}
}

func cancelRequest(id payment.ID) charge.CancelRequest {
	return charge.CancelRequest{Request: Request(Merchant, "/v1/payments/"+string(id)+"/cancel", "c", ""), PaymentID: id}
}
