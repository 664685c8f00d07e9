package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/kessai/kessai/infra/local/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret     = "whsec_a2Vzc2FpLWxvY2FsLXNpbXVsYXRvci1zZWNyZXQ="
	webhookURL = "http://merchant.test/simulator"
	publicURL  = "http://psp.test"
)

// delivery is one webhook as the merchant got it.
type delivery struct {
	at        time.Time
	url       string
	id        string
	timestamp string
	signature string
	body      []byte
	kind      string // the event's type
}

// merchant receives webhooks without a network.
type merchant struct {
	mu       sync.Mutex
	received []delivery
	// answer is the status given to a delivery; nil is always 200.
	answer func(context.Context, delivery) (int, error)
}

func (m *merchant) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	var event struct{ Type string }
	_ = json.Unmarshal(body, &event) // nonsense has no type
	d := delivery{
		at: time.Now(), url: request.URL.String(), id: request.Header.Get("webhook-id"), body: body, kind: event.Type,
		timestamp: request.Header.Get("webhook-timestamp"), signature: request.Header.Get("webhook-signature"),
	}
	m.mu.Lock()
	m.received = append(m.received, d)
	answer := m.answer
	m.mu.Unlock()
	status := http.StatusOK
	if answer != nil {
		if status, err = answer(request.Context(), d); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {"http://elsewhere.test/"}}, Body: http.NoBody, Request: request}, nil
}

func (m *merchant) deliveries() []delivery {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.received)
}

func (m *merchant) kinds() []string {
	kinds := []string{}
	for _, d := range m.deliveries() {
		kinds = append(kinds, d.kind)
	}
	return kinds
}

// psp is a simulator and the merchant it tells.
type psp struct {
	*simulator.Server
	*merchant
	t *testing.T
}

func newPSP(t *testing.T) *psp {
	t.Helper()
	m := &merchant{}
	server, err := simulator.New(simulator.Config{
		WebhookURL: webhookURL, PublicURL: publicURL, Secret: secret, HTTPClient: &http.Client{Transport: m},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &psp{Server: server, merchant: m, t: t}
}

// answer is what a call came to; status 0 is no answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// charge is the test's own reading of a charge.
type charge struct {
	ID          string
	Reference   *string
	Amount      int64
	Currency    string
	Status      string
	Captured    int64
	Refunded    int64
	RedirectURL *string `json:"redirect_url"`
	DeclineCode *string `json:"decline_code"`
	Refunds     []refund
}

type refund struct {
	ID        string
	Charge    string
	Amount    int64
	Status    string
	Reference *string
}

func decode[T any](t *testing.T, body string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
	return value
}

func (p *psp) call(method, path, key, body string) answer {
	return p.callFor(p.t.Context(), method, path, key, body)
}

// callFor makes a call whose client goes away with ctx.
func (p *psp) callFor(ctx context.Context, method, path, key, body string) (a answer) {
	p.t.Helper()
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	return p.serve(request)
}

func (p *psp) serve(request *http.Request) (a answer) {
	recorder := httptest.NewRecorder()
	defer func() {
		err, _ := recover().(error)
		if errors.Is(err, http.ErrAbortHandler) {
			a = answer{}
		} else if err != nil {
			panic(err)
		}
	}()
	p.ServeHTTP(recorder, request)
	return answer{recorder.Code, recorder.Header(), recorder.Body.String()}
}

// create makes a charge of JPY 5000 with reference pay_1 and key key-1.
func (p *psp) create(token, captureMethod string) answer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 100*time.Millisecond)
	defer cancel()
	return p.callFor(ctx, "POST", "/charges", "key-1", chargeBody(token, captureMethod))
}

// mustCreate is create for tokens that answer with a charge.
func (p *psp) mustCreate(token, captureMethod string) charge {
	p.t.Helper()
	a := p.create(token, captureMethod)
	if a.status != http.StatusCreated {
		p.t.Fatalf("create %s: got %d %s, want 201", token, a.status, a.body)
	}
	return decode[charge](p.t, a.body)
}

func chargeBody(token, captureMethod string) string {
	return fmt.Sprintf(`{"reference":"pay_1","amount":5000,"currency":"JPY","payment_method":%q,"capture_method":%q,"return_url":"https://shop.test/return"}`, token, captureMethod)
}

// charges is what a look-up by reference finds.
func (p *psp) charges() []charge {
	p.t.Helper()
	a := p.call("GET", "/charges?reference=pay_1", "", "")
	if a.status != http.StatusOK {
		p.t.Fatalf("look up: got %d %s, want 200", a.status, a.body)
	}
	return decode[struct{ Data []charge }](p.t, a.body).Data
}

// charge is the one charge there is.
func (p *psp) charge() charge {
	p.t.Helper()
	found := p.charges()
	if len(found) != 1 {
		p.t.Fatalf("look up: got %d charges, want 1", len(found))
	}
	return found[0]
}

func (p *psp) control(path, body string) answer {
	p.t.Helper()
	a := p.call("POST", "/_control/"+path, "", body)
	if a.status/100 != 2 {
		p.t.Fatalf("%s: got %d %s, want 2xx", path, a.status, a.body)
	}
	return a
}

// advance lets time pass inside a bubble, and everything due in it happen.
func advance(d time.Duration) {
	<-time.NewTimer(d).C
	synctest.Wait()
}

func wantStatus(t *testing.T, what string, got answer, want int) {
	t.Helper()
	if got.status != want {
		t.Errorf("%s: got %d %s, want %d", what, got.status, got.body, want)
	}
}

func wantCode(t *testing.T, what string, got answer, status int, code string) {
	t.Helper()
	wantStatus(t, what, got, status)
	body := decode[struct {
		Error struct{ Code, Message string }
	}](t, got.body)
	if body.Error.Code != code || body.Error.Message == "" {
		t.Errorf("%s: got code %q with message %q, want %q with a message", what, body.Error.Code, body.Error.Message, code)
	}
}

func wantKinds(t *testing.T, p *psp, want ...string) {
	t.Helper()
	if got := p.kinds(); !slices.Equal(got, want) {
		t.Errorf("webhooks: got %q, want %q", got, want)
	}
}

func text(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}
