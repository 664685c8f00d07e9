package psptest

import (
	"context"
	"fmt"
	"time"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

// Tokens that choose what a charge of the Fake does, as at the PSP simulator.
// Where it says captured, a charge with manual capture ends authorized.
const (
	TokenCaptured              = "tok_captured"                // captured
	TokenDeclined              = "tok_declined"                // failed, generic_decline
	TokenInsufficientFunds     = "tok_insufficient_funds"      // failed, insufficient_funds
	TokenRequiresAction        = "tok_requires_action"         // redirect; then Approve or Decline
	TokenPending               = "tok_pending"                 // pending; then Approve or Decline
	TokenPendingSilent         = "tok_pending_silent"          // the same without any event
	TokenTimeoutCaptured       = "tok_timeout_captured"        // captured, no answer
	TokenTimeoutCapturedSilent = "tok_timeout_captured_silent" // captured, no answer, no event
	TokenTimeoutNothing        = "tok_timeout_nothing"         // no answer, no charge
	TokenErrorCaptured         = "tok_error_captured"          // captured, answers 500
	TokenErrorOnce             = "tok_error_once"              // 503 once for each key, then captured
	TokenRateLimitedOnce       = "tok_rate_limited_once"       // 429 once for each key, then captured
	TokenWebhookFirst          = "tok_webhook_first"           // captured; deliver the event in an After hook
	TokenWebhookTwice          = "tok_webhook_twice"           // captured; every event three times
	TokenWebhookReversed       = "tok_webhook_reversed"        // captured; authorized is told after what follows it
	TokenLateCaptured          = "tok_late_captured"           // pending; then CaptureLate
	TokenRefundPendingFailed   = "tok_refund_pending_failed"   // captured; refunds are pending, then SettleRefund
)

// charge is a charge with what only the provider knows of it.
type charge struct {
	psp.Charge
	token  string
	manual bool
	held   *Event // what TokenWebhookReversed keeps back
}

func (c *charge) snapshot() psp.Charge { return cloneCharge(c.Charge) }

// create has the lock.
func (f *Fake) create(r psp.CreateRequest) answer {
	token := r.PaymentMethod.Reveal()
	switch token {
	case TokenTimeoutNothing:
		return answer{err: silence(OperationCreate), forget: true}
	case TokenErrorOnce, TokenRateLimitedOnce:
		if !f.refused[r.Key] {
			f.refused[r.Key] = true
			return answer{err: refusedOnce(token), forget: true}
		}
	}
	c := &charge{token: token, manual: r.ManualCapture, Charge: psp.Charge{
		Reference: fmt.Sprintf("ch_%06d", len(f.charges)+f.forgotten+1),
		PaymentID: r.PaymentID,
		Amount:    r.Amount,
	}}
	switch token {
	case TokenDeclined:
		f.decline(c, "generic_decline")
	case TokenInsufficientFunds:
		f.decline(c, "insufficient_funds")
	case TokenRequiresAction:
		c.RedirectURL = payment.Secret("https://psp.example/redirect/" + c.Reference)
		f.become(c, psp.StatusRequiresAction)
	case TokenPending, TokenPendingSilent, TokenLateCaptured:
		f.become(c, psp.StatusPending)
	case TokenCaptured, TokenTimeoutCaptured, TokenTimeoutCapturedSilent, TokenErrorCaptured, TokenErrorOnce,
		TokenRateLimitedOnce, TokenWebhookFirst, TokenWebhookTwice, TokenWebhookReversed, TokenRefundPendingFailed:
		f.approve(c)
	default:
		return answer{err: refusal(OperationCreate, psp.OutcomeRejected, 400, "payment_method_unknown"), forget: true}
	}
	f.charges = append(f.charges, c)
	a := answer{charge: c.snapshot()}
	switch token {
	case TokenTimeoutCaptured, TokenTimeoutCapturedSilent:
		a = answer{err: silence(OperationCreate)}
	case TokenErrorCaptured:
		a = answer{err: refusal(OperationCreate, psp.OutcomeUnknown, 500, "")}
	}
	return a
}

// capture has the lock.
func (f *Fake) capture(r psp.CaptureRequest) answer {
	c := f.find(psp.LookupRequest{Reference: r.Reference})
	if c == nil {
		return absent(OperationCapture)
	}
	if c.Status != psp.StatusAuthorized {
		return wrongStatus(OperationCapture, "charge_not_authorized")
	}
	if r.Amount.Minor > c.Amount.Minor {
		return answer{err: refusal(OperationCapture, psp.OutcomeRejected, 422, "amount_too_large")}
	}
	c.Captured = r.Amount.Minor
	f.become(c, psp.StatusCaptured)
	return answer{charge: c.snapshot()}
}

// cancel has the lock.
func (f *Fake) cancel(r psp.CancelRequest) answer {
	c := f.find(psp.LookupRequest{Reference: r.Reference})
	if c == nil {
		return absent(OperationCancel)
	}
	switch c.Status {
	case psp.StatusPending, psp.StatusRequiresAction, psp.StatusAuthorized:
		f.become(c, psp.StatusCanceled)
	case psp.StatusCaptured:
		return wrongStatus(OperationCancel, "charge_captured")
	case psp.StatusFailed:
		return wrongStatus(OperationCancel, "charge_failed")
	case psp.StatusCanceled: // voiding it again changes nothing
	}
	return answer{charge: c.snapshot()}
}

// refund has the lock.
func (f *Fake) refund(r psp.RefundRequest) answer {
	c := f.find(psp.LookupRequest{Reference: r.Reference})
	if c == nil {
		return absent(OperationRefund)
	}
	if c.Status != psp.StatusCaptured {
		return wrongStatus(OperationRefund, "charge_not_captured")
	}
	if r.Amount.Minor > c.refundable() {
		return answer{err: refusal(OperationRefund, psp.OutcomeRejected, 422, "amount_too_large")}
	}
	status := psp.RefundSucceeded
	if c.token == TokenRefundPendingFailed {
		status = psp.RefundPending
	}
	return answer{refund: f.addRefund(c, psp.Refund{RefundID: r.RefundID, Amount: r.Amount.Minor, Status: status})}
}

// addRefund has the lock.
func (f *Fake) addRefund(c *charge, r psp.Refund) psp.Refund {
	f.refundCount++
	r.Reference = fmt.Sprintf("rf_%06d", f.refundCount)
	c.Refunds = append(c.Refunds, r)
	f.refundSettled(c, len(c.Refunds)-1)
	return r
}

// refundSettled counts the charge's refunds anew and tells of one that is not pending.
func (f *Fake) refundSettled(c *charge, index int) {
	c.Refunded = 0
	for _, r := range c.Refunds {
		if r.Status == psp.RefundSucceeded {
			c.Refunded += r.Amount
		}
	}
	refund := c.Refunds[index]
	if refund.Status != psp.RefundPending {
		f.tell(c, psp.Event{Charge: c.snapshot(), Refund: &refund})
	}
}

// refundable is what is captured and neither returned nor on its way.
func (c *charge) refundable() int64 {
	left := c.Captured
	for _, r := range c.Refunds {
		if r.Status != psp.RefundFailed {
			left -= r.Amount
		}
	}
	return left
}

// approve has the lock.
func (f *Fake) approve(c *charge) {
	if c.manual || c.token == TokenWebhookReversed {
		f.become(c, psp.StatusAuthorized)
	}
	if !c.manual {
		c.Captured = c.Amount.Minor
		f.become(c, psp.StatusCaptured)
	}
}

// decline has the lock.
func (f *Fake) decline(c *charge, code string) {
	c.Decline = &psp.Decline{Code: code, Retryable: true}
	f.become(c, psp.StatusFailed)
}

// become changes the status and tells of it.
func (f *Fake) become(c *charge, status psp.Status) {
	c.Status = status
	if status != psp.StatusRequiresAction {
		c.RedirectURL = ""
	}
	f.tell(c, psp.Event{Status: status, Charge: c.snapshot()})
}

// find has the lock. Of several charges with one payment id it is one with money.
func (f *Fake) find(r psp.LookupRequest) *charge {
	var best *charge
	for _, c := range f.charges {
		if r.Reference != "" {
			if c.Reference == r.Reference {
				return c
			}
		} else if c.PaymentID == r.PaymentID && (best == nil || c.weight() > best.weight()) {
			best = c
		}
	}
	return best
}

// weight orders charges by what is at stake: money taken, held, still to come, none.
func (c *charge) weight() int {
	switch c.Status {
	case psp.StatusCaptured:
		if c.Captured > c.Refunded {
			return 4
		}
		return 1
	case psp.StatusAuthorized:
		return 3
	case psp.StatusPending, psp.StatusRequiresAction:
		return 2
	case psp.StatusCanceled, psp.StatusFailed:
		return 0
	}
	return 0
}

func absent(operation Operation) answer {
	return answer{err: refusal(operation, psp.OutcomeRejected, 404, "charge_not_found"), forget: true}
}

func wrongStatus(operation Operation, code string) answer {
	return answer{err: refusal(operation, psp.OutcomeRejected, 409, code)}
}

func silence(operation Operation) error {
	return &psp.Error{Operation: string(operation), Outcome: psp.OutcomeUnknown, Err: context.DeadlineExceeded}
}

func refusedOnce(token string) error {
	if token == TokenErrorOnce {
		return refusal(OperationCreate, psp.OutcomeUnknown, 503, "")
	}
	return &psp.Error{Operation: string(OperationCreate), Outcome: psp.OutcomeThrottled, HTTPStatus: 429, RetryAfter: time.Second}
}
