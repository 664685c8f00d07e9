package api

import (
	"context"
	"net/http"

	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/order"
)

const pathOrders = "/v1/orders"

// Orders reads orders. Another merchant's are order.ErrNotFound, or not in the list.
type Orders interface {
	Get(ctx context.Context, merchant, id string) (order.Order, error)
	// ListByReference reads a page, newest first. A malformed cursor is store.ErrCursor.
	ListByReference(ctx context.Context, merchant, reference, cursor string, limit int) (order.List, error)
}

func (h *Handler) orderRoutes() []route {
	return []route{
		{http.MethodGet, pathOrders, merchant.RoleMerchant, h.listOrders},
		{http.MethodGet, pathOrders + "/{id}", merchant.RoleMerchant, h.getOrder},
	}
}

func (h *Handler) getOrder(ctx context.Context, c *call) (answer, error) {
	o, err := h.Orders.Get(ctx, c.principal.MerchantID, c.params["id"])
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, o.View())
}

func (h *Handler) listOrders(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	reference, err := queryText(q, "reference", ruleReference)
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, readLimit)
	if err != nil {
		return answer{}, err
	}
	list, err := h.Orders.ListByReference(ctx, c.principal.MerchantID, reference, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(list.Orders, list.Cursor, order.Order.View)
}
