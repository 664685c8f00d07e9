package stream

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/dynamo"
)

// each hands the changes of a batch on, one after the other, and reports the
// records that failed: they come again. It goes on after a failure: what comes
// after it need not wait for it.
func each(ctx context.Context, log *slog.Logger, batch events.DynamoDBEvent, handle func(context.Context, store.Change) error) (events.DynamoDBEventResponse, error) {
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for _, record := range batch.Records {
		change, err := dynamo.ChangeFromRecord(record)
		if err != nil {
			log.ErrorContext(ctx, "record cannot be read", "reason", err.Error())
		} else {
			err = handle(ctx, change)
		}
		if err != nil {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: record.Change.SequenceNumber})
		}
	}
	return response, nil
}
