package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
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
	w.violations = append(w.violations, Violation{Invariant: invariant, Detail: fmt.Sprintf(format, args...)})
}

func cutState(key store.Key) (string, bool) {
	id, ok := strings.CutPrefix(key.PK, "PAYMENT#")
	return id, ok && key.SK == "STATE"
}

// watch holds every commit of the table to what must hold at every step.
func (w *world) watch(changes []store.Change) {
	for _, c := range changes {
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

// secretText is text that only the customer who must act may see.
const secretText = "https://psp.example/redirect/"

// checkAnswer holds what a client is told when it is told.
func (w *world) checkAnswer(a answer) {
	a.at = w.now
	w.answers = append(w.answers, a)
	if !expected(a.err) || errors.Is(a.err, charge.ErrNotFound) {
		w.violate("S-ANSWER-TRUE", "%s is told: %v", a.actor, a.err)
	}
	if a.err != nil || a.payment.ID == "" {
		return
	}
	stored := w.payment(a.payment.ID)
	w.checkSecret(a, stored)
	w.checkTrue(a, stored)
	w.checkSame(a)
}

// checkSecret is S-SECRET: a payment that is over shows nobody a redirect or a
// client secret, so that no customer pays for what has ended.
func (w *world) checkSecret(a answer, stored payment.Payment) {
	raw, err := json.Marshal(a.payment.View())
	if err != nil {
		w.violate("S-SECRET", "%v", err)
	}
	shown := strings.Contains(string(raw), secretText)
	if shown && a.payment.Status != payment.StatusRequiresAction {
		w.violate("S-SECRET", "%s is told a redirect of a payment that is %s", a.actor, a.payment.Status)
	}
	if shown && stored.Status.Terminal() {
		w.violate("S-SECRET", "%s is told a redirect, the payment is %s", a.actor, stored.Status)
	}
}

// checkTrue is S-ANSWER-TRUE: an end that a client was told is committed.
func (w *world) checkTrue(a answer, stored payment.Payment) {
	if a.payment.Status.Terminal() && a.payment.Status != stored.Status && stored.Status != payment.StatusRefunded {
		w.violate("S-ANSWER-TRUE", "%s is told %s, the payment is %s", a.actor, a.payment.Status, stored.Status)
	}
	if a.payment.Version > stored.Version {
		w.violate("S-ANSWER-TRUE", "%s is told of version %d, the payment is at %d", a.actor, a.payment.Version, stored.Version)
	}
}

// checkSame is S-IDEM-SAME: who repeats a request gets the same payment, the same
// refund.
func (w *world) checkSame(a answer) {
	for _, b := range w.answers {
		if w.now.Sub(b.at) >= durations.IdempotencyTTL {
			continue // the key is free again
		}
		if b.key == a.key && b.err == nil && (b.payment.ID != a.payment.ID || b.refund != a.refund) {
			w.violate("S-IDEM-SAME", "key %s made %s and %s", a.key, b.payment.ID, a.payment.ID)
		}
	}
}

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
		if strings.Contains(content, secretText) && !(state && status == payment.StatusRequiresAction) {
			w.violate("S-SECRET", "%s holds a redirect", key)
		}
		if strings.Contains(content, "tok_") && !state {
			w.violate("S-SECRET", "%s holds a payment method", key)
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

// expected are the refusals that a client may be given.
func expected(err error) bool {
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*charge.InProgressError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*charge.ReferenceInUseError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*psp.Error](err); ok {
		return true // no answer: the request is repeated
	}
	for _, known := range []error{charge.ErrCaptured, charge.ErrInvalidStatus, charge.ErrNotFound, charge.ErrCaptureRefused, charge.ErrCheckoutPending, payment.ErrAmountTooLarge, store.ErrUnavailable, idempotency.ErrKeyReused} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
