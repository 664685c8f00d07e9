package explore

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/store"
)

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
	stored := w.status(a.payment.ID)
	w.checkSecret(a, stored)
	w.checkTrue(a, stored)
	w.checkSame(a)
}

// checkSecret is S-SECRET: a payment that is over shows nobody a redirect or a
// client secret, so that no customer pays for what has ended.
func (w *world) checkSecret(a answer, stored payment.Status) {
	raw, err := json.Marshal(a.payment.View())
	if err != nil {
		w.violate("S-SECRET", "%v", err)
	}
	w.checkText("an answer", string(raw))
	shown := strings.Contains(string(raw), secretText)
	if shown && a.payment.Status != payment.StatusRequiresAction {
		w.violate("S-SECRET", "%s is told a redirect of a payment that is %s", a.actor, a.payment.Status)
	}
	if shown && stored.Terminal() {
		w.violate("S-SECRET", "%s is told a redirect, the payment is %s", a.actor, stored)
	}
}

// checkTrue is S-ANSWER-TRUE: an end that a client was told is committed.
func (w *world) checkTrue(a answer, stored payment.Status) {
	if a.payment.Status.Terminal() && a.payment.Status != stored && stored != payment.StatusRefunded {
		w.violate("S-ANSWER-TRUE", "%s is told %s, the payment is %s", a.actor, a.payment.Status, stored)
	}
	row := w.rows.rows[store.Key{PK: "PAYMENT#" + string(a.payment.ID), SK: "STATE"}]
	if version := number(row, "version"); a.payment.Version > version {
		w.violate("S-ANSWER-TRUE", "%s is told of version %d, the payment is at %d", a.actor, a.payment.Version, version)
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
