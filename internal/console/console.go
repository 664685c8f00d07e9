/*
Package console is the operator's pages: what waits for a person, what was
quarantined, what is due, one payment or checkout with its journal, what
reconciliations found, and the two things an operator may do, replay a webhook and
drive a checkout on.

Pages are rendered here, without scripts. An operator comes in with the operator's
key, as a Bearer header or through the login page, which turns it into a cookie
that ends after sessionLife and cannot be made without the key. A form carries a
token bound to that session, and the idempotency key of its action, so that a
second click has no second effect.

No page shows a redirect address, a client secret, a payment token, or the body
of a webhook.
*/
package console

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	g "maragu.dev/gomponents"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// Table is what the pages read, and the replay of a webhook.
type Table interface {
	Journals
	Queues
	Inbox
	Reconciliations
}

// Journals are payments and what happened to them and to checkouts.
type Journals interface {
	Payment(ctx context.Context, id payment.ID) (payment.Payment, error)
	PaymentRows(ctx context.Context, id payment.ID, cursor string, limit int) ([]payments.Row, string, error)
	CheckoutRows(ctx context.Context, id, cursor string, limit int) ([]payments.Row, string, error)
}

// Queues are what waits: for a person, and for the sweep.
type Queues interface {
	InReview(ctx context.Context, limit int) (waiting []payments.Review, more bool, err error)
	DuePage(ctx context.Context, shard int, at time.Time, limit int, cursor string) ([]reconcile.Due, string, error)
	Shards() int
}

// Inbox is the notifications of PSPs.
type Inbox interface {
	Webhooks(ctx context.Context, status webhook.Status, cursor string, limit int) ([]webhook.Item, string, error)
	Item(ctx context.Context, psp, eventID string) (webhook.Item, error)
	Reopen(ctx context.Context, it webhook.Item, claim idempotency.Claim) error
}

// Checkouts reads checkouts and drives them on.
type Checkouts interface {
	Get(ctx context.Context, merchantID, id string) (checkout.Result, error)
	Resume(ctx context.Context, r charge.Request, id string) (checkout.Result, error)
}

// Config is what the console works with.
type Config struct {
	Table     Table
	Checkouts Checkouts
	// Keys are the operator's, several while one is being replaced.
	Keys     func(ctx context.Context) ([]string, error)
	Webhooks webhook.Settings
	NewULID  func() string
	Now      func() time.Time
	Log      *slog.Logger
	// Insecure lets the session's cookie travel without TLS, for a local run.
	Insecure bool
}

// Handler serves the pages. Safe for concurrent use.
type Handler struct {
	config Config
}

// New is a Handler.
func New(c Config) *Handler { return &Handler{c} }

// Path is where the console begins.
const Path = "/console"

// request is one request with who makes it.
type request struct {
	method  string
	path    string // below Path, without the slash
	section string // its first part
	id      string // its second
	action  string // its rest
	query   url.Values
	form    url.Values
	session session
}

// reply is what a page answers.
type reply struct {
	status   int
	page     g.Node
	location string // of a redirect
	cookie   string
	// payment is that of what the page is about, for the log line, "" for none.
	payment payment.ID
}

// Handle serves one request of an HTTP API (payload format 2.0).
func (h *Handler) Handle(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	started := h.config.Now()
	r, err := h.read(ctx, e)
	var a reply
	switch {
	case err != nil:
		a = h.failure(ctx, r, err)
	case r.path == "login" && r.method == http.MethodPost:
		a = h.login(ctx, r)
	case r.session.refused:
		a = reply{status: http.StatusUnauthorized, page: loginMarkup(true)}
	case r.session.key == "":
		a = reply{status: http.StatusOK, page: loginMarkup(false)}
	default:
		if a, err = h.serve(ctx, r); err != nil {
			a = h.failure(ctx, r, err)
		}
	}
	attrs := append(r.named(), "status", a.status, "duration_ms", h.config.Now().Sub(started).Milliseconds())
	if a.payment != "" {
		attrs = append(attrs, "payment_id", string(a.payment))
	}
	h.config.Log.InfoContext(ctx, "console", attrs...)
	return h.render(ctx, a), nil
}

func (h *Handler) read(ctx context.Context, e events.APIGatewayV2HTTPRequest) (request, error) {
	r := request{method: e.RequestContext.HTTP.Method, path: strings.Trim(strings.TrimPrefix(e.RawPath, Path), "/")}
	r.section, r.id, _ = strings.Cut(r.path, "/")
	r.id, r.action, _ = strings.Cut(r.id, "/")
	body := e.Body
	if e.IsBase64Encoded {
		raw, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return r, errBadRequest
		}
		body = string(raw)
	}
	var err error
	if r.query, err = url.ParseQuery(e.RawQueryString); err != nil {
		return r, errBadRequest
	}
	if r.form, err = url.ParseQuery(body); err != nil || len(body) > maxForm {
		return r, errBadRequest
	}
	r.session, err = h.sessionOf(ctx, e)
	return r, err
}

// maxForm is far above what any form here sends.
const maxForm = 8 << 10

var (
	errBadRequest = errors.New("console: malformed request")
	errNotFound   = errors.New("console: no such page")
	errForged     = errors.New("console: form is not from this session")
)

// serve is the pages, by path.
func (h *Handler) serve(ctx context.Context, r request) (reply, error) {
	section, id, action := r.section, r.id, r.action
	if r.method == http.MethodPost && !r.session.owns(r.form.Get("token")) {
		return reply{}, errForged
	}
	switch {
	case r.method == http.MethodPost && section == "logout":
		return reply{status: http.StatusSeeOther, location: Path, cookie: h.cookie("", 0)}, nil
	case r.method == http.MethodPost && section == "webhooks" && action == "replay":
		return h.replay(ctx, r, id)
	case r.method == http.MethodPost && section == "checkouts" && action == "resume":
		return h.resume(ctx, r, id)
	case r.method != http.MethodGet && r.method != http.MethodHead || action != "":
		return reply{}, errNotFound
	}
	switch section {
	case "":
		return h.overview(ctx, r)
	case "find":
		return h.find(r), nil
	case "payments":
		return h.payment(ctx, r, payment.ID(id))
	case "checkouts":
		return h.checkout(ctx, r, id)
	case "webhooks":
		return h.webhook(ctx, r, id)
	case "reconciliations":
		return h.reconciliation(ctx, r, id)
	}
	return reply{}, errNotFound
}

// failure is the page of an error. Its words are ours.
func (h *Handler) failure(ctx context.Context, r request, err error) reply {
	switch {
	case errors.Is(err, errBadRequest), errors.Is(err, store.ErrCursor):
		return reply{status: http.StatusBadRequest, page: messageMarkup("The request is malformed.")}
	case errors.Is(err, errForged):
		return reply{status: http.StatusForbidden, page: messageMarkup("The form has expired. Go back, reload, and try again.")}
	case missing(err):
		return reply{status: http.StatusNotFound, page: messageMarkup("There is no such thing.")}
	}
	h.config.Log.ErrorContext(ctx, "console page failed", append(r.named(), "reason", err.Error())...)
	return reply{status: http.StatusServiceUnavailable, page: messageMarkup("The store gave no answer. Reload the page.")}
}

func (h *Handler) render(ctx context.Context, a reply) events.APIGatewayV2HTTPResponse {
	response := events.APIGatewayV2HTTPResponse{StatusCode: a.status, Headers: map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy":         "no-referrer",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	}}
	if a.cookie != "" {
		response.Cookies = []string{a.cookie}
	}
	if a.location != "" {
		response.Headers["Location"] = a.location
		return response
	}
	var page bytes.Buffer
	if err := a.page.Render(&page); err != nil {
		h.config.Log.ErrorContext(ctx, "console page not rendered", "reason", err.Error())
		response.StatusCode = http.StatusInternalServerError
		return response
	}
	response.Body = page.String()
	return response
}
