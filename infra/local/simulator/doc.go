// Package simulator is a stateful stand-in for a card and redirect payment
// service provider (PSP), for a laptop and for tests. It speaks its own JSON
// over HTTP, keeps its state in memory, and has an honest set of faults: it
// loses answers, answers late, doubles and swaps webhooks, and captures what was
// already voided. It shares no code with the adapter that talks to it, so that a
// mistake on one side cannot hide on the other.
//
// # Calls
//
//	POST /charges                create; needs an Idempotency-Key
//	GET  /charges/{id}           look up by the PSP's id
//	GET  /charges                look up; ?reference= ?since= ?limit= ?cursor=, newest first
//	POST /charges/{id}/capture   {"amount"?}; what is not captured is released
//	POST /charges/{id}/cancel    void before capture
//	POST /charges/{id}/refunds   {"amount"?, "reference"?}; without amount, the rest
//	GET  /redirect/{id}          the customer's page: Approve, Decline, Abandon
//	POST /redirect/{id}          {"outcome":"approve|decline"}, as JSON or as a form
//
// A create takes reference, amount, currency, payment_method, capture_method
// and return_url; it ignores what else it is given. since is in unix seconds or
// RFC 3339. Create and refund answer 201, the rest 200. A decline is a charge
// with status failed, not an error.
//
// An error is {"error":{"code","message","param"?}}, with the charge as it
// stands under "charge" where its status is the reason: 400 for what makes no
// sense (an unknown token too: nothing was created), 404, 409 for a wrong
// status, 422 amount_too_large when a capture exceeds the authorized amount, or
// pending and succeeded refunds together the captured one.
//
// # Idempotency
//
// A key is scoped to method and path. Used again with the same body (compared
// after decoding) it gets the stored status and body with the header
// Idempotent-Replayed: true; with another body 422 idempotency_key_reused;
// while the first call still runs 409 idempotency_in_progress. Refusals for a
// status or an amount are stored like successes; a 400, a 404, a 503 or 429 of
// the _once tokens and an injected fault had no effect and are not. Keys live
// until the reset. A second key with the same reference makes a second charge:
// this PSP does not protect a merchant from itself.
//
// # Tokens
//
// Where the table says captured, a charge with manual capture ends authorized.
//
//	payment_method               behaviour
//	tok_captured                 captured; webhook right after the answer
//	tok_declined                 failed, decline_code generic_decline
//	tok_insufficient_funds       failed, decline_code insufficient_funds
//	tok_requires_action          redirect; the choice comes by webhook
//	tok_pending                  pending; captured after PendingDelay, by webhook
//	tok_pending_silent           the same without any webhook, ever
//	tok_timeout_captured         captured, no answer; the webhook comes
//	tok_timeout_captured_silent  captured, no answer, no webhook
//	tok_timeout_nothing          no answer, no charge
//	tok_error_captured           captured, answers 500; the webhook comes
//	tok_error_once               503 without effect, then works
//	tok_rate_limited_once        429 with Retry-After: 1 without effect, then works
//	tok_webhook_first            the webhook is delivered before the answer
//	tok_webhook_twice            every webhook three times, two at the same moment
//	tok_webhook_reversed         captured (or what else follows) before authorized
//	tok_late_captured            pending; captured LateDelay after a cancel
//	tok_refund_pending_failed    captured; refunds are pending, then fail after RefundDelay
//
// The tokens without an answer, and the one that answers 500, do the same on
// every call with the same key, also while the first still hangs; a look-up
// tells the truth. A call without an answer is held until the client goes away,
// at most SilenceLimit, and its connection is then cut; a reset leaves it
// hanging, since clients may send again what was cut off. "Once" counts by key
// and by reference. tok_webhook_first waits for a 2xx at most FirstLimit.
// tok_webhook_reversed holds an authorized event back until the charge's next
// event has been sent, at most ReversalWindow. tok_late_captured stays pending
// as long as nobody cancels it.
//
// # Webhooks
//
// Events are signed by Standard Webhooks, with a fresh timestamp on every
// attempt, and posted to the one configured address. Anything but a 2xx,
// redirects included, is tried again with doubling back-off, then given up
// with a log line. Events of one charge are sent in order, the next when the
// one before was acknowledged or given up; charges never wait for each other,
// except for one of the few places for attempts under way. An event
// carries the charge as it was when it happened.
//
// # Test control
//
//	GET  /_control/charges          every charge, newest first
//	GET  /_control/calls            every call to the PSP, oldest first; a row exists
//	                                while the call runs, with status null until it is answered
//	POST /_control/webhooks         {"event":{…},"sign":true,"delay_ms":0}: any event, byte for byte
//	POST /_control/webhooks/pause   keep webhooks back, those of the line above too
//	POST /_control/webhooks/resume  send what was kept
//	POST /_control/faults           {"operation","times","status"}: the next calls of
//	                                charge, capture, cancel, refund or lookup fail without
//	                                effect; status 0 is no answer. It replaces what was set
//	                                for that operation before
//	POST /_control/reset            forget everything, timers and kept webhooks too
//
// An unsigned event (sign false) carries no webhook-signature and is sent once.
// When the reset has answered, no webhook from before it is sent any more.
// Control lists come in one page unless ?limit= is given.
//
// # What it does not do
//
// It keeps nothing over a restart, checks no API key, moves no money, settles
// nothing, expires neither authorizations nor keys, opens no disputes by itself
// (send the event), and knows no client secret. It has no limit on the number of
// charges and calls it remembers: reset it.
package simulator
