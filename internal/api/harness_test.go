package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/kessai/kessai/internal/api"
	"github.com/kessai/kessai/internal/api/apitest"
	"github.com/kessai/kessai/internal/charge"
	"github.com/kessai/kessai/internal/journal"
	"github.com/kessai/kessai/internal/lease"
	"github.com/kessai/kessai/internal/merchant"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/store/memory"
	"github.com/kessai/kessai/internal/store/payments"
	"github.com/kessai/kessai/internal/webhook"
)

// Keys of the world.
const (
	alpha    = "sk_test_alpha"
	beta     = "sk_test_beta"
	operator = "sk_test_operator"
)

// world is the API on the real flows, a store in memory and a provider in memory.
type world struct {
	t       *testing.T
	clock   *clock
	table   *payments.Table
	fake    *psptest.Fake
	charges *charge.Service
	applier *webhook.Applier
	ingest  *webhook.Ingest
	authz   *merchant.Authorizer
	api     *api.Handler
	logs    *logs
	checker *apitest.Validator
	config  api.Config
}

// clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// logs keeps what was logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// lines are the log lines with that message.
func (l *logs) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(l.text()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == message {
			all = append(all, fields)
		}
	}
	return all
}

type meter struct{}

func (meter) Count(string, int64) {}

const (
	inProgressTTL  = 30 * time.Second
	idempotencyTTL = 24 * time.Hour
	paymentExpiry  = 30 * time.Minute
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		fake: psptest.NewFake("simulator"), logs: &logs{}, checker: apitest.New(t),
	}
	w.table = payments.New(memory.New(memory.Options{Now: w.clock.now}))
	policy := func(string) payment.Policy {
		return payment.Policy{
			PSPTimeout: 10 * time.Second, ReconcileAfter: time.Minute,
			KeyLifetime: 24 * time.Hour, AuthoritativeLookup: true,
		}
	}
	log := slog.New(slog.NewJSONHandler(w.logs, nil))
	var ids atomic.Int64
	newULID := func() string { return fmt.Sprintf("01KDYAK348M9S346Q3D2%06d", ids.Add(1)) }
	door := &journal.Journal{Store: w.table, Policy: policy, Now: w.clock.now, Pause: func(ctx context.Context, _ int) error { return ctx.Err() }, Meter: meter{}, Log: log}
	w.charges = &charge.Service{
		Journal: door, Store: w.table, Leases: &lease.Leases{Store: w.table, TTL: 30 * time.Second, Now: w.clock.now, Meter: meter{}},
		Providers: map[string]psp.Provider{"simulator": w.fake}, Policy: policy,
		Settings: charge.Settings{IdempotencyTTL: idempotencyTTL, InProgressTTL: inProgressTTL, PaymentExpiry: paymentExpiry},
		NewULID:  newULID, Now: w.clock.now, Spread: func(d time.Duration) time.Duration { return d }, Meter: meter{}, Log: log,
	}
	hooks := webhook.Settings{ReconcileAfter: time.Minute, Wait: paymentExpiry}
	receivers := map[string]psp.Webhooks{"simulator": w.fake}
	w.ingest = &webhook.Ingest{Providers: receivers, Inbox: w.table, Settings: hooks, Now: w.clock.now, Meter: meter{}}
	w.applier = &webhook.Applier{
		Providers: receivers, Inbox: w.table, Reader: w.table, Payments: door, Follower: w.charges, Settings: hooks,
		Now: w.clock.now, Spread: func(d time.Duration) time.Duration { return d }, Meter: meter{}, Log: log,
	}
	merchants := &merchant.Service{
		Store: w.table, IdempotencyTTL: idempotencyTTL, KeyPrefix: merchant.PrefixTest,
		NewULID: newULID, NewSecret: merchant.NewSecret, Now: w.clock.now,
	}
	for id, key := range map[string]string{"alpha": alpha, "beta": beta} {
		if err := merchants.Seed(t.Context(), id, key, merchant.RoleMerchant); err != nil {
			t.Fatal(err)
		}
	}
	w.authz = &merchant.Authorizer{Log: log, Keys: &merchant.Keyring{
		Store: w.table, Now: w.clock.now,
		OperatorKeys: func(context.Context) ([]string, error) { return []string{operator, ""}, nil },
	}}
	w.config = api.Config{
		Charges: w.charges, Lists: w.table, Inbox: w.table, Merchants: merchants, Now: w.clock.now, Log: log,
		Settings: api.Settings{
			DefaultPSP: "simulator", PSPs: []string{"simulator"}, IdempotencyTTL: idempotencyTTL, Webhooks: hooks,
		},
	}
	w.api = api.New(w.config)
	return w
}

// request is one request; what is empty is left out.
type request struct {
	method, path string
	apiKey       string
	key          string // Idempotency-Key; "-" for none on a POST
	body         string
	header       map[string]string
	// unchecked leaves the answer out of the comparison with the OpenAPI document:
	// for methods that it does not describe.
	unchecked bool
}

// response is its answer.
type response struct {
	status int
	header http.Header
	text   string
}

// field is a field of the answer's JSON object.
func (r response) field(name string) any {
	var object map[string]any
	if err := json.Unmarshal([]byte(r.text), &object); err != nil {
		return err
	}
	return object[name]
}

func (r response) str(name string) string { s, _ := r.field(name).(string); return s }

// rows are the rows of a list.
func (r response) rows(t *testing.T) []map[string]any {
	t.Helper()
	var list struct {
		Object string           `json:"object"`
		Data   []map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(r.text), &list); err != nil || list.Object != "list" {
		t.Fatalf("got %q, want a list", r.text)
	}
	return list.Data
}

// keys counts Idempotency-Keys that tests did not choose.
var keys atomic.Int64

// send takes a request through the authorizer and the API, and holds both sides to
// the OpenAPI document.
func (w *world) send(r request) response {
	w.t.Helper()
	return w.sendContext(w.t.Context(), r)
}

func (w *world) sendContext(ctx context.Context, r request) response {
	w.t.Helper()
	headers := map[string]string{"content-type": "application/json"}
	if r.apiKey != "" {
		headers["authorization"] = "Bearer " + r.apiKey
	}
	switch {
	case r.key == "" && r.method == http.MethodPost:
		headers["idempotency-key"] = fmt.Sprintf("key-%d", keys.Add(1))
	case r.key != "" && r.key != "-":
		headers["idempotency-key"] = r.key
	}
	maps.Copy(headers, r.header)
	path, query, _ := strings.Cut(r.path, "?")
	event := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, RawQueryString: query, Headers: headers, Body: r.body}
	event.RequestContext.HTTP.Method = r.method
	event.RequestContext.HTTP.Path = path
	granted, err := w.authz.Handle(ctx, events.APIGatewayV2CustomAuthorizerV2Request{Headers: headers})
	if err != nil || !granted.IsAuthorized {
		w.t.Fatalf("authorizer: got %v, %v, want to pass", granted, err)
	}
	event.RequestContext.Authorizer = &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: granted.Context}
	answer, err := w.api.Handle(ctx, event)
	if err != nil {
		w.t.Fatalf("got error %v, want an answer", err)
	}
	got := response{status: answer.StatusCode, header: http.Header{}, text: answer.Body}
	for name, value := range answer.Headers {
		got.header.Set(name, value)
	}
	if !r.unchecked {
		req := httptest.NewRequest(r.method, r.path, nil)
		for name, value := range headers {
			req.Header.Set(name, value)
		}
		w.checker.Check(req, []byte(r.body), &http.Response{StatusCode: got.status, Header: got.header}, []byte(got.text))
	}
	return got
}

func (w *world) post(path, body string) response {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: path, apiKey: alpha, body: body})
}

func (w *world) get(path string) response {
	w.t.Helper()
	return w.send(request{method: http.MethodGet, path: path, apiKey: alpha})
}

// pay makes a payment of 10000 JPY with that token and returns its id.
func (w *world) pay(token string, more ...string) string {
	w.t.Helper()
	body := fmt.Sprintf(`{"amount":10000,"currency":"JPY","payment_method":%q%s}`, token, strings.Join(more, ""))
	r := w.post("/v1/payments", body)
	if r.status != http.StatusCreated && r.status != http.StatusAccepted {
		w.t.Fatalf("got %d %s, want a payment", r.status, r.text)
	}
	return r.str("id")
}

// deliver takes all pending events of the provider in and applies them.
func (w *world) deliver() {
	w.t.Helper()
	for _, e := range w.fake.Drain() {
		if _, err := w.ingest.Receive(w.t.Context(), "simulator", w.fake.Delivery(e, w.clock.now())); err != nil {
			w.t.Fatal(err)
		}
		if err := w.applier.Apply(w.t.Context(), "simulator", e.ID); err != nil {
			w.t.Fatal(err)
		}
	}
}

// want fails the test unless the answer has that status and, if it is a problem,
// that code.
func (w *world) want(r response, status int, code string) {
	w.t.Helper()
	if r.status != status || (code != "" && r.field("code") != code) {
		w.t.Errorf("got %d %s, want %d %s", r.status, r.text, status, code)
	}
}

// What a provider may say instead of an answer.
var (
	errSilence   = context.DeadlineExceeded
	errThrottled = &psp.Error{Operation: "capture", Outcome: psp.OutcomeThrottled, HTTPStatus: 429}
	errRefused   = &psp.Error{Operation: "capture", Outcome: psp.OutcomeRejected, HTTPStatus: 402, Code: "refused"}
)

func paymentID(id string) payment.ID { return payment.ID(id) }
