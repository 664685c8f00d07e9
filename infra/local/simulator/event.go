package simulator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"
)

const (
	// FirstLimit is how long tok_webhook_first keeps its answer back for a webhook
	// that nobody takes; shorter than a merchant's time-out for a call.
	FirstLimit = 5 * time.Second
	// ReversalWindow is how long tok_webhook_reversed keeps an authorized event
	// back for something to overtake it.
	ReversalWindow = 3 * time.Second
)

// eventType is what an event says.
type eventType string

const (
	eventAuthorized      eventType = "charge.authorized"
	eventCaptured        eventType = "charge.captured"
	eventFailed          eventType = "charge.failed"
	eventCanceled        eventType = "charge.canceled"
	eventRequiresAction  eventType = "charge.requires_action"
	eventPending         eventType = "charge.pending"
	eventRefundSucceeded eventType = "refund.succeeded"
	eventRefundFailed    eventType = "refund.failed"
)

// event is one event on its way to the merchant.
type event struct {
	id        string
	paymentID string // for the log
	body      []byte // the same bytes on every attempt
	copies    int
	after     <-chan struct{} // the answer it must follow, nil for none
	settled   chan struct{}   // closed once acknowledged or given up
}

// outbox is what a charge has still to tell, in the order of telling.
type outbox struct {
	queue   []*event
	held    *event // waits to be overtaken
	sending bool
}

// emit tells the merchant what happened, as the charge is now, once the channel
// after is closed. It returns nil for a charge that tells nothing. mu is held.
func (w *world) emit(c *charge, kind eventType, r *refund, after <-chan struct{}) *event {
	e := &event{id: "evt_" + rand.Text(), paymentID: c.reference, copies: 1, after: after, settled: make(chan struct{})}
	e.body = w.eventBody(e.id, kind, c, r)
	switch c.behaviour.order {
	case orderSilent:
		return nil
	case orderTwice:
		e.copies = 3
	case orderReversed:
		w.emitReversed(c, kind, e)
		return e
	case orderNormal, orderFirst:
	}
	w.queue(c, e)
	return e
}

// emitReversed keeps an authorization back until the next event has overtaken it.
func (w *world) emitReversed(c *charge, kind eventType, e *event) {
	if kind == eventAuthorized {
		c.outbox.held = e
		w.later(ReversalWindow, func() { w.release(c, e) })
		return
	}
	w.queue(c, e)
	w.release(c, c.outbox.held)
}

// release sends what was kept back, if it still is.
func (w *world) release(c *charge, e *event) {
	if e != nil && c.outbox.held == e {
		c.outbox.held = nil
		w.queue(c, e)
	}
}

func (w *world) eventBody(id string, kind eventType, c *charge, r *refund) []byte {
	type data struct {
		Charge chargeView  `json:"charge"`
		Refund *refundView `json:"refund,omitempty"`
	}
	body := struct {
		ID      string    `json:"id"`
		Type    eventType `json:"type"`
		Created int64     `json:"created"` // unix seconds
		Data    data      `json:"data"`
	}{id, kind, w.config.Now().Unix(), data{Charge: c.view(w.config.PublicURL)}}
	if r != nil {
		view := r.view(c)
		body.Data.Refund = &view
	}
	text, err := json.Marshal(body)
	if err != nil { // only our own structs
		panic(err)
	}
	return text
}

// queue puts an event behind the charge's others. mu is held.
func (w *world) queue(c *charge, e *event) {
	c.outbox.queue = append(c.outbox.queue, e)
	if !c.outbox.sending {
		c.outbox.sending = true
		w.spawn(func() { w.drain(c) })
	}
}

// drain delivers a charge's events one after the other until there are none.
func (w *world) drain(c *charge) {
	for {
		w.mu.Lock()
		if len(c.outbox.queue) == 0 {
			c.outbox.sending = false
			w.mu.Unlock()
			return
		}
		e := c.outbox.queue[0]
		c.outbox.queue = c.outbox.queue[1:]
		w.mu.Unlock()
		if e.after != nil {
			select {
			case <-e.after:
			case <-w.ctx.Done():
				return
			}
		}
		w.deliverCopies(e)
		if w.ctx.Err() != nil {
			return
		}
		close(e.settled)
	}
}

// deliverCopies sends two copies at the same moment and the others after them.
func (w *world) deliverCopies(e *event) {
	var together sync.WaitGroup
	for range min(e.copies, 2) {
		together.Go(func() { w.deliver(e.message()) })
	}
	together.Wait()
	for range e.copies - 2 {
		w.deliver(e.message())
	}
}

func (e *event) message() message {
	return message{id: e.id, paymentID: e.paymentID, body: e.body, signed: true, attempts: maxAttempts}
}

// awaitDelivery waits until the event is delivered, but never for a pause and
// never for long.
func (w *world) awaitDelivery(ctx context.Context, e *event) {
	limit := time.NewTimer(FirstLimit)
	defer limit.Stop()
	w.mu.Lock()
	paused := w.pause.on
	w.mu.Unlock()
	select {
	case <-e.settled:
	case <-paused:
	case <-limit.C:
	case <-ctx.Done():
	case <-w.ctx.Done():
	}
}
