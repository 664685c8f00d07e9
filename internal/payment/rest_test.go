package payment_test

import (
	"time"

	"github.com/kessai/kessai/internal/payment"
)

// unfinished says in words of its own whether anything is left to find out or to
// do about p. Not at rest must be the same as having a due date.
func unfinished(p payment.Payment) bool {
	for _, r := range p.Refunds {
		if r.Status == payment.RefundPending {
			return true
		}
	}
	watched := p.Status == payment.StatusCanceled && p.AmountCaptured == 0 && p.Create.Sends > 0 &&
		p.UpdatedAt.Before(p.Create.LastSentAt.Add(policy.KeyLifetime))
	return p.Status.Open() || p.LateHold || watched
}

// checkRest checks that p has a look exactly when it is unfinished, and that no
// look is forgotten or put off for too long.
func checkRest(t failer, p payment.Payment) {
	t.Helper()
	look := p.Look(policy)
	if look.IsZero() == unfinished(p) {
		t.Fatalf("%s: a look at %s, unfinished %v", p.Status, look, unfinished(p))
	}
	at, tries := p.Postponed(policy, p.UpdatedAt)
	if look.IsZero() {
		if !at.IsZero() || tries != 0 {
			t.Fatalf("%s at rest is postponed to %s", p.Status, at)
		}
		return
	}
	early := p.CancelCause == "" && (p.Status == payment.StatusCreated || p.Status == payment.StatusProcessing || p.Status == payment.StatusRequiresAction)
	for name, when := range map[string]time.Time{"look": look, "postponed look": at} {
		latest := p.UpdatedAt.Add(24 * time.Hour)
		if p.Status == payment.StatusCreated {
			latest = p.ExpiresAt.Add(24 * time.Hour)
		}
		if when.After(latest) {
			t.Fatalf("%s: %s at %s, want at most a day after %s", p.Status, name, when, p.UpdatedAt)
		}
		if early && p.UpdatedAt.Before(p.ExpiresAt) && when.After(p.ExpiresAt) {
			t.Fatalf("%s: %s at %s skips the deadline %s", p.Status, name, when, p.ExpiresAt)
		}
	}
	if at.Before(p.UpdatedAt) || tries != 1 {
		t.Fatalf("%s: postponed to %s, tries %d", p.Status, at, tries)
	}
}

// checkSteps checks that what Next and NextAfterLookUp ask for is allowed, and
// that Apply agrees: a step whose intent is refused would stop the worker for ever.
func checkSteps(t failer, d dice, p payment.Payment, now time.Time) {
	t.Helper()
	now = now.Add(pick(d, 0, arrival, time.Minute, time.Hour, 13*time.Hour))
	checkStep(t, p, p.Next(now), now, policy, payment.Seen{})
	seen := payment.Seen{Found: d.chance(2), Reference: chargeRef, Refunds: map[payment.RefundID]bool{}}
	seen.Live = seen.Found && d.chance(2)
	for _, r := range p.Refunds {
		seen.Refunds[r.ID] = seen.Found && d.chance(2)
	}
	for _, pol := range []payment.Policy{policy, weakPolicy()} {
		checkStep(t, p, p.NextAfterLookUp(now, pol, seen), now, pol, seen)
	}
}

// weakPolicy is of a PSP whose "not found" proves nothing.
func weakPolicy() payment.Policy {
	pol := policy
	pol.AuthoritativeLookup = false
	return pol
}

func checkStep(t failer, p payment.Payment, s payment.Step, now time.Time, pol payment.Policy, seen payment.Seen) {
	t.Helper()
	young := func(o payment.Operation) bool {
		return o.Sends == 0 || now.Before(o.FirstSentAt.Add(pol.KeyLifetime/2))
	}
	quiet := func(o payment.Operation) bool {
		return o.State == payment.OperationNotRun || !now.Before(o.LastSentAt.Add(arrival))
	}
	allowed := true
	e := payment.Event{At: now, PSPReference: p.PSPReference}
	switch s.Kind {
	case payment.StepRest, payment.StepLookUp, payment.StepPerson:
		return
	case payment.StepSend:
		e.Type = payment.EventSent
		allowed = p.CancelCause == "" && now.Before(p.ExpiresAt) && young(p.Create) && quiet(p.Create) && !seen.Found && p.Create.State != payment.OperationAnswered
	case payment.StepVoid:
		e.Type = payment.EventVoidSent
		allowed = p.CancelCause != "" || p.Status.Dead()
	case payment.StepCapture:
		e.Type, e.Captured = payment.EventCaptureRequested, p.Capture.Amount
		allowed = p.CancelCause == "" && young(p.Capture) && quiet(p.Capture)
	case payment.StepRefund:
		e.Type, e.Refund.ID = payment.EventRefundSent, s.Refund
		r, _ := p.Refund(s.Refund)
		allowed = r.Status == payment.RefundPending && !r.Outside && young(r.Operation) && quiet(r.Operation) && !seen.Refunds[r.ID]
	case payment.StepRecord:
		e.Type, e.Cause = s.Event, payment.CancelByExpiry
		if s.Event == payment.EventAbsent {
			never := p.Create.State == payment.OperationNotRun && p.Create.Sends == 1
			allowed = p.CancelCause != "" && !seen.Found && (never || pol.AuthoritativeLookup && !now.Before(p.Create.LastSentAt.Add(arrival)))
		} else {
			allowed = s.Event == payment.EventCancelRequested && !now.Before(p.ExpiresAt) && p.CancelCause == ""
		}
	}
	if !allowed {
		t.Fatalf("step %+v in %s is not allowed at %s", s, p.Status, now.Sub(start))
	}
	if _, _, changed, err := p.Apply(e); !changed || err != nil {
		t.Fatalf("step %+v in %s: Apply of %s says changed %v, %v", s, p.Status, e.Type, changed, err)
	}
}
