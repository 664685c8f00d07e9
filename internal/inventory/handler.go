package inventory

import (
	"context"
	"fmt"

	"github.com/kessai/kessai/internal/command"
)

// Request is a command of the saga. Lines belong to reserve; the other commands
// ignore them, for what is held is what the record says.
type Request struct {
	Command    Command `json:"command"`
	MerchantID string  `json:"merchant_id"`
	CheckoutID string  `json:"checkout_id"`
	Lines      []Line  `json:"lines"`
}

// Result is the answer to a Request.
type Result struct {
	Outcome    Status   `json:"outcome"` // reserved, out_of_stock, released or sold
	CheckoutID string   `json:"checkout_id"`
	Lacking    []string `json:"lacking"` // of out_of_stock: the SKUs that were short; else empty
}

// Handler serves the saga's commands: a Lambda handler in bytes.
type Handler struct{ participant *Participant }

// NewHandler returns the handler of p.
func NewHandler(p *Participant) Handler { return Handler{participant: p} }

// Invoke carries out one Request. Its error is a *command.InvalidCommandError or a
// *command.UnavailableError. Safe to repeat and for concurrent use.
func (h Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return command.Serve(ctx, payload, h.run, ErrInvalid, ErrIllegal, ErrDamaged)
}

func (h Handler) run(ctx context.Context, r Request) (Result, error) {
	result := Result{CheckoutID: r.CheckoutID, Lacking: []string{}}
	switch r.Command {
	case Reserve:
		answer, err := h.participant.Reserve(ctx, Reservation{
			MerchantID: r.MerchantID, CheckoutID: r.CheckoutID, Lines: r.Lines,
		})
		result.Outcome = answer.Status
		result.Lacking = append(result.Lacking, answer.Lacking...)
		return result, err
	case Release:
		result.Outcome = Released
		return result, h.participant.Release(ctx, r.MerchantID, r.CheckoutID)
	case Sell:
		result.Outcome = Sold
		return result, h.participant.Sell(ctx, r.MerchantID, r.CheckoutID)
	}
	return Result{}, fmt.Errorf("%w: unknown command", ErrInvalid)
}
