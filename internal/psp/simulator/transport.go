package simulator

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kessai/kessai/internal/psp"
)

// maxAnswer bounds an answer in bytes. A charge with many refunds is a few
// kilobytes; what is larger is not from the provider.
const maxAnswer = 1 << 20

// Bounds of the adapter's own HTTP client. The time-out of the call bounds
// everything else.
const (
	dialTimeout      = 5 * time.Second // a provider that does not accept by then is down
	handshakeTimeout = 5 * time.Second
	idleTimeout      = 60 * time.Second // shorter than load balancers keep idle connections
	idleConnections  = 32               // per process; one function serves few requests at once
	maxHeader        = 64 << 10         // bytes of answer headers
)

// Causes of errors, without any content or address in their text.
var (
	errIncomplete = errors.New("the request lacks a field or has one that cannot be sent")
	errKey        = errors.New("the idempotency key is empty, too long or not printable")
	errNoAnswer   = errors.New("no answer")
	errNoConnect  = errors.New("no connection")
	errHostname   = errors.New("no such host")
	errTooLarge   = errors.New("the answer is too large")
	errNotJSON    = errors.New("the answer is not JSON")
	errMalformed  = errors.New("the answer cannot be read")
	errForeign    = errors.New("the answer is about something else")
	errEndless    = errors.New("the list does not end")
)

// request is one HTTP request; key and body are those of a POST.
type request struct {
	method string
	path   string
	key    string
	body   []byte
}

// answer is a 2xx with JSON in it.
type answer struct {
	status int
	body   []byte
}

// send makes one call and classifies what came of it.
func (a *Adapter) send(ctx context.Context, operation string, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return answer{}, notSent(operation, err)
	}
	ctx, contact := watch(ctx)
	httpRequest, err := a.newRequest(ctx, r)
	if err != nil {
		return answer{}, notSent(operation, errIncomplete)
	}
	response, err := a.client.Do(httpRequest)
	if err != nil {
		if contact.none() {
			return answer{}, notSent(operation, plainCause(err, errNoConnect))
		}
		return answer{}, unknown(operation, 0, plainCause(err, errNoAnswer))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusTooManyRequests { // whoever said so, nothing ran
		return answer{}, throttled(operation, response.Header)
	}
	body, err := readJSON(response)
	if err != nil {
		return answer{}, unknown(operation, response.StatusCode, err)
	}
	if response.StatusCode/100 == 2 {
		return answer{response.StatusCode, body}, nil
	}
	return answer{}, refused(operation, response.StatusCode, body)
}

func (a *Adapter) newRequest(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.method == http.MethodPost {
		body = bytes.NewReader(r.body)
	}
	httpRequest, err := http.NewRequestWithContext(ctx, r.method, a.baseURL+r.path, body)
	if err != nil {
		return nil, err
	}
	httpRequest.Header.Set("Accept", "application/json")
	if r.method == http.MethodPost {
		httpRequest.Header.Set("Content-Type", "application/json")
		httpRequest.Header.Set("Idempotency-Key", r.key)
	}
	return httpRequest, nil
}

// newClient is a copy of base, or a client of the adapter's own, that takes
// redirects for answers: to follow one would send a charge to an address that
// nobody configured.
func newClient(base *http.Client) *http.Client {
	client := http.Client{}
	if base != nil {
		client = *base
	} else {
		client.Transport = &http.Transport{
			DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout:    handshakeTimeout,
			IdleConnTimeout:        idleTimeout,
			MaxIdleConnsPerHost:    idleConnections,
			MaxResponseHeaderBytes: maxHeader,
			ForceAttemptHTTP2:      true,
		}
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// readJSON is the whole body of an answer that says that it is JSON.
func readJSON(response *http.Response) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, plainCause(err, errNoAnswer)
	}
	if len(body) > maxAnswer {
		return nil, errTooLarge
	}
	mediaType, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err != nil || (mediaType != "application/json" && mediaType != "application/problem+json") {
		return nil, errNotJSON
	}
	return body, nil
}

// contact is what is known of the connection of a call.
type contact struct {
	asked     atomic.Bool // the transport reports to us, and looked for a connection
	connected atomic.Bool // and had one, so that something may have left
}

// watch reports on the connections of calls under the returned context.
func watch(ctx context.Context) (context.Context, *contact) {
	c := &contact{}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.connected.Store(true) },
	}), c
}

// none reports that there never was a connection, not even an earlier one that
// died. A transport that does not report may have had one.
func (c *contact) none() bool { return c.asked.Load() && !c.connected.Load() }

// plainCause is the part of a network error that holds no address, otherwise
// fallback.
func plainCause(err, fallback error) error {
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if network, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || (ok && network.Timeout()) {
		return context.DeadlineExceeded
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errHostname
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return fallback
}

func notSent(operation string, cause error) *psp.Error {
	return &psp.Error{Operation: operation, Outcome: psp.OutcomeNotSent, Err: cause}
}

func unknown(operation string, status int, cause error) *psp.Error {
	return &psp.Error{Operation: operation, Outcome: psp.OutcomeUnknown, HTTPStatus: status, Err: cause}
}
