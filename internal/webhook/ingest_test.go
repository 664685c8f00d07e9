package webhook_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/psp/simulator"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

func TestADeliveryIsStoredBeforeItIsAcknowledged(t *testing.T) {
	w := New(t)
	event := w.PSP.Push(psp.Event{})
	ack, err := w.Ingest.Receive(w.Context(), PSP, w.PSP.Delivery(event, w.Clock.Now()))
	if err != nil || ack != w.PSP.Acknowledge() {
		t.Fatalf("got %+v, %v, want the psp's acknowledgement", ack, err)
	}
	it := w.Item(event)
	if it.Status != webhook.StatusReceived || it.Type != event.Type || !bytes.Contains(it.Body, []byte(event.ID)) {
		t.Errorf("got %+v, want it received as it was sent", it)
	}
	if !it.DueAt.Equal(Start.Add(Durations.ReconcileAfter)) || !it.WaitUntil.Equal(Start.Add(Durations.PaymentExpiry)) {
		t.Errorf("got due at %s, waiting until %s, want it swept in %s and given up in %s", it.DueAt, it.WaitUntil, Durations.ReconcileAfter, Durations.PaymentExpiry)
	}
}

func TestADeliveryThatCannotBeStoredIsNotAcknowledged(t *testing.T) {
	w := New(t)
	event := w.PSP.Push(psp.Event{})
	for name, fault := range map[string]func(Moment, func() error){"before": w.Store.Before, "after": w.Store.After} {
		fault(Inserted("INBOX"), Silent)
		if _, err := w.Ingest.Receive(w.Context(), PSP, w.PSP.Delivery(event, w.Clock.Now())); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrUnavailable)
		}
	}
	w.Receive(event) // and then the psp sends again
	w.WantItem(event, webhook.StatusReceived)
}

func TestNothingOfARefusedDeliveryIsStoredOrLogged(t *testing.T) {
	w := New(t)
	delivery := psp.Delivery{Header: http.Header{"Fake-Signature": {"forged"}}, Body: []byte(`{"id":"canary"}`), ReceivedAt: Start}
	if _, err := w.Ingest.Receive(w.Context(), PSP, delivery); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("got %v, want %v", err, psp.ErrSignature)
	}
	if _, err := w.Ingest.Receive(w.Context(), "nobody", delivery); !errors.Is(err, webhook.ErrUnknownPSP) {
		t.Errorf("got %v, want %v", err, webhook.ErrUnknownPSP)
	}
	if items := w.Store.Items(w.Context()); len(items) != 0 {
		t.Errorf("got %d items, want none", len(items))
	}
	if strings.Contains(w.Logs.Text(), "canary") {
		t.Error("the body is in the log")
	}
	if n := w.Meter.Of(webhook.MetricRefused); n != 1 {
		t.Errorf("got %d refused, want 1", n)
	}
}

// batch is a PSP that sends several notifications at once.
type batch struct {
	*psptest.Fake
	events []psptest.Event
}

func (b batch) Verify(psp.Delivery) ([]psp.Notification, error) {
	var all []psp.Notification
	for _, e := range b.events {
		all = append(all, psp.Notification{EventID: e.ID, Type: e.Type, Body: []byte(e.ID)})
	}
	return all, nil
}

func TestABatchIsAcknowledgedOnlyWhenAllOfItIsStored(t *testing.T) {
	w := New(t)
	b := batch{w.PSP, []psptest.Event{w.PSP.Push(psp.Event{}), w.PSP.Push(psp.Event{}), w.PSP.Push(psp.Event{})}}
	w.Ingest.Providers[PSP] = b
	w.Store.Before(Inserted("INBOX"), Then(func() { w.Store.Before(Inserted("INBOX"), Silent) }))
	if _, err := w.Ingest.Receive(w.Context(), PSP, psp.Delivery{}); err == nil {
		t.Fatal("got an acknowledgement, want none")
	}
	if _, err := w.Ingest.Receive(w.Context(), PSP, psp.Delivery{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range b.events {
		w.WantItem(e, webhook.StatusReceived)
	}
	if n := w.Meter.Of(webhook.MetricDuplicate); n != 1 {
		t.Errorf("got %d duplicates, want 1", n)
	}
}

// The house with the simulator's own receiving side.
func withSimulator(t *testing.T, secrets ...string) *World {
	t.Helper()
	w := New(t)
	adapter, err := simulator.New(simulator.Config{
		BaseURL: "http://127.0.0.1:3002", Secrets: secrets, Tolerance: Durations.WebhookTolerance, Timeout: Durations.PSPTimeout,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Ingest.Providers[PSP], w.Applier.Providers[PSP] = adapter, adapter
	return w
}

const (
	currentSecret = "whsec_Y3VycmVudC1zZWNyZXQtb2YtdGhlLXRlc3RzLTEyMw=="
	formerSecret  = "whsec_Zm9ybWVyLXNlY3JldC1vZi10aGUtdGVzdHMtMTIzNA=="
)

func post(w *World, secret string, at time.Time, body string) error {
	header := psptest.SignStandard(secret, "evt_1", at, []byte(body))
	_, err := w.Ingest.Receive(w.Context(), PSP, psp.Delivery{Header: header, Body: []byte(body), ReceivedAt: w.Clock.Now()})
	return err
}

const capturedBody = `{"id":"evt_1","type":"charge.captured","created":1767322445,"data":{"charge":{"id":"ch_000001","reference":"PAYMENT",` +
	`"amount":5000,"currency":"JPY","status":"captured","captured":5000,"refunded":0,"redirect_url":null,"decline_code":null,"refunds":[]}}}`

func TestTheExactBytesVerifyAndNoOthers(t *testing.T) {
	body := `{"id":"evt_1","type":"charge.captured","name":"caf\u00e9"}` + "\r\n"
	for name, other := range map[string]string{
		"decoded and encoded again": strings.Replace(body, `\u00e9`, "é", 1),
		"other line end":            strings.Replace(body, "\r\n", "\n", 1),
		"other key order":           `{"type":"charge.captured","id":"evt_1","name":"caf\u00e9"}` + "\r\n",
		"spaces":                    strings.Replace(body, ":", ": ", 1),
		"shorter":                   body[:len(body)-1],
	} {
		w := withSimulator(t, currentSecret)
		header := psptest.SignStandard(currentSecret, "evt_1", Start, []byte(body))
		deliver := func(body string, header http.Header) error {
			_, err := w.Ingest.Receive(w.Context(), PSP, psp.Delivery{Header: header, Body: []byte(body), ReceivedAt: Start})
			return err
		}
		if err := deliver(other, header); !errors.Is(err, psp.ErrSignature) {
			t.Errorf("%s: got %v, want %v", name, err, psp.ErrSignature)
		}
		lower := http.Header{}
		for key, values := range header {
			lower[strings.ToLower(key)] = values
		}
		if err := deliver(body, lower); err != nil {
			t.Errorf("%s: header in lower case: got %v", name, err)
		}
		it, err := w.Table.Item(w.Context(), PSP, "evt_1")
		if err != nil || string(it.Body) != body {
			t.Errorf("%s: got body %q, %v, want the bytes that were signed", name, it.Body, err)
		}
	}
}

func TestARetiredSecretVerifiesInItsWindowOnly(t *testing.T) {
	w := withSimulator(t, currentSecret, formerSecret)
	for _, secret := range []string{currentSecret, formerSecret} {
		if err := post(w, secret, Start, `{"id":"evt_1"}`); err != nil {
			t.Errorf("in the window: got %v", err)
		}
	}
	w = withSimulator(t, currentSecret)
	if err := post(w, formerSecret, Start, `{"id":"evt_1"}`); !errors.Is(err, psp.ErrSignature) {
		t.Errorf("after it: got %v, want %v", err, psp.ErrSignature)
	}
}

func TestAStaleOrFutureDeliveryIsRefused(t *testing.T) {
	for age, fresh := range map[time.Duration]bool{
		Durations.WebhookTolerance: true, Durations.WebhookTolerance + time.Second: false,
		-Durations.WebhookTolerance: true, -Durations.WebhookTolerance - time.Second: false,
	} {
		w := withSimulator(t, currentSecret)
		if err := post(w, currentSecret, Start.Add(-age), `{"id":"evt_1"}`); (err == nil) != fresh {
			t.Errorf("%s old: got %v, want it fresh %t", age, err, fresh)
		}
	}
}

func TestARedeliveryWithAnotherTimestampIsTheSameEvent(t *testing.T) {
	w := withSimulator(t, currentSecret)
	p := w.Charged("k", Order{Token: psptest.TokenPendingSilent}, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	body := strings.Replace(capturedBody, "PAYMENT", string(p.ID), 1)
	for n := range 3 {
		if err := post(w, currentSecret, Start.Add(time.Duration(n)*time.Second), body); err != nil {
			t.Fatal(err)
		}
	}
	w.Stream()
	w.Want(p.ID, payment.StatusCaptured)
	items, _, err := w.Table.Webhooks(w.Context(), webhook.StatusApplied, "", 10)
	if err != nil || len(items) != 1 {
		t.Errorf("got %d items, %v, want one", len(items), err)
	}
	if n := w.Meter.Of(webhook.MetricDuplicate); n != 2 {
		t.Errorf("got %d duplicates, want 2", n)
	}
}

func TestSignedNonsenseIsAcknowledgedAndQuarantined(t *testing.T) {
	for name, body := range map[string]string{
		"no JSON": "nonsense", "nothing": "", "no UTF-8": "\xff\xfe", "another shape": `[1,2]`, "no charge": `{"id":"evt_1","type":"charge.captured","data":{}}`,
		"a fraction": `{"id":"evt_1","type":"charge.captured","data":{"charge":{"amount":1.5}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := withSimulator(t, currentSecret)
			if err := post(w, currentSecret, Start, body); err != nil {
				t.Fatalf("got %v, want an acknowledgement", err)
			}
			w.Stream()
			items, _, err := w.Table.Webhooks(w.Context(), webhook.StatusQuarantined, "", 10)
			if err != nil || len(items) != 1 {
				t.Errorf("got %d quarantined, %v, want 1", len(items), err)
			}
		})
	}
	t.Run("unknown type", func(t *testing.T) {
		w := withSimulator(t, currentSecret)
		if err := post(w, currentSecret, Start, `{"id":"evt_1","type":"payout.created","data":{}}`); err != nil {
			t.Fatal(err)
		}
		w.Stream()
		items, _, err := w.Table.Webhooks(w.Context(), webhook.StatusIgnored, "", 10)
		if err != nil || len(items) != 1 {
			t.Errorf("got %d ignored, %v, want 1", len(items), err)
		}
	})
}

func TestTheIDOfAnItemIsReadBack(t *testing.T) {
	for _, it := range []webhook.Item{{PSP: "adyen", EventID: "a#b/c:\u00e9"}, {PSP: "simulator", EventID: "evt_1"}} {
		name, eventID, ok := webhook.ParseID(it.ID())
		if !ok || name != it.PSP || eventID != it.EventID {
			t.Errorf("got %q %q %t, want %q %q", name, eventID, ok, it.PSP, it.EventID)
		}
	}
	for _, id := range []string{"", "wh_", "wh_!", "evt_1", "wh_YQ"} {
		if _, _, ok := webhook.ParseID(id); ok {
			t.Errorf("%q was read", id)
		}
	}
}
