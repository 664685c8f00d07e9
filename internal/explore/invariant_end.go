package explore

import (
	"fmt"
	"strings"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// recovery is how a world is finished after the faults have stopped.
type recovery int

// Recoveries. Each line of defence is tried alone, or one would hide the defects of
// the other.
const (
	byAll recovery = iota
	byWebhooks
	byReconciler
)

var recoveryNames = [...]string{"everything", "webhooks alone", "reconciler alone"}

func (r recovery) String() string { return recoveryNames[r] }

// checkEnd holds a world that has recovered to what is owed.
func (w *world) checkEnd(r recovery) {
	w.checkRowsAndStates()
	for _, p := range w.payments() {
		w.checkPhantom(p)
		w.checkLostMoney(p, r)
		if r != byWebhooks {
			w.checkRest(p)
		}
	}
	w.checkOrphans(r)
	if n := len(w.payments()); n > w.wanted && w.shop == nil { // S-IDEM-SAME, whatever the clients were told
		w.violate("S-IDEM-SAME", "%d payments of %d requests", n, w.wanted)
	}
	w.checkGuardsFreed()
	if r != byWebhooks {
		w.checkInbox()
	}
	if w.shop != nil {
		w.shop.checkEnd(w, r)
	}
	if w.scenario.Relay && r == byAll {
		w.checkDelivered()
	}
}

// checkRowsAndStates is S-SECRET of what is stored: no redirect in an event, and
// none on a payment that is over.
func (w *world) checkRowsAndStates() {
	for key, item := range w.rows.rows {
		content := fmt.Sprint(item)
		status := payment.Status(text(item, "status"))
		_, state := cutState(key)
		if strings.Contains(content, secretText) && (!state || status != payment.StatusRequiresAction) {
			w.violate("S-SECRET", "%s holds a redirect", key)
		}
	}
}

// checkPhantom is S-NO-PHANTOM, S-FAILED-MEANS-DECLINED and S-CANCEL-MEANS-NO-CHARGE:
// a merchant ships for money that is there, and no buyer pays for what failed.
func (w *world) checkPhantom(p payment.Payment) {
	net, pending := w.psp.Net(string(p.ID)), false
	for _, r := range p.Refunds {
		pending = pending || r.Status == payment.RefundPending
	}
	switch p.Status {
	case payment.StatusCaptured:
		if !pending && net != p.AmountCaptured-p.AmountRefunded() {
			w.violate("S-NO-PHANTOM", "%s is captured with %d, the provider holds %d", p.ID, p.AmountCaptured-p.AmountRefunded(), net)
		}
	case payment.StatusRefunded:
		if net != 0 {
			w.violate("S-NO-PHANTOM", "%s is refunded, the provider holds %d", p.ID, net)
		}
	case payment.StatusFailed:
		if net != 0 && p.AmountCaptured == 0 {
			w.violate("S-FAILED-MEANS-DECLINED", "%s failed, the provider holds %d", p.ID, net)
		}
	case payment.StatusCanceled:
		if net != 0 && p.AmountCaptured == 0 {
			w.violate("S-CANCEL-MEANS-NO-CHARGE", "%s is canceled, the provider holds %d", p.ID, net)
		}
	case payment.StatusCreated, payment.StatusProcessing, payment.StatusRequiresAction, payment.StatusAuthorized:
	}
	if p.AmountRefunded() > p.AmountCaptured {
		w.violate("S-REFUND-BOUND", "%s: refunded %d of %d", p.ID, p.AmountRefunded(), p.AmountCaptured)
	}
}

// checkLostMoney is L-NO-LOST-MONEY: what was taken is recorded, or goes back.
// Webhooks alone owe the record of it, but only of what the provider tells.
func (w *world) checkLostMoney(p payment.Payment, r recovery) {
	net := w.psp.Net(string(p.ID))
	if net <= 0 {
		return
	}
	recorded := p.AmountCaptured > 0
	if !recorded && (r != byWebhooks || w.toldOf(p.ID)) {
		w.violate("L-NO-LOST-MONEY", "the provider holds %d of %s, which is %s", net, p.ID, p.Status)
	}
	if p.Status.Dead() && r != byWebhooks {
		w.violate("L-REFUND-DONE", "%s is %s, and the provider still holds %d", p.ID, p.Status, net)
	}
}

// toldOf reports whether the provider sent an event of captured money.
func (w *world) toldOf(id payment.ID) bool {
	for _, e := range w.told {
		if e.Event.Charge.PaymentID == string(id) && e.Event.Charge.Captured > 0 {
			return true
		}
	}
	return false
}

// checkOrphans is L-NO-LOST-MONEY for charges of payments that are not stored.
func (w *world) checkOrphans(recovery) {
	for _, c := range w.psp.Charges() {
		if c.Captured > c.Refunded && w.payment(payment.ID(c.PaymentID)).ID == "" {
			w.violate("L-NO-LOST-MONEY", "the provider holds %d of %s, which nobody knows", c.Captured-c.Refunded, c.PaymentID)
		}
	}
}

// checkRest is L-TERMINATES, L-REFUND-DONE and L-LEASE-FREE: every payment comes to
// its end, no refund stays pending, nobody keeps a lease. What nobody can find out
// any more, because a key is too old to be sent or silence proves nothing, is for a
// person, who was called.
func (w *world) checkRest(p payment.Payment) {
	if p.LeaseUntil.After(w.now) {
		w.violate("L-LEASE-FREE", "%s is leased until %s", p.ID, p.LeaseUntil)
	}
	if w.person {
		return
	}
	waits := p.Status == payment.StatusAuthorized // until the merchant captures, or it lapses
	if !p.Status.Terminal() && !waits {
		w.violate("L-TERMINATES", "%s is still %s", p.ID, p.Status)
	}
	if !p.DueAt.IsZero() && !waits {
		w.violate("L-RECON-CONVERGES", "%s, %s, is still due", p.ID, p.Status)
	}
	for _, r := range p.Refunds {
		if r.Status == payment.RefundPending {
			w.violate("L-REFUND-DONE", "refund %s is still pending", r.ID)
		}
	}
}

// checkInbox is L-WEBHOOK-DRAINED: no notification waits for ever.
func (w *world) checkInbox() {
	for key, item := range w.rows.rows {
		if key.SK == "INBOX" && text(item, "status") == "received" {
			w.violate("L-WEBHOOK-DRAINED", "%s was never applied", key.PK)
		}
		if key.SK == "INBOX" && text(item, "status") == "quarantined" {
			w.violate("L-WEBHOOK-DRAINED", "%s is quarantined: %s", key.PK, text(item, "reason"))
		}
	}
}

// checkDelivered is L-OUTBOX-DELIVERED: every row of the journal reaches the bus.
func (w *world) checkDelivered() {
	for key, item := range w.rows.rows {
		if e, ok := payments.RowChange(store.Change{Key: key, New: item}); ok && w.published[e.ID] == 0 {
			w.violate("L-OUTBOX-DELIVERED", "%s was never published", e.ID)
		}
	}
}

// checkGuardsFreed is L-GUARD-FREED: a buyer whose payment came to nothing can pay
// for the same order again.
func (w *world) checkGuardsFreed() {
	for key, item := range w.rows.rows {
		if key.SK != "LIVE" {
			continue
		}
		state := w.rows.rows[store.Key{PK: "PAYMENT#" + text(item, "payment_id"), SK: "STATE"}]
		if holds, _ := state["holds_reference"].(bool); !holds {
			w.violate("L-GUARD-FREED", "%s is kept by a payment that is %s", key.PK, text(state, "status"))
		}
	}
}
