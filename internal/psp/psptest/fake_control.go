package psptest

import (
	"fmt"

	"github.com/kessai/kessai/internal/psp"
)

// Before runs the hook before each call of the operation takes effect, until it
// is replaced; nil ends it. The hook's error is the caller's answer, and the
// call never arrived. An error that is no *psp.Error and not psp.ErrNotFound
// becomes one with OutcomeUnknown. A hook that panics stands for a process that
// dies at this point.
func (f *Fake) Before(operation Operation, hook func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[operation] = hook
}

// After is Before for the moment between effect and answer: with an error the
// call did what it does, and the answer is lost.
func (f *Fake) After(operation Operation, hook func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after[operation] = hook
}

// Once is a hook that returns the error on its first run only.
func Once(err error) func() error {
	return func() error {
		first := err
		err = nil
		return first
	}
}

// Alter changes the charge in each answer of the operation, and in nothing
// else: what a provider says in error. nil ends it.
func (f *Fake) Alter(operation Operation, change func(*psp.Charge)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alter[operation] = change
}

// AlterRefund is Alter for the answers of refunds.
func (f *Fake) AlterRefund(change func(*psp.Refund)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alterRefund = change
}

// ForgetKeys is the end of every key's life: what comes again is done again.
func (f *Fake) ForgetKeys() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.answers)
	clear(f.refused)
}

// Approve is the customer's or the bank's yes to a charge that waits for one.
// Like everything that happens to a charge at the provider, it is about the
// payment's most important charge, and reports whether there was one in a
// status that allows it.
func (f *Fake) Approve(paymentID string) bool {
	return f.happen(paymentID, func(c *charge) { f.approve(c) }, psp.StatusPending, psp.StatusRequiresAction)
}

// Decline is the no.
func (f *Fake) Decline(paymentID string) bool {
	return f.happen(paymentID, func(c *charge) { f.decline(c, "authentication_failed") }, psp.StatusPending, psp.StatusRequiresAction)
}

// CaptureLate captures the whole amount of a charge that is not captured,
// whatever was said of it before, a confirmed void included.
func (f *Fake) CaptureLate(paymentID string) bool {
	return f.happen(paymentID, func(c *charge) {
		c.Decline = nil
		c.Captured = c.Amount.Minor
		f.become(c, psp.StatusCaptured)
	}, psp.StatusPending, psp.StatusRequiresAction, psp.StatusAuthorized, psp.StatusFailed, psp.StatusCanceled)
}

// Lapse is the provider's own end of a charge that waited or was held for too long.
func (f *Fake) Lapse(paymentID string) bool {
	return f.happen(paymentID, func(c *charge) { f.become(c, psp.StatusCanceled) },
		psp.StatusPending, psp.StatusRequiresAction, psp.StatusAuthorized)
}

// RefundDirect refunds the amount at the provider, without a refund id of ours.
func (f *Fake) RefundDirect(paymentID string, minor int64) bool {
	done := false
	f.happen(paymentID, func(c *charge) {
		if done = minor > 0 && minor <= c.refundable(); done {
			f.addRefund(c, psp.Refund{Amount: minor, Status: psp.RefundSucceeded})
		}
	}, psp.StatusCaptured)
	return done
}

// SettleRefund gives the refund with our id another status: pending to
// succeeded or failed, or succeeded to failed when the money bounced.
func (f *Fake) SettleRefund(refundID string, status psp.RefundStatus) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.charges {
		for i := range c.Refunds {
			if c.Refunds[i].RefundID != refundID || refundID == "" || c.Refunds[i].Status == status ||
				c.Refunds[i].Status == psp.RefundFailed || status == psp.RefundPending {
				continue
			}
			c.Refunds[i].Status = status
			f.refundSettled(c, i)
			return true
		}
	}
	return false
}

// dispute is an open or closed dispute.
type dispute struct {
	psp.Dispute
	charge *charge
}

// DisputeOpen opens a dispute over the whole captured amount; ok is false when
// the payment is not captured.
func (f *Fake) DisputeOpen(paymentID string) (reference string, ok bool) {
	ok = f.happen(paymentID, func(c *charge) {
		reference = fmt.Sprintf("dp_%06d", len(f.disputes)+1)
		d := &dispute{psp.Dispute{Reference: reference, Amount: c.Captured, Status: psp.DisputeOpen}, c}
		f.disputes[reference] = d
		f.tellOf(d)
	}, psp.StatusCaptured)
	return reference, ok
}

// DisputeClose ends an open dispute with a result such as won or lost.
func (f *Fake) DisputeClose(reference, result string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.disputes[reference]
	if d == nil || d.Status == psp.DisputeClosed {
		return false
	}
	d.Status, d.Result = psp.DisputeClosed, result
	f.tellOf(d)
	return true
}

// tellOf has the lock.
func (f *Fake) tellOf(d *dispute) {
	copied := d.Dispute
	f.tell(d.charge, psp.Event{Charge: d.charge.snapshot(), Dispute: &copied})
}

// happen changes the payment's most important charge if its status is one of those.
func (f *Fake) happen(paymentID string, change func(*charge), allowed ...psp.Status) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.find(psp.LookupRequest{PaymentID: paymentID})
	if c == nil {
		return false
	}
	for _, status := range allowed {
		if c.Status == status {
			change(c)
			return true
		}
	}
	return false
}

// Charges are all charges as they are now, oldest first.
func (f *Fake) Charges() []psp.Charge {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []psp.Charge
	for _, c := range f.charges {
		all = append(all, c.snapshot())
	}
	return all
}

// LiveCaptures is how many charges of the payment hold captured money that was
// not wholly returned. More than one is what a payment system must never cause.
func (f *Fake) LiveCaptures(paymentID string) int {
	live := 0
	for _, c := range f.Charges() {
		if c.PaymentID == paymentID && c.Captured > c.Refunded {
			live++
		}
	}
	return live
}

// Net is the payment's captured less its refunded minor units, over all its charges.
func (f *Fake) Net(paymentID string) int64 {
	var net int64
	for _, c := range f.Charges() {
		if c.PaymentID == paymentID {
			net += c.Captured - c.Refunded
		}
	}
	return net
}

// Calls are all calls in the order in which they began. Calls refused before
// they were sent are not among them.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Call
	for _, c := range f.calls {
		all = append(all, *c)
	}
	return all
}
