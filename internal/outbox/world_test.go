package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/checkout/sagatest"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/stream"
)

// What a mapping does with records that it cannot get rid of.
const (
	retention = 24 * time.Hour // of the stream
	givenUp   = 12 * time.Hour // of the relay
)

// line is a house whose table has a stream that remembers for a day, and a relay that
// reads it.
type line struct {
	*sagatest.World
	relay *stream.Outbox
	pulse *outbox.Pulse
	bus   *counting
	held  []events.DynamoDBEventRecord

	down bool // nobody reads the stream
}

// counting is a bus that counts how often it takes each event.
type counting struct {
	heard   map[string]int
	refuses error
}

func (c *counting) Publish(_ context.Context, list []outbox.Event) []error {
	errs := make([]error, len(list))
	for i, e := range list {
		if errs[i] = c.refuses; c.refuses == nil {
			c.heard[e.ID]++
		}
	}
	return errs
}

// feed tells merchants, as far as their feed.
type feed struct{ *payments.Table }

func (f feed) Announce(ctx context.Context, e outbox.Event) error {
	if e.MerchantID == "" {
		return nil
	}
	return f.AddToFeed(ctx, e)
}

func newLine(t *testing.T) *line {
	t.Helper()
	w := sagatest.New(t)
	log := slog.New(slog.DiscardHandler)
	l := &line{
		World: w, bus: &counting{heard: map[string]int{}},
		pulse: &outbox.Pulse{Hearts: w.Table, Now: w.Clock.Now, Meter: w.Meter, Log: log},
	}
	l.relay = &stream.Outbox{
		Carrier: &outbox.Relay{Publisher: l.bus, Sagas: w.Checkouts, Merchants: feed{w.Table}}, Log: log,
		Watch: &outbox.Watch{Marks: w.Table, Gaps: w.Table, Now: w.Clock.Now, Meter: w.Meter, Log: log},
	}
	l.Supply(sagatest.Tee, 100)
	if err := l.pulse.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.pump()
	return l
}

// pump lets everything happen that happens at once. What fails then waits for the
// next time.
func (l *line) pump() {
	l.Helper()
	var failed []events.DynamoDBEventRecord
	for changes := l.Store.TakeChanges(); len(changes) > 0 || l.Waiting() > 0; changes = l.Store.TakeChanges() {
		for _, c := range changes {
			l.change(c)
		}
		if !l.down {
			l.read()
			failed, l.held = append(failed, l.held...), nil
		}
		for l.Waiting() > 0 {
			l.RunNext()
		}
	}
	l.held = append(failed, l.held...)
}

// change is one change that is committed. The inbox has a reader of its own.
func (l *line) change(c store.Change) {
	l.Helper()
	if name, id, ok := payments.InboxChange(c); ok {
		if err := l.Applier.Apply(l.Context(), name, id); err != nil {
			l.Fatal(err)
		}
	}
	record := dynamo.RecordFromChange(c)
	record.Change.ApproximateCreationDateTime = events.SecondsEpochTime{Time: l.Clock.Now()}
	l.held = append(l.held, record)
}

// read brings what the stream holds to the relay, rows and beats each in a batch of
// their own, as different parts of a stream do. What fails stays for the next time,
// until it is given up.
func (l *line) read() {
	l.Helper()
	all := l.held
	l.held = nil
	var rows, beats []events.DynamoDBEventRecord
	for _, r := range all {
		age := l.Clock.Now().Sub(r.Change.ApproximateCreationDateTime.Time)
		switch _, old := r.Change.OldImage["beat"]; {
		case age > retention, age > givenUp && l.bus.refuses != nil:
		case old || r.Change.NewImage["beat"].DataType() == events.DataTypeNumber && len(r.Change.NewImage) > 0:
			beats = append(beats, r)
		default:
			rows = append(rows, r)
		}
	}
	l.hand(rows)
	l.hand(beats)
}

func (l *line) hand(batch []events.DynamoDBEventRecord) {
	l.Helper()
	if len(batch) == 0 {
		return
	}
	response, err := l.relay.Handle(l.Context(), events.DynamoDBEvent{Records: batch})
	if err != nil {
		l.Fatal(err)
	}
	failed := map[string]bool{}
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	for _, r := range batch {
		if failed[r.Change.SequenceNumber] {
			l.held = append(l.held, r)
		}
	}
}

// pass lets time go by, with a sweep every interval of the heartbeats.
func (l *line) pass(d time.Duration) {
	l.Helper()
	for ; d > 0; d -= outbox.Interval {
		l.Clock.Advance(outbox.Interval)
		for _, err := range l.Sweep() {
			l.Errorf("sweep: %v", err)
		}
		l.pump()
	}
}

// unsent makes a payment that never got to the PSP, and that nobody looks after.
func (l *line) unsent(n int) payment.ID {
	l.Helper()
	p, row := payment.New(payment.Terms{
		ID: payment.ID("pay_" + flowtest.ULID(int64(700_000+n))), MerchantID: flowtest.Merchant, Amount: money.Amount{Minor: 1, Currency: "JPY"},
		CaptureMethod: payment.CaptureAutomatic, PSP: flowtest.PSP, ExpiresAt: l.Clock.Now().Add(time.Hour),
	}, l.Clock.Now())
	if err := l.Table.Commit(l.Context(), journal.Change{After: p, Row: row, Source: journal.SourceAPI}); err != nil {
		l.Fatal(err)
	}
	return p.ID
}

// rows are the ids of all events that the table's journals have.
func (l *line) rows() map[string]bool {
	l.Helper()
	all := map[string]bool{}
	for key, item := range l.Store.Items(l.Context()) {
		if e, ok := payments.RowChange(store.Change{Key: key, New: item}); ok {
			all[e.ID] = true
		}
	}
	return all
}

// wantHeard ends the test unless the bus has every row under its id, and nothing else.
func (l *line) wantHeard() {
	l.Helper()
	rows := l.rows()
	for id := range rows {
		if l.bus.heard[id] == 0 {
			l.Errorf("%s never got out", id)
		}
	}
	for id := range l.bus.heard {
		if !rows[id] {
			l.Errorf("%s got out and is no row", id)
		}
	}
}

// unheard is how many rows did not get out.
func (l *line) unheard() (n int) {
	l.Helper()
	for id := range l.rows() {
		if l.bus.heard[id] == 0 {
			n++
		}
	}
	return n
}

func (l *line) recovery() outbox.Recovery {
	l.Helper()
	r, err := l.Table.Recovery(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return r
}

// wantNoGap ends the test if a gap was ever opened.
func (l *line) wantNoGap() {
	l.Helper()
	if r := l.recovery(); r.Version != 0 || l.Meter.Of(outbox.MetricGap) != 0 {
		l.Errorf("got %+v, want no gap", r)
	}
}

var errRefused = errors.New("the bus is full")
