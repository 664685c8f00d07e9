// Package simulator is the adapter for the PSP simulator, a stand-in for a card
// and redirect provider that speaks JSON over HTTP.
//
// # What an answer means
//
// Only what the provider itself certainly said is a fact; everything else is
// psp.OutcomeUnknown.
//
//	2xx with a well-formed charge or refund        the charge or refund; a decline is one of them
//	400, 404, 409, 422 with an error code          OutcomeRejected
//	422 idempotency_key_reused                     OutcomeKeyReused
//	409 idempotency_in_progress                    OutcomeInProgress
//	409 on a create with any other code            OutcomeUnknown: what does not exist has no wrong state
//	429                                            OutcomeThrottled, with a bounded RetryAfter
//	no connection: refused, no such host, no TLS   OutcomeNotSent
//	a request that may not be sent: no key, …      OutcomeNotSent
//	5xx, 3xx, every other status                   OutcomeUnknown
//	silence, a cut connection, a cut body          OutcomeUnknown
//	2xx that is empty, no JSON, too large, has an  OutcomeUnknown
//	unknown status, no id or money that is no
//	integer of minor units
//
// A refusal without an error code is not believed: a proxy on the way refuses
// with a page of its own, and the provider may have done the work. For the same
// reason a look-up is ErrNotFound only for the code charge_not_found, or for a
// list that is well-formed and empty.
//
// # What is sent
//
// Bodies are built from the request alone, with members and map keys in a fixed
// order, so that a repeat sends the same bytes under the same key. Redirects are
// not followed. On a kept-alive connection that turns out to be dead, net/http
// may send a request a second time within the same call: same key, same bytes.
//
// # Webhooks
//
// Deliveries are signed by Standard Webhooks. The type of an event is the fact
// it tells; the charge inside is a snapshot that may be newer, and is used for
// references and money only.
package simulator
