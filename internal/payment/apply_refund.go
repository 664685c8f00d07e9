package payment

import "strconv"

func decimal(n int) string { return strconv.Itoa(n) }

// askRefund notes that a refund is being sent: for the first time, again, or
// without an answer.
func (p *Payment) askRefund(e Event) (EventType, bool, error) {
	r := p.refund(e.Refund.ID)
	if e.Type == EventRefundRequested {
		if e.Refund.ID == "" || (r != nil && r.Amount != e.Refund.Amount) {
			return "", false, &MismatchError{Event: e.Type, Field: "refund"}
		}
		if r != nil {
			return "", false, nil // an id is asked for once
		}
		return e.Type, true, p.addRefund(e)
	}
	if r == nil || r.Outside {
		return "", false, &MismatchError{Event: e.Type, Field: "refund"}
	}
	if r.Status != RefundPending || r.PSPReference != "" {
		return "", false, nil // answered meanwhile
	}
	if e.Type == EventRefundSent {
		r.Operation = r.Operation.sent(e.At)
		return e.Type, true, nil
	}
	if !r.Operation.awaits(r.Operation.Attempt, e.Refund.Sends) { // a refund has one key
		return "", false, nil
	}
	r.Operation.State = OperationUnknown
	if e.Refund.NotRun {
		r.Operation.State, r.Operation.RetryAt = OperationNotRun, e.Refund.RetryAt
	}
	return e.Type, true, nil
}

// addRefund adds a refund of ours, in the bounds of what is left.
func (p *Payment) addRefund(e Event) error {
	if err := p.CheckRefund(e.Refund.Amount); err != nil {
		return err
	}
	p.Refunds = append(p.Refunds, Refund{
		ID: e.Refund.ID, Status: RefundPending, Amount: e.Refund.Amount, Reason: e.Refund.Reason,
		Operation: Operation{Key: string(e.Refund.ID), Attempt: 1}.sent(e.At),
		CreatedAt: e.At, UpdatedAt: e.At,
	})
	return nil
}

// hearRefund records what the PSP said of a refund, also when it is more than is left
// beside what we have asked for: that bound holds for us. Of more than was captured no
// PSP gives back.
func (p *Payment) hearRefund(e Event, to RefundStatus) (EventType, bool, error) {
	if p.AmountCaptured == 0 {
		return "", false, &TransitionError{From: p.Status, Event: e.Type, Early: true}
	}
	r, err := p.matchRefund(e)
	if err != nil {
		return "", false, err
	}
	if e.Refund.Sends != 0 && !r.Operation.awaits(r.Operation.Attempt, e.Refund.Sends) {
		return "", false, nil // a refusal of an earlier sending; the last has the word
	}
	news := to.rank() > r.Status.rank() || r.Status == "" || (r.PSPReference == "" && e.Refund.PSPReference != "")
	if e.Refund.PSPReference != "" {
		r.PSPReference = e.Refund.PSPReference
	}
	if to.rank() > r.Status.rank() {
		r.Status = to
	}
	r.Operation = r.Operation.answered()
	r.UpdatedAt = e.At
	return e.Type, news, nil
}

// matchRefund finds the refund that the PSP speaks of, and adds one that was
// made at the PSP directly.
func (p *Payment) matchRefund(e Event) (*Refund, error) {
	mismatch := &MismatchError{Event: e.Type, Field: "refund"}
	r, known := p.refund(e.Refund.ID), p.refundByReference(e.Refund.PSPReference)
	if r == nil && e.Refund.ID != "" {
		return nil, mismatch
	}
	if r == nil {
		r = known
	}
	if r != nil {
		other := r.PSPReference != "" && e.Refund.PSPReference != "" && r.PSPReference != e.Refund.PSPReference
		if other || (known != nil && known != r) || r.Amount != e.Refund.Amount {
			return nil, mismatch
		}
		return r, nil
	}
	if e.Refund.PSPReference == "" || e.Refund.Amount <= 0 || e.Refund.Amount > p.AmountCaptured {
		return nil, mismatch
	}
	if e.Type != EventRefundFailed && e.Refund.Amount > p.AmountCaptured-p.AmountRefunded() {
		// One that was told of before may have failed since.
		return nil, &TransitionError{From: p.Status, Event: e.Type, Early: true}
	}
	for i := range p.Refunds {
		if p.Refunds[i].unanswered() { // it may be this one
			return nil, &TransitionError{From: p.Status, Event: e.Type, Early: true}
		}
	}
	p.Refunds = append(p.Refunds, Refund{
		ID: OutsideRefundID(p.PSP, e.Refund.PSPReference), Amount: e.Refund.Amount, Reason: ReasonOutside,
		Outside: true, CreatedAt: e.At,
	})
	return &p.Refunds[len(p.Refunds)-1], nil
}

func (p *Payment) refund(id RefundID) *Refund {
	for i := range p.Refunds {
		if id != "" && p.Refunds[i].ID == id {
			return &p.Refunds[i]
		}
	}
	return nil
}

func (p *Payment) refundByReference(reference string) *Refund {
	for i := range p.Refunds {
		if reference != "" && p.Refunds[i].PSPReference == reference {
			return &p.Refunds[i]
		}
	}
	return nil
}

// hearDispute records a dispute by its id; closed is final.
func (p *Payment) hearDispute(e Event, to DisputeStatus) (EventType, bool, error) {
	for i := range p.Disputes {
		d := &p.Disputes[i]
		if d.PSPReference != e.Dispute.PSPReference {
			continue
		}
		if d.Status == to || d.Status == DisputeClosed {
			return "", false, nil
		}
		d.Status, d.Result, d.UpdatedAt = to, e.Dispute.Result, e.At
		return e.Type, true, nil
	}
	p.Disputes = append(p.Disputes, Dispute{
		PSPReference: e.Dispute.PSPReference, Amount: e.Dispute.Amount, Status: to, Result: e.Dispute.Result, UpdatedAt: e.At,
	})
	return e.Type, true, nil
}
