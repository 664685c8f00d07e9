package simulator

import (
	"net/http"
	"time"
)

// Delays of what comes later by itself.
const (
	PendingDelay = time.Second     // tok_pending: until captured
	LateDelay    = 3 * time.Second // tok_late_captured: from the cancel until captured
	RefundDelay  = time.Second     // tok_refund_pending_failed: until a refund fails
)

// beginning is what happens to the money when a charge is created.
type beginning int

const (
	beginApproved beginning = iota // authorized, and captured unless capture is manual
	beginDeclined
	beginRedirect // the customer decides
	beginPending
	beginNothing // there is no charge
)

// reply is what the caller hears of it.
type reply int

const (
	replyCharge reply = iota
	replyError        // 500
	replyNever
)

// order is how a charge's webhooks go out.
type order int

const (
	orderNormal   order = iota // in sequence, each once
	orderFirst                 // the first ones before the answer
	orderTwice                 // each three times, two at the same moment
	orderReversed              // what follows an authorization before it
	orderSilent                // not at all
)

// behaviour is what a payment method makes a charge do.
type behaviour struct {
	beginning    beginning
	reply        reply
	order        order
	declineCode  string
	refuseOnce   int  // status of the first answer, which has no effect; 0 for none
	settles      bool // pending becomes approved after PendingDelay
	capturesLate bool // canceled becomes approved after LateDelay
	refundsFail  bool // refunds are pending, then fail after RefundDelay
}

// behaviours has every token there is.
var behaviours = map[string]behaviour{
	"tok_captured":                {},
	"tok_declined":                {beginning: beginDeclined, declineCode: "generic_decline"},
	"tok_insufficient_funds":      {beginning: beginDeclined, declineCode: "insufficient_funds"},
	"tok_requires_action":         {beginning: beginRedirect},
	"tok_pending":                 {beginning: beginPending, settles: true},
	"tok_pending_silent":          {beginning: beginPending, settles: true, order: orderSilent},
	"tok_timeout_captured":        {reply: replyNever},
	"tok_timeout_captured_silent": {reply: replyNever, order: orderSilent},
	"tok_timeout_nothing":         {beginning: beginNothing, reply: replyNever},
	"tok_error_captured":          {reply: replyError},
	"tok_error_once":              {refuseOnce: http.StatusServiceUnavailable},
	"tok_rate_limited_once":       {refuseOnce: http.StatusTooManyRequests},
	"tok_webhook_first":           {order: orderFirst},
	"tok_webhook_twice":           {order: orderTwice},
	"tok_webhook_reversed":        {order: orderReversed},
	"tok_late_captured":           {beginning: beginPending, capturesLate: true},
	"tok_refund_pending_failed":   {refundsFail: true},
}

// authenticationFailed is the decline code of a customer who declines at the redirect.
const authenticationFailed = "authentication_failed"
