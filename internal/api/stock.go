package api

import (
	"context"
	"net/http"

	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/problem"
)

const pathStock = "/v1/stock"

// Stock is what merchants do with their stock.
type Stock interface {
	Set(ctx context.Context, merchant, sku string, available int64) error
	// Get reads consistently; a SKU that the merchant never set is inventory.ErrNotFound.
	Get(ctx context.Context, merchant, sku string) (inventory.Stock, error)
}

func (h *Handler) stockRoutes() []route {
	return []route{
		{http.MethodPut, pathStock + "/{sku}", merchant.RoleMerchant, h.setStock},
		{http.MethodGet, pathStock + "/{sku}", merchant.RoleMerchant, h.getStock},
	}
}

// maxAvailable keeps sums of stock far from overflow and is more than any shop has.
const maxAvailable = 999_999_999

// setStock makes the number of available pieces what the merchant counted. It is
// safe to repeat, so it needs no key.
func (h *Handler) setStock(ctx context.Context, c *call) (answer, error) {
	sku := c.params["sku"]
	if cardLike(sku) {
		return answer{}, cardRejected()
	}
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	available := f.integer("available", required, 0, maxAvailable)
	if err := f.done(); err != nil {
		return answer{}, err
	}
	if !ruleSKU.allows(sku) {
		return answer{}, problem.Invalid("sku", ruleSKU.message)
	}
	if err := h.Stock.Set(ctx, c.principal.MerchantID, sku, available); err != nil {
		return answer{}, err
	}
	return h.getStock(ctx, c)
}

func (h *Handler) getStock(ctx context.Context, c *call) (answer, error) {
	sku := c.params["sku"]
	if !ruleSKU.allows(sku) {
		return answer{}, inventory.ErrNotFound
	}
	stock, err := h.Stock.Get(ctx, c.principal.MerchantID, sku)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, stock)
}
