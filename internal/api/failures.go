package api

import (
	"context"
	"errors"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/problem"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/webhook"
)

// detailNotFound is the same for what does not exist, what is another merchant's
// and what cannot exist.
const detailNotFound = "There is no such resource."

// refusals are the flows' errors that a client may hear of. Each is before any
// effect unless the flow says otherwise.
var refusals = []struct {
	err     error
	problem *problem.Error
}{
	{idempotency.ErrKeyRequired, problem.New(problem.IdempotencyKeyRequired, "Every POST needs an Idempotency-Key header.")},
	{idempotency.ErrKeyInvalid, problem.New(problem.IdempotencyKeyInvalid, "An Idempotency-Key is 1 to 255 printable ASCII characters.")},
	{idempotency.ErrKeyReused, problem.New(problem.IdempotencyKeyReused, "This Idempotency-Key was used for another request. Nothing was done.")},
	{charge.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{webhook.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{merchant.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{checkout.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{inventory.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{order.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{delivery.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{outbox.ErrNoRecovery, problem.New(problem.NotFound, detailNotFound)},
	{delivery.ErrNoEndpoint, problem.New(problem.NotFound, detailNotFound)},
	{delivery.ErrDisabled, problem.New(problem.InvalidStatus, "The webhook endpoint is disabled. Set it again first.")},
	{checkout.ErrOver, problem.New(problem.InvalidStatus, "The checkout has ended.")},
	{charge.ErrUnknownPSP, problem.Invalid("psp", messageUnknownPSP)},
	{charge.ErrInvalidStatus, problem.New(problem.InvalidStatus, "The payment's status does not allow this.")},
	{charge.ErrCaptured, problem.New(problem.PaymentCaptured, "The payment is captured and can only be refunded.")},
	{charge.ErrCaptureRefused, problem.New(problem.CaptureRefused, "The payment service provider refused the capture. Another attempt needs a new Idempotency-Key.")},
	{charge.ErrCheckoutPending, problem.New(problem.CheckoutPending, "The payment's checkout is still open.")},
	{payment.ErrAmountTooLarge, problem.New(problem.AmountTooLarge, "The amount is more than what is left of this payment.")},
	{payment.ErrDisputed, problem.New(problem.PaymentDisputed, "The payment is disputed and can't be refunded now.")},
	{merchant.ErrTooManyKeys, problem.New(problem.TooManyKeys, "The merchant has as many working keys as it may. Revoke one first.")},
	{audit.ErrNotFound, problem.New(problem.NotFound, detailNotFound)},
	{audit.ErrUnknownPSP, problem.Invalid("psp", "has no list of charges here")},
	{audit.ErrUnknownFormat, problem.Invalid("psp", "has no settlement format here")},
	{store.ErrCursor, problem.Invalid("cursor", "is none that this list gave out")},
}

// problemOf is the problem that an error is told as; ok is false for one that no
// client may hear of.
func problemOf(err error) (p *problem.Error, ok bool) {
	if p, ok := errors.AsType[*problem.Error](err); ok {
		return p, true
	}
	if e, ok := errors.AsType[*charge.InProgressError](err); ok {
		return &problem.Error{Code: problem.IdempotencyInProgress, Detail: "The first request with this Idempotency-Key is still running.", RetryAfter: max(e.RetryAfter, time.Nanosecond)}, true
	}
	if e, ok := errors.AsType[*charge.ReferenceInUseError](err); ok {
		return &problem.Error{Code: problem.ReferenceInUse, Detail: "Another payment with this reference is live or captured.", PaymentID: string(e.PaymentID)}, true
	}
	if e, ok := errors.AsType[*audit.HeaderError](err); ok {
		return problem.Invalid("file", e.Reason), true
	}
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.problem, true
		}
	}
	return nil, false
}

// unavailableFor is when to repeat a request that got no answer.
const unavailableFor = time.Second

func unavailable() *problem.Error {
	return &problem.Error{Code: problem.Unavailable, Detail: "Repeat the request with the same key.", RetryAfter: unavailableFor}
}

// failed is the answer to an error. One that no client may hear of is logged here
// and nowhere else.
func (h *Handler) failed(ctx context.Context, c *call, err error) answer {
	p, known := problemOf(err)
	if !known {
		h.Log.ErrorContext(ctx, "request failed", "route", c.template(), "payment_id", string(c.paymentID), "reason", err.Error())
		p = unavailable()
	}
	if id := payment.ID(p.PaymentID); c.paymentID == "" && id.WellFormed() {
		c.paymentID = id // the one that is in the way
	}
	return refusal(p)
}
