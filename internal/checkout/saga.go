package checkout

import (
	"cmp"
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
// to repeat and to run twice at once. Errors: *WaitingError, *BackwardError,
// ErrNotFound, ErrInvalid, or one that leaves the outcome unknown.
type Saga struct {
	Service  *Service
	Payments Payments
	Stock    Stock
}

// ErrInvalid says that a command can never succeed as it is. Nothing was done.
var ErrInvalid = errors.New("checkout: invalid command")

// step decides and does something about a checkout as it is now. When another
// execution was faster, everything is decided anew.
func (g *Saga) step(ctx context.Context, id string, do func(c Checkout) error) error {
	for n := 1; g.Service.anew(ctx, n); n++ {
		c, err := g.Service.Store.Checkout(ctx, id)
		if err != nil {
			return fmt.Errorf("read checkout %s: %w", id, err)
		}
		err = do(c)
		if _, lost := errors.AsType[*journal.Conflict](err); !lost {
			return err
		}
	}
	return journal.ErrBusy
}

// Charge records what the stock participant said, and charges. It returns nil
// when the payment is captured, or was before.
func (g *Saga) Charge(ctx context.Context, id string, reservation inventory.Status) error {
	return g.step(ctx, id, func(c Checkout) error {
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
			return g.charge(ctx, c)
		case inventory.OutOfStock, inventory.Released: // what was given back is not held again
			return g.turn(ctx, c, payment.Failure{Code: FailureOutOfStock})
		case inventory.None:
		}
		return fmt.Errorf("%w: reservation of %s is %q", ErrInvalid, id, reservation)
	})
}

func (g *Saga) charge(ctx context.Context, c Checkout) error {
	c, err := g.commit(ctx, c, Event{Type: EventStockReserved})
	if err != nil {
		return err
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
		_, err := g.commit(ctx, c, Event{Type: EventCharged})
		return err
	case payment.StatusRequiresAction:
		if _, err := g.commit(ctx, c, Event{Type: EventRequiresAction}); err != nil {
			return err
		}
		return &WaitingError{"the customer must act"}
	case payment.StatusCreated:
		// Nothing was sent, because another execution has turned back.
		return &journal.Conflict{Gate: true}
	case payment.StatusProcessing, payment.StatusAuthorized:
		return &WaitingError{"the PSP has not said yet"}
	case payment.StatusFailed, payment.StatusCanceled, payment.StatusRefunded:
		return g.turn(ctx, c, whyNotPaid(p))
	}
	return fmt.Errorf("checkout: payment %s is %q", p.ID, p.Status)
}

// whyNotPaid is why a checkout fails whose payment has ended without money. Late
// money that came and went since then is no reason of its own.
func whyNotPaid(p payment.Payment) payment.Failure {
	if p.Failure != nil {
		return *p.Failure
	}
	_, late := p.Refund(payment.LateRefundID(p.ID))
	if p.Status == payment.StatusRefunded && !late {
		return payment.Failure{Code: FailureRefunded}
	}
	return payment.Failure{Code: FailureCanceled}
}

// Complete records what the order participant said; with the order there, it
// sells the stock and completes. An order is the pivot: from there nothing is undone.
func (g *Saga) Complete(ctx context.Context, id string, said OrderAnswer) error {
	return g.step(ctx, id, func(c Checkout) error {
		switch {
		case c.Direction == Backward:
			return backward(c)
		case c.Status == StatusNeedsReview:
			return &WaitingError{"checkout is " + string(c.Status)}
		}
		switch said.Outcome {
		case order.OutcomeCreated:
			return g.complete(ctx, c, text(said.OrderID))
		case order.OutcomeRejected:
			return g.turn(ctx, c, payment.Failure{Code: cmp.Or(text(said.Code), order.CodeRejected)})
		case order.OutcomeCanceled: // somebody's cancel came first: there can be no order any more
			return g.turn(ctx, c, payment.Failure{Code: order.CodeRejected})
		}
		return fmt.Errorf("%w: order of %s is %q", ErrInvalid, id, said.Outcome)
	})
}

func (g *Saga) complete(ctx context.Context, c Checkout, orderID string) error {
	if orderID == "" {
		return fmt.Errorf("%w: order of %s has no id", ErrInvalid, c.ID)
	}
	if !c.Charged {
		g.Service.Meter.Count(MetricOrderWithoutPayment, 1)
		g.Service.Log.ErrorContext(ctx, "order without payment", "checkout_id", c.ID, "payment_id", string(c.PaymentID), "order_id", orderID)
	}
	c, err := g.commit(ctx, c, Event{Type: EventOrderCreated, OrderID: orderID})
	if err != nil {
		return err
	}
	if err := g.Stock.Sell(ctx, c.MerchantID, c.ID); err != nil {
		return fmt.Errorf("sell stock of %s: %w", c.ID, err)
	}
	_, err = g.commit(ctx, c, Event{Type: EventCompleted})
	return err
}

// UndoCharge undoes the payment of a checkout that is being undone.
func (g *Saga) UndoCharge(ctx context.Context, id string) error {
	return g.undo(ctx, id, func(c Checkout) error {
		if c.Undone {
			return nil
		}
		p, compensation, err := g.Payments.Compensate(ctx, c.PaymentID, c.Resumes+1)
		switch {
		case errors.Is(err, payment.ErrDisputed): // the bank has the money's word now
			return g.park(ctx, c, "the payment is disputed")
		case err != nil:
			return fmt.Errorf("undo %s: %w", c.PaymentID, err)
		}
		switch compensation {
		case charge.CompensationDone:
			_, err := g.commit(ctx, c, Event{Type: EventPaymentUndone})
			return err
		case charge.CompensationPending:
			return &WaitingError{"the payment is " + string(p.Status)}
		case charge.CompensationFailed:
			return g.park(ctx, c, "the refund failed")
		}
		return fmt.Errorf("checkout: compensation of %s is %q", p.ID, compensation)
	})
}

// Close ends a checkout whose effects are undone.
func (g *Saga) Close(ctx context.Context, id string) error {
	return g.undo(ctx, id, func(c Checkout) error {
		c, err := g.commit(ctx, c, Event{Type: EventStockReleased})
		if err != nil {
			return err
		}
		_, err = g.commit(ctx, c, Event{Type: EventFailed})
		return err
	})
}

// undo is a step of a compensation. A checkout that goes forward has no business
// with one. One that has failed has none left, and its state says so to each step.
func (g *Saga) undo(ctx context.Context, id string, do func(c Checkout) error) error {
	return g.step(ctx, id, func(c Checkout) error {
		switch {
		case c.Direction != Backward:
			return fmt.Errorf("%w: %s is not being undone", ErrInvalid, id)
		case c.Status == StatusNeedsReview:
			return &WaitingError{"checkout is " + string(c.Status)}
		}
		return do(c)
	})
}

// turn commits backward.
func (g *Saga) turn(ctx context.Context, c Checkout, why payment.Failure) error {
	c, err := g.commit(ctx, c, Event{Type: EventCompensating, Failure: &why})
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

// park leaves a checkout to a person.
func (g *Saga) park(ctx context.Context, c Checkout, why string) error {
	if _, err := g.commit(ctx, c, Event{Type: EventNeedsReview, Reason: why}); err != nil {
		return err
	}
	return &WaitingError{why}
}

func (g *Saga) commit(ctx context.Context, c Checkout, e Event) (Checkout, error) {
	return g.Service.commit(ctx, c, e, Change{Source: journal.SourceSaga})
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
	}, ErrNotFound, ErrInvalid)
	if err == nil && way != nil {
		return nil, way
	}
	if err != nil {
		h.Saga.Service.Meter.Count(MetricStepFailed, 1)
	}
	return answer, err
}

func (h Handler) run(ctx context.Context, r Request) error {
	switch r.Command {
	case CommandCharge:
		return h.Saga.Charge(ctx, r.CheckoutID, r.Reservation)
	case CommandComplete:
		if r.Order == nil {
			return fmt.Errorf("%w: no order", ErrInvalid)
		}
		return h.Saga.Complete(ctx, r.CheckoutID, *r.Order)
	case CommandUndoCharge:
		return h.Saga.UndoCharge(ctx, r.CheckoutID)
	case CommandClose:
		return h.Saga.Close(ctx, r.CheckoutID)
	}
	return fmt.Errorf("%w: unknown command", ErrInvalid)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
