package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// charge is a charge at the simulator.
type charge struct {
	ID          string      `json:"id"`
	Reference   *string     `json:"reference"`
	Amount      int64       `json:"amount"`
	Currency    string      `json:"currency"`
	Status      string      `json:"status"`
	Captured    int64       `json:"captured"`
	Refunded    int64       `json:"refunded"`
	RedirectURL *string     `json:"redirect_url"`
	DeclineCode *string     `json:"decline_code"`
	Refunds     []pspRefund `json:"refunds"`
}

type pspRefund struct {
	ID        string  `json:"id"`
	Charge    string  `json:"charge"`
	Amount    int64   `json:"amount"`
	Status    string  `json:"status"`
	Reference *string `json:"reference"`
}

// call is a request that the simulator got.
type call struct {
	At             string          `json:"at"`
	Method         string          `json:"method"`
	Path           string          `json:"path"`
	IdempotencyKey *string         `json:"idempotency_key"`
	Body           json.RawMessage `json:"body"`
	Status         *int            `json:"status"`
}

// charges is what the simulator has for a payment.
func (s *stage) charges(t *testing.T, paymentID string) []charge {
	t.Helper()
	return list[charge](t, s.psp.get(t, "/charges?reference="+url.QueryEscape(paymentID))).Data
}

// charge is the one charge that a payment has.
func (s *stage) charge(t *testing.T, paymentID string) charge {
	t.Helper()
	all := s.charges(t, paymentID)
	if len(all) != 1 {
		t.Fatalf("got %d charges for %s, want one: %+v", len(all), paymentID, all)
	}
	return all[0]
}

// posts is every POST to the simulator with that path.
func (s *stage) posts(t *testing.T, path string) []call {
	t.Helper()
	all := wholeList[call](t, s.psp, "/_control/calls")
	return slices.DeleteFunc(all, func(c call) bool { return c.Method != http.MethodPost || c.Path != path })
}

// creates is every call that made, or tried to make, a charge for a payment.
func (s *stage) creates(t *testing.T, paymentID string) []call {
	t.Helper()
	return slices.DeleteFunc(s.posts(t, "/charges"), func(c call) bool {
		return !strings.Contains(string(c.Body), paymentID)
	})
}

// keys is the different keys of the calls.
func keys(calls []call) []string {
	var all []string
	for _, c := range calls {
		if c.IdempotencyKey == nil {
			all = append(all, "")
			continue
		}
		all = append(all, *c.IdempotencyKey)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// choose makes the customer's choice at the redirect page.
func (s *stage) choose(t *testing.T, p payment, outcome string) {
	t.Helper()
	if p.NextAction == nil {
		t.Fatalf("payment %s is %s, it has no page for the customer", p.ID, p.Status)
	}
	s.chooseAt(t, p.NextAction.RedirectURL, outcome).want(t, http.StatusOK, http.StatusNoContent, http.StatusSeeOther)
}

func (s *stage) chooseAt(t *testing.T, address, outcome string) answer {
	t.Helper()
	return client{s, "", ""}.send(t, request{method: http.MethodPost, path: address, body: object{"outcome": outcome}})
}

// control does something to the simulator that no PSP offers.
func (s *stage) control(t *testing.T, path string, body any) {
	t.Helper()
	if a := s.psp.send(t, request{method: http.MethodPost, path: "/_control/" + path, body: body}); a.status/100 != 2 {
		t.Fatalf("got %s, want 2xx", a)
	}
}

// fault makes the next calls of an operation fail; status 0 is no answer.
func (s *stage) fault(t *testing.T, operation string, times, status int) {
	t.Helper()
	s.control(t, "faults", object{"operation": operation, "times": times, "status": status})
	t.Cleanup(func() { s.control(t, "faults", object{"operation": operation, "times": 0, "status": 500}) })
}
