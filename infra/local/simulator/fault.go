package simulator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// operation is what a fault can be set for.
type operation string

const (
	operationCharge  operation = "charge"
	operationCapture operation = "capture"
	operationCancel  operation = "cancel"
	operationRefund  operation = "refund"
	operationLookup  operation = "lookup"
)

var operations = map[operation]bool{
	operationCharge: true, operationCapture: true, operationCancel: true, operationRefund: true, operationLookup: true,
}

// maxFaultTimes bounds how many calls one fault can take: more than any test makes.
const maxFaultTimes = 1_000_000

// fault makes the next calls of an operation fail without effect.
type fault struct {
	times  int64
	status int // 0 for no answer
}

// takeFault uses one failure of the operation up, if there is one.
func (w *world) takeFault(o operation) (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.faults[o]
	if f.times == 0 {
		return fault{}, false
	}
	w.faults[o] = fault{times: f.times - 1, status: f.status}
	return f, true
}

// fail answers as the fault says.
func (c *call) fail(f fault) {
	if f.status == 0 {
		c.neverAnswer()
	}
	c.send(c.transient(f.status, "fault_injected"))
}

// transient is an answer that says nothing about the charge; a 429 says when to
// come back.
func (c *call) transient(status int, code string) answer {
	if status == http.StatusTooManyRequests {
		c.writer.Header().Set("Retry-After", "1")
	}
	r := refusal{status: status, code: code, message: http.StatusText(status)}
	return r.answer("")
}

func setFault(c *call) {
	body, err := c.object()
	if err != nil {
		c.refuse(err)
		return
	}
	name, err := body.text("operation", maxText)
	if err != nil || !operations[operation(name)] {
		c.refuse(invalid("operation", "must be one of "+operationNames()))
		return
	}
	times, err := body.integer("times", 0, maxFaultTimes, 1)
	if err != nil {
		c.refuse(err)
		return
	}
	status, err := body.integer("status", 0, 599, http.StatusInternalServerError)
	if err != nil || (status != 0 && status < http.StatusBadRequest) {
		c.refuse(invalid("status", "must be 0 or an error status from 400 to 599"))
		return
	}
	c.world.mu.Lock()
	c.world.faults[operation(name)] = fault{times: times, status: int(status)}
	c.world.mu.Unlock()
	c.sendJSON(http.StatusOK, map[string]any{"operation": name, "times": times, "status": status})
}

func operationNames() string {
	var names []string
	for o := range maps.Keys(operations) {
		names = append(names, string(o))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
