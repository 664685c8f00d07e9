/*
Package payments keeps what the flows own in the table "payments": payments with
their journal and reference guards, idempotency records, the webhook inbox,
leases, due dates. It turns the flows' values into items and conditions of
store.Table and back; it decides nothing.

Its errors are those that the flows' own interfaces name (journal.Store,
webhook.Inbox, lease.Store, and so on); any other means that the table gave no
answer, and of a write that its outcome is unknown. A page of a list holds at most
100 rows, and a cursor that is none is store.ErrCursor.

Keys are built in keys.go only. An item that stands for a state (STATE, INBOX)
changes after its creation only by named attributes, so that an attribute written
by newer code survives older code. An attribute that holds others (an operation, a
refund, a failure) is written as a whole: what is new goes beside it, never inside.

A charge and its webhook are to write 16 units; they write 17, or 21 with a reference
(package flowtest counts them). The one more is the operator's list of webhooks by
status: an item that is applied moves in the index of due dates instead of leaving it.
The four are two items more in the first transaction, where each counts twice: the
guard, which must be an item of its own to keep two payments from one reference, and
the payment's place in the list of that reference.
*/
package payments
