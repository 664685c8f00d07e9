package eventbridge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
)

// Deliverer posts one event to its merchant.
type Deliverer interface {
	Deliver(ctx context.Context, merchantID, eventID string) error
}

// Deliveries is the target of a rule for every event of the bus: it posts the
// event to its merchant, if the merchant wants it. A merchant's server that fails
// is no failure here: the sweep comes again.
//
// The bus and not the table's stream brings them, since a stream bears no more
// than two readers.
type Deliveries struct {
	Deliverer Deliverer
}

// Handle posts one event. Its error means that the store gave no answer; the bus
// brings the event again. Safe to repeat.
func (d *Deliveries) Handle(ctx context.Context, e events.EventBridgeEvent) error {
	var detail struct {
		ID         string `json:"id"`
		MerchantID string `json:"merchant_id"`
	}
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return fmt.Errorf("event of the bus: %w", err)
	}
	return d.Deliverer.Deliver(ctx, detail.MerchantID, detail.ID)
}
