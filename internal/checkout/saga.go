package checkout

import (
	"context"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/command"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/payment"
)

// WaitingError ends an execution: the customer, the PSP or a person has the
// word, and another execution goes on. Everything is committed.
type WaitingError struct{ Reason string }

func (e *WaitingError) Error() string { return "waiting: " + e.Reason }

// BackwardError leads an execution to the compensations. That the direction is
// backward is committed.
type BackwardError struct{ Code string }

func (e *BackwardError) Error() string { return "backward: " + e.Code }

// Payments sends and undoes the payment of a checkout.
type Payments interface {
	Send(ctx context.Context, id payment.ID) (payment.Payment, error)
	Compensate(ctx context.Context, id payment.ID, attempts int) (payment.Payment, charge.Compensation, error)
}

// Stock turns a checkout's reservation into a sale. Safe to repeat.
type Stock interface {
	Sell(ctx context.Context, merchantID, checkoutID string) error
}

// Saga is the payment side of the state machine: its four commands. Each is safe
// to repeat and to run twice at once. Errors: *WaitingError, *BackwardError, or
// one that leaves the outcome unknown.
type Saga struct {
	Service  *Service
	Payments Payments
	Stock    Stock
}

// Charge records what the stock participant said, and charges. It returns nil
// when the payment is captured.
func (g *Saga) Charge(ctx context.Context, id string, reservation inventory.Status) error {
	c, err := g.Service.Store.Checkout(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case c.Status == StatusCompleted:
		return nil // what is left, the notification, is repeated
	case c.Status.Over():
		return &WaitingError{"checkout is " + string(c.Status)}
	case c.Direction == Backward:
		return backward(c)
	case c.OrderID != "":
		return nil // past the pivot
	}
	switch reservation {
	case inventory.Reserved, inventory.Sold:
		if c, err = g.record(ctx, c, Event{Type: EventStockReserved}); err != nil {
			return err
		}
	case inventory.OutOfStock:
		return g.turn(ctx, c, &payment.Failure{Code: FailureOutOfStock})
	default:
		return fmt.Errorf("checkout: reservation of %s is %q", id, reservation)
	}
	p, err := g.Payments.Send(ctx, c.PaymentID)
	if err != nil {
		return fmt.Errorf("charge %s: %w", c.PaymentID, err)
	}
	return g.charged(ctx, c, p)
}

// charged tells the state machine where to go by the payment's state.
func (g *Saga) charged(ctx context.Context, c Checkout, p payment.Payment) error {
	switch p.Status {
	case payment.StatusCaptured:
		_, err := g.record(ctx, c, Event{Type: EventCharged})
		return err
	case payment.StatusRequiresAction:
		if _, err := g.record(ctx, c, Event{Type: EventRequiresAction}); err != nil {
			return err
		}
		return &WaitingError{"the customer must act"}
	case payment.StatusCreated:
		return g.undoneMeanwhile(ctx, c.ID)
	case payment.StatusProcessing, payment.StatusAuthorized:
		return &WaitingError{"the PSP has not said yet"}
	case payment.StatusFailed, payment.StatusCanceled:
		failure := &payment.Failure{Code: FailureCanceled}
		if p.Failure != nil {
			failure = p.Failure
		}
		return g.turn(ctx, c, failure)
	case payment.StatusRefunded:
		return g.turn(ctx, c, &payment.Failure{Code: FailureRefunded})
	}
	return fmt.Errorf("checkout: payment %s is %q", p.ID, p.Status)
}

// undoneMeanwhile: nothing was sent, because another execution has turned back.
func (g *Saga) undoneMeanwhile(ctx context.Context, id string) error {
	c, err := g.Service.Store.Checkout(ctx, id)
	if err != nil {
		return err
	}
	if c.Direction == Backward {
		return backward(c)
	}
	return errors.New("checkout: payment was not sent")
}

// Complete records what the order participant said; with the order there, it
// sells the stock and completes. An order is the pivot: from there nothing is undone.
func (g *Saga) Complete(ctx context.Context, id string, outcome order.Outcome, orderID, code string) error {
	c, err := g.Service.Store.Checkout(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case c.Status == StatusCompleted:
		return nil
	case c.Direction == Backward:
		return backward(c)
	}
	switch outcome {
	case order.OutcomeCreated:
	case order.OutcomeRejected:
		return g.turn(ctx, c, &payment.Failure{Code: code})
	default:
		return fmt.Errorf("checkout: order of %s is %q", id, outcome)
	}
	if c, err = g.record(ctx, c, Event{Type: EventOrderCreated, OrderID: orderID}); err != nil {
		return err
	}
	if err := g.Stock.Sell(ctx, c.MerchantID, c.ID); err != nil {
		return fmt.Errorf("sell stock of %s: %w", id, err)
	}
	_, err = g.record(ctx, c, Event{Type: EventCompleted})
	return err
}

// UndoCharge records that the order is gone, and undoes the payment.
func (g *Saga) UndoCharge(ctx context.Context, id string) error {
	c, err := g.backwardOnly(ctx, id)
	if err != nil || c.Undone {
		return err
	}
	if c, err = g.record(ctx, c, Event{Type: EventOrderCanceled}); err != nil {
		return err
	}
	p, compensation, err := g.Payments.Compensate(ctx, c.PaymentID, c.Resumes+1)
	if err != nil {
		return fmt.Errorf("undo %s: %w", c.PaymentID, err)
	}
	switch compensation {
	case charge.CompensationDone:
		_, err := g.record(ctx, c, Event{Type: EventPaymentUndone})
		return err
	case charge.CompensationPending:
		return &WaitingError{"the payment is " + string(p.Status)}
	case charge.CompensationFailed:
		if _, err := g.record(ctx, c, Event{Type: EventNeedsReview, Reason: "refund failed"}); err != nil {
			return err
		}
		return &WaitingError{"the refund failed"}
	}
	return fmt.Errorf("checkout: compensation of %s is %q", p.ID, compensation)
}

// Close ends a checkout whose effects are undone.
func (g *Saga) Close(ctx context.Context, id string) error {
	c, err := g.backwardOnly(ctx, id)
	if err != nil || c.Status == StatusFailed {
		return err
	}
	if c, err = g.record(ctx, c, Event{Type: EventStockReleased}); err != nil {
		return err
	}
	_, err = g.record(ctx, c, Event{Type: EventFailed})
	return err
}

// backwardOnly reads a checkout that is being undone. Another has no business
// with a compensation.
func (g *Saga) backwardOnly(ctx context.Context, id string) (Checkout, error) {
	c, err := g.Service.Store.Checkout(ctx, id)
	if err == nil && c.Direction != Backward {
		err = &IllegalError{c.Status, c.Direction, EventPaymentUndone}
	}
	return c, err
}

// turn commits backward.
func (g *Saga) turn(ctx context.Context, c Checkout, why *payment.Failure) error {
	c, err := g.record(ctx, c, Event{Type: EventCompensating, Failure: why})
	if err != nil {
		return err
	}
	return backward(c)
}

func backward(c Checkout) error {
	code := ""
	if c.Failure != nil {
		code = c.Failure.Code
	}
	return &BackwardError{code}
}

func (g *Saga) record(ctx context.Context, c Checkout, e Event) (Checkout, error) {
	return g.Service.record(ctx, c, journal.SourceSaga, e)
}

// Command is what the state machine asks of Saga.
type Command string

// Commands of the state machine.
const (
	CommandCharge     Command = "charge"
	CommandComplete   Command = "complete"
	CommandUndoCharge Command = "undo_charge"
	CommandClose      Command = "close"
)

// Request is one command with what the steps before it said.
type Request struct {
	Command     Command          `json:"command"`
	CheckoutID  string           `json:"checkout_id"`
	Reservation inventory.Status `json:"reservation,omitzero"` // of charge
	Order       *OrderAnswer     `json:"order,omitzero"`       // of complete
}

// OrderAnswer is what the order participant said.
type OrderAnswer struct {
	Outcome    order.Outcome `json:"outcome"`
	CheckoutID string        `json:"checkout_id"`
	OrderID    *string       `json:"order_id"`
	Code       *string       `json:"code"`
}

// Answer is the result of a command that went forward.
type Answer struct {
	CheckoutID string `json:"checkout_id"`
}

// Handler serves the state machine's commands: a Lambda handler in bytes.
type Handler struct{ Saga *Saga }

// Invoke carries out one Request. Its error is a *WaitingError, a *BackwardError,
// a *command.InvalidCommandError or a *command.UnavailableError: the names that
// the state machine knows. Safe to repeat and for concurrent use.
func (h Handler) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var way error
	answer, err := command.Serve(ctx, payload, func(ctx context.Context, r Request) (Answer, error) {
		err := h.run(ctx, r)
		if waiting, ok := errors.AsType[*WaitingError](err); ok {
			way, err = waiting, nil
		}
		if turned, ok := errors.AsType[*BackwardError](err); ok {
			way, err = turned, nil
		}
		return Answer{r.CheckoutID}, err
	}, ErrNotFound, errUnknownCommand)
	if err == nil && way != nil {
		return nil, way
	}
	return answer, err
}

var errUnknownCommand = errors.New("checkout: unknown command")

func (h Handler) run(ctx context.Context, r Request) error {
	switch r.Command {
	case CommandCharge:
		return h.Saga.Charge(ctx, r.CheckoutID, r.Reservation)
	case CommandComplete:
		if r.Order == nil {
			return errUnknownCommand
		}
		return h.Saga.Complete(ctx, r.CheckoutID, r.Order.Outcome, text(r.Order.OrderID), text(r.Order.Code))
	case CommandUndoCharge:
		return h.Saga.UndoCharge(ctx, r.CheckoutID)
	case CommandClose:
		return h.Saga.Close(ctx, r.CheckoutID)
	}
	return errUnknownCommand
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
