// Package eventbridge publishes events on an Amazon EventBridge bus.
package eventbridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/kessai/kessai/internal/outbox"
)

// maxEntries is how many events one call of PutEvents takes.
const maxEntries = 10

// API is the call that is used.
type API interface {
	PutEvents(ctx context.Context, in *eventbridge.PutEventsInput, o ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Publisher publishes on one bus. Safe for concurrent use.
type Publisher struct {
	API API
	Bus string // name or ARN
}

// source is the Source of every event on the bus.
const source = "kessai"

// Publish puts events on the bus, at most ten a call, and reads the result entry
// by entry: a call that succeeds may have refused some.
func (p *Publisher) Publish(ctx context.Context, events []outbox.Event) []error {
	errs := make([]error, len(events))
	for from := 0; from < len(events); from += maxEntries {
		to := min(from+maxEntries, len(events))
		p.put(ctx, events[from:to], errs[from:to])
	}
	return errs
}

func (p *Publisher) put(ctx context.Context, events []outbox.Event, errs []error) {
	in := &eventbridge.PutEventsInput{}
	var sent []int
	for i, e := range events {
		entry, err := p.entry(e)
		if err != nil {
			errs[i] = err
			continue
		}
		in.Entries = append(in.Entries, entry)
		sent = append(sent, i)
	}
	if len(sent) == 0 {
		return
	}
	out, err := p.API.PutEvents(ctx, in)
	for at, i := range sent {
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("put events: %w", err)
		case at >= len(out.Entries):
			errs[i] = errors.New("put events: no result for the entry")
		case out.Entries[at].ErrorCode != nil:
			errs[i] = fmt.Errorf("put events: %s", aws.ToString(out.Entries[at].ErrorCode))
		}
	}
}

func (p *Publisher) entry(e outbox.Event) (types.PutEventsRequestEntry, error) {
	detail, err := e.Body()
	if err != nil {
		return types.PutEventsRequestEntry{}, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	return types.PutEventsRequestEntry{
		EventBusName: aws.String(p.Bus), Source: aws.String(source), DetailType: aws.String(e.Type),
		Detail: aws.String(string(detail)), Time: aws.Time(e.At), Resources: []string{e.Subject},
	}, nil
}
