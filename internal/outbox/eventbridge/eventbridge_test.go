package eventbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awseventbridge "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/outbox/eventbridge"
)

// bus is EventBridge's side of PutEvents.
type bus struct {
	calls   [][]types.PutEventsRequestEntry
	refuses map[string]bool // by the event's type
	down    error
	short   bool // answers with a result too few
}

func (b *bus) PutEvents(_ context.Context, in *awseventbridge.PutEventsInput, _ ...func(*awseventbridge.Options)) (*awseventbridge.PutEventsOutput, error) {
	b.calls = append(b.calls, in.Entries)
	if b.down != nil {
		return nil, b.down
	}
	out := &awseventbridge.PutEventsOutput{}
	for _, e := range in.Entries {
		result := types.PutEventsResultEntry{EventId: aws.String("1")}
		if b.refuses[aws.ToString(e.DetailType)] {
			result = types.PutEventsResultEntry{ErrorCode: aws.String("ThrottlingException")}
		}
		out.Entries = append(out.Entries, result)
	}
	if b.short {
		out.Entries = out.Entries[:len(out.Entries)-1]
	}
	return out, nil
}

func publisher(b *bus) *eventbridge.Publisher { return &eventbridge.Publisher{API: b, Bus: "kessai"} }

func events(n int) []outbox.Event {
	var all []outbox.Event
	for i := range n {
		all = append(all, outbox.Event{ID: fmt.Sprintf("evt_%d", i), Type: fmt.Sprintf("payment.%d", i), Subject: "pay_1"})
	}
	return all
}

func TestAnEventLeavesWithItsIDVersionAndData(t *testing.T) {
	b := &bus{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.FixedZone("", 3600))
	event := outbox.Event{
		ID: "evt_pay_1_2", Type: "payment.captured", Subject: "pay_1", Version: 2, At: at, Source: "webhook", MerchantID: "alpha",
		CheckoutID: "chk_1", Status: "captured", Data: map[string]any{"amount": int64(5000)},
	}
	if err := publisher(b).Publish(t.Context(), []outbox.Event{event})[0]; err != nil {
		t.Fatal(err)
	}
	e := b.calls[0][0]
	if aws.ToString(e.EventBusName) != "kessai" || aws.ToString(e.Source) != "kessai" || aws.ToString(e.DetailType) != "payment.captured" ||
		len(e.Resources) != 1 || e.Resources[0] != "pay_1" || !e.Time.Equal(at) {
		t.Errorf("got %+v, want the bus, the type, the subject and the time", e)
	}
	var detail struct {
		ID      string `json:"id"`
		Version int64  `json:"version"`
		Data    struct {
			Amount int64 `json:"amount"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(aws.ToString(e.Detail)), &detail); err != nil || detail.ID != event.ID || detail.Version != 2 || detail.Data.Amount != 5000 {
		t.Errorf("got %s %v, want the event's id, version and data", aws.ToString(e.Detail), err)
	}
}

func TestTenEventsLeaveInACall(t *testing.T) {
	b := &bus{}
	for i, err := range publisher(b).Publish(t.Context(), events(25)) {
		if err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
	if len(b.calls) != 3 || len(b.calls[0]) != 10 || len(b.calls[2]) != 5 {
		t.Errorf("got %d calls, want 10, 10 and 5 events", len(b.calls))
	}
}

func TestARefusalIsOfItsOwnEvent(t *testing.T) {
	b := &bus{refuses: map[string]bool{"payment.3": true, "payment.12": true}}
	for i, err := range publisher(b).Publish(t.Context(), events(15)) {
		if refused := i == 3 || i == 12; (err != nil) != refused {
			t.Errorf("event %d: got %v, want refused %t", i, err, refused)
		}
	}
}

func TestAnEventThatCannotBeWrittenDoesNotHoldUpTheOthers(t *testing.T) {
	b := &bus{refuses: map[string]bool{"payment.2": true}}
	all := events(3)
	all[1].Data = map[string]any{"amount": math.NaN()}
	errs := publisher(b).Publish(t.Context(), all)
	if errs[0] != nil || errs[1] == nil || errs[2] == nil || len(b.calls[0]) != 2 {
		t.Errorf("got %v for %d entries, want errors of the second and the third", errs, len(b.calls[0]))
	}
	if errs := publisher(&bus{}).Publish(t.Context(), all[1:2]); errs[0] == nil {
		t.Error("got nil, want an error")
	}
}

func TestNoAnswerIsAnErrorOfEveryEvent(t *testing.T) {
	down := errors.New("no answer")
	for i, err := range publisher(&bus{down: down}).Publish(t.Context(), events(12)) {
		if !errors.Is(err, down) {
			t.Errorf("event %d: got %v, want %v", i, err, down)
		}
	}
	errs := publisher(&bus{short: true}).Publish(t.Context(), events(3))
	if errs[0] != nil || errs[1] != nil || errs[2] == nil {
		t.Errorf("got %v, want an error of the event without a result", errs)
	}
}
