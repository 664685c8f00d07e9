/*
Package api is the merchant HTTP API, as a Lambda handler for API Gateway HTTP
APIs (payload 2.0). It judges requests and renders resources; what happens to
money is the flows'.

A request is judged in this order, and the first refusal is the answer: who makes
it (401), path and method (404, 405), role (403), Idempotency-Key and body (400),
then the flow. Nothing has an effect before the flow.

Who makes a request is told by the authorizer's context (package merchant). The
authorizer lets everybody pass, so that every 401 is written here.

What a client sees of an error is a problem of a closed set. The flows' errors are
turned into problems in one table (failures.go); an error that is not in it is 503
and is logged here, once, since its outcome is unknown and a repeat with the same
key is right. A panic is 500.

Bodies are read by one strict decoder (decode.go) into a tree, and taken out of it
by a form that reports every invalid field at once (form.go). What looks like a
card number anywhere is refused before anything else is said about the body
(card.go). A request's fingerprint is taken over the fields as read, so that order
and white space do not matter.

Routes are data: each file of resources has a function that lists its own, and
routes joins them. A log line per request names the route's template, never the
path, the query, a header or a body.
*/
package api
