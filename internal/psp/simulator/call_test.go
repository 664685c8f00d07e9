package simulator_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/simulator"
)

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// fixed is a transport that always answers so, with JSON.
func fixed(status int, body string) transport {
	return func(*http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func newAdapter(t testing.TB, address string, client *http.Client) *simulator.Adapter {
	t.Helper()
	adapter, err := simulator.New(simulator.Config{
		BaseURL: address, Secrets: []string{secret}, Tolerance: 5 * time.Minute, Timeout: 10 * time.Second, HTTPClient: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	return adapter
}

func createRequest() psp.CreateRequest {
	return psp.CreateRequest{
		Key: "pay_1-create", PaymentID: "pay_1", Amount: money.Amount{Minor: 18600, Currency: "KWD"},
		PaymentMethod: "tok_captured", ReturnURL: "https://shop.example/return?a=1&b=<2>",
		Metadata: map[string]string{"zeta": "1", "alpha": "2", "mu": "<3>&"},
	}
}

const chargeBody = `{"id":"ch_1","reference":"pay_1","amount":18600,"currency":"KWD","status":"captured","captured":18600,"refunded":0,` +
	`"redirect_url":null,"decline_code":null,"refunds":[]}`

// S-KEY-STABLE: one key is always sent with the same bytes.
func TestTheSamePaymentIsTheSameBytes(t *testing.T) {
	var bodies []string
	adapter := newAdapter(t, baseURL, &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		return fixed(200, chargeBody)(r)
	})})
	for range 50 { // map order is random
		request := createRequest()
		request.Metadata = map[string]string{}
		for key, value := range createRequest().Metadata {
			request.Metadata[key] = value
		}
		if _, err := adapter.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"reference":"pay_1","amount":18600,"currency":"KWD","payment_method":"tok_captured","capture_method":"automatic",` +
		`"return_url":"https://shop.example/return?a=1&b=<2>","metadata":{"alpha":"2","mu":"<3>&","zeta":"1"}}`
	for _, got := range bodies {
		if got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

func TestNoMetadataAndEmptyMetadataAreTheSameBytes(t *testing.T) {
	var bodies []string
	adapter := newAdapter(t, baseURL, &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		return fixed(200, chargeBody)(r)
	})})
	request := createRequest()
	for _, metadata := range []map[string]string{nil, {}} {
		request.Metadata = metadata
		if _, err := adapter.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if bodies[0] != bodies[1] || strings.Contains(bodies[0], "metadata") {
		t.Errorf("got %q, want twice the same without metadata", bodies)
	}
}

func TestEveryCallIsOneRequest(t *testing.T) {
	yen := money.Amount{Minor: 500, Currency: "JPY"}
	const refundBody = `{"id":"re_x","charge":"ch_1","amount":500,"status":"succeeded","reference":"re_1"}`
	const list = `{"object":"list","data":[` + chargeBody + `],"next_cursor":null}`
	tests := []struct {
		answer string
		call   func(*simulator.Adapter) error
		want   string
	}{
		{chargeBody, func(a *simulator.Adapter) error {
			_, err := a.Capture(t.Context(), psp.CaptureRequest{Key: "k", Reference: "ch_1", Amount: yen})
			return err
		}, `POST /base/charges/ch_1/capture k {"amount":500}`},
		{chargeBody, func(a *simulator.Adapter) error {
			_, err := a.Cancel(t.Context(), psp.CancelRequest{Key: "k", Reference: "ch_1"})
			return err
		}, `POST /base/charges/ch_1/cancel k {}`},
		{refundBody, func(a *simulator.Adapter) error {
			_, err := a.Refund(t.Context(), psp.RefundRequest{Key: "k", Reference: "ch_1", RefundID: "re_1", Amount: yen})
			return err
		}, `POST /base/charges/ch_1/refunds k {"amount":500,"reference":"re_1"}`},
		{chargeBody, func(a *simulator.Adapter) error {
			_, err := a.Lookup(t.Context(), psp.LookupRequest{Reference: "ch_1", PaymentID: "pay_1"})
			return err
		}, `GET /base/charges/ch_1  `},
		{chargeBody, func(a *simulator.Adapter) error {
			_, err := a.Lookup(t.Context(), psp.LookupRequest{Reference: "ch?&%#"})
			return err
		}, `GET /base/charges/ch%3F&%25%23  `},
		{list, func(a *simulator.Adapter) error {
			_, err := a.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
			return err
		}, `GET /base/charges?reference=pay_1  `},
	}
	for _, tt := range tests {
		var got []string
		adapter := newAdapter(t, baseURL+"/", &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			var body []byte
			if r.Body != nil {
				body, _ = io.ReadAll(r.Body)
			}
			got = append(got, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
			return fixed(200, tt.answer)(r)
		})})
		if err := tt.call(adapter); err != nil {
			t.Errorf("%s: %v", tt.want, err)
		}
		if !slices.Equal(got, []string{tt.want}) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestWhatCannotBeSentIsNotSent(t *testing.T) {
	adapter := newAdapter(t, baseURL, &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, errors.New("sent")
	})})
	yen := money.Amount{Minor: 500, Currency: "JPY"}
	create := func(change func(*psp.CreateRequest)) error {
		request := createRequest()
		change(&request)
		_, err := adapter.Create(t.Context(), request)
		return err
	}
	capture := func(reference string, amount money.Amount) error {
		_, err := adapter.Capture(t.Context(), psp.CaptureRequest{Key: "k", Reference: reference, Amount: amount})
		return err
	}
	lookup := func(reference string) error {
		_, err := adapter.Lookup(t.Context(), psp.LookupRequest{Reference: reference})
		return err
	}
	_, noRefundID := adapter.Refund(t.Context(), psp.RefundRequest{Key: "k", Reference: "ch_1", Amount: yen})
	_, noReference := adapter.Cancel(t.Context(), psp.CancelRequest{Key: "k"})
	for name, err := range map[string]error{
		"no payment id":        create(func(r *psp.CreateRequest) { r.PaymentID = "" }),
		"no payment method":    create(func(r *psp.CreateRequest) { r.PaymentMethod = "" }),
		"no amount":            create(func(r *psp.CreateRequest) { r.Amount.Minor = 0 }),
		"negative amount":      create(func(r *psp.CreateRequest) { r.Amount.Minor = -1 }),
		"no currency":          create(func(r *psp.CreateRequest) { r.Amount.Currency = "" }),
		"currency of no form":  create(func(r *psp.CreateRequest) { r.Amount.Currency = "jpy" }),
		"key with a line feed": create(func(r *psp.CreateRequest) { r.Key = "a\nb" }),
		"text that is no text": create(func(r *psp.CreateRequest) { r.Metadata = map[string]string{"a": "\xff"} }),
		"capture of nothing":   capture("ch_1", money.Amount{Currency: "JPY"}),
		"capture without id":   capture("", yen),
		"capture elsewhere":    capture("../charges", yen),
		"refund without an id": noRefundID,
		"cancel of nothing":    noReference,
		"id of dots":           lookup(".."),
		"id with a slash":      lookup("ch_1/capture"),
		"id with a line feed":  lookup("ch_1\r\nX: y"),
	} {
		if psp.OutcomeOf(err) != psp.OutcomeNotSent {
			t.Errorf("%s: got %v, want OutcomeNotSent", name, err)
		}
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	good := simulator.Config{
		BaseURL: "http://127.0.0.1:3002", Secrets: []string{secret}, Tolerance: time.Minute, Timeout: time.Second,
	}
	if _, err := simulator.New(good); err != nil {
		t.Fatal(err)
	}
	tests := map[string]func(*simulator.Config){
		"no address":            func(c *simulator.Config) { c.BaseURL = "" },
		"a relative address":    func(c *simulator.Config) { c.BaseURL = "/charges" },
		"another scheme":        func(c *simulator.Config) { c.BaseURL = "ftp://psp.example" },
		"a name in the address": func(c *simulator.Config) { c.BaseURL = "https://user:hunter2@psp.example" },
		"a query":               func(c *simulator.Config) { c.BaseURL = "https://psp.example?a=b" },
		"no time-out":           func(c *simulator.Config) { c.Timeout = 0 },
		"no tolerance":          func(c *simulator.Config) { c.Tolerance = 0 },
		"an empty secret":       func(c *simulator.Config) { c.Secrets = []string{secret, ""} },
		"an empty key":          func(c *simulator.Config) { c.Secrets = []string{"whsec_"} },
		"no prefix":             func(c *simulator.Config) { c.Secrets = []string{strings.TrimPrefix(secret, "whsec_")} },
		"no base64":             func(c *simulator.Config) { c.Secrets = []string{"whsec_hunter2hunter2hunter2hunter2hunter2!"} },
		"a short key":           func(c *simulator.Config) { c.Secrets = []string{"whsec_aHVudGVyMg=="} },
	}
	for name, change := range tests {
		config := good
		change(&config)
		_, err := simulator.New(config)
		if err == nil {
			t.Errorf("%s: got no error", name)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVudGVyMg") {
			t.Errorf("%s: the error %q shows the value", name, err)
		}
	}
}

// The outcomes below need sockets: what the kernel says is part of the question.

func TestNobodyListensIsNotSent(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	_, err := newAdapter(t, address, nil).Create(t.Context(), createRequest())
	expectError(t, err, psp.OutcomeNotSent, "connection refused")
}

func TestNoSuchHostIsNotSent(t *testing.T) {
	dialer := net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: nobody}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	_, err := newAdapter(t, "http://no-such-host.invalid", client).Create(t.Context(), createRequest())
	expectError(t, err, psp.OutcomeNotSent, "no such host")
}

func TestNoHandshakeIsNotSent(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler()) // speaks no TLS
	defer server.Close()
	_, err := newAdapter(t, strings.Replace(server.URL, "http:", "https:", 1), nil).Create(t.Context(), createRequest())
	expectError(t, err, psp.OutcomeNotSent, "no connection")
}

func TestResetAfterSendingIsUnknown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.(*net.TCPConn).SetLinger(0) // a reset, not an end
		_ = conn.Close()
	}))
	defer server.Close()
	_, err := newAdapter(t, server.URL, nil).Create(t.Context(), createRequest())
	expectError(t, err, psp.OutcomeUnknown, "")
}

// The client of net/http sends again by itself when a kept-alive connection
// dies. That the second connection is refused says nothing of the first.
func TestRefusedAfterAnEarlierSendIsUnknown(t *testing.T) {
	var arrived atomic.Int32
	var listener net.Listener
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if arrived.Add(1) == 1 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, chargeBody)
			return
		}
		_ = listener.Close() // nobody listens from here on
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	listener = server.Listener
	adapter := newAdapter(t, server.URL, nil)
	if _, err := adapter.Create(t.Context(), createRequest()); err != nil {
		t.Fatal(err)
	}
	_, err := adapter.Create(t.Context(), createRequest())
	if arrived.Load() != 2 {
		t.Fatalf("got %d requests, want 2", arrived.Load())
	}
	expectError(t, err, psp.OutcomeUnknown, "")
}

// A transport that does not report its connections may have sent the request.
func TestFailureOfAnotherTransportIsUnknown(t *testing.T) {
	client := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("of something behind it")}
	})}
	_, err := newAdapter(t, baseURL, client).Create(t.Context(), createRequest())
	expectError(t, err, psp.OutcomeUnknown, "no answer")
}

func nobody(_ context.Context, _, _ string) (net.Conn, error) {
	return nil, errors.New("no name server")
}

func expectError(t *testing.T, err error, want psp.Outcome, text string) {
	t.Helper()
	if psp.OutcomeOf(err) != want || err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v with outcome %d, want %q with outcome %d", err, psp.OutcomeOf(err), text, want)
	}
	for _, hidden := range []string{"127.0.0.1", "invalid", "http:", "tok_captured"} {
		if err != nil && strings.Contains(err.Error(), hidden) {
			t.Errorf("the error %q shows %q", err, hidden)
		}
	}
}
