package audit

import (
	"fmt"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// remedy is what may put a difference right.
type remedy int

const (
	remedyNone   remedy = iota // nothing: a person must look
	remedyAsk                  // ask the PSP, record what it says, drive the payment on
	remedyResume               // drive the checkout on
)

// difference is a finding before it is believed.
type difference struct {
	finding Finding
	remedy  remedy
}

func (d difference) same(other difference) bool {
	return d.finding.Kind == other.finding.Kind && d.finding.Refund == other.finding.Refund && d.finding.CheckoutID == other.finding.CheckoutID
}

// atStake reports whether a charge holds money, or may come to.
func atStake(c psp.Charge) bool {
	switch c.Status {
	case psp.StatusPending, psp.StatusRequiresAction, psp.StatusAuthorized:
		return true
	case psp.StatusCaptured:
		return c.Captured > c.Refunded
	case psp.StatusFailed, psp.StatusCanceled:
	}
	return false
}

func told(c psp.Charge) string {
	return fmt.Sprintf("%s, %s captured of %s", c.Status, money.Amount{Minor: c.Captured, Currency: c.Amount.Currency}, c.Amount)
}

func recorded(p payment.Payment) string {
	return fmt.Sprintf("%s, %s captured of %s", p.Status, money.Amount{Minor: p.AmountCaptured, Currency: p.Amount.Currency}, p.Amount)
}

// foreign is a charge that no payment of this PSP owns.
func foreign(c psp.Charge, here string) []difference {
	if !atStake(c) {
		return nil
	}
	f := Finding{Kind: MissingHere, Reference: c.Reference, There: told(c), Here: here}
	if id := payment.ID(c.PaymentID); id.WellFormed() {
		f.PaymentID = id
	}
	return []difference{{finding: f}}
}

// compare is how a charge and the payment that it names differ.
func compare(c psp.Charge, p payment.Payment, name string) []difference {
	switch {
	case p.PSP != name:
		return foreign(c, "a payment at "+p.PSP)
	case p.PSPReference != "" && p.PSPReference != c.Reference:
		return foreign(c, "a payment with charge "+p.PSPReference)
	}
	base := Finding{PaymentID: p.ID, CheckoutID: p.CheckoutID, Reference: c.Reference, There: told(c), Here: recorded(p)}
	as := func(kind Kind, r remedy) []difference {
		base.Kind = kind
		return []difference{{base, r}}
	}
	switch {
	case c.Amount != p.Amount && atStake(c):
		return as(AmountDiffers, remedyNone)
	case c.Status == psp.StatusCaptured && p.AmountCaptured > 0 && c.Captured != p.AmountCaptured:
		return as(AmountDiffers, remedyNone)
	case !agree(c, p) && ahead(c, p):
		return as(StatusDiffers, remedyNone)
	case !agree(c, p):
		return as(StatusDiffers, remedyAsk)
	}
	return refundsOf(c, p, base)
}

// agree reports whether the two are in the same place. What a dead payment's charge
// was before it died does not matter, as long as nothing is at stake.
func agree(c psp.Charge, p payment.Payment) bool {
	switch c.Status {
	case psp.StatusPending:
		return p.Status == payment.StatusProcessing || p.Status == payment.StatusRequiresAction
	case psp.StatusRequiresAction:
		return p.Status == payment.StatusRequiresAction
	case psp.StatusAuthorized:
		return p.Status == payment.StatusAuthorized || p.LateHold // of a dead payment: its void is due
	case psp.StatusCaptured:
		return p.AmountCaptured > 0
	case psp.StatusFailed, psp.StatusCanceled:
		return p.Status.Dead()
	}
	return false
}

// ahead reports that money is recorded here which the PSP does not have: nothing
// that it could say would be recorded over that.
func ahead(c psp.Charge, p payment.Payment) bool {
	return p.AmountCaptured > 0 && c.Status != psp.StatusCaptured
}

// refundsOf is how the refunds of the two sides differ.
func refundsOf(c psp.Charge, p payment.Payment, base Finding) []difference {
	base.Kind = RefundUnmatched
	var all []difference
	told := map[payment.RefundID]bool{}
	for _, r := range c.Refunds {
		ours, found := ourRefund(p, r)
		f := base
		f.Refund, f.There, f.Here = r.Reference, sayRefund(string(r.Status), r.Amount, c.Amount.Currency), "no refund"
		if found {
			told[ours.ID] = true
			f.Here = sayRefund(string(ours.Status), ours.Amount, p.Amount.Currency)
		}
		switch {
		case !found && r.RefundID != "":
			all = append(all, difference{f, remedyNone}) // it names one of ours that there is not
		case !found:
			all = append(all, difference{f, remedyAsk})
		case ours.Amount != r.Amount || ours.PSPReference != "" && ours.PSPReference != r.Reference:
			all = append(all, difference{f, remedyNone})
		case rank(string(r.Status)) > rank(string(ours.Status)) || ours.PSPReference == "":
			all = append(all, difference{f, remedyAsk})
		case rank(string(r.Status)) < rank(string(ours.Status)):
			all = append(all, difference{f, remedyNone})
		}
	}
	for _, r := range p.Refunds {
		if told[r.ID] || r.PSPReference == "" { // one without an answer is due already
			continue
		}
		f := base
		f.Refund, f.There, f.Here = r.PSPReference, "no refund", sayRefund(string(r.Status), r.Amount, p.Amount.Currency)
		all = append(all, difference{f, remedyNone})
	}
	return all
}

func ourRefund(p payment.Payment, r psp.Refund) (payment.Refund, bool) {
	if ours, found := p.Refund(payment.RefundID(r.RefundID)); found && r.RefundID != "" {
		return ours, true
	}
	for _, ours := range p.Refunds {
		if ours.PSPReference == r.Reference && r.RefundID == "" {
			return ours, true
		}
	}
	return payment.Refund{}, false
}

func sayRefund(status string, minor int64, currency money.Currency) string {
	return fmt.Sprintf("%s, %s", status, money.Amount{Minor: minor, Currency: currency})
}

// rank orders the statuses of refunds, which both sides spell alike.
func rank(status string) int {
	switch status {
	case string(psp.RefundPending):
		return 1
	case string(psp.RefundSucceeded):
		return 2
	case string(psp.RefundFailed):
		return 3
	}
	return 0
}

// compareEntry is how a row of a settlement file and its payment differ.
func compareEntry(e Entry, p payment.Payment, name string) []difference {
	base := Finding{
		PaymentID: p.ID, CheckoutID: p.CheckoutID, Reference: e.Reference, Refund: e.Refund, Line: e.Line,
		There: fmt.Sprintf("%s, %s", e.Kind, e.Amount), Here: recorded(p),
	}
	as := func(kind Kind, r remedy) []difference {
		base.Kind = kind
		return []difference{{base, r}}
	}
	switch {
	case p.PSP != name, p.PSPReference != "" && e.Reference != "" && p.PSPReference != e.Reference:
		return as(MissingHere, remedyNone)
	case e.Amount.Currency != p.Amount.Currency:
		return as(AmountDiffers, remedyNone)
	case e.Kind == EntryRefund, e.Kind == EntryRefundFailed:
		return compareRefund(e, p, base)
	case e.Kind == EntryChargeFailed && p.AmountCaptured > 0: // nothing that the PSP could say would be recorded over that
		return as(StatusDiffers, remedyNone)
	case e.Kind == EntryChargeFailed && p.Status.Dead():
		return nil
	case e.Kind == EntryChargeFailed, p.AmountCaptured == 0:
		return as(StatusDiffers, remedyAsk)
	case p.AmountCaptured != e.Amount.Minor:
		return as(AmountDiffers, remedyNone)
	}
	return nil
}

func compareRefund(e Entry, p payment.Payment, f Finding) []difference {
	f.Kind = RefundUnmatched
	told := payment.RefundSucceeded
	if e.Kind == EntryRefundFailed {
		told = payment.RefundFailed
	}
	for _, r := range p.Refunds {
		if r.PSPReference != e.Refund && string(r.ID) != e.Refund {
			continue
		}
		f.Here = sayRefund(string(r.Status), r.Amount, p.Amount.Currency)
		switch {
		case r.Amount != e.Amount.Minor:
			return []difference{{f, remedyNone}}
		case r.Status != told:
			return []difference{{f, remedyAsk}}
		}
		return nil
	}
	return []difference{{f, remedyAsk}}
}
