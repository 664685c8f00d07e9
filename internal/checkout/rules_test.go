package checkout_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/payment"
)

// Checkouts on their way.
var (
	fresh     = checkout.Checkout{ID: "chk_1", Version: 1, Status: checkout.StatusPending, Direction: checkout.Forward}
	reserved  = with(fresh, func(c *checkout.Checkout) { c.Reserved = true })
	asked     = with(reserved, func(c *checkout.Checkout) { c.Status = checkout.StatusRequiresAction })
	charged   = with(reserved, func(c *checkout.Checkout) { c.Charged = true })
	ordered   = with(charged, func(c *checkout.Checkout) { c.OrderID = "ord_1" })
	completed = with(ordered, func(c *checkout.Checkout) { c.Status = checkout.StatusCompleted })
	turned    = with(charged, func(c *checkout.Checkout) { c.Direction = checkout.Backward })
	empty     = with(fresh, func(c *checkout.Checkout) { c.Direction = checkout.Backward }) // nothing was reserved
	undone    = with(turned, func(c *checkout.Checkout) { c.Undone = true })
	released  = with(undone, func(c *checkout.Checkout) { c.Reserved = false })
	failed    = with(released, func(c *checkout.Checkout) { c.Status = checkout.StatusFailed })
	parked    = with(turned, func(c *checkout.Checkout) { c.Status = checkout.StatusNeedsReview })
	stuck     = with(ordered, func(c *checkout.Checkout) { c.Status = checkout.StatusNeedsReview })
)

func with(c checkout.Checkout, change func(*checkout.Checkout)) checkout.Checkout {
	change(&c)
	return c
}

// TestWhatMayFollowWhat is the whole state machine: "=" is a change, "." old news,
// "-" illegal.
func TestWhatMayFollowWhat(t *testing.T) {
	states := []checkout.Checkout{fresh, reserved, asked, charged, ordered, completed, turned, undone, released, failed, parked, stuck, empty}
	//                                 fresh reserved asked charged ordered completed turned undone released failed parked stuck empty
	table := map[checkout.EventType]string{
		checkout.EventStockReserved:  "= . . . . . . . - - . . -",
		checkout.EventRequiresAction: "- = . . . . . . . . . . -",
		checkout.EventCharged:        "- = = . . . . . . . . . -",
		checkout.EventOrderCreated:   "- - - = . . - - - - - . -",
		checkout.EventCompleted:      "- - - - = . - - - - - - -",
		checkout.EventCompensating:   "= = = = - - . . . . . - .",
		checkout.EventPaymentUndone:  "- - - - - - = . . . - - =",
		checkout.EventStockReleased:  "- - - - - - - = . . - - .",
		checkout.EventFailed:         "- - - - - - - - = . - - -",
		checkout.EventNeedsReview:    "= = = = = - = = = - . . =",
		checkout.EventResumed:        "- - - - - - - - - - = = -",
		checkout.EventCreated:        "- - - - - - - - - - - - -",
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for event, line := range table {
		for i, from := range states {
			e := checkout.Event{Type: event, OrderID: "ord_1", Failure: &payment.Failure{Code: "card_declined"}}
			next, row, changed, err := from.Apply(e, at)
			_, illegal := errors.AsType[*checkout.IllegalError](err)
			got := "."
			switch {
			case illegal:
				got = "-"
			case changed:
				got = "="
			}
			if want := line[2*i : 2*i+1]; got != want {
				t.Errorf("%s in state %d, %s %s: got %q, want %q", event, i, from.Status, from.Direction, got, want)
			}
			if changed && (next.Version != 2 || row.Version != 2 || !next.UpdatedAt.Equal(at) || row.Type != event) {
				t.Errorf("%s: got version %d, row %+v, want version 2 of both", event, next.Version, row)
			}
			if !changed && (next.Version != from.Version || next.Status != from.Status) {
				t.Errorf("%s: got %+v, want it unchanged", event, next)
			}
			if from.Direction == checkout.Backward && next.Direction != checkout.Backward {
				t.Errorf("%s turned it forward again", event)
			}
			if again, _, twice, err := next.Apply(e, at); changed && event != checkout.EventResumed && (twice || err != nil) {
				t.Errorf("%s again: got %+v changed %t %v, want old news", event, again, twice, err)
			}
		}
	}
}
