package payment

import "time"

// Row is one journal row: what changed a payment to Version. It is also the
// event that leaves the system, so it never holds a secret or a redirect.
type Row struct {
	Version int64
	Type    EventType
	At      time.Time
	Data    RowData
}

// RowData is the payment after the event, and what the event was about. Its JSON
// form is public: merchants see it in the journal and in events.
type RowData struct {
	Status         Status  `json:"status"`
	Amount         int64   `json:"amount"`
	Currency       string  `json:"currency"`
	AmountCaptured int64   `json:"amount_captured"`
	AmountRefunded int64   `json:"amount_refunded"`
	Reference      *string `json:"reference,omitempty"`
	PSP            string  `json:"psp"`
	PSPReference   *string `json:"psp_reference,omitempty"`
	InDoubt        bool    `json:"in_doubt"`
	Disputed       bool    `json:"disputed"`

	FailureCode string        `json:"failure_code,omitempty"`
	DeclineCode string        `json:"decline_code,omitempty"`
	CancelCause CancelCause   `json:"cancel_cause,omitempty"`
	Reason      string        `json:"reason,omitempty"` // a merchant's, of its cancel
	Operation   OperationName `json:"operation,omitempty"`
	Refund      *RowRefund    `json:"refund,omitempty"`
	Dispute     *RowDispute   `json:"dispute,omitempty"`
	Webhook     string        `json:"webhook_id,omitempty"`
}

// RowRefund is the refund that a row is about.
type RowRefund struct {
	ID     RefundID     `json:"id"`
	Status RefundStatus `json:"status"`
	Amount int64        `json:"amount"`
	Reason string       `json:"reason,omitempty"`
}

// RowDispute is the dispute that a row is about.
type RowDispute struct {
	ID     string        `json:"id"`
	Status DisputeStatus `json:"status"`
	Amount int64         `json:"amount"`
	Result string        `json:"result,omitempty"`
}

func (p Payment) row(kind EventType, e Event) Row {
	d := RowData{
		Status: p.Status, Amount: p.Amount.Minor, Currency: string(p.Amount.Currency),
		AmountCaptured: p.AmountCaptured, AmountRefunded: p.AmountRefunded(),
		Reference: optional(p.Reference), PSP: p.PSP, PSPReference: optional(p.PSPReference),
		InDoubt: p.InDoubt(), Disputed: p.Disputed(),
		CancelCause: p.CancelCause, Reason: e.Reason, Operation: e.Operation, Webhook: e.Notification,
	}
	if p.Failure != nil {
		d.FailureCode, d.DeclineCode = p.Failure.Code, p.Failure.DeclineCode
	}
	if r := p.spokenOf(kind, e); r != nil {
		d.Refund = &RowRefund{ID: r.ID, Status: r.Status, Amount: r.Amount, Reason: r.Reason}
	}
	if kind == EventDisputeOpened || kind == EventDisputeClosed {
		for _, x := range p.Disputes {
			if x.PSPReference == e.Dispute.PSPReference {
				d.Dispute = &RowDispute{ID: x.PSPReference, Status: x.Status, Amount: x.Amount, Result: x.Result}
			}
		}
	}
	return Row{Version: p.Version, Type: kind, At: e.At, Data: d}
}

// spokenOf is the refund that the event is about, nil when it is about none.
func (p *Payment) spokenOf(kind EventType, e Event) *Refund {
	if kind == EventLateCaptured {
		return p.refund(LateRefundID(p.ID))
	}
	if r := p.refund(e.Refund.ID); r != nil {
		return r
	}
	return p.refundByReference(e.Refund.PSPReference)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
