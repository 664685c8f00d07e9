package payment

import "time"

// StepKind is what has to be done next about a payment.
type StepKind int

// Kinds of a Step.
const (
	StepRest    StepKind = iota // nothing: it is at rest, or only time can tell
	StepLookUp                  // ask the PSP where the charge stands
	StepRecord                  // record Step.Event: no call is needed
	StepSend                    // send the charge again, same key
	StepVoid                    // void the charge at the PSP
	StepCapture                 // send the capture again, same key
	StepRefund                  // send the refund Step.Refund, for the first time or again
	StepPerson                  // only a person can tell: raise an alarm and wait
)

// Step is one thing to do about a payment.
type Step struct {
	Kind   StepKind
	Event  EventType
	Refund RefundID
}

// Seen is what a look-up has just shown, after its facts were recorded.
type Seen struct {
	Found bool
	// Reference is the PSP's id of the charge.
	Reference string
	Live      bool // the PSP holds the charge in a state that can still become money
	// Refunds are the ids of our refunds that the PSP knows.
	Refunds map[RefundID]bool
}

// Next is what to do about p at now before anything was looked up.
func (p Payment) Next(now time.Time) Step {
	if p.Status == StatusCreated {
		if now.Before(p.ExpiresAt) {
			return Step{}
		}
		return Step{Kind: StepRecord, Event: EventCancelRequested}
	}
	for _, r := range p.Refunds {
		if r.Operation.State == OperationOwed {
			return Step{Kind: StepRefund, Refund: r.ID}
		}
	}
	if p.voidOwed() {
		return Step{Kind: StepVoid}
	}
	if p.DueAt.IsZero() || now.Before(p.DueAt) {
		return Step{}
	}
	return Step{Kind: StepLookUp}
}

// voidOwed reports whether a void can go out without asking first: the PSP has
// told us of the charge, somebody wants its end, and no void was tried yet.
func (p Payment) voidOwed() bool {
	return p.Status.Open() && p.CancelCause != "" && p.Create.State == OperationAnswered && p.PSPReference != "" &&
		p.Void.State == OperationNone && !p.Capture.open()
}

// NextAfterLookUp is what to do about p once the PSP was asked at now and its
// facts are recorded. Now is when the question was put, not when the answer came:
// what was on its way then may have arrived since.
func (p Payment) NextAfterLookUp(now time.Time, pol Policy, seen Seen) Step {
	if step := p.nextCharge(now, pol, seen); step.Kind != StepRest {
		return step
	}
	return p.nextRefund(now, pol, seen)
}

// nextRefund is the first refund that can be sent, else one that needs a person:
// what waits for a person holds nothing up.
func (p Payment) nextRefund(now time.Time, pol Policy, seen Seen) Step {
	person := Step{}
	for _, r := range p.Refunds {
		if r.Status != RefundPending || !r.Operation.open() || seen.Refunds[r.ID] {
			continue
		}
		switch {
		case r.Operation.State == OperationOwed:
			return Step{Kind: StepRefund, Refund: r.ID}
		case !pol.sendable(r.Operation, now):
			person = Step{Kind: StepPerson, Refund: r.ID}
		case r.Operation.State == OperationNotRun || pol.arrived(r.Operation, now):
			return Step{Kind: StepRefund, Refund: r.ID}
		}
	}
	return person
}

func (p Payment) nextCharge(now time.Time, pol Policy, seen Seen) Step {
	switch p.Status {
	case StatusProcessing, StatusRequiresAction:
		if seen.Found {
			return p.nextFound(now, seen)
		}
		return p.nextMissing(now, pol)
	case StatusAuthorized:
		return p.nextHeld(now, pol, seen)
	case StatusFailed, StatusCanceled:
		if seen.Found && seen.Live {
			return Step{Kind: StepVoid}
		}
	case StatusCreated, StatusCaptured, StatusRefunded:
	}
	return Step{}
}

// nextFound: the PSP has the charge, and it has no outcome that we believe.
func (p Payment) nextFound(now time.Time, seen Seen) Step {
	switch {
	case !seen.Live:
		return Step{Kind: StepPerson} // it ended there with other money
	case p.CancelCause != "":
		return Step{Kind: StepVoid}
	case !now.Before(p.ExpiresAt):
		return Step{Kind: StepRecord, Event: EventCancelRequested}
	case p.Mismatched:
		return Step{Kind: StepPerson}
	}
	return Step{}
}

// nextMissing: the PSP knows of no such charge. The same key may be sent again
// once nothing is on its way, whatever the look-up is worth; what is being
// canceled has to wait until that silence is proof.
func (p Payment) nextMissing(now time.Time, pol Policy) Step {
	o := p.Create
	switch {
	case o.State == OperationAnswered:
		return Step{Kind: StepPerson} // it had told us of it
	case p.CancelCause != "":
		return p.nextSilent(now, pol)
	case o.State != OperationNotRun && !pol.arrived(o, now):
		return Step{}
	case !now.Before(p.ExpiresAt):
		return Step{Kind: StepRecord, Event: EventCancelRequested}
	case !pol.sendable(o, now):
		return Step{Kind: StepPerson}
	}
	return Step{Kind: StepSend}
}

// nextSilent: a charge is to end of which the PSP knows nothing. It never was if
// its only sending did not run, or if the PSP's "not found" is proof and nothing
// can be on its way; otherwise a webhook or a person can tell.
func (p Payment) nextSilent(now time.Time, pol Policy) Step {
	o := p.Create
	switch {
	case o.State == OperationNotRun && o.Sends == 1:
		return Step{Kind: StepRecord, Event: EventAbsent}
	case !pol.arrived(o, now):
		return Step{}
	case pol.AuthoritativeLookup:
		return Step{Kind: StepRecord, Event: EventAbsent}
	}
	return Step{Kind: StepPerson}
}

// nextHeld: funds are held at the PSP. A capture that may still arrive is waited
// for; after a cancel was requested none is sent again.
func (p Payment) nextHeld(now time.Time, pol Policy, seen Seen) Step {
	capture := p.Capture
	arriving := capture.open() && capture.State != OperationNotRun && !pol.arrived(capture, now)
	switch {
	case !seen.Found, !seen.Live:
		return Step{Kind: StepPerson}
	case arriving:
		return Step{}
	case p.CancelCause != "":
		return Step{Kind: StepVoid}
	case !capture.open():
		return Step{}
	case !pol.sendable(capture, now):
		return Step{Kind: StepPerson}
	}
	return Step{Kind: StepCapture}
}

// Sendable reports whether the charge may be sent at now, for the first time or
// again: no cancel, before the deadline, and its key young enough.
func (p Payment) Sendable(now time.Time, pol Policy) bool {
	return p.CancelCause == "" && now.Before(p.ExpiresAt) && pol.sendable(p.Create, now)
}
