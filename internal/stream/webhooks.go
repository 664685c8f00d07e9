// Package stream is the edge between the table's change stream and the flows: it
// reads DynamoDB stream records, and answers with the records that must come
// again, so that one bad record never blocks the others.
package stream

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/store/dynamo"
	"github.com/kessai/kessai/internal/store/payments"
)

// Applier applies one inbox item.
type Applier interface {
	Apply(ctx context.Context, psp, eventID string) error
}

// Webhooks applies inbox items as they arrive.
type Webhooks struct {
	Applier Applier
	Log     *slog.Logger
}

// Handle applies the items of a batch, one after the other. It reports the records
// whose items could not be brought on; they come again, and the sweep comes to them
// too. It goes on after a failure: what comes after it need not wait for it.
func (w *Webhooks) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for _, record := range batch.Records {
		if err := w.apply(ctx, record); err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
		}
	}
	return response, nil
}

func (w *Webhooks) apply(ctx context.Context, record events.DynamoDBEventRecord) error {
	change, err := dynamo.ChangeFromRecord(record)
	if err != nil {
		w.Log.ErrorContext(ctx, "record cannot be read", "reason", err.Error())
		return err
	}
	psp, eventID, ok := payments.InboxChange(change)
	if !ok {
		return nil
	}
	if err := w.Applier.Apply(ctx, psp, eventID); err != nil {
		w.Log.WarnContext(ctx, "webhook left for another try", "psp", psp, "reason", err.Error())
		return err
	}
	return nil
}
