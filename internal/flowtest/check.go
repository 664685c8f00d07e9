package flowtest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
)

// Text that nobody may see but the provider, and the customer who must act.
var secrets = []string{"tok_", "https://psp.example/redirect/"}

// Check fails the test unless everything that must always hold does: the
// invariants S-CHARGE-ONCE, S-KEY-STABLE, S-TERMINAL-STABLE, S-NO-PHANTOM,
// S-REFUND-BOUND, S-VERSION-MONOTONE and S-SECRET. A hook that never ran fails it
// too: then the test did not test what it says.
func (w *World) Check() {
	w.Helper()
	if n := w.Store.Hooks() + int(w.waiting.Load()); n != 0 {
		w.Errorf("%d hooks never ran", n)
	}
	items := w.Store.Items(w.Context())
	w.checkSecrets(items)
	live := map[string]payment.ID{}
	for key := range items {
		id, ok := strings.CutPrefix(key.PK, "PAYMENT#")
		if !ok || key.SK != "STATE" {
			continue
		}
		p := w.Payment(payment.ID(id))
		w.checkJournal(p, w.Rows(p.ID))
		w.checkBounds(p)
		w.checkMoney(p)
		w.checkView(p)
		if p.HoldsReference {
			place := p.MerchantID + "#" + p.Reference
			if other, taken := live[place]; taken {
				w.Errorf("%s and %s both hold reference %s", p.ID, other, p.Reference)
			}
			live[place] = p.ID
		}
	}
	w.checkGuards(items, live)
	w.checkKeys()
}

// checkGuards holds the reference guards to the payments that hold them.
func (w *World) checkGuards(items map[store.Key]store.Item, live map[string]payment.ID) {
	w.Helper()
	guards := map[string]payment.ID{}
	for key, item := range items {
		if place, ok := strings.CutPrefix(key.PK, "REFERENCE#"); ok && key.SK == "LIVE" {
			id, _ := item["payment_id"].(string)
			guards[place] = payment.ID(id)
		}
	}
	for place, id := range live {
		if guards[place] != id {
			w.Errorf("guard of %s: got %q, want its holder %s", place, guards[place], id)
		}
	}
	for place, id := range guards {
		if live[place] != id {
			w.Errorf("guard of %s is of %s, which holds it no more", place, id)
		}
	}
}

// checkJournal holds the rows to the state: versions without gap, one capture, no
// way back from a terminal status.
func (w *World) checkJournal(p payment.Payment, rows []payments.Row) {
	w.Helper()
	if int64(len(rows)) != p.Version {
		w.Errorf("%s: got %d rows, want %d, its version", p.ID, len(rows), p.Version)
		return
	}
	captures, last := 0, payment.Status("")
	for i, r := range rows {
		if r.Version != int64(i+1) {
			w.Errorf("%s: got version %d in row %d", p.ID, r.Version, i+1)
		}
		word, _ := r.Data["status"].(string)
		status := payment.Status(word)
		back := last == payment.StatusCaptured || last.Dead()
		if last.Terminal() && status != last && (!back || status != payment.StatusRefunded) {
			w.Errorf("%s: row %d, %s, went from %s to %s", p.ID, r.Version, r.Type, last, status)
		}
		if payment.EventType(r.Type) == payment.EventCaptured {
			captures++
		}
		last = status
	}
	if captures > 1 {
		w.Errorf("%s: got %d rows of a capture", p.ID, captures)
	}
	if last != p.Status {
		w.Errorf("%s: got status %s in the last row, want %s", p.ID, last, p.Status)
	}
}

func (w *World) checkBounds(p payment.Payment) {
	w.Helper()
	if p.AmountCaptured < 0 || p.AmountCaptured > p.Amount.Minor {
		w.Errorf("%s: captured %d of %d", p.ID, p.AmountCaptured, p.Amount.Minor)
	}
	if p.AmountRefunded() > p.AmountCaptured && !w.Lies {
		w.Errorf("%s: refunded %d of %d", p.ID, p.AmountRefunded(), p.AmountCaptured)
	}
}

// checkMoney compares with what the provider did.
func (w *World) checkMoney(p payment.Payment) {
	w.Helper()
	if p.PSP != PSP {
		return
	}
	if n := w.PSP.LiveCaptures(string(p.ID)); n > 1 {
		w.Errorf("%s is charged %d times", p.ID, n)
	}
	net := w.PSP.Net(string(p.ID))
	if net < 0 || net > p.Amount.Minor {
		w.Errorf("%s: the provider holds %d of %d", p.ID, net, p.Amount.Minor)
	}
	pending := false
	for _, r := range p.Refunds {
		pending = pending || r.Status == payment.RefundPending
	}
	if p.Status == payment.StatusCaptured && !pending && !w.Lies && net != p.AmountCaptured-p.AmountRefunded() {
		w.Errorf("%s: the provider holds %d, want %d captured less %d refunded", p.ID, net, p.AmountCaptured, p.AmountRefunded())
	}
}

// checkView holds what the merchant sees to S-SECRET.
func (w *World) checkView(p payment.Payment) {
	w.Helper()
	raw, err := json.Marshal(p.View())
	if err != nil {
		w.Errorf("view of %s: %v", p.ID, err)
	}
	for _, secret := range secrets {
		if strings.Contains(string(raw), secret) && p.Status != payment.StatusRequiresAction {
			w.Errorf("%s, %s, shows a secret: %s", p.ID, p.Status, raw)
		}
	}
}

// checkSecrets looks for secrets in everything that is stored or logged. A
// payment's state holds its token, and the redirect while the customer must act.
func (w *World) checkSecrets(items map[store.Key]store.Item) {
	w.Helper()
	for key, item := range items {
		text := fmt.Sprint(item)
		for _, secret := range secrets {
			state := key.SK == "STATE" && (secret == "tok_" || item["status"] == string(payment.StatusRequiresAction))
			if strings.Contains(text, secret) && !state {
				w.Errorf("%s holds a secret: %s", key, text)
			}
		}
	}
	for _, secret := range secrets {
		if strings.Contains(w.Logs.Text(), secret) {
			w.Errorf("a log line holds %s…", secret)
		}
	}
}

// checkKeys holds calls to their keys: the charge of a payment goes by its id, a
// refund by its own, captures and voids by their numbers.
func (w *World) checkKeys() {
	w.Helper()
	payments := map[string]string{} // by the provider's reference
	for _, c := range w.PSP.Charges() {
		payments[c.Reference] = c.PaymentID
	}
	for _, c := range w.PSP.Calls() {
		right := false
		switch c.Operation {
		case psptest.OperationCreate:
			right = c.Key == c.PaymentID
		case psptest.OperationRefund:
			right = c.Key == c.RefundID
		case psptest.OperationCapture:
			right = strings.HasPrefix(c.Key, payments[c.Reference]+"-capture-")
		case psptest.OperationCancel:
			right = strings.HasPrefix(c.Key, payments[c.Reference]+"-cancel-")
		case psptest.OperationLookup, psptest.OperationList:
			right = true
		}
		if !right {
			w.Errorf("%s was sent with key %s", c.Operation, c.Key)
		}
	}
}
