package simulator

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/psp"
)

// Name is the provider's name in payments, routes and configuration.
const Name = "simulator"

// keyLifetime is how long the simulator is said to remember a key, as cards PSPs do.
const keyLifetime = 24 * time.Hour

// Operations as psp.Error names them.
const (
	operationCreate  = "create"
	operationCapture = "capture"
	operationCancel  = "cancel"
	operationRefund  = "refund"
	operationLookup  = "lookup"
)

// Config is where the simulator is and how its webhooks are signed. Nothing has
// a default.
type Config struct {
	// BaseURL is an absolute http or https address without query.
	BaseURL string
	// Secrets are Standard Webhooks secrets, "whsec_" and base64, current first.
	// A webhook signed with any of them is accepted. Without one the adapter only
	// calls, and reads what was verified elsewhere: it refuses every delivery.
	Secrets []string
	// Tolerance is how far a webhook's timestamp may be from its arrival, either way.
	Tolerance time.Duration
	// Timeout bounds each call, answer included.
	Timeout time.Duration
	// HTTPClient sends the calls; nil means one of the adapter's own. Its
	// redirect policy is not used.
	HTTPClient *http.Client
}

// Adapter is psp.Provider and psp.Webhooks for the simulator. It is safe for
// concurrent use.
type Adapter struct {
	baseURL   string
	keys      [][]byte
	tolerance time.Duration
	timeout   time.Duration
	client    *http.Client
}

var (
	_ psp.Provider = (*Adapter)(nil)
	_ psp.Webhooks = (*Adapter)(nil)
)

// New is the adapter, or an error that says what of the configuration cannot be
// used, without its value.
func New(config Config) (*Adapter, error) {
	base, err := url.Parse(config.BaseURL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" ||
		base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("simulator: the base URL is not a plain absolute http address")
	}
	if config.Timeout <= 0 {
		return nil, errors.New("simulator: the time-out must be positive")
	}
	if config.Tolerance <= 0 {
		return nil, errors.New("simulator: the webhook tolerance must be positive")
	}
	keys, err := decodeSecrets(config.Secrets)
	if err != nil {
		return nil, err
	}
	return &Adapter{
		baseURL:   strings.TrimRight(config.BaseURL, "/"),
		keys:      keys,
		tolerance: config.Tolerance,
		timeout:   config.Timeout,
		client:    newClient(config.HTTPClient),
	}, nil
}

// Name is "simulator".
func (a *Adapter) Name() string { return Name }

// Capabilities are those of the simulator: a charge exists, for look-ups too,
// from the moment its create arrived.
func (a *Adapter) Capabilities() psp.Capabilities {
	return psp.Capabilities{KeyLifetime: keyLifetime, AuthoritativeLookup: true}
}

// Create asks for a charge. The same request may be repeated under its key.
func (a *Adapter) Create(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
	capture := "automatic"
	if r.ManualCapture {
		capture = "manual"
	}
	if r.PaymentID == "" || r.PaymentMethod == "" || r.Amount.Minor <= 0 || !isCurrency(string(r.Amount.Currency)) {
		return psp.Charge{}, notSent(operationCreate, errIncomplete)
	}
	body := struct {
		Reference     string            `json:"reference"`
		Amount        int64             `json:"amount"`
		Currency      string            `json:"currency"`
		PaymentMethod string            `json:"payment_method"`
		CaptureMethod string            `json:"capture_method"`
		ReturnURL     string            `json:"return_url,omitempty"`
		Metadata      map[string]string `json:"metadata,omitempty"` // nil and empty are the same stored payment
	}{r.PaymentID, r.Amount.Minor, string(r.Amount.Currency), r.PaymentMethod.Reveal(), capture, r.ReturnURL, r.Metadata}
	return a.change(ctx, operationCreate, call{path: "/charges", key: r.Key, body: body})
}

// Capture takes held funds. The same request may be repeated under its key.
func (a *Adapter) Capture(ctx context.Context, r psp.CaptureRequest) (psp.Charge, error) {
	if !isID(r.Reference) || r.Amount.Minor <= 0 {
		return psp.Charge{}, notSent(operationCapture, errIncomplete)
	}
	body := struct {
		Amount int64 `json:"amount"`
	}{r.Amount.Minor}
	return a.change(ctx, operationCapture, call{path: chargePath(r.Reference) + "/capture", key: r.Key, body: body})
}

// Cancel voids a charge that is not captured; a captured one is OutcomeRejected.
// The same request may be repeated under its key.
func (a *Adapter) Cancel(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
	if !isID(r.Reference) {
		return psp.Charge{}, notSent(operationCancel, errIncomplete)
	}
	return a.change(ctx, operationCancel, call{path: chargePath(r.Reference) + "/cancel", key: r.Key, body: struct{}{}})
}

// Refund returns captured funds. The same request may be repeated under its key.
func (a *Adapter) Refund(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
	if !isID(r.Reference) || r.RefundID == "" || r.Amount.Minor <= 0 {
		return psp.Refund{}, notSent(operationRefund, errIncomplete)
	}
	body := struct {
		Amount    int64  `json:"amount"`
		Reference string `json:"reference"`
	}{r.Amount.Minor, r.RefundID}
	answer, err := a.post(ctx, operationRefund, call{path: chargePath(r.Reference) + "/refunds", key: r.Key, body: body})
	if err != nil {
		return psp.Refund{}, err
	}
	refund, err := decodeRefund(answer.body, r.Reference)
	if err != nil {
		return psp.Refund{}, unknown(operationRefund, answer.status, err)
	}
	return refund, nil
}

// change makes a call whose answer is a charge.
func (a *Adapter) change(ctx context.Context, operation string, c call) (psp.Charge, error) {
	answer, err := a.post(ctx, operation, c)
	if err != nil {
		return psp.Charge{}, err
	}
	charge, err := decodeCharge(answer.body)
	if err != nil {
		return psp.Charge{}, unknown(operation, answer.status, err)
	}
	return charge, nil
}

// post makes a call that has an effect; without a key it is never sent.
func (a *Adapter) post(ctx context.Context, operation string, c call) (answer, error) {
	if !isKey(c.key) {
		return answer{}, notSent(operation, errKey)
	}
	body, err := json.Marshal(c.body, json.Deterministic(true))
	if err != nil { // text that is not UTF-8
		return answer{}, notSent(operation, errIncomplete)
	}
	return a.send(ctx, operation, request{method: http.MethodPost, path: c.path, key: c.key, body: body})
}

// call is a call that has an effect, before its body is written out.
type call struct {
	path string
	key  string
	body any
}

func chargePath(reference string) string { return "/charges/" + url.PathEscape(reference) }
