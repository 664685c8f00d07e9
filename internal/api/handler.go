package api

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/problem"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// Charges is the flow of payments.
type Charges interface {
	Create(ctx context.Context, r charge.CreateRequest) (charge.Result, error)
	Capture(ctx context.Context, r charge.CaptureRequest) (charge.Result, error)
	Cancel(ctx context.Context, r charge.CancelRequest) (charge.Result, error)
	Refund(ctx context.Context, r charge.RefundRequest) (charge.Result, error)
	// Payment reads consistently; another merchant's is charge.ErrNotFound.
	Payment(ctx context.Context, merchantID string, id payment.ID) (payment.Payment, error)
}

// Lists reads what is listed of payments. A malformed cursor is store.ErrCursor.
type Lists interface {
	PaymentRows(ctx context.Context, id payment.ID, cursor string, limit int) ([]payments.Row, string, error)
	PaymentsByReference(ctx context.Context, merchantID, reference, cursor string, limit int) ([]payment.Payment, string, error)
}

// Inbox is what operators do with notifications of PSPs.
type Inbox interface {
	// Item reads consistently, or returns webhook.ErrNotFound.
	Item(ctx context.Context, psp, eventID string) (webhook.Item, error)
	Webhooks(ctx context.Context, status webhook.Status, cursor string, limit int) ([]webhook.Item, string, error)
	// Record reads an idempotency record consistently, or returns idempotency.ErrNoRecord.
	Record(ctx context.Context, merchantID, hash string) (idempotency.Record, error)
	// Reopen makes an item received again together with the claim, or returns a *journal.Conflict.
	Reopen(ctx context.Context, it webhook.Item, claim idempotency.Claim) error
}

// Merchants is what operators do with merchants and keys.
type Merchants interface {
	Create(ctx context.Context, r merchant.Request, name string) (merchant.Issued, error)
	Rotate(ctx context.Context, r merchant.Request, merchantID string, overlap time.Duration) (merchant.Issued, error)
	Revoke(ctx context.Context, merchantID, prefix string) error
	Keys(ctx context.Context, merchantID, cursor string, limit int) ([]merchant.Key, string, error)
}

// Settings are the durations and names that the API needs.
type Settings struct {
	DefaultPSP     string   // of a payment that names none
	PSPs           []string // every name that a payment may give
	IdempotencyTTL time.Duration
	Webhooks       webhook.Settings // of a notification that is driven on again
}

// Config is what a Handler works with.
type Config struct {
	Charges   Charges
	Lists     Lists
	Inbox     Inbox
	Merchants Merchants

	Checkouts     Checkouts
	CheckoutLists CheckoutLists
	Stock         Stock
	Orders        Orders
	Notifications Notifications

	Deliveries Deliveries
	Recovery   Recovery
	Feed       Feed
	// CheckEndpoint says whether merchants' events may be posted to an address.
	CheckEndpoint func(url string) error

	Reconciliations     Reconciliations
	ReconciliationLists ReconciliationLists

	Settings Settings
	Now      func() time.Time
	Log      *slog.Logger
	// Ready returns nil once everything that serves requests is ready; nil means always.
	Ready func(ctx context.Context) error
}

// Handler serves the API. Make it with New. It is safe for concurrent use.
type Handler struct {
	Config
	table []route
}

// New is a Handler.
func New(c Config) *Handler {
	h := &Handler{Config: c}
	h.table = h.routes()
	return h
}

// Handle serves one request. Its error is always nil: what goes wrong is a problem
// in the answer.
func (h *Handler) Handle(ctx context.Context, request events.APIGatewayV2HTTPRequest) (response events.APIGatewayV2HTTPResponse, err error) {
	started := h.Now()
	c := newCall(request)
	defer func() {
		if cause := recover(); cause != nil {
			h.Log.ErrorContext(ctx, "request panicked", "route", c.template(), "payment_id", string(c.paymentID),
				"cause", panicText(cause), "stack", string(debug.Stack()))
			response = refusal(problem.New(problem.Internal, "The request could not be completed.")).response(c.method)
		}
		h.logRequest(ctx, c, response.StatusCode, h.Now().Sub(started))
	}()
	return h.serve(ctx, c).response(c.method), nil
}

func (h *Handler) serve(ctx context.Context, c *call) answer {
	a, err := h.judge(ctx, c)
	if err != nil {
		return h.failed(ctx, c, err)
	}
	return a
}

// judge refuses a request for what it is, or lets its route serve it.
func (h *Handler) judge(ctx context.Context, c *call) (answer, error) {
	found, allowed := h.match(c)
	open := found != nil && found.role == "" || found == nil && h.openPath(c.path)
	if !open {
		if err := c.authenticate(); err != nil {
			return answer{}, err
		}
	}
	switch {
	case found == nil && allowed == "":
		return answer{}, problem.New(problem.NotFound, detailNotFound)
	case found == nil:
		return answer{}, &problem.Error{Code: problem.MethodNotAllowed, Detail: "This path does not take this method.", Allow: allowed}
	case !open && c.principal.Role != found.role:
		return answer{}, problem.New(problem.Forbidden, "This API key may not use this route.")
	}
	if found.method == http.MethodPost {
		if err := c.readKey(); err != nil {
			return answer{}, err
		}
	}
	if id := payment.ID(c.params["id"]); id.WellFormed() {
		c.paymentID = id
	}
	if id := c.params["id"]; checkout.WellFormed(id) {
		c.checkoutID = id
	}
	return found.serve(ctx, c)
}

// logRequest writes the one line of a request.
func (h *Handler) logRequest(ctx context.Context, c *call, status int, took time.Duration) {
	attrs := []any{"method", c.method, "route", c.template(), "status", status, "duration_ms", took.Milliseconds()}
	if c.principal.MerchantID != "" {
		attrs = append(attrs, "merchant_id", c.principal.MerchantID)
	}
	if c.paymentID != "" {
		attrs = append(attrs, "payment_id", string(c.paymentID))
	}
	if c.checkoutID != "" {
		attrs = append(attrs, "checkout_id", c.checkoutID)
	}
	h.Log.InfoContext(ctx, "request", attrs...)
}

// panicText is the cause of a panic for a log line. Only errors of the runtime
// and texts of this program's own panics come here; a value that holds a request
// would be cut to its type.
func panicText(cause any) string {
	switch v := cause.(type) {
	case error:
		return strings.ToValidUTF8(v.Error(), "")
	case string:
		return v
	}
	return "a value that is no error"
}
