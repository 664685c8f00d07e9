package notification

import (
	"context"
	"fmt"

	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/customer"
	"github.com/kessai/kessai/internal/money"
)

// Command is what can be asked of the handler.
type Command string

// Commands: send by the saga, sweep by a schedule.
const (
	CommandSend  Command = "send"
	CommandSweep Command = "sweep"
)

// Request is a command. All but Command belongs to send.
type Request struct {
	Command    Command `json:"command"`
	MerchantID string  `json:"merchant_id"`
	CheckoutID string  `json:"checkout_id"`
	Kind       Kind    `json:"kind"`
	To         string  `json:"to"` // "" or null for unknown: nobody to tell
	OrderID    string  `json:"order_id"`
	Reference  string  `json:"reference"` // "" or null for none
	Amount     int64   `json:"amount"`    // minor units
	Currency   string  `json:"currency"`
}

// Outcome is the word of a Result.
type Outcome string

// Outcomes of the commands.
const (
	OutcomeSent    Outcome = "sent"
	OutcomeSkipped Outcome = "skipped" // the buyer left no address
	OutcomeSwept   Outcome = "swept"
)

// Result is the answer to a Request.
type Result struct {
	Outcome        Outcome `json:"outcome"`
	CheckoutID     string  `json:"checkout_id"`
	NotificationID *string `json:"notification_id"` // of sent, else null
	Swept          *Swept  `json:"swept"`           // of swept, else null
}

// Handler serves the commands: a Lambda handler in bytes.
type Handler struct{ participant *Participant }

// NewHandler returns the handler of p.
func NewHandler(p *Participant) Handler { return Handler{participant: p} }

// Invoke carries out one Request. Its error is a *command.InvalidCommandError or a
// *command.UnavailableError. Safe to repeat and for concurrent use.
func (h Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return command.Serve(ctx, payload, h.run, ErrInvalid)
}

func (h Handler) run(ctx context.Context, r Request) (Result, error) {
	switch r.Command {
	case CommandSend:
		if r.To == "" {
			return Result{Outcome: OutcomeSkipped, CheckoutID: r.CheckoutID}, nil
		}
		id, err := h.participant.Send(ctx, r.notification())
		return Result{Outcome: OutcomeSent, CheckoutID: r.CheckoutID, NotificationID: &id}, err
	case CommandSweep:
		swept, err := h.participant.Sweep(ctx)
		return Result{Outcome: OutcomeSwept, Swept: &swept}, err
	}
	return Result{}, fmt.Errorf("%w: unknown command", ErrInvalid)
}

func (r Request) notification() Notification {
	return Notification{
		MerchantID: r.MerchantID, CheckoutID: r.CheckoutID, Kind: r.Kind, To: customer.Email(r.To),
		OrderID: r.OrderID, Reference: r.Reference,
		Amount: money.Amount{Minor: r.Amount, Currency: money.Currency(r.Currency)},
	}
}
