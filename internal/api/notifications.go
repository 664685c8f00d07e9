package api

import (
	"context"
	"net/http"

	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/store"
)

const pathNotifications = "/v1/notifications"

// Notifications reads what buyers were told.
type Notifications interface {
	// ListByCheckout is all of a checkout, a handful at most; none of another merchant's.
	ListByCheckout(ctx context.Context, merchant, checkout string) ([]notification.Notification, error)
}

func (h *Handler) notificationRoutes() []route {
	return []route{{http.MethodGet, pathNotifications, merchant.RoleMerchant, h.listNotifications}}
}

var ruleCheckoutID = textRule{len(checkout.IDPrefix) + 26, checkout.WellFormed, "must be the id of a checkout"}

// listNotifications lists what a buyer was told. All of it is one page, so there
// is no cursor that it could have given out.
func (h *Handler) listNotifications(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	id, err := queryText(q, "checkout", ruleCheckoutID)
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, scanLimit)
	if err != nil {
		return answer{}, err
	}
	if at.cursor != "" {
		return answer{}, store.ErrCursor
	}
	told, err := h.Notifications.ListByCheckout(ctx, c.principal.MerchantID, id)
	if err != nil {
		return answer{}, err
	}
	return page(told, "", notification.Notification.View)
}
