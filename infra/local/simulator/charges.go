package simulator

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"time"
)

// chargeRequest is what POST /charges asks for.
type chargeRequest struct {
	reference string
	amount    int64
	currency  string
	token     string
	manual    bool
	returnURL string
}

func createCharge(c *call) {
	body, err := c.object()
	if err == nil {
		err = c.key(true)
	}
	var request chargeRequest
	if err == nil {
		request, err = readCharge(body)
	}
	if err != nil {
		c.refuse(err)
		return
	}
	c.perform(body, func(w *world) result { return w.create(c, request) })
}

// readCharge takes what it knows from the body, and ignores the rest.
func readCharge(body object) (r chargeRequest, err *refusal) {
	if r.amount, err = body.integer("amount", 1, maxAmount, 0); err != nil {
		return r, err
	}
	var captureMethod string
	for _, field := range []struct {
		name  string
		limit int
		into  *string
	}{
		{"reference", maxText, &r.reference},
		{"currency", maxText, &r.currency},
		{"payment_method", maxText, &r.token},
		{"capture_method", maxText, &captureMethod},
		{"return_url", maxAddress, &r.returnURL},
	} {
		if *field.into, err = body.text(field.name, field.limit); err != nil {
			return r, err
		}
	}
	r.manual = captureMethod == "manual"
	_, known := behaviours[r.token]
	switch {
	case r.amount == 0:
		return r, invalid("amount", "is required")
	case !isCurrency(r.currency):
		return r, invalid("currency", "must be three upper-case letters")
	case !r.manual && captureMethod != "automatic" && captureMethod != "":
		return r, invalid("capture_method", "must be automatic or manual")
	case r.returnURL != "" && !isWebAddress(r.returnURL):
		return r, invalid("return_url", "must be an absolute http or https address")
	case r.token == "":
		return r, invalid("payment_method", "is required")
	case !known:
		return r, &refusal{
			status: http.StatusBadRequest, code: "payment_method_unknown",
			message: "There is no such payment method.", param: "payment_method",
		}
	}
	return r, nil
}

func isCurrency(code string) bool {
	for _, letter := range []byte(code) {
		if letter < 'A' || letter > 'Z' {
			return false
		}
	}
	return len(code) == 3
}

// create makes the charge and decides what the caller hears of it.
func (w *world) create(c *call, r chargeRequest) result {
	b := behaviours[r.token]
	if b.refuseOnce != 0 && w.refusesFirst(r.token, c.request.Header.Get(keyHeader), r.reference) {
		return result{answer: c.transient(b.refuseOnce, "try_again"), forget: true}
	}
	if b.beginning == beginNothing {
		return result{silent: true}
	}
	ch := &charge{
		id: "ch_" + rand.Text(), reference: r.reference, amount: r.amount, currency: r.currency, manual: r.manual,
		returnURL: r.returnURL, behaviour: b, created: w.config.Now(),
	}
	w.charges = append(w.charges, ch)
	w.byID[ch.id] = ch

	switch b.reply {
	case replyNever:
		w.begin(ch, nil)
		return result{silent: true}
	case replyError:
		w.begin(ch, c.answered)
		return result{answer: c.transient(http.StatusInternalServerError, "internal_error")}
	case replyCharge:
	}
	if b.order == orderFirst {
		first := w.begin(ch, nil)
		return result{answer: w.chargeAnswer(http.StatusCreated, ch), await: first}
	}
	w.begin(ch, c.answered)
	return result{answer: w.chargeAnswer(http.StatusCreated, ch)}
}

// refusesFirst says whether this is the first call for the key and for the
// reference, and remembers both.
func (w *world) refusesFirst(token, key, reference string) bool {
	byKey := refusedOnce{token: token, key: key}
	byReference := refusedOnce{token: token, reference: reference}
	first := !w.refused[byKey] && (reference == "" || !w.refused[byReference])
	w.refused[byKey], w.refused[byReference] = true, true
	return first
}

func (w *world) chargeAnswer(status int, c *charge) answer {
	return jsonAnswer(status, c.view(w.config.PublicURL))
}

func captureCharge(c *call) {
	changeCharge(c, func(w *world, ch *charge, body object) (answer, *refusal) {
		amount, err := body.integer("amount", 1, maxAmount, 0)
		if err == nil {
			err = w.capture(ch, amount, c.answered)
		}
		return w.chargeAnswer(http.StatusOK, ch), err
	})
}

func cancelCharge(c *call) {
	changeCharge(c, func(w *world, ch *charge, _ object) (answer, *refusal) {
		err := w.cancel(ch, c.answered)
		return w.chargeAnswer(http.StatusOK, ch), err
	})
}

func refundCharge(c *call) {
	changeCharge(c, func(w *world, ch *charge, body object) (answer, *refusal) {
		amount, err := body.integer("amount", 1, maxAmount, 0)
		if err != nil {
			return answer{}, err
		}
		reference, err := body.text("reference", maxText)
		if err != nil {
			return answer{}, err
		}
		r, err := w.refund(ch, amount, reference, c.answered)
		if err != nil {
			return answer{}, err
		}
		return jsonAnswer(http.StatusCreated, r.view(ch)), nil
	})
}

// changeCharge performs an operation on the charge of the path. Invalid requests
// and unknown charges leave the key free; refusals by the charge do not.
func changeCharge(c *call, change func(*world, *charge, object) (answer, *refusal)) {
	body, err := c.object()
	if err == nil {
		err = c.key(false)
	}
	if err != nil {
		c.refuse(err)
		return
	}
	c.perform(body, func(w *world) result {
		ch, err := w.find(c.request.PathValue("id"))
		if err != nil {
			return result{answer: err.answer(w.config.PublicURL), forget: true}
		}
		done, err := change(w, ch, body)
		if err != nil {
			return result{answer: err.answer(w.config.PublicURL), forget: err.status == http.StatusBadRequest}
		}
		return result{answer: done}
	})
}

// find is the charge of an id. mu is held.
func (w *world) find(id string) (*charge, *refusal) {
	if c, found := w.byID[id]; found {
		return c, nil
	}
	return nil, &refusal{status: http.StatusNotFound, code: "charge_not_found", message: "There is no such charge."}
}

func getCharge(c *call) {
	w := c.world
	w.mu.Lock()
	ch, err := w.find(c.request.PathValue("id"))
	var found answer
	if err == nil {
		found = w.chargeAnswer(http.StatusOK, ch)
	}
	w.mu.Unlock()
	if err != nil {
		c.refuse(err)
		return
	}
	c.send(found)
}

// Sizes of a page of GET /charges.
const (
	pageSize    = 100
	maxPageSize = 1000 // about 400 KB of charges
)

func listCharges(c *call)    { sendCharges(c, pageSize, maxPageSize) }
func listAllCharges(c *call) { sendCharges(c, unlimited, unlimited) }

func sendCharges(c *call, size, most int) {
	query := c.request.URL.Query()
	p, err := readPage(query, size, most)
	if err != nil {
		c.refuse(err)
		return
	}
	since, err := readSince(query.Get("since"))
	if err != nil {
		c.refuse(err)
		return
	}
	reference := query.Get("reference")
	if query.Has("reference") && reference == "" {
		c.refuse(invalid("reference", "must not be empty"))
		return
	}
	w := c.world
	w.mu.Lock()
	matches := func(ch *charge) bool {
		return (reference == "" || ch.reference == reference) && !ch.created.Before(since)
	}
	found := newestFirst(w.charges, p, matches, func(ch *charge) chargeView { return ch.view(w.config.PublicURL) })
	w.mu.Unlock()
	c.sendJSON(http.StatusOK, found)
}

// readSince reads unix seconds or RFC 3339; "" is the beginning of time.
func readSince(text string) (time.Time, *refusal) {
	if text == "" {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid("since", "must be in unix seconds or RFC 3339")
	}
	return at, nil
}
