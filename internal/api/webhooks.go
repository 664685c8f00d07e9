package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/problem"
	"github.com/kessai/kessai/internal/webhook"
)

const pathWebhooks = "/v1/webhooks"

func (h *Handler) webhookRoutes() []route {
	return []route{
		{http.MethodGet, pathWebhooks, merchant.RoleOperator, h.listWebhooks},
		{http.MethodGet, pathWebhooks + "/{id}", merchant.RoleOperator, h.getWebhook},
		{http.MethodPost, pathWebhooks + "/{id}/replay", merchant.RoleOperator, h.replayWebhook},
	}
}

// webhookView is a notification as operators see it, without its body.
type webhookView struct {
	ID         string         `json:"id"`
	PSP        string         `json:"psp"`
	EventID    string         `json:"event_id"`
	Type       *string        `json:"type"`
	Status     webhook.Status `json:"status"`
	PaymentID  *payment.ID    `json:"payment_id"`
	ReceivedAt time.Time      `json:"received_at"`
}

func viewWebhook(it webhook.Item) webhookView {
	v := webhookView{ID: it.ID(), PSP: it.PSP, EventID: it.EventID, Status: it.Status, ReceivedAt: it.ReceivedAt}
	if it.Type != "" {
		v.Type = &it.Type
	}
	if it.PaymentID != "" {
		v.PaymentID = &it.PaymentID
	}
	return v
}

func (h *Handler) listWebhooks(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	status := webhook.Status(q.Get("status"))
	if len(q["status"]) != 1 || !slices.Contains(webhook.Statuses(), status) {
		return answer{}, problem.Invalid("status", "must be one of received, applied, ignored, quarantined")
	}
	at, err := readPaging(q, readLimit)
	if err != nil {
		return answer{}, err
	}
	items, next, err := h.Inbox.Webhooks(ctx, status, at.cursor, at.limit)
	if err != nil {
		return answer{}, err
	}
	return page(items, next, viewWebhook)
}

// item reads the notification of the path.
func (h *Handler) item(ctx context.Context, c *call) (webhook.Item, error) {
	psp, eventID, ok := webhook.ParseID(c.params["id"])
	if !ok || psp == "" || eventID == "" {
		return webhook.Item{}, webhook.ErrNotFound
	}
	it, err := h.Inbox.Item(ctx, psp, eventID)
	c.paymentID = it.PaymentID
	return it, err
}

func (h *Handler) getWebhook(ctx context.Context, c *call) (answer, error) {
	it, err := h.item(ctx, c)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewWebhook(it))
}

// maxReplayRaces bounds how often a replay decides anew because the item moved on.
const maxReplayRaces = 8

// replayWebhook drives a notification on again, once for each key. It is applied
// in the background.
func (h *Handler) replayWebhook(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	for range maxReplayRaces {
		replayed, err := h.reopen(ctx, c)
		if _, lost := errors.AsType[*journal.Conflict](err); lost {
			continue
		}
		if err != nil {
			return answer{}, err
		}
		it, err := h.item(ctx, c)
		if err != nil {
			return answer{}, err
		}
		a, err := accepted(viewWebhook(it), pathWebhooks+"/"+it.ID())
		if err != nil {
			return answer{}, err
		}
		return a.replayed(replayed), nil
	}
	return answer{}, journal.ErrBusy
}

// reopen is one attempt: it finds the record of an earlier request, or makes the
// item received again together with a record. It returns a *journal.Conflict when
// it has to be decided anew.
func (h *Handler) reopen(ctx context.Context, c *call) (replayed bool, err error) {
	it, err := h.item(ctx, c)
	if err != nil {
		return false, err
	}
	same, err := fingerprint(struct{}{})
	if err != nil {
		return false, err
	}
	now := h.Now()
	claim, done, err := idempotency.Begin(ctx, h.Inbox, idempotency.Fresh(c.scope(), same, it.ID(), now), h.Settings.IdempotencyTTL)
	if err != nil || done != nil {
		return done != nil, err
	}
	it.WaitUntil = now.Add(h.Settings.Webhooks.Wait)
	it.DueAt = now.Add(h.Settings.Webhooks.ReconcileAfter)
	return false, h.Inbox.Reopen(ctx, it, *claim)
}
