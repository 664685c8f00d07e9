package simulator_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/kessai/kessai/infra/local/simulator"
)

// patience bounds what a test over a real connection waits for.
const patience = 10 * time.Second

// network is a simulator on a real socket.
type network struct {
	*simulator.Server
	address string
	events  chan string   // what its merchant got
	ended   chan struct{} // one for each call that is over
}

func overNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{events: make(chan string, 10), ended: make(chan struct{}, 10)}
	shop := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.events <- string(body)
	}))
	t.Cleanup(shop.Close)
	listener := httptest.NewUnstartedServer(nil)
	n.address = "http://" + listener.Listener.Addr().String()
	server, err := simulator.New(simulator.Config{WebhookURL: shop.URL, PublicURL: n.address, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	n.Server = server
	listener.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { n.ended <- struct{}{} }()
		server.ServeHTTP(w, r)
	})
	listener.Start()
	t.Cleanup(listener.Close)
	t.Cleanup(server.Close)
	return n
}

// await is the next of a channel, or the end of the test.
func await[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.NewTimer(patience).C:
		t.Fatalf("no %s in %s", what, patience)
		panic("not reached")
	}
}

func post(ctx context.Context, address, body string) (*http.Response, error) {
	request := newRequest(ctx, address, body)
	request.Header.Set("Authorization", "Bearer anything")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return client.Do(request)
}

func TestAnswerAndWebhookOverTheNetwork(t *testing.T) {
	n := overNetwork(t)
	response, err := post(t.Context(), n.address+"/charges", chargeBody("tok_captured", "automatic"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusCreated || response.ContentLength != int64(len(body)) {
		t.Fatalf("got %d with %d bytes, %v; want 201, whole", response.StatusCode, response.ContentLength, err)
	}
	if event := await(t, "webhook", n.events); !strings.Contains(event, string(body)) {
		t.Errorf("got %s, want the charge that was answered", event)
	}
}

func TestClientThatGoesAwayFreesTheCall(t *testing.T) {
	n := overNetwork(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		response, err := post(ctx, n.address+"/charges", chargeBody("tok_timeout_captured", "automatic"))
		if err == nil {
			_ = response.Body.Close()
		}
		done <- err
	}()
	await(t, "webhook", n.events) // the charge was made and the call hangs
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want no answer", err)
	}
	await(t, "end of the call", n.ended)
}

func TestCloseCutsHangingCallsOff(t *testing.T) {
	n := overNetwork(t)
	done := make(chan error, 1)
	go func() {
		response, err := post(t.Context(), n.address+"/charges", chargeBody("tok_timeout_captured", "automatic"))
		if err == nil {
			_ = response.Body.Close()
		}
		done <- err
	}()
	await(t, "webhook", n.events)
	n.Close()
	if err := await(t, "end of the call", done); err == nil {
		t.Error("the call was answered, want a cut connection")
	}
}

func TestRoutesAndBodiesHaveBounds(t *testing.T) {
	p := newPSP(t)
	for _, path := range []string{"/", "/charge", "/charges/x/y", "/charges/x/capture/y", "/_control", "/_control/", "/_control/charge"} {
		wantCode(t, path, p.call("GET", path, "", ""), 404, "route_not_found")
	}
	for path, allow := range map[string]string{
		"/charges": "GET, POST", "/charges/x": "GET", "/charges/x/refunds": "POST", "/redirect/x": "GET, POST",
		"/_control/reset": "POST", "/_control/calls": "GET",
	} {
		a := p.call("PUT", path, "", "")
		wantCode(t, path, a, 405, "method_not_allowed")
		if got := a.header.Get("Allow"); got != allow {
			t.Errorf("%s: got Allow %q, want %q", path, got, allow)
		}
	}
	body := chargeBody("tok_captured", "automatic")
	fill := strings.Repeat(" ", 64<<10-len(body))
	wantCode(t, "one byte too many", p.call("POST", "/charges", "key-1", body+fill+" "), 413, "body_too_large")
	wantStatus(t, "at the bound", p.call("POST", "/charges", "key-1", body+fill), 201)
	large := `{"event":{"id":"evt_1","x":"` + strings.Repeat("x", 300<<10) + `"}}`
	wantStatus(t, "event larger than a receiver takes", p.call("POST", "/_control/webhooks", "", large), 202)
}
