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

// Outbox carries journal rows out as they are committed.
type Outbox struct {
	Carrier Carrier
	Log     *slog.Logger
}

// Handle carries the rows of a batch, and reports those that must come again.
func (o *Outbox) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	var rows []outbox.Event
	var sequences []string
	for _, record := range batch.Records {
		change, err := dynamo.ChangeFromRecord(record)
		if err != nil {
			o.Log.ErrorContext(ctx, "record cannot be read", "reason", err.Error())
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
			continue
		}
		if row, ok := payments.RowChange(change); ok {
			rows = append(rows, row)
			sequences = append(sequences, record.Change.SequenceNumber)
		}
	}
	if len(rows) == 0 {
		return response, nil
	}
	for i, err := range o.Carrier.Carry(ctx, rows) {
		if err != nil {
			o.Log.WarnContext(ctx, "event left for another try", "event_id", rows[i].ID, "payment_id", rows[i].Subject, "reason", err.Error())
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: sequences[i]})
		}
	}
	return response, nil
}
