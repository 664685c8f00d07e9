// Package stream is the edge between the table's change stream and the flows: it
// reads DynamoDB stream records, and answers with the records that must come
// again, so that one bad record never blocks the others.
package stream

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/store"
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

// Handle applies the items of a batch. It reports the records whose items could
// not be brought on; they come again, and the sweep comes to them too. Its error is
// always nil.
func (w *Webhooks) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return each(ctx, w.Log, batch, func(ctx context.Context, c store.Change) error {
		psp, eventID, ok := payments.InboxChange(c)
		if !ok {
			return nil
		}
		err := w.Applier.Apply(ctx, psp, eventID)
		if err != nil {
			w.Log.WarnContext(ctx, "webhook left for another try", "psp", psp, "reason", err.Error())
		}
		return err
	})
}
