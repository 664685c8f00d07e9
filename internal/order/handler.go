package order

import (
	"context"
	"fmt"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/money"
)

// Command is what can be asked of a checkout's order.
type Command string

// Commands of the saga.
const (
	CommandCreate Command = "create"
	CommandCancel Command = "cancel"
)

// Request is a command of the saga. What is bought belongs to create; cancel
// ignores it.
type Request struct {
	Command    Command       `json:"command"`
	MerchantID string        `json:"merchant_id"`
	CheckoutID string        `json:"checkout_id"`
	PaymentID  string        `json:"payment_id"`
	Reference  string        `json:"reference"` // "" or null for none
	Lines      []Line        `json:"lines"`
	Amount     int64         `json:"amount"` // minor units
	Currency   string        `json:"currency"`
	Customer   *CustomerView `json:"customer"` // null for unknown
}

// Outcome is the word of a Result.
type Outcome string

// Outcomes of the saga's commands.
const (
	OutcomeCreated  Outcome = "created"
	OutcomeRejected Outcome = "rejected"
	OutcomeCanceled Outcome = "canceled" // of create: its cancel came first
)

// Result is the answer to a Request.
type Result struct {
	Outcome    Outcome `json:"outcome"`
	CheckoutID string  `json:"checkout_id"`
	OrderID    *string `json:"order_id"` // of created, else null
	Code       *string `json:"code"`     // of rejected: why, else null
}

// Handler serves the saga's commands: a Lambda handler in bytes.
type Handler struct{ participant *Participant }

// NewHandler returns the handler of p.
func NewHandler(p *Participant) Handler { return Handler{participant: p} }

// Invoke carries out one Request. Its error is a *command.InvalidCommandError or a
// *command.UnavailableError. Safe to repeat and for concurrent use.
func (h Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return command.Serve(ctx, payload, h.run, ErrInvalid)
}

func (h Handler) run(ctx context.Context, r Request) (Result, error) {
	result := Result{CheckoutID: r.CheckoutID}
	switch r.Command {
	case CommandCreate:
		answer, err := h.participant.Create(ctx, r.order())
		if err != nil {
			return Result{}, err
		}
		switch answer.Status {
		case Confirmed:
			result.Outcome, result.OrderID = OutcomeCreated, &answer.OrderID
		case Rejected:
			result.Outcome, result.Code = OutcomeRejected, &answer.Code
		case Canceled:
			result.Outcome = OutcomeCanceled
		case None, Prevented: // never an answer
		}
		return result, nil
	case CommandCancel:
		result.Outcome = OutcomeCanceled
		return result, h.participant.Cancel(ctx, r.MerchantID, r.CheckoutID)
	}
	return Result{}, fmt.Errorf("%w: unknown command", ErrInvalid)
}

func (r Request) order() Order {
	o := Order{
		CheckoutID: r.CheckoutID, MerchantID: r.MerchantID, PaymentID: r.PaymentID, Reference: r.Reference,
		Lines: r.Lines, Amount: money.Amount{Minor: r.Amount, Currency: money.Currency(r.Currency)},
	}
	if r.Customer != nil {
		o.Email = customer.Email(r.Customer.Email)
	}
	return o
}
