package simulator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
	"github.com/kessai/kessai/internal/psp/simulator"
)

const (
	baseURL = "http://psp.invalid:3002/base"
	secret  = "whsec_a2Vzc2FpLXRlc3Qtc2VjcmV0LW51bWJlci1vbmU="
)

// standIn is the simulator's wire format, written by hand over a psptest.Fake,
// with answers that can be made wrong.
type standIn struct {
	fake *psptest.Fake

	mu     sync.Mutex
	faults map[psptest.Operation]psptest.Fault
	sent   []psptest.Sent
	stray  int // requests for another host
}

// newHarness is an adapter that talks to a stand-in.
func newHarness(t *testing.T) psptest.Harness {
	s := &standIn{fake: psptest.NewFake("simulator"), faults: map[psptest.Operation]psptest.Fault{}}
	network := psptest.Serve(t, s)
	adapter, err := simulator.New(simulator.Config{
		BaseURL: baseURL, Secrets: []string{secret}, Tolerance: 5 * time.Minute, Timeout: 10 * time.Second,
		HTTPClient: network.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.stray > 0 {
			t.Errorf("got %d requests to another host, want redirects not followed", s.stray)
		}
	})
	return psptest.Harness{
		Provider: adapter,
		Break: func(operation psptest.Operation, fault psptest.Fault) bool {
			if operation == psptest.OperationLookup && fault == psptest.FaultInProgress {
				return false
			}
			network.SetDown(fault == psptest.FaultConnectionRefused)
			s.set(operation, fault)
			return true
		},
		Heal: func() {
			network.SetDown(false)
			s.mu.Lock()
			defer s.mu.Unlock()
			clear(s.faults)
		},
		Sent: func() []psptest.Sent {
			s.mu.Lock()
			defer s.mu.Unlock()
			return append([]psptest.Sent(nil), s.sent...)
		},
		Charges: func(paymentID string) []psp.Charge {
			var all []psp.Charge
			for _, c := range s.fake.Charges() {
				if c.PaymentID == paymentID {
					all = append(all, c)
				}
			}
			return all
		},
		Hidden: []string{"psp.invalid", "3002", secret},
	}
}

func (s *standIn) set(operation psptest.Operation, fault psptest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[operation] = fault
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	operation, serve := s.route(r, body)
	s.mu.Lock()
	s.sent = append(s.sent, psptest.Sent{Operation: operation, Key: r.Header.Get("Idempotency-Key"), Body: string(body)})
	fault := s.faults[operation]
	if r.Host != "psp.invalid:3002" {
		s.stray++
	}
	s.mu.Unlock()

	answer := httptest.NewRecorder()
	if fault == "" || fault.Effect() {
		serve(answer)
	}
	if fault != "" {
		misanswer(w, r, fault, answer.Body.Bytes())
		return
	}
	if answer.Code == 0 || answer.Header().Get("Silent") != "" {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// route is the operation asked for, and its effect.
func (s *standIn) route(r *http.Request, body []byte) (psptest.Operation, func(http.ResponseWriter)) {
	path, _ := strings.CutPrefix(r.URL.Path, "/base")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	key := r.Header.Get("Idempotency-Key")
	var in struct {
		Reference     string            `json:"reference"`
		Amount        int64             `json:"amount"`
		Currency      money.Currency    `json:"currency"`
		PaymentMethod string            `json:"payment_method"`
		CaptureMethod string            `json:"capture_method"`
		ReturnURL     string            `json:"return_url"`
		Metadata      map[string]string `json:"metadata"`
	}
	_ = json.Unmarshal(body, &in)
	amount := money.Amount{Minor: in.Amount, Currency: in.Currency}
	ctx := r.Context()
	switch {
	case r.Method == "POST" && len(parts) == 1:
		return psptest.OperationCreate, func(w http.ResponseWriter) {
			writeCharge(w, http.StatusCreated)(s.fake.Create(ctx, psp.CreateRequest{
				Key: key, PaymentID: in.Reference, Amount: amount, PaymentMethod: payment.Secret(in.PaymentMethod),
				ManualCapture: in.CaptureMethod == "manual", ReturnURL: in.ReturnURL, Metadata: in.Metadata,
			}))
		}
	case r.Method == "POST" && len(parts) == 3 && parts[2] == "capture":
		return psptest.OperationCapture, func(w http.ResponseWriter) {
			writeCharge(w, http.StatusOK)(s.fake.Capture(ctx, psp.CaptureRequest{Key: key, Reference: parts[1], Amount: amount}))
		}
	case r.Method == "POST" && len(parts) == 3 && parts[2] == "cancel":
		return psptest.OperationCancel, func(w http.ResponseWriter) {
			writeCharge(w, http.StatusOK)(s.fake.Cancel(ctx, psp.CancelRequest{Key: key, Reference: parts[1]}))
		}
	case r.Method == "POST" && len(parts) == 3 && parts[2] == "refunds":
		return psptest.OperationRefund, func(w http.ResponseWriter) {
			refund, err := s.fake.Refund(ctx, psp.RefundRequest{Key: key, Reference: parts[1], RefundID: in.Reference, Amount: amount})
			if err != nil {
				writeError(w, err)
				return
			}
			writeJSON(w, http.StatusCreated, refundJSON(parts[1], refund))
		}
	case r.Method == "GET" && len(parts) == 2:
		return psptest.OperationLookup, func(w http.ResponseWriter) {
			writeCharge(w, http.StatusOK)(s.fake.Lookup(ctx, psp.LookupRequest{Reference: parts[1]}))
		}
	case r.Method == "GET" && len(parts) == 1:
		return psptest.OperationLookup, func(w http.ResponseWriter) {
			data := []any{}
			for _, c := range s.fake.Charges() {
				if c.PaymentID == r.URL.Query().Get("reference") {
					data = append([]any{chargeJSON(c)}, data...)
				}
			}
			writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data, "next_cursor": nil})
		}
	}
	return "", func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }
}

func writeCharge(w http.ResponseWriter, status int) func(psp.Charge, error) {
	return func(c psp.Charge, err error) {
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, status, chargeJSON(c))
	}
}

// writeError is what the Fake says in the simulator's words. No answer at all is
// a header that ServeHTTP looks at.
func writeError(w http.ResponseWriter, err error) {
	if errors.Is(err, psp.ErrNotFound) {
		err = &psp.Error{HTTPStatus: http.StatusNotFound, Code: "charge_not_found"}
	}
	e, ok := errors.AsType[*psp.Error](err)
	if !ok || e.HTTPStatus == 0 {
		w.Header().Set("Silent", "true")
		return
	}
	writeJSON(w, e.HTTPStatus, map[string]any{"error": map[string]any{"code": e.Code, "message": psptest.Canary}})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func chargeJSON(c psp.Charge) map[string]any {
	refunds := []any{}
	for _, r := range c.Refunds {
		refunds = append(refunds, refundJSON(c.Reference, r))
	}
	var redirect, decline any
	if c.RedirectURL != "" {
		redirect = c.RedirectURL.Reveal()
	}
	if c.Decline != nil {
		decline = c.Decline.Code
	}
	return map[string]any{
		"id": c.Reference, "reference": c.PaymentID, "amount": c.Amount.Minor, "currency": c.Amount.Currency,
		"status": c.Status, "captured": c.Captured, "refunded": c.Refunded, "redirect_url": redirect,
		"decline_code": decline, "refunds": refunds, "added_later": map[string]any{"by": "the provider"},
	}
}

func refundJSON(charge string, r psp.Refund) map[string]any {
	var reference any
	if r.RefundID != "" {
		reference = r.RefundID
	}
	return map[string]any{
		"id": r.Reference, "charge": charge, "amount": r.Amount, "status": r.Status, "reference": reference, "added_later": 1.5,
	}
}

var (
	statusMember = regexp.MustCompile(`"status":"[a-z_]+"`)
	idMember     = regexp.MustCompile(`"id":"[^"]+",`)
	amountMember = regexp.MustCompile(`"amount":(\d+)`)
)

// misanswer gives the fault instead of the right answer.
func misanswer(w http.ResponseWriter, r *http.Request, fault psptest.Fault, right []byte) {
	reply := func(status int, contentType, body string) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
	const asJSON, page = "application/json", "<html>" + psptest.Canary + "</html>"
	refusal := func(code string) string {
		return `{"error":{"code":"` + code + `","message":"` + psptest.Canary + `"}}`
	}
	edited := func(pattern *regexp.Regexp, to string) {
		reply(200, asJSON, string(pattern.ReplaceAll(right, []byte(to))))
	}
	switch fault {
	case psptest.FaultConnectionRefused:
		panic("a request arrived although the network is down")
	case psptest.FaultSilenceBefore, psptest.FaultSilenceAfter:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case psptest.FaultCut:
		panic(http.ErrAbortHandler)
	case psptest.FaultErrorBefore, psptest.FaultErrorAfter:
		reply(500, asJSON, refusal("internal_error"))
	case psptest.FaultUnavailable:
		reply(503, asJSON, refusal("try_again"))
	case psptest.FaultGatewayPage:
		reply(502, "text/html", page)
	case psptest.FaultRefusalPage:
		reply(404, "text/html", page)
	case psptest.FaultUnauthorized:
		reply(401, asJSON, refusal("unauthorized"))
	case psptest.FaultRedirected:
		w.Header().Set("Location", "http://elsewhere.invalid/"+psptest.Canary)
		reply(307, asJSON, "{}")
	case psptest.FaultThrottled:
		w.Header().Set("Retry-After", "7")
		reply(429, asJSON, refusal("try_again"))
	case psptest.FaultThrottledUntil:
		w.Header().Set("Retry-After", time.Now().Add(7*time.Second).UTC().Format(http.TimeFormat))
		reply(429, "text/html", page)
	case psptest.FaultThrottledForever:
		w.Header().Set("Retry-After", "99999999999")
		reply(429, asJSON, refusal("try_again"))
	case psptest.FaultInProgress:
		reply(409, asJSON, refusal("idempotency_in_progress"))
	case psptest.FaultEmpty:
		reply(200, asJSON, "")
	case psptest.FaultPage:
		reply(200, "text/html", page)
	case psptest.FaultWrongContentType:
		reply(200, "text/plain", string(right))
	case psptest.FaultTruncated:
		w.Header().Set("Content-Length", strconv.Itoa(len(right)))
		reply(200, asJSON, string(right[:len(right)/2]))
		panic(http.ErrAbortHandler)
	case psptest.FaultTruncatedJSON:
		reply(200, asJSON, string(right[:len(right)/2]))
	case psptest.FaultHuge:
		padding := `,"padding":"` + strings.Repeat("x", 8<<20) + `"}`
		reply(200, asJSON, string(bytes.TrimSuffix(bytes.TrimSpace(right), []byte("}")))+padding)
	case psptest.FaultUnknownStatus:
		edited(statusMember, `"status":"`+psptest.Canary+`"`)
	case psptest.FaultMissingID:
		edited(idMember, "")
	case psptest.FaultFraction:
		edited(amountMember, `"amount":$1.5`)
	case psptest.FaultExponent:
		edited(amountMember, `"amount":${1}e0`)
	case psptest.FaultTextAmount:
		edited(amountMember, `"amount":"$1"`)
	case psptest.FaultNullAmount:
		edited(amountMember, `"amount":null`)
	case psptest.FaultNegativeAmount:
		edited(amountMember, `"amount":-$1`)
	case psptest.FaultDuplicateMember:
		edited(amountMember, `"amount":1,"amount":$1`)
	case psptest.FaultTrailingData:
		reply(200, asJSON, string(right)+string(right))
	}
}
