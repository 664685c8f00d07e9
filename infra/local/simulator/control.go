package simulator

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// maxEventDelay bounds delay_ms: ten minutes, past every tolerance there is to test.
const maxEventDelay = int64(10 * time.Minute / time.Millisecond)

func listCalls(c *call) {
	p, err := readPage(c.request.URL.Query(), unlimited, unlimited)
	if err != nil {
		c.refuse(err)
		return
	}
	c.world.mu.Lock()
	found := oldestFirst(c.world.calls, p, func(r *callRow) callRow { return *r })
	c.world.mu.Unlock()
	c.sendJSON(http.StatusOK, found)
}

// sendWebhook sends any event, its bytes as they came. What is not signed is a
// forgery, not a delivery: it is sent once.
func sendWebhook(c *call) {
	m, delay, err := readWebhook(c)
	if err != nil {
		c.refuse(err)
		return
	}
	w := c.world
	w.mu.Lock()
	w.spawn(func() {
		if rest(w.ctx, delay) {
			w.deliver(m)
		}
	})
	w.mu.Unlock()
	c.sendJSON(http.StatusAccepted, map[string]any{"id": m.id, "signed": m.signed, "delay_ms": delay.Milliseconds()})
}

func readWebhook(c *call) (message, time.Duration, *refusal) {
	body, err := c.object()
	if err != nil {
		return message{}, 0, err
	}
	if _, found := body["event"]; !found {
		return message{}, 0, invalid("event", "is required")
	}
	signed, err := body.boolean("sign", true)
	if err != nil {
		return message{}, 0, err
	}
	delay, err := body.integer("delay_ms", 0, maxEventDelay, 0)
	if err != nil {
		return message{}, 0, err
	}
	m := message{id: eventID(body["event"]), body: body["event"], signed: signed, attempts: 1}
	if signed {
		m.attempts = maxAttempts
	}
	if !isHeaderText(m.id) {
		return message{}, 0, invalid("event", "must have an id of printable ASCII")
	}
	return m, time.Duration(delay) * time.Millisecond, nil
}

// eventID is the id within an event, a new one when it has none.
func eventID(event json.RawMessage) string {
	var members object
	var id string
	if json.Unmarshal(event, &members) != nil || json.Unmarshal(members["id"], &id) != nil || id == "" {
		return "evt_" + rand.Text()
	}
	return id
}

func isHeaderText(text string) bool {
	return len(text) <= maxBody && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

func pauseWebhooks(c *call)  { setPause(c, true) }
func resumeWebhooks(c *call) { setPause(c, false) }

func setPause(c *call, on bool) {
	c.world.mu.Lock()
	c.world.pause.set(on)
	c.world.mu.Unlock()
	c.sendJSON(http.StatusOK, map[string]bool{"paused": on})
}
