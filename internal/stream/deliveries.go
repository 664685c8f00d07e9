package stream

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// Deliverer posts one event to its merchant.
type Deliverer interface {
	Deliver(ctx context.Context, merchantID, eventID string) error
}

// Deliveries posts merchants' events as they become due for the first time. A
// merchant's server that fails is no failure here: the sweep comes again.
type Deliveries struct {
	Deliverer Deliverer
	Log       *slog.Logger
}

// Handle posts the deliveries of a batch. It reports those that the store gave no
// answer for.
func (d *Deliveries) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	return each(ctx, d.Log, batch, func(ctx context.Context, c store.Change) error {
		merchantID, eventID, ok := payments.DeliveryChange(c)
		if !ok {
			return nil
		}
		err := d.Deliverer.Deliver(ctx, merchantID, eventID)
		if err != nil {
			d.Log.WarnContext(ctx, "delivery left for another try", "event_id", eventID, "reason", err.Error())
		}
		return err
	})
}
