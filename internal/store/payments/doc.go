/*
Package payments keeps what the flows own in the table "payments": payments with
their journal and reference guards, idempotency records, the webhook inbox,
leases, due dates. It turns the flows' values into items and conditions of
store.Table and back; it decides nothing.

Keys are built in keys.go only. An item that stands for a state (STATE, INBOX)
changes after its creation only by named attributes, so that an attribute written
by newer code survives older code. An attribute that holds others (an operation, a
refund, a failure) is written as a whole: what is new goes beside it, never inside.
*/
package payments
