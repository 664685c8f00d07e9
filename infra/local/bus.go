package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/outbox"
)

// bus stands in for the event bus: it hands every event to the target of its one
// rule, on its own time. What fails there comes again with the sweep.
type bus struct {
	target func(context.Context, events.EventBridgeEvent) error
	log    *slog.Logger
	slots  chan struct{}
	ending context.Context
	end    context.CancelFunc
	work   sync.WaitGroup
}

const (
	// busWorkers is how many events are on their way at once.
	busWorkers = 16
	// deliveryTimeout is the event-delivery function's time, as in the template.
	deliveryTimeout = 15 * time.Second
)

func newBus(target func(context.Context, events.EventBridgeEvent) error, log *slog.Logger) *bus {
	b := &bus{target: target, log: log, slots: make(chan struct{}, busWorkers)}
	b.ending, b.end = context.WithCancel(context.Background())
	return b
}

// Publish takes events.
func (b *bus) Publish(_ context.Context, list []outbox.Event) []error {
	errs := make([]error, len(list))
	for i, e := range list {
		body, err := e.Body()
		if err != nil {
			errs[i] = err
			continue
		}
		b.work.Go(func() {
			b.carry(events.EventBridgeEvent{ID: e.ID, Source: "kessai", DetailType: e.Type, Time: e.At, Detail: body})
		})
	}
	return errs
}

func (b *bus) carry(e events.EventBridgeEvent) {
	select {
	case b.slots <- struct{}{}:
	case <-b.ending.Done():
		return
	}
	defer func() { <-b.slots }()
	ctx, cancel := context.WithTimeout(b.ending, deliveryTimeout)
	defer cancel()
	if err := b.target(ctx, e); err != nil {
		b.log.Warn("event left for the sweep", "event_id", e.ID, "reason", err.Error())
	}
}

func (b *bus) close() {
	b.end()
	b.work.Wait()
}
