package payment_test

import (
	"testing"

	"github.com/kessai/kessai/internal/payment"
)

func TestOnlyADeadPaymentWithMoneyThatNobodyReturnsIsStranded(t *testing.T) {
	for name, c := range map[string]struct {
		status   payment.Status
		captured int64
		refund   payment.RefundStatus // of all of it, "" for none
		want     bool
	}{
		"dead, no money":              {payment.StatusFailed, 0, "", false},
		"dead, refund under way":      {payment.StatusFailed, whole, payment.RefundPending, false},
		"dead, refund done":           {payment.StatusCanceled, whole, payment.RefundSucceeded, false},
		"failed, its refund failed":   {payment.StatusFailed, whole, payment.RefundFailed, true},
		"canceled, its refund failed": {payment.StatusCanceled, whole, payment.RefundFailed, true},
		"alive, a refund failed":      {payment.StatusCaptured, whole, payment.RefundFailed, false},
	} {
		p := payment.Payment{Status: c.status, AmountCaptured: c.captured}
		if c.refund != "" {
			p.Refunds = []payment.Refund{{Status: c.refund, Amount: whole}}
		}
		if got := p.Stranded(); got != c.want {
			t.Errorf("%s: got stranded %t, want %t", name, got, c.want)
		}
	}
}
