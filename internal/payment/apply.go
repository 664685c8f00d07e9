package payment

import "time"

// Apply returns p after e, and the journal's words for it. Old news leaves p as
// it was, with changed false and no error. The error is a *TransitionError, a
// *MismatchError, ErrAmountTooLarge or ErrDisputed; then p is unchanged.
// Apply is deterministic and safe to repeat.
func (p Payment) Apply(e Event) (next Payment, row Row, changed bool, err error) {
	to, verdict := Next(p.Status, e.Type)
	switch verdict {
	case Illegal:
		return p, Row{}, false, &TransitionError{From: p.Status, Event: e.Type}
	case TooEarly:
		return p, Row{}, false, &TransitionError{From: p.Status, Event: e.Type, Early: true}
	case OldNews, Noted, Moved:
	}
	if err := p.agrees(e); err != nil {
		return p, Row{}, false, err
	}
	if verdict == OldNews {
		return p, Row{}, false, nil
	}
	next = p.clone()
	next.Status = to
	kind, changed, err := next.learn(e, p.Status)
	if err != nil || !changed {
		return p, Row{}, false, err
	}
	next.Version++
	next.UpdatedAt = e.At
	next.Tries = 0
	next.settle()
	return next, next.row(kind, e), true, nil
}

// agrees compares what a PSP said of the charge with the payment.
func (p Payment) agrees(e Event) error {
	mismatch := func(field string) error { return &MismatchError{Event: e.Type, Field: field} }
	if e.PSPReference != "" && p.PSPReference != "" && e.PSPReference != p.PSPReference {
		return mismatch("psp_reference")
	}
	if !e.Type.about() {
		return nil
	}
	// A charge that is known to be of other money must still be able to end: dead,
	// it holds nothing whose amount could matter.
	if p.Mismatched && (e.Type == EventVoided || e.Type == EventDeclined) {
		return nil
	}
	switch {
	case e.Amount.Currency != p.Amount.Currency:
		return mismatch("currency")
	case e.Amount.Minor != p.Amount.Minor:
		return mismatch("amount")
	case e.Type == EventCaptured && !p.mayCapture(e.Captured):
		return mismatch("captured")
	case e.Type == EventCaptured && p.AmountCaptured > 0 && e.Captured != p.AmountCaptured:
		return mismatch("captured")
	}
	return nil
}

// mayCapture reports whether the PSP may have captured that much: the whole of
// an automatic payment, any part of a manual one.
func (p Payment) mayCapture(captured int64) bool {
	switch p.CaptureMethod {
	case CaptureAutomatic:
		return captured == p.Amount.Minor
	case CaptureManual:
		return captured > 0 && captured <= p.Amount.Minor
	}
	return false
}

// learn changes p, already in its next status, by what e says. It returns the
// type of the journal row.
func (p *Payment) learn(e Event, from Status) (kind EventType, changed bool, err error) {
	switch e.Type {
	case EventSent, EventCaptureRequested, EventCancelRequested, EventVoidSent:
		return p.intend(e, from)
	case EventPending, EventActionRequired, EventAuthorized, EventCaptured, EventDeclined, EventVoided, EventAbsent:
		return p.hear(e, from)
	case EventUnanswered, EventNotRun, EventCaptureRefused, EventVoidRefused:
		return p.miss(e)
	case EventMismatched:
		changed = !p.Mismatched || p.Create.State != OperationAnswered
		// An answer all the same: the charge is there, and silence is no proof any more.
		p.Mismatched, p.Create.State = true, OperationAnswered
		return e.Type, changed, nil
	case EventRefundRequested, EventRefundSent, EventRefundUnanswered:
		return p.askRefund(e)
	case EventRefundPending, EventRefundSucceeded, EventRefundFailed:
		return p.hearRefund(e)
	case EventDisputeOpened, EventDisputeClosed:
		return p.hearDispute(e)
	case EventCreated, EventLateCaptured, EventLateAuthorized:
		return "", false, &TransitionError{From: p.Status, Event: e.Type}
	}
	return "", false, &TransitionError{From: p.Status, Event: e.Type}
}

// intend notes what is about to be asked of the PSP.
func (p *Payment) intend(e Event, from Status) (EventType, bool, error) {
	illegal := &TransitionError{From: from, Event: e.Type}
	switch e.Type {
	case EventSent:
		// After a cancel was requested, or past the deadline, no charge leaves.
		if p.CancelCause != "" || !e.At.Before(p.ExpiresAt) {
			return "", false, illegal
		}
		p.Create.Key, p.Create.Attempt = string(p.ID), 1
		p.Create = p.Create.sent(e.At)
	case EventCaptureRequested:
		// What the PSP captures of its own accord is not ours to ask for.
		if p.CancelCause != "" || p.CaptureMethod != CaptureManual {
			return "", false, illegal
		}
		return e.Type, true, p.intendCapture(e)
	case EventCancelRequested:
		if e.Cause == "" { // it would not keep a charge from leaving
			return "", false, illegal
		}
		if p.CancelCause == "" {
			p.CancelCause = e.Cause
		}
		if p.Status == StatusCanceled { // nothing had been sent
			p.Failure = p.cancelFailure()
			return EventVoided, true, nil
		}
	case EventVoidSent:
		// A void comes after the cancel that keeps the charge from being sent again.
		if from.Open() && p.CancelCause == "" {
			return "", false, illegal
		}
		if e.PSPReference != "" {
			p.PSPReference = e.PSPReference
		}
		p.Void = p.Void.again(string(p.ID)+"-cancel-", e.At)
	}
	return e.Type, true, nil
}

// intendCapture sends the same capture again, or a new one when the last was answered.
func (p *Payment) intendCapture(e Event) error {
	if p.Capture.open() {
		if e.Captured != p.Capture.Amount {
			return &TransitionError{From: p.Status, Event: e.Type}
		}
	} else if e.Captured <= 0 || e.Captured > p.Amount.Minor {
		return ErrAmountTooLarge
	}
	p.Capture = p.Capture.again(string(p.ID)+"-capture-", e.At)
	p.Capture.Amount = e.Captured
	return nil
}

// again is one more sending: of the same key while the PSP gave no final answer
// to it, else of the next.
func (o Operation) again(prefix string, at time.Time) Operation {
	if !o.open() {
		o = Operation{Attempt: o.Attempt + 1}
		o.Key = prefix + decimal(o.Attempt)
	}
	return o.sent(at)
}

// hear notes what the PSP said of the charge.
func (p *Payment) hear(e Event, from Status) (EventType, bool, error) {
	if e.PSPReference != "" {
		p.PSPReference = e.PSPReference
	}
	if p.Status.Dead() && (e.Type == EventCaptured || e.Type == EventAuthorized) {
		return p.hearLate(e)
	}
	if from.Dead() && e.Type == EventDeclined { // what was held for it has lapsed
		return p.hearVoid(e, from)
	}
	switch e.Type {
	case EventPending:
		changed := p.Create.State != OperationAnswered || p.Mismatched
		p.answer(e)
		return e.Type, changed, nil
	case EventActionRequired:
		p.RedirectURL, p.ClientSecret = e.RedirectURL, e.ClientSecret
	case EventAuthorized:
	case EventCaptured:
		p.AmountCaptured = e.Captured
		p.Capture = p.Capture.answered()
	case EventDeclined:
		p.Failure, p.Buried = e.Failure.clone(), true
	case EventVoided:
		return p.hearVoid(e, from)
	case EventAbsent:
		// Silence alone never ends a payment: somebody must have asked for the end,
		// and the PSP must not have told of the charge since it was looked up.
		if p.CancelCause == "" || p.Create.State == OperationAnswered {
			return "", false, &TransitionError{From: from, Event: e.Type}
		}
		p.Failure = p.cancelFailure()
		p.Create.State = OperationAnswered
		return EventVoided, true, nil
	}
	p.answer(e)
	return e.Type, true, nil
}

// hearVoid notes that the PSP holds nothing and says that it never will.
func (p *Payment) hearVoid(e Event, from Status) (EventType, bool, error) {
	news := from.Open() || !p.Buried || p.LateHold
	p.Void = p.Void.answered()
	p.Buried, p.LateHold = true, false
	switch {
	case p.Failure != nil:
	case from == StatusAuthorized && p.CancelCause == "":
		p.Failure = &Failure{Code: FailureAuthorization, Retryable: true}
	default:
		p.Failure = p.cancelFailure()
	}
	p.answer(e)
	return EventVoided, news, nil
}

// hearLate notes money that came, or is held, for a payment that is dead. What
// came goes back once: the refund is decided in the same change.
func (p *Payment) hearLate(e Event) (EventType, bool, error) {
	if e.Type == EventAuthorized {
		// The PSP said itself that it is dead: its own words in another order.
		if p.Buried || p.LateHold || p.AmountCaptured > 0 {
			return "", false, nil
		}
		p.LateHold = true
		return EventLateAuthorized, true, nil
	}
	if p.AmountCaptured > 0 {
		return "", false, nil
	}
	p.AmountCaptured, p.LateHold = e.Captured, false
	id := LateRefundID(p.ID)
	p.Refunds = append(p.Refunds, Refund{
		ID: id, Status: RefundPending, Amount: e.Captured, Reason: ReasonLateCapture,
		Operation: Operation{State: OperationOwed, Key: string(id), Attempt: 1},
		CreatedAt: e.At, UpdatedAt: e.At,
	})
	return EventLateCaptured, true, nil
}

// answer notes that the PSP knows the charge and said where it stands. Other
// money stays other money to its end.
func (p *Payment) answer(e Event) {
	p.Create.State = OperationAnswered
	p.Mismatched = p.Mismatched && e.Amount != p.Amount
}

func (o Operation) answered() Operation {
	if o.State != OperationNone {
		o.State = OperationAnswered
	}
	return o
}

func (p *Payment) cancelFailure() *Failure {
	if p.CancelCause == CancelByExpiry {
		return &Failure{Code: FailureExpired, Retryable: true}
	}
	return nil
}

// miss notes a call that brought no state: which sending of which operation. A
// sending that is not the last any more is old news.
func (p *Payment) miss(e Event) (EventType, bool, error) {
	o := p.missing(e)
	if o == nil || o.State != OperationSent || o.Sends != e.Sends {
		return "", false, nil
	}
	switch e.Type {
	case EventNotRun:
		o.State, o.RetryAt = OperationNotRun, e.RetryAt
	case EventCaptureRefused, EventVoidRefused:
		o.State = OperationRefused
	default:
		o.State = OperationUnknown
	}
	return e.Type, true, nil
}

// missing is the operation whose answer e is about. A refusal names its own.
func (p *Payment) missing(e Event) *Operation {
	switch {
	case e.Type == EventCaptureRefused:
		return &p.Capture
	case e.Type == EventVoidRefused:
		return &p.Void
	}
	switch e.Operation {
	case OperationCreate:
		return &p.Create
	case OperationCapture:
		return &p.Capture
	case OperationVoid:
		return &p.Void
	}
	return nil
}

// settle derives what follows from the status: whether the reference is held,
// and that nothing secret outlives the need for it.
func (p *Payment) settle() {
	if p.Status == StatusCaptured && p.AmountRefunded() >= p.AmountCaptured {
		p.Status = StatusRefunded
	}
	if p.Status.Dead() && p.AmountCaptured > 0 && p.AmountRefunded() >= p.AmountCaptured {
		p.Status = StatusRefunded
	}
	if p.Status.Dead() || p.Status == StatusRefunded {
		p.HoldsReference = false
	}
	if p.Status != StatusRequiresAction {
		p.RedirectURL, p.ClientSecret = "", ""
	}
}
