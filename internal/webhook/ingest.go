package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/psp"
)

// Settings are the durations that the inbox needs.
type Settings struct {
	ReconcileAfter time.Duration // an unapplied item older than this is swept
	Wait           time.Duration // how long an item may wait for its payment
}

// Ingest takes deliveries in. Safe for concurrent use.
type Ingest struct {
	// Providers by name. A nil one is known but has no secret: it refuses all.
	Providers map[string]psp.Webhooks
	Inbox     Inbox
	Settings  Settings
	Now       func() time.Time
	Meter     Meter
}

// Receive verifies a delivery and stores its notifications. After a nil error
// they are stored durably and the PSP gets its acknowledgement, also when they
// were there before. Errors: ErrUnknownPSP, psp.ErrSignature (nothing stored,
// nothing to be logged of the body), others when the store gave no answer: then
// the PSP must send again. Safe to repeat.
func (g *Ingest) Receive(ctx context.Context, name string, d psp.Delivery) (psp.Acknowledgement, error) {
	provider, known := g.Providers[name]
	if !known {
		return psp.Acknowledgement{}, ErrUnknownPSP
	}
	if provider == nil {
		g.Meter.Count(MetricRefused, 1)
		return psp.Acknowledgement{}, psp.ErrSignature
	}
	notifications, err := provider.Verify(d)
	if err != nil {
		g.Meter.Count(MetricRefused, 1)
		return psp.Acknowledgement{}, psp.ErrSignature
	}
	now := g.Now()
	for _, n := range notifications {
		fresh, err := g.Inbox.Receive(ctx, Item{
			PSP: name, EventID: n.EventID, Type: n.Type, Body: n.Body, Status: StatusReceived, ReceivedAt: now,
			WaitUntil: now.Add(g.Settings.Wait), DueAt: now.Add(g.Settings.ReconcileAfter),
		})
		if err != nil {
			return psp.Acknowledgement{}, fmt.Errorf("store notification: %w", err)
		}
		if !fresh {
			g.Meter.Count(MetricDuplicate, 1)
		}
	}
	return provider.Acknowledge(), nil
}
