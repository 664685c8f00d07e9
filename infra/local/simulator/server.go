package simulator

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds on what one request may bring, in bytes.
const (
	maxBody        = 64 << 10 // a charge is well under a kilobyte
	maxControlBody = 1 << 20  // an event larger than any receiver accepts must be sendable
)

// Config says where a Server lives and whom it tells.
type Config struct {
	// WebhookURL receives every webhook, such as http://127.0.0.1:3001/simulator.
	WebhookURL string
	// PublicURL is the address of the server itself, the base of redirect_url.
	PublicURL string
	// Secret signs webhooks: "whsec_" and the base64 of the key.
	Secret string
	// HTTPClient sends webhooks; nil means one of the server's own. Redirects
	// are never followed.
	HTTPClient *http.Client
	// Logger hears of webhooks that fail; nil means nobody does.
	Logger *slog.Logger
	// Now is the clock of timestamps; nil means the system's.
	Now func() time.Time
}

// Server is the PSP. It is an http.Handler and safe for concurrent use.
type Server struct {
	config Config
	mux    *http.ServeMux
	sender *sender

	closing chan struct{} // closed with the server: calls without an answer end

	mu    sync.RWMutex
	world *world // nil once closed
}

// New returns a running server, or an error that names what of the
// configuration cannot be used. Close it to stop its timers and deliveries.
func New(config Config) (*Server, error) {
	config.PublicURL = strings.TrimRight(config.PublicURL, "/")
	for name, address := range map[string]string{"WebhookURL": config.WebhookURL, "PublicURL": config.PublicURL} {
		if !isWebAddress(address) {
			return nil, fmt.Errorf("simulator: %s is not an absolute http address: %q", name, address)
		}
	}
	signer, err := newSigner(config.Secret)
	if err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now //nolint:forbidigo // the one default of the clock
	}
	s := &Server{config: config, sender: newSender(config, signer), closing: make(chan struct{})}
	s.mux = s.routes()
	s.world = newWorld(s.config, s.sender)
	return s, nil
}

// ServeHTTP answers one call. Where the PSP is to give no answer it panics with
// http.ErrAbortHandler, on which net/http cuts the connection without a word.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Reset forgets everything and starts anew. When it returns, no webhook from
// before is sent any more. A call that hangs goes on hanging: to cut it off would
// make clients send it again, into the new beginning. A closed server stays closed.
func (s *Server) Reset() {
	s.mu.Lock()
	old := s.world
	if old != nil {
		s.world = newWorld(s.config, s.sender)
	}
	s.mu.Unlock()
	if old != nil {
		old.close()
	}
}

// Close ends hanging calls, stops every timer and delivery and waits for them.
// Calls are answered 503 from then on. It may be called again. Close before
// http.Server.Shutdown, which would wait for the hanging calls.
func (s *Server) Close() {
	s.mu.Lock()
	old := s.world
	s.world = nil
	s.mu.Unlock()
	if old == nil {
		return
	}
	close(s.closing)
	old.close()
	s.sender.close()
}

func (s *Server) current() *world {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.world
}

// route is one method of one path.
type route struct {
	method    string
	pattern   string
	operation operation // what faults call it, "" for what cannot be made to fail
	handle    func(*call)
}

const controlPrefix = "/_control/"

func (s *Server) routes() *http.ServeMux {
	table := []route{
		{"POST", "/charges", operationCharge, createCharge},
		{"GET", "/charges", operationLookup, listCharges},
		{"GET", "/charges/{id}", operationLookup, getCharge},
		{"POST", "/charges/{id}/capture", operationCapture, captureCharge},
		{"POST", "/charges/{id}/cancel", operationCancel, cancelCharge},
		{"POST", "/charges/{id}/refunds", operationRefund, refundCharge},
		{"GET", "/redirect/{id}", "", showRedirect},
		{"POST", "/redirect/{id}", "", chooseRedirect},
		{"GET", "/_control/charges", "", listAllCharges},
		{"GET", "/_control/calls", "", listCalls},
		{"POST", "/_control/webhooks", "", sendWebhook},
		{"POST", "/_control/webhooks/pause", "", pauseWebhooks},
		{"POST", "/_control/webhooks/resume", "", resumeWebhooks},
		{"POST", "/_control/faults", "", setFault},
		{"POST", "/_control/reset", "", func(c *call) { s.Reset(); c.sendJSON(http.StatusOK, map[string]bool{"reset": true}) }},
	}
	mux := http.NewServeMux()
	methods := map[string][]string{}
	for _, r := range table {
		mux.Handle(r.method+" "+r.pattern, s.handler(r))
		methods[r.pattern] = append(methods[r.pattern], r.method)
	}
	for pattern, allowed := range methods {
		slices.Sort(allowed)
		mux.Handle(pattern, s.handler(route{handle: methodNotAllowed(strings.Join(allowed, ", "))}))
	}
	mux.Handle("/", s.handler(route{handle: func(c *call) {
		c.refuse(&refusal{status: http.StatusNotFound, code: "route_not_found", message: "There is no such address here."})
	}}))
	return mux
}

func methodNotAllowed(allow string) func(*call) {
	return func(c *call) {
		c.writer.Header().Set("Allow", allow)
		c.refuse(&refusal{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "This address takes " + allow + "."})
	}
}

// handler runs a route: the call is recorded before anything can hold it up,
// then a fault may take it, then the route does its work.
func (s *Server) handler(r route) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		c := &call{writer: writer, request: request, world: s.current(), closing: s.closing, answered: make(chan struct{})}
		defer close(c.answered)
		if c.world == nil {
			c.refuse(&refusal{status: http.StatusServiceUnavailable, code: "closed", message: "The simulator is shutting down."})
			return
		}
		err := c.read()
		if !strings.HasPrefix(request.URL.Path, controlPrefix) {
			c.world.record(c)
		}
		if err != nil {
			c.refuse(err)
			return
		}
		if f, found := c.world.takeFault(r.operation); found {
			c.fail(f)
			return
		}
		r.handle(c)
	})
}

func isWebAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

var errSecret = errors.New(`simulator: the webhook secret must be "whsec_" and the base64 of a key`)
