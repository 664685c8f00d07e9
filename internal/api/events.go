package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/delivery"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/problem"
	"github.com/kessai/kessai/internal/store/payments"
)

const (
	pathEvents   = "/v1/events"
	pathEndpoint = "/v1/webhook_endpoint"
)

// Deliveries is how merchants get their events.
type Deliveries interface {
	SetEndpoint(ctx context.Context, merchantID, url string, types []string) (delivery.Endpoint, payment.Secret, error)
	RotateSecret(ctx context.Context, r delivery.Request) (delivery.Endpoint, payment.Secret, bool, error)
	Redeliver(ctx context.Context, r delivery.Request, eventID string) (delivery.Delivery, bool, error)
	RedeliverRange(ctx context.Context, r delivery.Request, q delivery.FeedQuery) (n int, cursor string, replayed bool, err error)
	Test(ctx context.Context, merchantID, id string) (delivery.Attempt, error)
}

// Feed reads endpoints, events and deliveries.
type Feed interface {
	Endpoint(ctx context.Context, merchantID string) (delivery.Endpoint, error)
	Feed(ctx context.Context, q delivery.FeedQuery) ([]outbox.Event, string, error)
	Event(ctx context.Context, eventID string) (outbox.Event, error)
	Delivery(ctx context.Context, merchantID, eventID string) (delivery.Delivery, error)
}

func (h *Handler) eventRoutes() []route {
	if h.Deliveries == nil {
		return nil
	}
	return []route{
		{http.MethodPut, pathEndpoint, merchant.RoleMerchant, h.setEndpoint},
		{http.MethodGet, pathEndpoint, merchant.RoleMerchant, h.getEndpoint},
		{http.MethodPost, pathEndpoint + "/rotate", merchant.RoleMerchant, h.rotateEndpoint},
		{http.MethodPost, pathEndpoint + "/test", merchant.RoleMerchant, h.testEndpoint},
		{http.MethodGet, pathEvents, merchant.RoleMerchant, h.readFeed},
		{http.MethodGet, pathResend, merchant.RoleOperator, h.getResend}, // before the path with an id
		{http.MethodPost, pathResend, merchant.RoleOperator, h.resendEvents},
		{http.MethodGet, pathEvents + "/{id}", merchant.RoleMerchant, h.getEvent},
		{http.MethodPost, pathEvents + "/{id}/redeliver", merchant.RoleMerchant, h.redeliverEvent},
		{http.MethodPost, pathEvents + "/redeliver", merchant.RoleOperator, h.redeliverEvents},
	}
}

// endpointView is an endpoint as its merchant sees it. Secret is null except in
// the answer that made it.
type endpointView struct {
	Object    string    `json:"object"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"`
	Enabled   bool      `json:"enabled"`
	Secret    *string   `json:"secret"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func viewEndpoint(e delivery.Endpoint, secret payment.Secret) endpointView {
	v := endpointView{Object: "webhook_endpoint", URL: e.URL, Events: e.Events, Enabled: !e.Disabled, CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC()}
	if secret != "" {
		text := secret.Reveal()
		v.Secret = &text
	}
	return v
}

const (
	// maxEndpointURL is the longest address, in characters.
	maxEndpointURL = 2048
	// maxEventTypes bounds an endpoint's list; there are fewer types.
	maxEventTypes = 50
)

var ruleEventType = textRule{64, func(s string) bool {
	return s == delivery.AllTypes || validEventType(s)
}, `must be "*" or a type such as payment.captured`}

// validEventType reports whether s has the form of a type: a thing, a dot, a word.
func validEventType(s string) bool {
	thing, word, ok := strings.Cut(s, ".")
	if !ok || word == "" || !slices.Contains([]string{"payment", "refund", "checkout"}, thing) {
		return false
	}
	return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// setEndpoint is safe to repeat, so it needs no key.
func (h *Handler) setEndpoint(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	url := f.text("url", required, textRule{
		maxEndpointURL, func(s string) bool { return h.CheckEndpoint(s) == nil },
		"must be a public https address without credentials or fragment",
	})
	types := f.texts("events", ruleEventType, maxEventTypes)
	if err := f.done(); err != nil {
		return answer{}, err
	}
	e, secret, err := h.Deliveries.SetEndpoint(ctx, c.principal.MerchantID, url, types)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewEndpoint(e, secret))
}

// texts is a list of texts, each once; all types when it is left out.
func (f *form) texts(name string, rule textRule, most int) []string {
	v := f.take(name, optional)
	if v == nil {
		return []string{delivery.AllTypes}
	}
	if v.kind != jsontext.KindBeginArray || len(v.elements) < 1 || len(v.elements) > most {
		f.fault(name, "must be a list with something in it")
		return nil
	}
	var list []string
	for _, element := range v.elements {
		if element.kind != jsontext.KindString || !rule.allows(element.text) {
			f.fault(name, rule.message)
			return nil
		}
		if !slices.Contains(list, element.text) {
			list = append(list, element.text)
		}
	}
	return list
}

func (h *Handler) getEndpoint(ctx context.Context, c *call) (answer, error) {
	e, err := h.Feed.Endpoint(ctx, c.principal.MerchantID)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewEndpoint(e, ""))
}

// noBody refuses fields on a route that takes none.
func (c *call) noBody() error {
	f, err := c.readForm()
	if err != nil {
		return err
	}
	return f.done()
}

// deliveryRequest is the request of a route without fields.
func (c *call) deliveryRequest() (delivery.Request, error) {
	if err := c.noBody(); err != nil {
		return delivery.Request{}, err
	}
	print, err := fingerprint(struct{}{})
	return delivery.Request{Scope: c.scope(), Fingerprint: print}, err
}

func (h *Handler) rotateEndpoint(ctx context.Context, c *call) (answer, error) {
	r, err := c.deliveryRequest()
	if err != nil {
		return answer{}, err
	}
	e, secret, replayed, err := h.Deliveries.RotateSecret(ctx, r)
	if err != nil {
		return answer{}, err
	}
	a, err := reply(http.StatusOK, viewEndpoint(e, secret))
	if err != nil {
		return answer{}, err
	}
	return a.replayed(replayed), nil
}

// attemptView is one post as its merchant sees it.
type attemptView struct {
	At         time.Time `json:"at"`
	HTTPStatus *int      `json:"http_status"`
	Reason     *string   `json:"reason"`
}

func viewAttempt(a delivery.Attempt) attemptView {
	v := attemptView{At: a.At.UTC()}
	if a.Status != 0 {
		v.HTTPStatus = &a.Status
	}
	if a.Reason != "" {
		v.Reason = &a.Reason
	}
	return v
}

func (h *Handler) testEndpoint(ctx context.Context, c *call) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	// The message has the key's own id, so that a repeat is a repeat to the merchant too.
	a, err := h.Deliveries.Test(ctx, c.principal.MerchantID, c.scope().Hash()[:26])
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, viewAttempt(a))
}

// eventView is an event in the feed. Delivery is null unless one event is read.
type eventView struct {
	ID       string         `json:"id"`
	Object   string         `json:"object"`
	Schema   int            `json:"schema"`
	Type     string         `json:"type"`
	Subject  string         `json:"subject"`
	Version  int64          `json:"version"`
	At       time.Time      `json:"at"`
	Source   string         `json:"source"`
	Data     map[string]any `json:"data"`
	Delivery *deliveryView  `json:"delivery"`
}

// deliveryView is how far an event is on its way.
type deliveryView struct {
	Status   delivery.Status `json:"status"`
	Attempts int             `json:"attempts"`
	Log      []attemptView   `json:"log"`
	NextAt   *time.Time      `json:"next_at"`
}

func viewEvent(e outbox.Event) eventView {
	return eventView{
		ID: e.ID, Object: "event", Schema: outbox.Schema, Type: e.Type, Subject: e.Subject, Version: e.Version,
		At: e.At.UTC(), Source: e.Source, Data: e.Data,
	}
}

func viewDelivery(d delivery.Delivery) *deliveryView {
	v := &deliveryView{Status: d.Status, Attempts: d.Attempts, Log: make([]attemptView, 0, len(d.Log))}
	for _, a := range d.Log {
		v.Log = append(v.Log, viewAttempt(a))
	}
	if !d.DueAt.IsZero() {
		at := d.DueAt.UTC()
		v.NextAt = &at
	}
	return v
}

// feedStart is how far back the feed begins when nobody says.
const feedStart = 30 * 24 * time.Hour

// readFeed reads the merchant's feed, oldest first, from the beginning or after
// an event that the merchant has seen.
func (h *Handler) readFeed(ctx context.Context, c *call) (answer, error) {
	q, err := c.query()
	if err != nil {
		return answer{}, err
	}
	at, err := readPaging(q, readLimit)
	if err != nil {
		return answer{}, err
	}
	now := h.Now()
	feed := delivery.FeedQuery{MerchantID: c.principal.MerchantID, From: now.Add(-feedStart), To: now, Cursor: at.cursor, Limit: at.limit}
	if after := q.Get("after"); after != "" && at.cursor == "" {
		seen, err := h.ownEvent(ctx, c, after)
		if err != nil {
			return answer{}, problem.Invalid("after", "is no event of this merchant")
		}
		feed.Cursor = payments.FeedAfter(c.principal.MerchantID, seen)
	}
	kind := q.Get("type")
	if kind != "" && !validEventType(kind) {
		return answer{}, problem.Invalid("type", "must be a type such as payment.captured")
	}
	events, next, err := h.Feed.Feed(ctx, feed)
	if err != nil {
		return answer{}, err
	}
	events = slices.DeleteFunc(events, func(e outbox.Event) bool { return kind != "" && e.Type != kind })
	return page(events, next, viewEvent)
}

func (h *Handler) ownEvent(ctx context.Context, c *call, id string) (outbox.Event, error) {
	e, err := h.Feed.Event(ctx, id)
	if err == nil && e.MerchantID != c.principal.MerchantID {
		err = delivery.ErrNotFound
	}
	return e, err
}

func (h *Handler) getEvent(ctx context.Context, c *call) (answer, error) {
	e, err := h.ownEvent(ctx, c, c.params["id"])
	if err != nil {
		return answer{}, err
	}
	v := viewEvent(e)
	d, err := h.Feed.Delivery(ctx, c.principal.MerchantID, e.ID)
	switch {
	case err == nil:
		v.Delivery = viewDelivery(d)
	case !errors.Is(err, delivery.ErrNotFound):
		return answer{}, err
	}
	return reply(http.StatusOK, v)
}

func (h *Handler) redeliverEvent(ctx context.Context, c *call) (answer, error) {
	r, err := c.deliveryRequest()
	if err != nil {
		return answer{}, err
	}
	d, replayed, err := h.Deliveries.Redeliver(ctx, r, c.params["id"])
	if err != nil {
		return answer{}, err
	}
	v := viewEvent(d.Event)
	v.Delivery = viewDelivery(d)
	a, err := accepted(v, pathEvents+"/"+d.Event.ID)
	if err != nil {
		return answer{}, err
	}
	return a.replayed(replayed), nil
}

// redelivery is the body of an operator's redelivery of a time.
type redelivery struct {
	MerchantID string `json:"merchant_id"`
	From       string `json:"from"`
	To         string `json:"to"`
	Cursor     string `json:"cursor,omitzero"`
}

// redelivered says how many events of a page go out again, and where to go on.
type redelivered struct {
	Object     string  `json:"object"`
	Events     int     `json:"events"`
	NextCursor *string `json:"next_cursor"`
}

var ruleTime = textRule{64, func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil }, "must be a time such as 2026-01-02T03:04:05Z"}

func (h *Handler) redeliverEvents(ctx context.Context, c *call) (answer, error) {
	f, err := c.readForm()
	if err != nil {
		return answer{}, err
	}
	body := redelivery{
		MerchantID: f.text("merchant_id", required, textRule{64, merchant.ValidID, "must be a merchant's id"}),
		From:       f.text("from", required, ruleTime), To: f.text("to", required, ruleTime),
		Cursor: f.text("cursor", optional, textRule{maxCursor, nil, "is none that was given out"}),
	}
	if err := f.done(); err != nil {
		return answer{}, err
	}
	print, err := fingerprint(body)
	if err != nil {
		return answer{}, err
	}
	from, _ := time.Parse(time.RFC3339, body.From) // both were checked
	to, _ := time.Parse(time.RFC3339, body.To)
	n, next, replayed, err := h.Deliveries.RedeliverRange(ctx, delivery.Request{Scope: c.scope(), Fingerprint: print},
		delivery.FeedQuery{MerchantID: body.MerchantID, From: from, To: to, Cursor: body.Cursor, Limit: maxLimit})
	if err != nil {
		return answer{}, err
	}
	v := redelivered{Object: "redelivery", Events: n}
	if next != "" {
		v.NextCursor = &next
	}
	a, err := reply(http.StatusOK, v)
	if err != nil {
		return answer{}, err
	}
	return a.replayed(replayed), nil
}
