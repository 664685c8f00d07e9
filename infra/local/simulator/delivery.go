package simulator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// Bounds on deliveries.
const (
	maxAttempts     = 12                     // with the delays below, over two minutes
	firstRetry      = 200 * time.Millisecond // doubles from here
	longestRetry    = 30 * time.Second
	attemptLimit    = 5 * time.Second // a receiver only has to store the event
	maxAttemptsOpen = 64              // attempts under way at once: a receiver's connections are finite
	maxReplyBody    = 4 << 10         // read so that the connection can be used again
)

// message is one body to be posted until it is acknowledged.
type message struct {
	id        string
	paymentID string // for the log
	body      []byte
	signed    bool
	attempts  int
}

// sender posts messages to the merchant's address.
type sender struct {
	address string
	signer  signer
	client  *http.Client
	own     *http.Transport // nil when the client was given
	places  chan struct{}   // one for each attempt under way
	log     *slog.Logger
	now     func() time.Time
}

func newSender(config Config, signer signer) *sender {
	s := &sender{
		address: config.WebhookURL, signer: signer, client: &http.Client{},
		places: make(chan struct{}, maxAttemptsOpen), log: config.Logger, now: config.Now,
	}
	if config.HTTPClient != nil {
		*s.client = *config.HTTPClient
	} else {
		s.own = &http.Transport{MaxIdleConnsPerHost: maxAttemptsOpen, IdleConnTimeout: longestRetry}
		s.client.Transport = s.own
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

func (s *sender) close() {
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
}

// deliver posts a message until it is acknowledged, given up, or the world ends.
func (w *world) deliver(m message) {
	log := w.sender.log.With("event_id", m.id, "payment_id", m.paymentID)
	delay := firstRetry
	for attempt := 1; attempt <= m.attempts; attempt++ {
		err := w.attempt(m)
		if err == nil || w.ctx.Err() != nil {
			return
		}
		log.Warn("webhook not acknowledged", "attempt", attempt, "error", err.Error())
		if attempt < m.attempts && !rest(w.ctx, delay) {
			return
		}
		delay = min(2*delay, longestRetry)
	}
	log.Error("webhook given up", "attempts", m.attempts)
}

// attempt posts a message once, when webhooks flow and there is a place.
func (w *world) attempt(m message) error {
	select {
	case w.sender.places <- struct{}{}:
		defer func() { <-w.sender.places }()
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	if !w.awaitFlow(w.ctx) {
		return w.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(w.ctx, attemptLimit)
	defer cancel()
	return w.sender.post(ctx, m)
}

// post sends a message with a timestamp and signature of its own, and returns
// an error unless the answer is 2xx.
func (s *sender) post(ctx context.Context, m message) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(m.body))
	if err != nil {
		return fmt.Errorf("build webhook %s: %w", m.id, err)
	}
	at := s.now()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "kessai-simulator")
	request.Header.Set("Webhook-Id", m.id)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	if m.signed {
		request.Header.Set("Webhook-Signature", s.signer.sign(m.id, at, m.body))
	}
	response, err := s.client.Do(request)
	if err != nil {
		return fmt.Errorf("post webhook %s: %w", m.id, err)
	}
	_, _ = io.CopyN(io.Discard, response.Body, maxReplyBody) // whatever it says, the status decides
	_ = response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("post webhook %s: status %d", m.id, response.StatusCode)
	}
	return nil
}
