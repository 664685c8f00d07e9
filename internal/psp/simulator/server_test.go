package simulator_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	server "github.com/kessai/kessai/infra/local/simulator"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/psp/simulator"
)

// realSimulator is the adapter joined to the PSP simulator itself, with which it
// shares no code, and what its webhooks were understood to say.
type realSimulator struct {
	*simulator.Adapter
	client *http.Client

	mu     sync.Mutex
	events []string
}

func joinSimulator(t *testing.T) *realSimulator {
	s := &realSimulator{}
	receiver := psptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		notifications, err := s.Verify(psp.Delivery{Header: r.Header, Body: body, ReceivedAt: time.Now()})
		if err != nil {
			t.Errorf("got %v, want the simulator's signature to verify", err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		event, err := s.Parse(notifications[0])
		if err != nil || event.Charge.PaymentID != "pay_1" || notifications[0].EventID != r.Header.Get("Webhook-Id") {
			t.Errorf("%s: got %+v %v, want an event about pay_1", notifications[0].Type, event, err)
		}
		s.mu.Lock()
		s.events = append(s.events, notifications[0].Type)
		s.mu.Unlock()
	}))
	provider, err := server.New(server.Config{
		WebhookURL: "http://webhook.invalid/simulator", PublicURL: baseURL, Secret: secret, HTTPClient: receiver.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	network := psptest.Serve(t, http.StripPrefix("/base", provider))
	t.Cleanup(provider.Close) // before the networks, which wait for it
	s.client = network.Client()
	s.Adapter = newAdapter(t, baseURL, s.client)
	return s
}

// told waits long enough for every webhook and returns their types.
func (s *realSimulator) told() []string {
	time.Sleep(time.Minute) // the bubble's: no time at all
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

func TestEveryTokenOfTheSimulatorIsUnderstood(t *testing.T) {
	tests := []struct {
		token   string
		outcome psp.Outcome
		err     bool
		answer  psp.Status // of the create
		found   psp.Status // by a look-up a minute later, "" for none
		told    string
	}{
		{token: "tok_captured", answer: psp.StatusCaptured, found: psp.StatusCaptured, told: "charge.captured"},
		{token: "tok_declined", answer: psp.StatusFailed, found: psp.StatusFailed, told: "charge.failed"},
		{token: "tok_insufficient_funds", answer: psp.StatusFailed, found: psp.StatusFailed, told: "charge.failed"},
		{token: "tok_requires_action", answer: psp.StatusRequiresAction, found: psp.StatusRequiresAction, told: "charge.requires_action"},
		{token: "tok_pending", answer: psp.StatusPending, found: psp.StatusCaptured, told: "charge.pending charge.captured"},
		{token: "tok_pending_silent", answer: psp.StatusPending, found: psp.StatusCaptured},
		{token: "tok_timeout_captured", err: true, found: psp.StatusCaptured, told: "charge.captured"},
		{token: "tok_timeout_captured_silent", err: true, found: psp.StatusCaptured},
		{token: "tok_timeout_nothing", err: true},
		{token: "tok_error_captured", err: true, found: psp.StatusCaptured, told: "charge.captured"},
		{token: "tok_error_once", err: true},
		{token: "tok_rate_limited_once", err: true, outcome: psp.OutcomeThrottled},
		{token: "tok_webhook_first", answer: psp.StatusCaptured, found: psp.StatusCaptured, told: "charge.captured"},
		{token: "tok_webhook_twice", answer: psp.StatusCaptured, found: psp.StatusCaptured, told: "charge.captured charge.captured charge.captured"},
		{token: "tok_webhook_reversed", answer: psp.StatusCaptured, found: psp.StatusCaptured, told: "charge.captured charge.authorized"},
		{token: "tok_late_captured", answer: psp.StatusPending, found: psp.StatusPending, told: "charge.pending"},
		{token: "tok_refund_pending_failed", answer: psp.StatusCaptured, found: psp.StatusCaptured, told: "charge.captured"},
		{token: "tok_of_nobody", err: true, outcome: psp.OutcomeRejected},
	}
	for _, tt := range tests {
		t.Run(tt.token, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := joinSimulator(t)
				request := createRequest()
				request.PaymentMethod = payment.Secret(tt.token)
				c, err := s.Create(t.Context(), request)
				if (err != nil) != tt.err || (err != nil && psp.OutcomeOf(err) != tt.outcome) || c.Status != tt.answer {
					t.Errorf("got %+v %v, want %q or an error %t with outcome %d", c, err, tt.answer, tt.err, tt.outcome)
				}
				if got := strings.Join(s.told(), " "); got != tt.told {
					t.Errorf("got webhooks %q, want %q", got, tt.told)
				}
				found, err := s.Lookup(t.Context(), psp.LookupRequest{PaymentID: "pay_1"})
				if errors.Is(err, psp.ErrNotFound) != (tt.found == "") || found.Status != tt.found {
					t.Errorf("got %+v %v, want %q", found, err, tt.found)
				}
				if tt.found != "" && (found.PaymentID != "pay_1" || found.Amount != request.Amount) {
					t.Errorf("got %+v, want the charge of pay_1 of %s", found, request.Amount)
				}
			})
		})
	}
}

func TestTheLifeOfAChargeAtTheSimulator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := joinSimulator(t)
		kwd := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "KWD"} }
		request := createRequest()
		request.ManualCapture = true
		held, err := s.Create(t.Context(), request)
		if err != nil || held.Status != psp.StatusAuthorized {
			t.Fatalf("got %+v %v, want authorized", held, err)
		}
		if _, err := s.Capture(t.Context(), psp.CaptureRequest{Key: "c1", Reference: held.Reference, Amount: kwd(18601)}); psp.OutcomeOf(err) != psp.OutcomeRejected {
			t.Errorf("got %v, want OutcomeRejected", err)
		}
		taken, err := s.Capture(t.Context(), psp.CaptureRequest{Key: "c2", Reference: held.Reference, Amount: kwd(10000)})
		if err != nil || taken.Status != psp.StatusCaptured || taken.Captured != 10000 {
			t.Fatalf("got %+v %v, want 10000 captured", taken, err)
		}
		_, err = s.Cancel(t.Context(), psp.CancelRequest{Key: "c3", Reference: held.Reference})
		if e, ok := errors.AsType[*psp.Error](err); !ok || e.Outcome != psp.OutcomeRejected || e.Code != "charge_captured" {
			t.Errorf("got %v, want charge_captured", err)
		}
		refund := psp.RefundRequest{Key: "r1", Reference: held.Reference, RefundID: "re_1", Amount: kwd(4000)}
		for range 2 {
			got, err := s.Refund(t.Context(), refund)
			if err != nil || got.Amount != 4000 || got.RefundID != "re_1" || got.Status != psp.RefundSucceeded {
				t.Errorf("got %+v %v, want 4000 returned", got, err)
			}
		}
		refund.Amount = kwd(4001)
		if _, err := s.Refund(t.Context(), refund); psp.OutcomeOf(err) != psp.OutcomeKeyReused {
			t.Errorf("got %v, want OutcomeKeyReused", err)
		}
		refund.Key = "r2"
		refund.Amount = kwd(6001)
		if _, err := s.Refund(t.Context(), refund); psp.OutcomeOf(err) != psp.OutcomeRejected {
			t.Errorf("got %v, want OutcomeRejected", err)
		}
		found, err := s.Lookup(t.Context(), psp.LookupRequest{Reference: held.Reference})
		if err != nil || found.Captured != 10000 || found.Refunded != 4000 || len(found.Refunds) != 1 || found.Refunds[0].RefundID != "re_1" {
			t.Errorf("got %+v %v, want 10000 captured and 4000 returned", found, err)
		}
		if _, err := s.Lookup(t.Context(), psp.LookupRequest{Reference: "ch_nobody"}); !errors.Is(err, psp.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if got, want := s.told(), []string{"charge.authorized", "charge.captured", "refund.succeeded"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestSilenceEndsByTheAdaptersOwnTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := joinSimulator(t)
		fault := strings.NewReader(`{"operation":"cancel","times":1,"status":0}`)
		response, err := s.client.Post(baseURL+"/_control/faults", "application/json", fault)
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("got %v %v, want the fault set", response, err)
		}
		_ = response.Body.Close()
		c, err := s.Create(t.Context(), createRequest())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = s.Cancel(t.Context(), psp.CancelRequest{Key: "k", Reference: c.Reference})
		if psp.OutcomeOf(err) != psp.OutcomeUnknown || err == nil || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %s, want OutcomeUnknown after the adapter's own time-out", err, time.Since(start))
		}
	})
}
