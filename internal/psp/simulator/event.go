package simulator

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// wireEvent is an event as the simulator writes it.
type wireEvent struct {
	Type string `json:"type"`
	Data struct {
		Charge  *wireCharge  `json:"charge"`
		Refund  *wireRefund  `json:"refund"`
		Dispute *wireDispute `json:"dispute"`
	} `json:"data"`
}

// wireDispute is a dispute as the simulator writes it.
type wireDispute struct {
	ID     string `json:"id"`
	Amount *int64 `json:"amount"`
	Status string `json:"status"`
}

// The facts that the types of events tell.
var (
	chargeEvents = map[string]psp.Status{
		"charge.pending":         psp.StatusPending,
		"charge.requires_action": psp.StatusRequiresAction,
		"charge.authorized":      psp.StatusAuthorized,
		"charge.captured":        psp.StatusCaptured,
		"charge.failed":          psp.StatusFailed,
		"charge.canceled":        psp.StatusCanceled,
	}
	refundEvents = map[string]psp.RefundStatus{
		"refund.succeeded": psp.RefundSucceeded,
		"refund.failed":    psp.RefundFailed,
	}
	disputeEvents = map[string]psp.DisputeStatus{
		"dispute.opened": psp.DisputeOpen,
		"dispute.closed": psp.DisputeClosed,
	}
)

// Parse reads an event. Its type is the fact; of the charge inside, which may be
// newer, it takes references, the amount, and what belongs to that fact: for a
// capture the amounts captured and refunded, for a decline the reason, for
// requires_action the address. A charge.captured without a captured amount is
// for the whole amount.
//
// A refund event without a charge inside names it by the provider's id only: its
// Charge has a Reference and nothing else, and the payment is found by Lookup.
func (a *Adapter) Parse(n psp.Notification) (psp.Event, error) {
	// The type is read by itself first: an unknown event may have any data.
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(n.Body, &kind); err != nil || kind.Type == "" {
		return psp.Event{}, invalid("no type can be read")
	}
	status, isCharge := chargeEvents[kind.Type]
	refundStatus, isRefund := refundEvents[kind.Type]
	disputeStatus, isDispute := disputeEvents[kind.Type]
	if !isCharge && !isRefund && !isDispute {
		return psp.Event{}, psp.ErrEventIgnored
	}
	var wire wireEvent
	if err := json.Unmarshal(n.Body, &wire); err != nil {
		return psp.Event{}, invalid("a member has a wrong type")
	}
	switch {
	case isRefund:
		return wire.refundEvent(refundStatus)
	case isDispute:
		return wire.disputeEvent(disputeStatus)
	}
	return wire.chargeEvent(status)
}

func (w *wireEvent) chargeEvent(status psp.Status) (psp.Event, error) {
	charge, err := w.Data.Charge.fact(status)
	if err != nil {
		return psp.Event{}, err
	}
	return psp.Event{Status: status, Charge: charge}, nil
}

func (w *wireEvent) refundEvent(status psp.RefundStatus) (psp.Event, error) {
	if w.Data.Refund == nil {
		return psp.Event{}, invalid("no refund")
	}
	charge := psp.Charge{Reference: w.Data.Refund.Charge}
	if w.Data.Charge != nil {
		var err error
		if charge, err = w.Data.Charge.snapshot(); err != nil {
			return psp.Event{}, err
		}
	}
	if !isID(charge.Reference) {
		return psp.Event{}, invalid("the refund names no charge")
	}
	wire := *w.Data.Refund
	if _, known := refundStatuses[wire.Status]; !known && wire.Status != "" {
		return psp.Event{}, invalid("the refund's status is unknown")
	}
	wire.Status = string(status) // the type is the fact
	refund, err := wire.refund(charge.Reference)
	if err != nil {
		return psp.Event{}, invalid("the refund cannot be read")
	}
	return psp.Event{Charge: charge, Refund: &refund}, nil
}

func (w *wireEvent) disputeEvent(status psp.DisputeStatus) (psp.Event, error) {
	dispute := w.Data.Dispute
	if dispute == nil || !isID(dispute.ID) || !isMinor(dispute.Amount) {
		return psp.Event{}, invalid("no dispute, or one that cannot be read")
	}
	charge, err := w.Data.Charge.snapshot()
	if err != nil {
		return psp.Event{}, err
	}
	event := psp.Event{Charge: charge, Dispute: &psp.Dispute{
		Reference: dispute.ID,
		Amount:    *dispute.Amount,
		Status:    status,
	}}
	if status == psp.DisputeClosed && isWord(dispute.Status) {
		event.Dispute.Result = dispute.Status
	}
	return event, nil
}

// snapshot is the charge that came with news about something else.
func (w *wireCharge) snapshot() (psp.Charge, error) {
	charge, err := w.inEvent()
	if err != nil {
		return psp.Charge{}, err
	}
	status, known := statuses[w.Status]
	if !known && w.Status != "" {
		return psp.Charge{}, invalid("the charge's status is unknown")
	}
	charge.Status = status
	return charge, nil
}

// fact is the charge as it was when the event happened, as far as that is known.
func (w *wireCharge) fact(status psp.Status) (psp.Charge, error) {
	charge, err := w.inEvent()
	if err != nil {
		return psp.Charge{}, err
	}
	charge.Status = status
	if status != psp.StatusCaptured { // what the snapshot may know of captures came later
		charge.Captured, charge.Refunded, charge.Refunds = 0, 0, nil
	}
	switch status {
	case psp.StatusCaptured:
		if charge.Captured == 0 {
			charge.Captured = charge.Amount.Minor
		}
	case psp.StatusFailed:
		charge.Decline = w.decline()
	case psp.StatusRequiresAction:
		if w.RedirectURL != nil {
			if !isRedirect(*w.RedirectURL) {
				return psp.Charge{}, invalid("the redirect address is none")
			}
			charge.RedirectURL = payment.Secret(*w.RedirectURL)
		}
	case psp.StatusPending, psp.StatusAuthorized, psp.StatusCanceled:
	}
	return charge, nil
}

// inEvent is the charge's references and money. Unlike an answer, an event may
// leave captured and refunded out; both references must be there, since by them
// the payment is found and checked.
func (w *wireCharge) inEvent() (psp.Charge, error) {
	if w == nil {
		return psp.Charge{}, invalid("no charge")
	}
	if w.Reference == "" {
		return psp.Charge{}, invalid("the charge has no reference")
	}
	charge, err := w.identity()
	if err != nil {
		return psp.Charge{}, invalid("the charge's id, reference, amount or currency cannot be read")
	}
	if w.Captured != nil {
		charge.Captured = *w.Captured
	}
	if w.Refunded != nil {
		charge.Refunded = *w.Refunded
	}
	if charge.Captured < 0 || charge.Refunded < 0 {
		return psp.Charge{}, invalid("an amount is negative")
	}
	if charge.Refunds, err = w.refunds(); err != nil {
		return psp.Charge{}, invalid("a refund of the charge cannot be read")
	}
	return charge, nil
}

// invalid is psp.ErrEventInvalid with a reason that holds nothing of the event.
func invalid(reason string) error { return fmt.Errorf("%w: %s", psp.ErrEventInvalid, reason) }
