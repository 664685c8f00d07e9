package psptest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/psp"
)

// Event is something the Fake tells of. The same event may be applied again,
// and events in any order.
type Event struct {
	ID    string // the same in every copy
	Type  string // as the simulator writes it, such as charge.captured
	Event psp.Event
}

// Header that the Fake signs deliveries with, and the one value that is right.
const (
	fakeHeader    = "Fake-Signature"
	fakeSignature = "signed"
)

// tell queues an event. It has the lock.
func (f *Fake) tell(c *charge, event psp.Event) {
	switch c.token {
	case TokenPendingSilent, TokenTimeoutCapturedSilent:
		return
	case TokenWebhookTwice:
		e := f.newEvent(event)
		f.pending = append(f.pending, e, e, e)
	case TokenWebhookReversed:
		e := f.newEvent(event)
		if event.Status == psp.StatusAuthorized {
			c.held = &e
			return
		}
		f.pending = append(f.pending, e)
		if c.held != nil {
			f.pending = append(f.pending, *c.held)
			c.held = nil
		}
	default:
		f.pending = append(f.pending, f.newEvent(event))
	}
}

// newEvent has the lock.
func (f *Fake) newEvent(event psp.Event) Event {
	e := Event{ID: fmt.Sprintf("evt_%06d", len(f.events)+1), Type: typeOf(event), Event: cloneEvent(event)}
	f.events[e.ID] = e
	return e
}

// cloneEvent shares nothing with the event, so that no test changes another's.
func cloneEvent(e psp.Event) psp.Event {
	e.Charge = cloneCharge(e.Charge)
	if e.Refund != nil {
		refund := *e.Refund
		e.Refund = &refund
	}
	if e.Dispute != nil {
		dispute := *e.Dispute
		e.Dispute = &dispute
	}
	return e
}

func typeOf(event psp.Event) string {
	switch {
	case event.Refund != nil:
		return "refund." + string(event.Refund.Status)
	case event.Dispute != nil && event.Dispute.Status == psp.DisputeOpen:
		return "dispute.opened"
	case event.Dispute != nil:
		return "dispute.closed"
	}
	return "charge." + string(event.Status)
}

// Push queues an event of the test's making, with an id of its own: a wrong
// amount, a charge that nobody knows.
func (f *Fake) Push(event psp.Event) Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.newEvent(event)
	f.pending = append(f.pending, e)
	return e
}

// Pending are the events not taken yet, oldest first.
func (f *Fake) Pending() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cloneEvents(f.pending)
}

// Take removes and returns the pending event at that index of Pending. It
// panics if there is none.
func (f *Fake) Take(index int) Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := cloneEvents(f.pending[index : index+1])
	f.pending = slices.Delete(f.pending, index, index+1)
	return e[0]
}

// Drain removes and returns all pending events, oldest first.
func (f *Fake) Drain() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := cloneEvents(f.pending)
	f.pending = nil
	return all
}

func cloneEvents(events []Event) []Event {
	cloned := slices.Clone(events)
	for i := range cloned {
		cloned[i].Event = cloneEvent(cloned[i].Event)
	}
	return cloned
}

// Delivery is the event as a signed webhook that arrives at that time.
func (f *Fake) Delivery(e Event, at time.Time) psp.Delivery {
	body, err := json.Marshal(struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}{e.ID, e.Type})
	if err != nil { // two strings of ours
		panic(err)
	}
	return psp.Delivery{Header: http.Header{fakeHeader: {fakeSignature}}, Body: body, ReceivedAt: at}
}

// Verify accepts what Delivery made.
func (f *Fake) Verify(d psp.Delivery) ([]psp.Notification, error) {
	if d.Header.Get(fakeHeader) != fakeSignature {
		return nil, psp.ErrSignature
	}
	n := psp.Notification{EventID: "unreadable", Body: d.Body}
	var content struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	if err := json.Unmarshal(d.Body, &content); err == nil && content.ID != "" {
		n.EventID, n.Type = content.ID, content.Type
	}
	return []psp.Notification{n}, nil
}

// Parse is the event that the notification stands for. For an id that is none of
// the Fake's it is ErrEventInvalid if the type is one of the Fake's or missing,
// else ErrEventIgnored.
func (f *Fake) Parse(n psp.Notification) (psp.Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, found := f.events[n.EventID]; found {
		return cloneEvent(e.Event), nil
	}
	subject, _, _ := strings.Cut(n.Type, ".")
	if slices.Contains([]string{"", "charge", "refund", "dispute"}, subject) {
		return psp.Event{}, psp.ErrEventInvalid
	}
	return psp.Event{}, psp.ErrEventIgnored
}

// Acknowledge is an empty JSON object.
func (f *Fake) Acknowledge() psp.Acknowledgement {
	return psp.Acknowledgement{ContentType: "application/json", Body: "{}"}
}
