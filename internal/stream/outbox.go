package stream

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/payments"
)

// Carrier carries events out.
type Carrier interface {
	Carry(ctx context.Context, events []outbox.Event) []error
}

// Watch notes what the stream brought, and what it may lose.
type Watch interface {
	// Arrived notes a beat behind which everything was carried out. An error says that
	// the beat must come again.
	Arrived(ctx context.Context, h outbox.Heartbeat) error
	// Failed notes events that could not be carried out.
	Failed(ctx context.Context, failures []outbox.Failure) error
}

// Outbox carries journal rows out as they are committed.
type Outbox struct {
	Carrier Carrier
	Watch   Watch // nil: nobody looks for what is lost
	Log     *slog.Logger
}

// delivery is what a batch holds for the outbox.
type delivery struct {
	rows  []outbox.Event
	from  []events.DynamoDBEventRecord // of each row
	beats []outbox.Heartbeat
	told  []events.DynamoDBEventRecord // of each beat

	failed []events.DynamoDBBatchItemFailure
}

// Handle carries the rows of a batch, and reports those that must come again. A batch
// without any failure lets its beats be noted; of another they come again with it. Its
// error is always nil.
func (o *Outbox) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	d := o.read(ctx, batch)
	o.carry(ctx, d)
	if o.Watch != nil {
		o.note(ctx, d)
	}
	return events.DynamoDBEventResponse{BatchItemFailures: d.failed}, nil
}

func (o *Outbox) read(ctx context.Context, batch events.DynamoDBEvent) *delivery {
	d := &delivery{failed: []events.DynamoDBBatchItemFailure{}}
	for _, record := range batch.Records {
		change, err := dynamo.ChangeFromRecord(record)
		if err != nil {
			o.Log.ErrorContext(ctx, "record cannot be read", "reason", err.Error())
			d.fail(record)
			continue
		}
		if row, ok := payments.RowChange(change); ok {
			d.rows, d.from = append(d.rows, row), append(d.from, record)
		} else if beat, ok := payments.BeatChange(change); ok {
			d.beats, d.told = append(d.beats, beat), append(d.told, record)
		}
	}
	return d
}

func (d *delivery) fail(record events.DynamoDBEventRecord) {
	d.failed = append(d.failed, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
}

func (o *Outbox) carry(ctx context.Context, d *delivery) {
	if len(d.rows) == 0 {
		return
	}
	var failures []outbox.Failure
	for i, err := range o.Carrier.Carry(ctx, d.rows) {
		if err != nil {
			o.Log.WarnContext(ctx, "event left for another try", "event_id", d.rows[i].ID, "payment_id", d.rows[i].Subject, "reason", err.Error())
			d.fail(d.from[i])
			failures = append(failures, outbox.Failure{Event: d.rows[i], Since: d.from[i].Change.ApproximateCreationDateTime.Time})
		}
	}
	if len(failures) == 0 || o.Watch == nil {
		return
	}
	if err := o.Watch.Failed(ctx, failures); err != nil {
		o.Log.WarnContext(ctx, "failure not noted", "reason", err.Error()) // it is when the batch comes again
	}
}

// note notes the beats of a batch without failures, in their order.
func (o *Outbox) note(ctx context.Context, d *delivery) {
	broken := len(d.failed) > 0
	for i, beat := range d.beats {
		if broken {
			d.fail(d.told[i])
			continue
		}
		if err := o.Watch.Arrived(ctx, beat); err != nil {
			o.Log.WarnContext(ctx, "beat left for another try", "heartbeat", beat.N, "reason", err.Error())
			d.fail(d.told[i])
		}
	}
}
