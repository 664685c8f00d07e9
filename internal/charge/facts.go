package charge

import (
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Facts are the events that a provider's view of a charge amounts to: where it
// stands, then each of its refunds. Ours come before those made at the PSP, which
// cannot be told from ours before ours are known.
func Facts(c psp.Charge) []payment.Event {
	facts := []payment.Event{statusFact(c.Status, c)}
	var others []payment.Event
	for _, r := range c.Refunds {
		if r.RefundID == "" {
			others = append(others, refundFact(c, r))
			continue
		}
		facts = append(facts, refundFact(c, r))
	}
	return append(facts, others...)
}

// EventFact is the one fact that a notification tells.
func EventFact(e psp.Event) payment.Event {
	switch {
	case e.Refund != nil:
		return refundFact(e.Charge, *e.Refund)
	case e.Dispute != nil:
		return disputeFact(e.Charge, *e.Dispute)
	}
	return statusFact(e.Status, e.Charge)
}

var factOf = map[psp.Status]payment.EventType{
	psp.StatusPending:        payment.EventPending,
	psp.StatusRequiresAction: payment.EventActionRequired,
	psp.StatusAuthorized:     payment.EventAuthorized,
	psp.StatusCaptured:       payment.EventCaptured,
	psp.StatusFailed:         payment.EventDeclined,
	psp.StatusCanceled:       payment.EventVoided,
}

func statusFact(status psp.Status, c psp.Charge) payment.Event {
	e := payment.Event{
		Type: factOf[status], PSPReference: c.Reference, Amount: c.Amount, Captured: c.Captured,
		RedirectURL: c.RedirectURL, ClientSecret: c.ClientSecret,
	}
	if status == psp.StatusFailed {
		e.Failure = &payment.Failure{Code: payment.FailureDeclined, Retryable: true}
		if c.Decline != nil {
			e.Failure.DeclineCode, e.Failure.Retryable = c.Decline.Code, c.Decline.Retryable
		}
	}
	return e
}

func refundFact(c psp.Charge, r psp.Refund) payment.Event {
	e := payment.Event{
		Type: payment.EventRefundPending, PSPReference: c.Reference,
		Refund: payment.RefundEvent{ID: payment.RefundID(r.RefundID), PSPReference: r.Reference, Amount: r.Amount},
	}
	switch r.Status {
	case psp.RefundPending:
	case psp.RefundSucceeded:
		e.Type = payment.EventRefundSucceeded
	case psp.RefundFailed:
		e.Type = payment.EventRefundFailed
	}
	return e
}

func disputeFact(c psp.Charge, d psp.Dispute) payment.Event {
	e := payment.Event{
		Type: payment.EventDisputeOpened, PSPReference: c.Reference,
		Dispute: payment.Dispute{PSPReference: d.Reference, Amount: d.Amount, Result: d.Result},
	}
	if d.Status == psp.DisputeClosed {
		e.Type = payment.EventDisputeClosed
	}
	return e
}
