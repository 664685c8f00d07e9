package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store"
)

func (h *Handler) refundRoutes() []route {
	return []route{
		{http.MethodPost, pathPayments + "/{id}/refunds", merchant.RoleMerchant, h.createRefund},
		{http.MethodGet, pathPayments + "/{id}/refunds", merchant.RoleMerchant, h.listRefunds},
	}
}

// newRefund is the body of a refund. Amount is 0 for all that is left.
type newRefund struct {
	Amount int64  `json:"amount,omitzero"`
	Reason string `json:"reason,omitzero"`
}

func (h *Handler) createRefund(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	r := newRefund{Amount: f.integer("amount", optional, 1, money.Max), Reason: f.text("reason", optional, ruleReason)}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	request, err := c.chargeRequest(r)
	if err != nil {
		return answer{}, err
	}
	result, err := h.Charges.Refund(ctx, charge.RefundRequest{
		Request: request, PaymentID: payment.ID(c.params["id"]), Amount: r.Amount, Reason: r.Reason,
	})
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusCreated, result.Payment.RefundView(result.Refund()))
	if err != nil {
		return answer{}, err
	}
	return a.at(locationOf(result.Payment.ID) + "/refunds").replayed(result.Replayed), nil
}

// listRefunds pages through the refunds that a payment holds, oldest first. The
// cursor is the id of the last one shown.
func (h *Handler) listRefunds(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, scanLimit)
	if err != nil {
		return answer{}, err
	}
	p, err := h.own(ctx, c)
	if err != nil {
		return answer{}, err
	}
	rest := p.Refunds
	if at.cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(at.cursor)
		i := slices.IndexFunc(rest, func(r payment.Refund) bool { return string(r.ID) == string(last) })
		if err != nil || i < 0 {
			return answer{}, store.ErrCursor
		}
		rest = rest[i+1:]
	}
	next := ""
	if len(rest) > at.limit {
		rest = rest[:at.limit]
		next = base64.RawURLEncoding.EncodeToString([]byte(rest[at.limit-1].ID))
	}
	return page(rest, next, p.RefundView)
}
