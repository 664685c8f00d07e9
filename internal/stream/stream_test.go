package stream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	. "github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/stream"
	"github.com/kessai/kessai/internal/webhook"
)

// batchOf is a batch of records as Lambda hands it over.
func batchOf(changes ...store.Change) events.DynamoDBEvent {
	var batch events.DynamoDBEvent
	for _, c := range changes {
		batch.Records = append(batch.Records, dynamo.RecordFromChange(c))
	}
	return batch
}

// unreadable is a record that no version of this program wrote.
func unreadable(sequence string) events.DynamoDBEventRecord {
	record := dynamo.RecordFromChange(store.Change{Key: store.Key{PK: "WEBHOOK#simulator#evt_x", SK: "INBOX"}, New: store.Item{}, Sequence: sequence})
	record.Change.NewImage["odd"] = events.NewBinaryAttribute([]byte{1})
	return record
}

// failures are the sequence numbers that a handler wants to see again.
func failures(r events.DynamoDBEventResponse) []string {
	all := []string{}
	for _, f := range r.BatchItemFailures {
		all = append(all, f.ItemIdentifier)
	}
	return all
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// appliers note what they are asked to apply.
type applier struct {
	applied []string
	fails   map[string]error
}

func (a *applier) Apply(_ context.Context, psp, eventID string) error {
	a.applied = append(a.applied, psp+"/"+eventID)
	return a.fails[eventID]
}

func item(eventID, sequence string) store.Change {
	return store.Change{
		Key: store.Key{PK: "WEBHOOK#simulator#" + eventID, SK: "INBOX"}, Sequence: sequence,
		New: store.Item{"psp": "simulator", "event_id": eventID, "status": "received"},
	}
}

func TestOneBadRecordDoesNotBlockTheOthers(t *testing.T) {
	a := &applier{fails: map[string]error{"evt_2": errors.New("broken")}}
	var logs bytes.Buffer
	h := &stream.Webhooks{Applier: a, Log: slog.New(slog.NewJSONHandler(&logs, nil))}
	batch := batchOf(item("evt_1", "1"), item("evt_2", "2"), item("evt_3", "4"))
	batch.Records = append(batch.Records[:2:2], unreadable("3"), batch.Records[2])
	response, err := h.Handle(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "applied", a.applied, []string{"simulator/evt_1", "simulator/evt_2", "simulator/evt_3"})
	same(t, "failed", failures(response), []string{"2", "3"})
	if text := logs.String(); !strings.Contains(text, "webhook left for another try") {
		t.Errorf("got log %s, want it told", text)
	}
}

func TestOnlyWhatAsksForApplyingIsApplied(t *testing.T) {
	a := &applier{}
	h := &stream.Webhooks{Applier: a, Log: slog.New(slog.DiscardHandler)}
	saved := item("evt_1", "2")
	saved.Old = saved.New
	removed := item("evt_2", "3")
	removed.Old, removed.New, removed.Expired = removed.New, nil, true
	state := store.Change{Key: store.Key{PK: "PAYMENT#pay_1", SK: "STATE"}, New: store.Item{"status": "received"}, Sequence: "4"}
	response, err := h.Handle(t.Context(), batchOf(saved, removed, state))
	if err != nil || len(a.applied) != 0 {
		t.Errorf("got %v applied, %v, want none", a.applied, err)
	}
	if response.BatchItemFailures == nil || len(response.BatchItemFailures) != 0 {
		t.Errorf("got failures %v, want an empty list: null means that all failed", response.BatchItemFailures)
	}
}

func TestTheStreamDrivesTheRealFlow(t *testing.T) {
	w := New(t)
	h := &stream.Webhooks{Applier: w.Applier, Log: slog.New(slog.DiscardHandler)}
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	events := w.PSP.Drain()
	w.Receive(events...)
	batch := batchOf(w.Store.TakeChanges()...)
	for range 2 { // at least once
		if response, err := h.Handle(w.Context(), batch); err != nil || len(response.BatchItemFailures) != 0 {
			t.Fatalf("got %v, %v, want nothing left", failures(response), err)
		}
	}
	w.Want(p.ID, payment.StatusCaptured)
	for _, e := range events {
		w.WantItem(e, webhook.StatusApplied)
	}
}

// carrier notes what it carries.
type carrier struct {
	carried []outbox.Event
	fails   map[string]error
	calls   int
}

func (c *carrier) Carry(_ context.Context, events []outbox.Event) []error {
	c.calls++
	errs := make([]error, len(events))
	for i, e := range events {
		c.carried = append(c.carried, e)
		errs[i] = c.fails[e.Type]
	}
	return errs
}

func TestEveryRowIsCarriedOutInOrder(t *testing.T) {
	w := New(t)
	p := w.Charged("k", Order{Token: psptest.TokenPending}, payment.StatusProcessing)
	w.PSP.Approve(string(p.ID))
	w.Deliver(w.PSP.Drain()...)
	w.Refunded("r", p.ID, 0, payment.RefundSucceeded)
	c := &carrier{}
	h := &stream.Outbox{Carrier: c, Log: slog.New(slog.DiscardHandler)}
	// The world's own stream took the changes of the deliveries; what is asked here
	// is every row as the table has it.
	var changes []store.Change
	for key, item := range w.Store.Items(w.Context()) {
		changes = append(changes, store.Change{Key: key, New: item, Sequence: key.String()})
	}
	if response, err := h.Handle(w.Context(), batchOf(changes...)); err != nil || len(response.BatchItemFailures) != 0 {
		t.Fatalf("got %v, %v, want nothing left", failures(response), err)
	}
	types := map[int64]string{}
	for _, e := range c.carried {
		types[e.Version] = e.Type
		if e.ID != outbox.EventID(string(p.ID), e.Version) || e.Subject != string(p.ID) || e.MerchantID != Merchant {
			t.Errorf("got event %+v", e)
		}
	}
	for n, want := range w.Types(p.ID) {
		if types[int64(n+1)] != want {
			t.Errorf("version %d: got %q, want %s", n+1, types[int64(n+1)], want)
		}
	}
	if len(c.carried) != len(w.Types(p.ID)) {
		t.Errorf("got %d events, want one for each row", len(c.carried))
	}
}

func TestARowThatCouldNotBeCarriedComesAgain(t *testing.T) {
	row := func(version, kind, sequence string) store.Change {
		return store.Change{
			Key: store.Key{PK: "PAYMENT#pay_1", SK: "EVENT#000000000" + version}, Sequence: sequence,
			New: store.Item{"type": kind, "version": int64(1), "data": map[string]any{"status": "processing"}},
		}
	}
	c := &carrier{fails: map[string]error{"payment.pending": errors.New("the bus is full")}}
	h := &stream.Outbox{Carrier: c, Log: slog.New(slog.DiscardHandler)}
	batch := batchOf(row("1", "payment.created", "1"), item("evt_1", "2"), row("2", "payment.pending", "3"), row("3", "payment.captured", "5"))
	batch.Records = append(batch.Records[:3:3], unreadable("4"), batch.Records[3])
	response, err := h.Handle(t.Context(), batch)
	if err != nil || len(c.carried) != 3 {
		t.Fatalf("got %d carried, %v, want 3", len(c.carried), err)
	}
	got := failures(response)
	if len(got) != 2 || !strings.Contains(strings.Join(got, " "), "3") || !strings.Contains(strings.Join(got, " "), "4") {
		t.Errorf("got failures %v, want 3 and 4", got)
	}
	response, err = h.Handle(t.Context(), batchOf(item("evt_1", "9")))
	if err != nil || c.calls != 1 || response.BatchItemFailures == nil {
		t.Errorf("without rows: got %d calls, failures %v, %v, want nothing carried", c.calls, response.BatchItemFailures, err)
	}
}
