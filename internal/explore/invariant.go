package explore

import (
	"fmt"
	"strings"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// Violation is one invariant that did not hold.
type Violation struct {
	Invariant string
	Detail    string
	Replay    string
}

func (w *world) violate(invariant, format string, args ...any) {
	if invariant == w.scenario.mute {
		return
	}
	w.violations = append(w.violations, Violation{Invariant: invariant, Detail: fmt.Sprintf(format, args...)})
}

func cutState(key store.Key) (string, bool) {
	id, ok := strings.CutPrefix(key.PK, "PAYMENT#")
	return id, ok && key.SK == "STATE"
}

// watch holds every commit of the table to what must hold at every step.
func (w *world) watch(changes []store.Change) {
	for _, c := range changes {
		if w.mover == forgerName || c.Old == nil && c.Key.SK == "INBOX" {
			w.checkEventAuth(c.Key.PK)
		}
		if w.scenario.Relay {
			if _, ok := payments.RowChange(c); ok {
				w.stream = append(w.stream, c)
			}
		}
		if _, ok := cutState(c.Key); ok {
			w.checkVersion(c, changes)
			w.checkStep(c)
		}
		if text(c.New, "type") == "refund.requested" && text(c.New, "source") == "api" {
			w.checkRefundTime(text(c.New, "checkout_id"))
		}
		if strings.HasPrefix(c.Key.SK, "EVENT#") && c.Old != nil {
			w.violate("S-OUTBOX-ATOMIC", "row %s was written over", c.Key)
		}
	}
	w.checkGuards()
}

// checkRefundTime is L-SAGA-ENDS' part about money that goes back by the merchant's
// wish: not before the checkout has ended, or an order would be made for it.
func (w *world) checkRefundTime(checkoutID string) {
	if checkoutID == "" {
		return
	}
	state := w.rows.rows[store.Key{PK: "CHECKOUT#" + checkoutID, SK: "STATE"}]
	if !checkout.Status(text(state, "status")).Over() {
		w.violate("L-SAGA-ENDS", "a refund of %s while it is %s", checkoutID, text(state, "status"))
	}
}

// checkVersion is S-VERSION-MONOTONE and S-OUTBOX-ATOMIC: a merchant who follows a
// payment's events by number misses none, and sees none that did not happen.
func (w *world) checkVersion(c store.Change, changes []store.Change) {
	before, after := number(c.Old, "version"), number(c.New, "version")
	if after != before && after != before+1 {
		w.violate("S-VERSION-MONOTONE", "%s went from version %d to %d", c.Key.PK, before, after)
	}
	if number(c.New, "lease_fence") < number(c.Old, "lease_fence") {
		w.violate("S-FENCE-MONOTONE", "%s: an old lease came back", c.Key.PK)
	}
	told := false
	for _, other := range changes {
		told = told || other.Key.PK == c.Key.PK && strings.HasPrefix(other.Key.SK, "EVENT#") && other.Old == nil && number(other.New, "version") == after
	}
	if after != before && !told {
		w.violate("S-OUTBOX-ATOMIC", "version %d of %s has no event", after, c.Key.PK)
	}
	if after == before && text(c.Old, "status") != text(c.New, "status") {
		w.violate("S-VERSION-MONOTONE", "%s changed its status within version %d", c.Key.PK, after)
	}
}

// checkStep is S-TERMINAL-STABLE and S-AMOUNT-FIXED: what a merchant was told is
// over is over, but for money that goes back; and nobody is charged another amount
// than the one that was asked for.
func (w *world) checkStep(c store.Change) {
	if c.Old == nil || c.New == nil {
		if c.New == nil {
			w.violate("S-TERMINAL-STABLE", "%s was deleted", c.Key.PK)
		}
		return
	}
	from, to := payment.Status(text(c.Old, "status")), payment.Status(text(c.New, "status"))
	back := to == payment.StatusRefunded && from != payment.StatusRefunded
	if from.Terminal() && to != from && !back {
		w.violate("S-TERMINAL-STABLE", "%s went from %s to %s", c.Key.PK, from, to)
	}
	if kept := text(c.Old, newer); kept != "" && text(c.New, newer) != kept {
		w.violate("S-KEEP-UNKNOWN", "%s lost what newer code wrote", c.Key.PK)
	}
	if number(c.Old, "amount") != number(c.New, "amount") || text(c.Old, "currency") != text(c.New, "currency") {
		w.violate("S-AMOUNT-FIXED", "%s changed its amount", c.Key.PK)
	}
}

// newer is an attribute that only newer code knows: S-KEEP-UNKNOWN, a deployment
// that runs beside the old one loses nothing.
const newer = "from_newer_code"

func number(item store.Item, name string) int64 {
	n, _ := item[name].(int64)
	return n
}

func text(item store.Item, name string) string {
	s, _ := item[name].(string)
	return s
}

// checkGuards is the reference guard's part of S-CHARGE-ONCE: a reference with a
// live payment has its guard, so that one order has one payment at a time.
func (w *world) checkGuards() {
	for key, item := range w.rows.rows {
		id, ok := cutState(key)
		holds, _ := item["holds_reference"].(bool)
		if !ok || !holds || text(item, "reference") == "" {
			continue
		}
		guard := w.rows.rows[store.Key{PK: "REFERENCE#" + text(item, "merchant_id") + "#" + text(item, "reference"), SK: "LIVE"}]
		if text(guard, "payment_id") != id {
			w.violate("S-CHARGE-ONCE", "%s holds reference %s, but its guard is of %q", id, text(item, "reference"), text(guard, "payment_id"))
		}
	}
}

// checkMoney is S-CHARGE-ONCE and S-REFUND-BOUND at the provider: a buyer is
// charged at most once for a payment, and never gets back more than was taken.
func (w *world) checkMoney() {
	net, live, paid := map[string]int64{}, map[string]int{}, map[string]int64{}
	byOrder := map[string]int64{}
	for _, c := range w.psp.Charges() {
		net[c.PaymentID] += c.Captured - c.Refunded
		paid[c.PaymentID] = max(paid[c.PaymentID], c.Amount.Minor)
		if c.Captured > c.Refunded {
			live[c.PaymentID]++
			byOrder[c.PaymentID]++
		}
		refunds := map[string]bool{}
		for _, r := range c.Refunds {
			if r.RefundID != "" && refunds[r.RefundID] {
				w.violate("S-REFUND-BOUND", "refund %s was made twice", r.RefundID)
			}
			refunds[r.RefundID] = true
		}
	}
	for id, n := range live {
		if n > 1 {
			w.violate("S-CHARGE-ONCE", "%s is charged %d times", id, n)
		}
	}
	for id, n := range net {
		if n < 0 {
			w.violate("S-REFUND-BOUND", "%s: %d more went back than was taken", id, -n)
		}
		if n > paid[id] {
			w.violate("S-CHARGE-ONCE", "%s: the provider holds %d of %d", id, n, paid[id])
		}
	}
}

// checkDeadCharges is S-CANCEL-MEANS-NO-CHARGE at the moment itself: a buyer whose
// payment is canceled is not charged after that. It cannot hold where a request may
// be on its way for longer than any bound, or where the provider captures what it
// had voided: then the money is late money, and goes back.
func (w *world) checkDeadCharges() {
	if !w.scenario.Bounded || w.lying {
		return
	}
	for _, c := range w.psp.Charges() {
		if c.Captured > c.Refunded && len(c.Refunds) == 0 && w.status(payment.ID(c.PaymentID)) == payment.StatusCanceled {
			w.violate("S-CANCEL-MEANS-NO-CHARGE", "%s is canceled, and charged", c.PaymentID)
		}
	}
}
