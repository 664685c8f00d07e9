package simulator

import (
	"crypto/rand"
	"net/http"
	"time"
)

// chargeStatus is where a charge stands.
type chargeStatus string

const (
	statusPending        chargeStatus = "pending"
	statusRequiresAction chargeStatus = "requires_action"
	statusAuthorized     chargeStatus = "authorized"
	statusCaptured       chargeStatus = "captured"
	statusFailed         chargeStatus = "failed"
	statusCanceled       chargeStatus = "canceled"
)

// refundStatus is where a refund stands.
type refundStatus string

const (
	refundPending   refundStatus = "pending"
	refundSucceeded refundStatus = "succeeded"
	refundFailed    refundStatus = "failed"
)

// charge is one charge; the world's lock guards it.
type charge struct {
	id          string
	reference   string // "" when none was given
	amount      int64  // minor units, like every amount here
	currency    string
	manual      bool // capture takes a call of its own
	returnURL   string
	behaviour   behaviour
	created     time.Time
	status      chargeStatus
	captured    int64
	declineCode string
	refunds     []*refund // oldest first
	outbox      outbox
}

// refund is one refund of a charge.
type refund struct {
	id        string
	reference string // the merchant's, "" when made directly
	amount    int64
	status    refundStatus
}

// chargeView is a charge on the wire.
type chargeView struct {
	ID          string       `json:"id"`
	Reference   *string      `json:"reference"`
	Amount      int64        `json:"amount"`
	Currency    string       `json:"currency"`
	Status      chargeStatus `json:"status"`
	Captured    int64        `json:"captured"`
	Refunded    int64        `json:"refunded"` // succeeded refunds
	RedirectURL *string      `json:"redirect_url"`
	DeclineCode *string      `json:"decline_code"`
	Refunds     []refundView `json:"refunds"`
}

// refundView is a refund on the wire.
type refundView struct {
	ID        string       `json:"id"`
	Charge    string       `json:"charge"`
	Amount    int64        `json:"amount"`
	Status    refundStatus `json:"status"`
	Reference *string      `json:"reference"`
}

// view shows the charge as it is now. The redirect address is shown only while
// the customer can use it.
func (c *charge) view(publicURL string) chargeView {
	v := chargeView{
		ID: c.id, Reference: orNull(c.reference), Amount: c.amount, Currency: c.currency, Status: c.status,
		Captured: c.captured, Refunded: c.refunded(refundSucceeded), DeclineCode: orNull(c.declineCode),
		Refunds: make([]refundView, 0, len(c.refunds)),
	}
	if c.status == statusRequiresAction {
		address := publicURL + "/redirect/" + c.id
		v.RedirectURL = &address
	}
	for _, r := range c.refunds {
		v.Refunds = append(v.Refunds, r.view(c))
	}
	return v
}

func (r *refund) view(c *charge) refundView {
	return refundView{ID: r.id, Charge: c.id, Amount: r.amount, Status: r.status, Reference: orNull(r.reference)}
}

// refunded is the sum of the refunds in any of the statuses.
func (c *charge) refunded(statuses ...refundStatus) int64 {
	var sum int64
	for _, r := range c.refunds {
		for _, s := range statuses {
			if r.status == s {
				sum += r.amount
			}
		}
	}
	return sum
}

// approve holds the money, and takes it unless capture is manual. It returns the
// last event of that, nil for a silent charge.
func (w *world) approve(c *charge, after <-chan struct{}) *event {
	c.status = statusAuthorized
	if c.manual {
		return w.emit(c, eventAuthorized, nil, after)
	}
	if c.behaviour.order == orderReversed {
		w.emit(c, eventAuthorized, nil, after)
	}
	c.status, c.captured = statusCaptured, c.amount
	return w.emit(c, eventCaptured, nil, after)
}

func (w *world) decline(c *charge, code string, after <-chan struct{}) *event {
	c.status, c.declineCode = statusFailed, code
	return w.emit(c, eventFailed, nil, after)
}

// begin does what the payment method says happens at creation.
func (w *world) begin(c *charge, after <-chan struct{}) *event {
	switch c.behaviour.beginning {
	case beginApproved:
		return w.approve(c, after)
	case beginDeclined:
		return w.decline(c, c.behaviour.declineCode, after)
	case beginRedirect:
		c.status = statusRequiresAction
		return w.emit(c, eventRequiresAction, nil, after)
	case beginPending:
		c.status = statusPending
		if c.behaviour.settles {
			w.later(PendingDelay, func() {
				if c.status == statusPending {
					w.approve(c, nil)
				}
			})
		}
		return w.emit(c, eventPending, nil, after)
	case beginNothing:
	}
	return nil
}

// capture takes amount of what is held, 0 for all of it, and releases the rest.
func (w *world) capture(c *charge, amount int64, after <-chan struct{}) *refusal {
	if c.status != statusAuthorized {
		return wrongStatus(c, "charge_not_authorized", "Only an authorized charge can be captured.")
	}
	if amount == 0 {
		amount = c.amount
	}
	if amount > c.amount {
		return tooLarge(c, "The amount is larger than the one authorized.")
	}
	c.status, c.captured = statusCaptured, amount
	w.emit(c, eventCaptured, nil, after)
	return nil
}

// cancel voids a charge; voiding it again changes nothing.
func (w *world) cancel(c *charge, after <-chan struct{}) *refusal {
	switch c.status {
	case statusCanceled:
		return nil
	case statusCaptured:
		return wrongStatus(c, "charge_captured", "The charge is captured: refund it.")
	case statusFailed:
		return wrongStatus(c, "charge_failed", "The charge has failed.")
	case statusPending, statusRequiresAction, statusAuthorized:
	}
	if c.status == statusPending && c.behaviour.capturesLate {
		w.later(LateDelay, func() { w.approve(c, nil) })
	}
	c.status = statusCanceled
	w.emit(c, eventCanceled, nil, after)
	return nil
}

// refund gives amount back, 0 for all that is left. What is pending counts as
// given, so that two refunds never exceed what was captured.
func (w *world) refund(c *charge, amount int64, reference string, after <-chan struct{}) (*refund, *refusal) {
	if c.status != statusCaptured {
		return nil, wrongStatus(c, "charge_not_captured", "Only a captured charge can be refunded.")
	}
	left := c.captured - c.refunded(refundPending, refundSucceeded)
	if amount == 0 {
		amount = left
	}
	if amount > left || left == 0 {
		return nil, tooLarge(c, "The amount is larger than what is left to refund.")
	}
	r := &refund{id: "rf_" + rand.Text(), reference: reference, amount: amount}
	c.refunds = append(c.refunds, r)
	if c.behaviour.refundsFail {
		r.status = refundPending
		w.later(RefundDelay, func() {
			r.status = refundFailed
			w.emit(c, eventRefundFailed, r, nil)
		})
		return r, nil
	}
	r.status = refundSucceeded
	w.emit(c, eventRefundSucceeded, r, after)
	return r, nil
}

func wrongStatus(c *charge, code, message string) *refusal {
	return &refusal{status: http.StatusConflict, code: code, message: message, charge: c}
}

func tooLarge(c *charge, message string) *refusal {
	return &refusal{status: http.StatusUnprocessableEntity, code: "amount_too_large", message: message, param: "amount", charge: c}
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
