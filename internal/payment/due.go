package payment

import "time"

// Policy is what the due dates and the next step depend on.
type Policy struct {
	PSPTimeout     time.Duration // one call to the PSP
	ReconcileAfter time.Duration // how old a doubt is when it is first looked at
	KeyLifetime    time.Duration // how long the PSP remembers a key
	// AuthoritativeLookup says that the PSP's "not found" proves that no request
	// which had arrived created a charge.
	AuthoritativeLookup bool
}

const (
	// authorizedLook is how often held funds are looked up: an authorization
	// lapses at the PSP after days, without a word.
	authorizedLook = 24 * time.Hour
	// maxBackoff bounds the pause between two looks at one payment.
	maxBackoff = 24 * time.Hour
)

// arrival is when a request sent at sent has reached the PSP or never will: its
// time-out, and half of it again for clocks and queues.
func (pol Policy) arrival(sent time.Time) time.Time {
	return sent.Add(pol.PSPTimeout + pol.PSPTimeout/2)
}

// arrived reports whether the last sending of o has reached the PSP by now, or
// never will.
func (pol Policy) arrived(o Operation, now time.Time) bool {
	return !now.Before(pol.arrival(o.LastSentAt))
}

// Alone reports whether a look-up that was put at asked, and showed nothing of o,
// proves that no sending of o had an effect or can still have one. Then the next
// sending is as good as the first: a refusal is its own, and final.
func (pol Policy) Alone(o Operation, asked time.Time) bool {
	return pol.AuthoritativeLookup && pol.arrived(o, asked)
}

// sendable reports whether an operation's key may still be sent: not past half
// its life at the PSP since it was first sent.
func (pol Policy) sendable(o Operation, now time.Time) bool {
	return o.FirstSentAt.IsZero() || now.Before(o.FirstSentAt.Add(pol.KeyLifetime/2))
}

// backoff is ReconcileAfter, doubled n times, at most maxBackoff.
func (pol Policy) backoff(n int) time.Duration {
	pause := pol.ReconcileAfter
	for ; n > 0 && pause < maxBackoff; n-- {
		pause *= 2
	}
	return min(pause, maxBackoff)
}

// watchedUntil is when a dead payment need not be looked up any more: its key's
// window at the PSP has passed since the last sending. Zero when nothing was sent.
func (p Payment) watchedUntil(pol Policy) time.Time {
	if p.Create.LastSentAt.IsZero() {
		return time.Time{}
	}
	return p.Create.LastSentAt.Add(pol.KeyLifetime)
}

// Look is when somebody must look at p if nothing else happens after its last
// change, zero when it is at rest. It depends on p and pol alone.
func (p Payment) Look(pol Policy) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	switch p.Status {
	case StatusCreated:
		sooner(p.ExpiresAt)
	case StatusProcessing, StatusRequiresAction, StatusAuthorized:
		sooner(p.lookOpen(pol))
	case StatusCanceled:
		if p.AmountCaptured == 0 && p.UpdatedAt.Before(p.watchedUntil(pol)) {
			sooner(p.UpdatedAt.Add(pol.ReconcileAfter))
		}
	case StatusFailed, StatusCaptured, StatusRefunded:
	}
	if p.LateHold {
		sooner(p.lookVoid(pol))
	}
	for _, r := range p.Refunds {
		if r.Status == RefundPending {
			sooner(p.lookRefund(r, pol))
		}
	}
	return at
}

func (p Payment) lookOpen(pol Policy) time.Time {
	switch {
	case p.Create.open() && p.CancelCause != "":
		return p.Create.settled(pol, p.UpdatedAt)
	case p.Create.open():
		return p.untilExpiry(p.Create.look(pol, p.UpdatedAt))
	case p.Void.open():
		return p.lookVoid(pol)
	case p.CancelCause != "" && p.Capture.open():
		return p.Capture.settled(pol, p.UpdatedAt)
	case p.CancelCause != "":
		return p.lookVoid(pol)
	case p.Capture.open():
		return p.Capture.look(pol, p.UpdatedAt)
	case p.Status == StatusAuthorized:
		return p.UpdatedAt.Add(authorizedLook)
	}
	return p.untilExpiry(p.UpdatedAt.Add(pol.ReconcileAfter))
}

// lookVoid is when a charge that somebody wants voided is due: at once, also
// after the first refusal, since a look-up tells why; later with each one more.
func (p Payment) lookVoid(pol Policy) time.Time {
	switch {
	case p.Void.open():
		return p.Void.look(pol, p.UpdatedAt)
	case p.Void.State == OperationRefused && p.Void.Attempt > 1:
		return p.Void.LastSentAt.Add(pol.backoff(p.Void.Attempt - 2))
	}
	return p.UpdatedAt
}

// untilExpiry is at, or the deadline when that is sooner and still to come.
func (p Payment) untilExpiry(at time.Time) time.Time {
	if p.ExpiresAt.Before(at) && p.UpdatedAt.Before(p.ExpiresAt) {
		return p.ExpiresAt
	}
	return at
}

// settled is when nothing of an open operation can be on its way any more.
func (o Operation) settled(pol Policy, changed time.Time) time.Time {
	if o.State == OperationNotRun {
		return changed
	}
	return pol.arrival(o.LastSentAt)
}

// look is when an open operation is due: the longer the more often it was sent.
func (o Operation) look(pol Policy, changed time.Time) time.Time {
	if o.State == OperationOwed {
		return changed
	}
	if o.State == OperationNotRun && !o.RetryAt.IsZero() {
		// When the PSP said; but one that keeps saying so is asked ever more rarely.
		if o.Sends > 1 {
			return later(o.RetryAt, o.LastSentAt.Add(pol.backoff(o.Sends-2)))
		}
		return o.RetryAt
	}
	return o.LastSentAt.Add(pol.backoff(o.Sends - 1))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p Payment) lookRefund(r Refund, pol Policy) time.Time {
	if r.Operation.open() {
		return r.Operation.look(pol, p.UpdatedAt)
	}
	return p.UpdatedAt.Add(pol.ReconcileAfter)
}

// Postponed is when to look again after a look at now that changed nothing, and
// the number of looks since the last change; zero when p has come to rest.
func (p Payment) Postponed(pol Policy, now time.Time) (at time.Time, tries int) {
	if p.Look(pol).IsZero() {
		return time.Time{}, 0
	}
	tries = p.Tries + 1
	pause := pol.backoff(p.Tries)
	if p.Status == StatusAuthorized && !p.Capture.open() && p.CancelCause == "" {
		pause = authorizedLook
	}
	at = now.Add(pause)
	switch p.Status {
	case StatusCreated, StatusProcessing, StatusRequiresAction:
		if now.Before(p.ExpiresAt) && p.ExpiresAt.Before(at) {
			at = p.ExpiresAt
		}
	case StatusCanceled:
		if until := p.watchedUntil(pol); !p.LateHold && !p.pendingRefund() {
			if !now.Before(until) {
				return time.Time{}, 0 // this was the last look
			}
			if until.Before(at) {
				at = until
			}
		}
	case StatusAuthorized, StatusCaptured, StatusFailed, StatusRefunded:
	}
	return at, tries
}

func (p Payment) pendingRefund() bool { return p.refundSum(RefundPending) > 0 }
