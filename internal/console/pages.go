package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kessai/kessai/internal/audit"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// pageSize is how many rows a page shows.
const pageSize = 50

// frame is what every page has.
type frame struct {
	Title string
	Token string // of this session's forms
	Key   string // idempotency key of the page's action
}

func (h *Handler) frame(r request, title string) frame {
	return frame{Title: title, Token: r.session.token(), Key: h.config.NewULID()}
}

func missing(err error) bool {
	return errors.Is(err, errNotFound) || errors.Is(err, journal.ErrNotFound) ||
		errors.Is(err, checkout.ErrNotFound) || errors.Is(err, webhook.ErrNotFound) ||
		errors.Is(err, audit.ErrNotFound)
}

// find leads to the page of whatever has that id.
func (h *Handler) find(r request) reply {
	id := strings.TrimSpace(r.query.Get("id"))
	for prefix, section := range map[string]string{payment.IDPrefix: "payments", checkout.IDPrefix: "checkouts", "wh_": "webhooks", audit.IDPrefix: "reconciliations"} {
		if strings.HasPrefix(id, prefix) {
			return reply{status: http.StatusSeeOther, location: Path + "/" + section + "/" + url.PathEscape(id)}
		}
	}
	return reply{status: http.StatusNotFound, page: findMarkup(h.frame(r, "Find"), id)}
}

// row is one journal row as the page shows it.
type row struct {
	Version      int64
	At           time.Time
	Type, Source string
	Data         string
}

func rows(list []payments.Row) ([]row, error) {
	shown := make([]row, 0, len(list))
	for _, r := range list {
		data, err := json.Marshal(r.Data)
		if err != nil {
			return nil, fmt.Errorf("show journal row: %w", err)
		}
		shown = append(shown, row{r.Version, r.At, r.Type, string(r.Source), string(data)})
	}
	return shown, nil
}

type paymentPage struct {
	frame
	Payment    payment.View
	MerchantID string
	CheckoutID string
	DueAt      time.Time
	Stranded   bool
	Rows       []row
	Next       string
}

func (h *Handler) payment(ctx context.Context, r request, id payment.ID) (reply, error) {
	if !id.WellFormed() {
		return reply{}, errNotFound
	}
	p, err := h.config.Table.Payment(ctx, id)
	if err != nil {
		return reply{}, err
	}
	list, next, err := h.config.Table.PaymentRows(ctx, id, r.query.Get("cursor"), pageSize)
	if err != nil {
		return reply{}, err
	}
	shown, err := rows(list)
	page := paymentPage{
		frame: h.frame(r, string(id)), Payment: p.PublicView(), MerchantID: p.MerchantID, CheckoutID: p.CheckoutID,
		DueAt: p.DueAt, Stranded: p.Stranded(), Rows: shown, Next: next,
	}
	return reply{status: http.StatusOK, page: paymentMarkup(page)}, err
}

type checkoutPage struct {
	frame
	Checkout   checkout.View
	MerchantID string
	Direction  checkout.Direction
	DueAt      time.Time
	Reason     string // why it needs review
	Resumable  bool
	Rows       []row
}

func (h *Handler) checkout(ctx context.Context, r request, id string) (reply, error) {
	result, err := h.config.Checkouts.Get(ctx, "", id)
	if err != nil {
		return reply{}, err
	}
	list, _, err := h.config.Table.CheckoutRows(ctx, id, "", pageSize)
	if err != nil {
		return reply{}, err
	}
	shown, err := rows(list)
	c := result.Checkout
	page := checkoutPage{
		frame: h.frame(r, id), Checkout: c.View(result.Payment.PublicView()), MerchantID: c.MerchantID, Direction: c.Direction,
		DueAt: c.DueAt, Reason: reasonOf(list, c.Version), Resumable: c.Status != checkout.StatusCompleted && c.Status != checkout.StatusFailed, Rows: shown,
	}
	return reply{status: http.StatusOK, page: checkoutMarkup(page), payment: c.PaymentID}, err
}

// reasonOf is what the row of a version gives as its reason, "" for none.
func reasonOf(list []payments.Row, version int64) string {
	for _, r := range list {
		if reason, ok := r.Data["reason"].(string); ok && r.Version == version {
			return reason
		}
	}
	return ""
}

type webhookPage struct {
	frame
	Statuses []webhook.Status
	Status   webhook.Status
	Items    []webhook.Item
	Next     string
	Item     *webhook.Item
}

// webhook shows one item, or the list of a status.
func (h *Handler) webhook(ctx context.Context, r request, id string) (reply, error) {
	page := webhookPage{frame: h.frame(r, "Webhooks"), Statuses: webhook.Statuses()}
	if id == "" {
		page.Status = webhook.Status(r.query.Get("status"))
		if page.Status == "" {
			page.Status = webhook.StatusQuarantined
		}
		if !slices.Contains(page.Statuses, page.Status) {
			return reply{status: http.StatusBadRequest, page: statusMarkup(page)}, nil
		}
		var err error
		page.Items, page.Next, err = h.config.Table.Webhooks(ctx, page.Status, r.query.Get("cursor"), pageSize)
		return reply{status: http.StatusOK, page: webhookMarkup(page)}, err
	}
	it, err := h.item(ctx, id)
	page.Item = &it
	return reply{status: http.StatusOK, page: webhookMarkup(page), payment: it.PaymentID}, err
}

func (h *Handler) item(ctx context.Context, id string) (webhook.Item, error) {
	name, eventID, ok := webhook.ParseID(id)
	if !ok {
		return webhook.Item{}, errNotFound
	}
	return h.config.Table.Item(ctx, name, eventID)
}

// operator is whose idempotency keys the console's are.
const operator = "operator"

// actionOf is the idempotency key of an action: that of the page it was started from.
func (h *Handler) actionOf(r request) charge.Request {
	scope := idempotency.Scope{MerchantID: operator, Method: r.method, Route: Path + "/" + r.path, Key: r.form.Get("key")}
	return charge.Request{Scope: scope, Fingerprint: idempotency.Fingerprint(nil)}
}

func (h *Handler) replay(ctx context.Context, r request, id string) (reply, error) {
	it, err := h.item(ctx, id)
	if err != nil {
		return reply{}, err
	}
	now, action := h.config.Now(), h.actionOf(r)
	it.DueAt, it.WaitUntil = now, now.Add(h.config.Webhooks.Wait)
	err = h.config.Table.Reopen(ctx, it, idempotency.Claim{Record: idempotency.Record{
		MerchantID: operator, Hash: action.Scope.Hash(), Fingerprint: action.Fingerprint, ResourceID: id, CreatedAt: now, InProgressUntil: now,
	}})
	if _, done := errors.AsType[*journal.Conflict](err); done {
		err = nil // clicked twice, or somebody else was faster: the page shows what is
	}
	return reply{status: http.StatusSeeOther, location: Path + "/webhooks/" + id, payment: it.PaymentID}, err
}

func (h *Handler) resume(ctx context.Context, r request, id string) (reply, error) {
	result, err := h.config.Checkouts.Resume(ctx, h.actionOf(r), id)
	if errors.Is(err, checkout.ErrOver) {
		err = nil // it ended meanwhile: the page shows how
	}
	return reply{status: http.StatusSeeOther, location: Path + "/checkouts/" + url.PathEscape(id), payment: result.Payment.ID}, err
}
