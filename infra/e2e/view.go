package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// payment is a payment as merchants see it.
type payment struct {
	ID, Object, Status string
	Version            int64
	Amount             int64
	Currency           string
	AmountCaptured     int64   `json:"amount_captured"`
	AmountRefunded     int64   `json:"amount_refunded"`
	CaptureMethod      string  `json:"capture_method"`
	Reference          *string `json:"reference"`
	PSP                string
	PSPReference       *string `json:"psp_reference"`
	Failure            *failure
	NextAction         *nextAction `json:"next_action"`
	ClientSecret       *string     `json:"client_secret"`
	InDoubt            bool        `json:"in_doubt"`
	Disputed           bool
	Refunds            []refund
	Metadata           map[string]string
	CreatedAt          time.Time `json:"created_at"`
	UpdatedAt          time.Time `json:"updated_at"`
}

type failure struct {
	Code        string
	DeclineCode *string `json:"decline_code"`
	Retryable   bool
}

type nextAction struct {
	Type        string
	RedirectURL string `json:"redirect_url"`
}

type refund struct {
	ID, Object, Status string
	Amount             int64
	Reason             *string
	PSPReference       *string `json:"psp_reference"`
}

// row is a row of a journal.
type row struct {
	ID, Type, Source string
	Version          int64
	At               time.Time
	Data             map[string]json.RawMessage
}

// paymentMembers is what every view of a payment has.
var paymentMembers = []string{
	"id", "object", "status", "version", "amount", "currency", "amount_captured", "amount_refunded", "capture_method",
	"reference", "psp", "psp_reference", "failure", "next_action", "client_secret", "in_doubt", "disputed", "refunds",
	"metadata", "created_at", "updated_at",
}

var (
	paymentID = regexp.MustCompile(`^pay_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	refundID  = regexp.MustCompile(`^re_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	utcTime   = regexp.MustCompile(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"$`)
)

var statuses = []string{"created", "processing", "requires_action", "authorized", "captured", "failed", "canceled", "refunded"}

func terminal(status string) bool {
	return slices.Contains([]string{"captured", "failed", "canceled", "refunded"}, status)
}

// payment reads a payment and checks what holds of every view of one.
func (a answer) payment(t *testing.T) payment {
	t.Helper()
	return checkPayment(t, a.String(), a.body)
}

func checkPayment(t *testing.T, where string, text []byte) payment {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, name := range paymentMembers {
		value, found := members[name]
		if !found {
			t.Errorf("%s: a payment without %s", where, name)
		}
		if (name == "refunds" || name == "metadata") && string(value) == "null" {
			t.Errorf("%s: %s is null", where, name)
		}
		if strings.HasSuffix(name, "_at") && !utcTime.Match(value) {
			t.Errorf("%s: %s is %s, want RFC 3339 in UTC", where, name, value)
		}
	}
	var p payment
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	if !paymentID.MatchString(p.ID) || p.Object != "payment" || p.Version < 1 || !slices.Contains(statuses, p.Status) {
		t.Errorf("%s: got id %q, object %q, version %d, status %q", where, p.ID, p.Object, p.Version, p.Status)
	}
	if p.Status == "requires_action" {
		if p.NextAction == nil || p.NextAction.Type != "redirect" || p.NextAction.RedirectURL == "" {
			t.Errorf("%s: requires_action without a redirect", where)
		}
	} else if p.NextAction != nil || p.ClientSecret != nil {
		t.Errorf("%s: next_action or client_secret in %s", where, p.Status)
	}
	if (p.Status == "failed") != (p.Failure != nil) && p.Status != "canceled" && p.Status != "refunded" {
		t.Errorf("%s: got failure %+v in %s", where, p.Failure, p.Status)
	}
	if p.AmountRefunded < 0 || p.AmountRefunded > p.AmountCaptured || p.AmountCaptured > p.Amount {
		t.Errorf("%s: got amount %d, captured %d, refunded %d", where, p.Amount, p.AmountCaptured, p.AmountRefunded)
	}
	if captured := p.Status == "captured" || p.Status == "refunded"; captured != (p.AmountCaptured > 0) && !lateMoneyComing(p) {
		t.Errorf("%s: got amount_captured %d in %s", where, p.AmountCaptured, p.Status)
	}
	return p
}

// lateMoneyComing says that the payment is dead and its late money is not back yet.
func lateMoneyComing(p payment) bool {
	return (p.Status == "canceled" || p.Status == "failed") && len(p.Refunds) > 0
}

// basket is a payment request that succeeds; members replace its own.
func (s *stage) basket(members object) object {
	return object{"amount": 5000, "currency": "JPY", "payment_method": "tok_captured", "reference": s.unique("order")}.with(members)
}

// pay makes a payment and wants it in one of the statuses.
func (s *stage) pay(t *testing.T, members object, status ...string) payment {
	t.Helper()
	p := s.alpha.post(t, "/v1/payments", s.basket(members)).want(t, http.StatusCreated, http.StatusAccepted).payment(t)
	if !slices.Contains(status, p.Status) {
		t.Fatalf("got payment %s %s (in doubt: %t), want %v", p.ID, p.Status, p.InDoubt, status)
	}
	return p
}

// paid is a captured payment.
func (s *stage) paid(t *testing.T, members object) payment {
	t.Helper()
	return s.pay(t, members, "captured")
}

// held is an authorized payment.
func (s *stage) held(t *testing.T, members object) payment {
	t.Helper()
	return s.pay(t, object{"capture_method": "manual"}.with(members), "authorized")
}

// waiting is a payment that waits for its customer.
func (s *stage) waiting(t *testing.T, members object) payment {
	t.Helper()
	return s.pay(t, object{"payment_method": "tok_requires_action"}.with(members), "requires_action")
}

func (s *stage) read(t *testing.T, id string) payment {
	t.Helper()
	return s.alpha.get(t, "/v1/payments/"+id).want(t, http.StatusOK).payment(t)
}

// becomes waits until the payment is as it must be.
func (s *stage) becomes(t *testing.T, id, what string, is func(payment) bool) payment {
	t.Helper()
	var p payment
	s.eventually(t, id+" becomes "+what, func() (bool, any) {
		p = s.read(t, id)
		return is(p), p
	})
	return p
}

// ends waits until the payment has that status.
func (s *stage) ends(t *testing.T, id, status string) payment {
	t.Helper()
	return s.becomes(t, id, status, func(p payment) bool {
		if terminal(p.Status) && p.Status != status && status != "refunded" {
			t.Fatalf("got payment %s %s, want %s", id, p.Status, status)
		}
		return p.Status == status
	})
}

// journal is every row of a payment's journal, oldest first, and checks that it
// is one.
func (s *stage) journal(t *testing.T, id string) []row {
	t.Helper()
	rows := wholeList[row](t, s.alpha, "/v1/payments/"+id+"/events")
	checkJournal(t, id, rows)
	return rows
}

func checkJournal(t *testing.T, id string, rows []row) {
	t.Helper()
	ids := map[string]bool{}
	for i, r := range rows {
		if r.Version != int64(i+1) {
			t.Errorf("journal of %s: row %d has version %d", id, i+1, r.Version)
		}
		if ids[r.ID] || r.ID == "" || r.At.IsZero() || r.Data == nil {
			t.Errorf("journal of %s: got row %+v, want an id of its own, a time and data", id, r)
		}
		ids[r.ID] = true
		if !slices.Contains([]string{"api", "webhook", "saga", "reconciler"}, r.Source) {
			t.Errorf("journal of %s: got source %q", id, r.Source)
		}
	}
	if n := ofType(rows, "payment.captured"); n > 1 {
		t.Errorf("journal of %s: got %d payment.captured, want one at most", id, n)
	}
}

func ofType(rows []row, kind string) int {
	return count(rows, func(r row) bool { return r.Type == kind })
}
