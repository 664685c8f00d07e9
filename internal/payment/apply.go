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
	if e.PSPReference != "" {
		p.PSPReference = e.PSPReference
	}
	switch e.Type {
	case EventSent:
		return e.Type, true, p.intendCharge(e, from)
	case EventCaptureRequested:
		return e.Type, true, p.intendCapture(e)
	case EventCancelRequested:
		return p.intendCancel(e, from)
	case EventVoidSent:
		return e.Type, true, p.intendVoid(e, from)
	case EventPending:
		changed = p.Create.State != OperationAnswered || p.Mismatched
		p.answer(e)
		return e.Type, changed, nil
	case EventActionRequired:
		p.RedirectURL, p.ClientSecret = e.RedirectURL, e.ClientSecret
		p.answer(e)
		return e.Type, true, nil
	case EventAuthorized:
		return p.hearAuthorized(e, from)
	case EventCaptured:
		return p.hearCaptured(e, from)
	case EventDeclined:
		return p.hearDeclined(e, from)
	case EventVoided:
		return p.hearVoid(e, from)
	case EventAbsent:
		return p.hearNothing(e, from)
	case EventUnanswered, EventNotRun:
		return p.miss(e, p.operation(e.Operation))
	case EventCaptureRefused:
		return p.miss(e, &p.Capture)
	case EventVoidRefused:
		return p.miss(e, &p.Void)
	case EventMismatched:
		changed = !p.Mismatched || p.Create.State != OperationAnswered
		// An answer all the same: the charge is there, and silence is no proof any more.
		p.Mismatched, p.Create.State = true, OperationAnswered
		return e.Type, changed, nil
	case EventRefundRequested, EventRefundSent, EventRefundUnanswered:
		return p.askRefund(e)
	case EventRefundPending:
		return p.hearRefund(e, RefundPending)
	case EventRefundSucceeded:
		return p.hearRefund(e, RefundSucceeded)
	case EventRefundFailed:
		return p.hearRefund(e, RefundFailed)
	case EventDisputeOpened:
		return p.hearDispute(e, DisputeOpen)
	case EventDisputeClosed:
		return p.hearDispute(e, DisputeClosed)
	case EventCreated, EventLateCaptured, EventLateAuthorized:
	}
	return "", false, &TransitionError{From: from, Event: e.Type}
}

// intendCharge notes that the charge is being sent. After a cancel was requested,
// or past the deadline, none leaves.
func (p *Payment) intendCharge(e Event, from Status) error {
	if p.CancelCause != "" || !e.At.Before(p.ExpiresAt) {
		return &TransitionError{From: from, Event: e.Type}
	}
	p.Create.Key, p.Create.Attempt = string(p.ID), 1
	p.Create = p.Create.sent(e.At)
	return nil
}

// intendCancel notes that no charge may leave any more.
func (p *Payment) intendCancel(e Event, from Status) (EventType, bool, error) {
	if e.Cause == "" { // it would not keep a charge from leaving
		return "", false, &TransitionError{From: from, Event: e.Type}
	}
	if p.CancelCause == "" {
		p.CancelCause = e.Cause
	}
	if p.Status == StatusCanceled { // nothing had been sent
		p.Failure = p.cancelFailure()
		return EventVoided, true, nil
	}
	return e.Type, true, nil
}

// intendVoid notes that the charge is being voided. A void comes after the cancel
// that keeps the charge from being sent again.
func (p *Payment) intendVoid(e Event, from Status) error {
	if from.Open() && p.CancelCause == "" {
		return &TransitionError{From: from, Event: e.Type}
	}
	p.Void = p.Void.again(string(p.ID)+"-cancel-", e.At)
	return nil
}

// intendCapture sends the same capture again, or a new one when the last was
// answered. What the PSP captures of its own accord is not ours to ask for.
func (p *Payment) intendCapture(e Event) error {
	other := p.Capture.open() && e.Captured != p.Capture.Amount
	if p.CancelCause != "" || p.CaptureMethod != CaptureManual || other {
		return &TransitionError{From: p.Status, Event: e.Type}
	}
	if e.Captured <= 0 || e.Captured > p.Amount.Minor {
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

// hearAuthorized notes that the PSP holds funds.
func (p *Payment) hearAuthorized(e Event, from Status) (EventType, bool, error) {
	if from.Open() {
		p.answer(e)
		return e.Type, true, nil
	}
	// The PSP said itself that it is dead: its own words in another order.
	if p.Buried || p.LateHold || p.AmountCaptured > 0 {
		return "", false, nil
	}
	p.LateHold = true
	return EventLateAuthorized, true, nil
}

// hearCaptured notes that the PSP has taken funds.
func (p *Payment) hearCaptured(e Event, from Status) (EventType, bool, error) {
	if from.Dead() {
		return p.hearLate(e)
	}
	p.AmountCaptured = e.Captured
	p.Capture = p.Capture.answered()
	p.answer(e)
	return e.Type, true, nil
}

// hearDeclined notes that the PSP declined the charge for good. For a payment
// that is dead already it means that what was held for it has lapsed.
func (p *Payment) hearDeclined(e Event, from Status) (EventType, bool, error) {
	if e.Sends != 0 && !p.Create.awaits(e.Attempt, e.Sends) {
		return "", false, nil // a later sending, or what the PSP said of the charge, has the word
	}
	if from.Dead() {
		return p.hearVoid(e, from)
	}
	p.Failure, p.Buried = e.Failure.clone(), true
	p.answer(e)
	return e.Type, true, nil
}

// hearNothing notes that the PSP knows of no charge. Silence alone never ends a
// payment: somebody must have asked for the end, and the PSP must not have told
// of the charge since it was looked up.
func (p *Payment) hearNothing(e Event, from Status) (EventType, bool, error) {
	if p.CancelCause == "" || p.Create.State == OperationAnswered {
		return "", false, &TransitionError{From: from, Event: e.Type}
	}
	p.Failure = p.cancelFailure()
	p.Create.State = OperationAnswered
	return EventVoided, true, nil
}

// hearVoid notes that the PSP holds nothing and says that it never will.
func (p *Payment) hearVoid(e Event, from Status) (EventType, bool, error) {
	// What is open or held late is never buried; a void that is under way has its answer.
	news := !p.Buried || p.Void.State == OperationSent
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

// hearLate notes money that came for a payment that is dead. It goes back once:
// the refund is decided in the same change.
func (p *Payment) hearLate(e Event) (EventType, bool, error) {
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

// miss notes a call of o that brought no state. A sending that is not the last
// any more is old news.
func (p *Payment) miss(e Event, o *Operation) (EventType, bool, error) {
	after := map[EventType]OperationState{
		EventNotRun: OperationNotRun, EventUnanswered: OperationUnknown,
		EventCaptureRefused: OperationRefused, EventVoidRefused: OperationRefused,
	}
	if o == nil || !o.awaits(e.Attempt, e.Sends) {
		return "", false, nil
	}
	o.State = after[e.Type]
	if o.State == OperationNotRun {
		o.RetryAt = e.RetryAt
	}
	return e.Type, true, nil
}

func (p *Payment) operation(name OperationName) *Operation {
	switch name {
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
