package simulator

import "net/http"

// keyHeader names a request so that it can be sent again safely.
const keyHeader = "Idempotency-Key"

// keyRecord is what a key was first used for, and how it was answered.
type keyRecord struct {
	body    string // canonical
	running bool   // the answer exists, but is not to be known yet
	result  result
}

// result is what an operation came to.
type result struct {
	answer answer
	silent bool   // there is no answer, now and on every repetition
	await  *event // answer only once this is delivered
	forget bool   // nothing happened: the key stays free
}

// perform runs an operation at most once per key. The operation runs under the
// world's lock, with nothing of the key's on record, and is over when it
// returns: what takes time is only the wait before the answer.
func (c *call) perform(body object, operate func(w *world) result) {
	w := c.world
	key := c.request.Header.Get(keyHeader)
	scope := c.request.Method + " " + c.request.URL.Path + " " + key
	canonical := body.canonical()

	w.mu.Lock()
	if record, found := w.keys[scope]; found {
		repeated := *record
		w.mu.Unlock()
		c.repeat(repeated, canonical)
		return
	}
	done := operate(w)
	record := &keyRecord{body: canonical, running: done.await != nil, result: done}
	if key != "" && !done.forget {
		w.keys[scope] = record
	}
	w.mu.Unlock()

	if done.await != nil {
		w.awaitDelivery(c.request.Context(), done.await)
		w.mu.Lock()
		record.running = false
		w.mu.Unlock()
	}
	c.conclude(done)
}

// repeat answers a call whose key is on record.
func (c *call) repeat(record keyRecord, body string) {
	if record.body != body {
		c.refuse(&refusal{
			status: http.StatusUnprocessableEntity, code: "idempotency_key_reused",
			message: "This Idempotency-Key was used with another body.",
		})
		return
	}
	if record.running {
		c.refuse(&refusal{
			status: http.StatusConflict, code: "idempotency_in_progress",
			message: "The first call with this Idempotency-Key still runs.",
		})
		return
	}
	c.writer.Header().Set("Idempotent-Replayed", "true")
	c.conclude(record.result)
}

func (c *call) conclude(r result) {
	if r.silent {
		c.neverAnswer()
	}
	c.send(r.answer)
}

// key checks the key: 1 to 255 printable ASCII characters, or none at all where
// it is not required.
func (c *call) key(required bool) *refusal {
	values := c.request.Header.Values(keyHeader)
	if len(values) == 0 || values[0] == "" {
		if required {
			return &refusal{status: http.StatusBadRequest, code: "idempotency_key_required", message: "This call needs an Idempotency-Key."}
		}
		return nil
	}
	valid := len(values) == 1 && len(values[0]) <= maxText
	for _, letter := range []byte(values[0]) {
		valid = valid && letter >= ' ' && letter <= '~'
	}
	if !valid {
		return &refusal{status: http.StatusBadRequest, code: "idempotency_key_invalid", message: "An Idempotency-Key is 1 to 255 printable ASCII characters."}
	}
	return nil
}
