// Package inventory keeps a merchant's stock and holds parts of it for checkouts:
// the stock participant of the saga, with a table of its own.
//
// # What it guarantees
//
// A piece of stock is available, reserved or sold. Commands only move pieces
// between the three, so available + reserved + sold of a SKU changes by Set alone,
// and none of the three is ever negative. Set changes available and leaves what
// buyers hold and have bought as it is.
//
// # The life of a reservation
//
// There is one record per checkout, and it changes at most twice:
//
//	              Reserve           Release           Sell
//	none          reserved          released (1)      illegal
//	              or out_of_stock
//	reserved      old news          released          sold
//	out_of_stock  old news (2)      old news          illegal
//	released      old news (3)      old news          illegal
//	sold          old news (4)      illegal           old news
//
// (1) A tombstone: a Reserve that comes after it, however late, takes nothing.
// (2) A refusal is kept like a success, so a repeat is refused too, although stock
// may have come back meanwhile. (3) It answers released. (4) It answers reserved:
// the saga went past this step with that answer and may ask again.
//
// The record and the stock of all its lines change in one transaction, so there is
// no half of a reservation. A reservation has no timer: only Release ends it, once
// its checkout is over.
//
// # What fails
//
// An error that wraps neither ErrInvalid nor an *IllegalError leaves the outcome
// unknown; the same command again finds out. A condition on the stock that did
// not hold means out of stock only if the row that refused really lacks stock, or
// does not exist; anything else is a race, and is tried again.
//
// # Contention
//
// Taking stock is "add minus n if at least n are left": no version is read
// before, so buyers of one SKU never invalidate each other's attempt. A
// reservation costs one trip, a refusal two, however many buyers there are. What
// the table does about transactions that touch one row at the same moment
// (DynamoDB cancels all but one) is the adapter's: it retries with full jitter. A
// test holds 64 buyers of one SKU, under that rule, to a few attempts per sale.
//
// # What it does not do
//
// Records are never deleted: a tombstone that expired would let a late Reserve
// hold stock for ever.
package inventory
