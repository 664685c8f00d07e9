// Package order keeps the orders that checkouts end in: the order participant of
// the saga, with a table of its own.
//
// # What it guarantees
//
// A checkout has one order or none; its id is derived from the checkout's, so
// whoever creates it, however often, creates the same. There is one record per
// checkout, and it changes at most twice:
//
//	            Create             Cancel
//	none        confirmed          prevented (1)
//	            or rejected
//	confirmed   old news           canceled
//	rejected    old news (2)       old news
//	canceled    old news (3)       old news
//	prevented   old news (3)       old news
//
// (1) A tombstone: a Create that comes after it, however late, makes no order.
// (2) A refusal is kept like a success, so a repeat is refused too, even when the
// rule has changed meanwhile. (3) It answers canceled.
//
// Only confirmed and canceled records are orders that anybody can read. The place
// of an order in the list of its reference is written in the same transaction.
//
// # What fails
//
// An error that does not wrap ErrInvalid leaves the outcome unknown; the same
// command again finds out.
//
// # What it does not do
//
// It does not know payments. That money was taken before Create, and is given
// back when an order is refused or canceled, is the saga's.
package order
