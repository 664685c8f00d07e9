// Package notification tells buyers what became of their checkout: the
// notification participant of the saga, with a table of its own that is its outbox.
//
// # What it guarantees
//
// A checkout's notification of one kind is one row, and its id is derived from
// the checkout and the kind. The row comes first, delivery after, and the row
// says when it was delivered. Delivery is at least once: a Sender gets the same
// id each time and may drop what it knows.
//
//	pending   written, perhaps on its way; has a time to be looked at again
//	sent      the Sender took it; the row expires after a year
//	failed    given up by the sweep after many attempts; a person has to look
//
// Every attempt is counted on the row before it is made, by a write that only one
// can win, and moves the row's time by a growing, jittered pause. So a notification
// that can't be delivered never keeps another one waiting, and two sweeps never
// make the same attempt.
//
// # What fails
//
// Send returns the Sender's error; the row stays pending, and either the next Send
// or Sweep drives it on. An error that does not wrap ErrInvalid leaves the outcome
// unknown; the same command again finds out.
//
// # What it does not do
//
// Nothing is ever taken back: the saga notifies once a checkout is completed. An
// address is personal data: it is stored, given to the Sender and shown to its
// merchant, and never logged.
package notification
