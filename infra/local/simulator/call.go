package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SilenceLimit is how long a call without an answer is held when the client
// does not give up first; longer than any sensible client waits.
const SilenceLimit = 60 * time.Second

// call is one request while it is served.
type call struct {
	writer  http.ResponseWriter
	request *http.Request
	world   *world
	closing <-chan struct{} // the server closes
	body    []byte
	row     *callRow // nil for test control, which is no part of the PSP
	// answered closes when the answer has left, or will never come: webhooks
	// that follow an answer wait for it.
	answered chan struct{}
}

// callRow is a call as test control shows it.
type callRow struct {
	At             time.Time       `json:"at"`
	Method         string          `json:"method"`
	Path           string          `json:"path"`
	IdempotencyKey *string         `json:"idempotency_key"`
	Body           json.RawMessage `json:"body"`   // the JSON object sent, else null
	Status         *int            `json:"status"` // null until answered
}

// record adds the call to those that test control shows.
func (w *world) record(c *call) {
	row := &callRow{At: w.config.Now().UTC(), Method: c.request.Method, Path: c.request.URL.Path, Body: json.RawMessage("null")}
	if key := c.request.Header.Get(keyHeader); key != "" {
		row.IdempotencyKey = &key
	}
	if _, err := c.object(); err == nil && len(bytes.TrimSpace(c.body)) > 0 {
		row.Body = c.body
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.row = row
	w.calls = append(w.calls, row)
}

// read takes the body in, up to its bound.
func (c *call) read() *refusal {
	limit := int64(maxBody)
	if strings.HasPrefix(c.request.URL.Path, controlPrefix) {
		limit = maxControlBody
	}
	if c.request.Body == nil {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.writer, c.request.Body, limit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return &refusal{status: http.StatusRequestEntityTooLarge, code: "body_too_large", message: "The body is too large."}
	}
	if err != nil {
		return &refusal{status: http.StatusBadRequest, code: "body_incomplete", message: "The body could not be read."}
	}
	c.body = body
	return nil
}

// object decodes the body as one JSON object.
func (c *call) object() (object, *refusal) { return decodeObject(c.body) }

// answer is a status and a JSON body, ready to be sent or stored.
type answer struct {
	status int
	body   []byte
}

func jsonAnswer(status int, value any) answer {
	body, err := json.Marshal(value)
	if err != nil { // every value is one of our own structs
		panic(err)
	}
	return answer{status, body}
}

func (c *call) sendJSON(status int, value any) { c.send(jsonAnswer(status, value)) }

func (c *call) send(a answer) { c.write(a, "application/json") }

// write sends the answer whole, so that what waits for it may follow at once.
// The row has its status before the client can have the answer.
func (c *call) write(a answer, contentType string) {
	if c.row != nil {
		c.world.mu.Lock()
		c.row.Status = &a.status
		c.world.mu.Unlock()
	}
	header := c.writer.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	header.Set("Cache-Control", "no-store")
	c.writer.WriteHeader(a.status)
	// A client that has gone away is told nothing; a writer that cannot flush
	// sends when the handler returns.
	_, _ = c.writer.Write(a.body)
	_ = http.NewResponseController(c.writer).Flush()
}

// neverAnswer holds the call until the client gives up, then cuts it off.
func (c *call) neverAnswer() {
	limit := time.NewTimer(SilenceLimit)
	defer limit.Stop()
	select {
	case <-c.request.Context().Done():
	case <-c.closing:
	case <-limit.C:
	}
	panic(http.ErrAbortHandler)
}

// refusal is a request that is not served, and why.
type refusal struct {
	status  int
	code    string // stable
	message string
	param   string  // the field at fault, if one is
	charge  *charge // set where the charge's status is the reason; read under the world's lock
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

// answer is the error body. The world is locked when the refusal has a charge.
func (r *refusal) answer(publicURL string) answer {
	type problem struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Param   string `json:"param,omitempty"`
	}
	body := struct {
		Error  problem     `json:"error"`
		Charge *chargeView `json:"charge,omitempty"`
	}{Error: problem{r.code, r.message, r.param}}
	if r.charge != nil {
		view := r.charge.view(publicURL)
		body.Charge = &view
	}
	return jsonAnswer(r.status, body)
}

// refuse sends a refusal that has no charge.
func (c *call) refuse(r *refusal) { c.send(r.answer("")) }
