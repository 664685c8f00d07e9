package simulator

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/money"
	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
)

const (
	maxID   = 255 // bytes of an id or reference of the provider's
	maxKey  = 64  // characters of an idempotency key, as the port promises
	maxWord = 64  // characters of a code; they are stored and shown
)

// wireCharge is a charge as the simulator writes it. Members that are absent or
// null are nil; others that we do not know are ignored.
type wireCharge struct {
	ID          string       `json:"id"`
	Reference   string       `json:"reference"`
	Amount      *int64       `json:"amount"`
	Currency    string       `json:"currency"`
	Status      string       `json:"status"`
	Captured    *int64       `json:"captured"`
	Refunded    *int64       `json:"refunded"`
	RedirectURL *string      `json:"redirect_url"`
	DeclineCode *string      `json:"decline_code"`
	Refunds     []wireRefund `json:"refunds"`
}

// wireRefund is a refund as the simulator writes it.
type wireRefund struct {
	ID        string  `json:"id"`
	Charge    string  `json:"charge"`
	Amount    *int64  `json:"amount"`
	Status    string  `json:"status"`
	Reference *string `json:"reference"`
}

// decodeCharge is the charge of an answer, whole or not at all.
func decodeCharge(body []byte) (psp.Charge, error) {
	var wire wireCharge
	if err := json.Unmarshal(body, &wire); err != nil {
		return psp.Charge{}, errMalformed
	}
	status, known := statuses[wire.Status]
	if !known || !isMinor(wire.Captured) || !isMinor(wire.Refunded) {
		return psp.Charge{}, errMalformed
	}
	charge, err := wire.identity()
	if err != nil {
		return psp.Charge{}, err
	}
	charge.Status = status
	charge.Captured, charge.Refunded = *wire.Captured, *wire.Refunded
	if charge.Refunds, err = wire.refunds(); err != nil {
		return psp.Charge{}, err
	}
	if status == psp.StatusRequiresAction {
		if wire.RedirectURL == nil || !isRedirect(*wire.RedirectURL) {
			return psp.Charge{}, errMalformed
		}
		charge.RedirectURL = payment.Secret(*wire.RedirectURL)
	}
	if status == psp.StatusFailed {
		charge.Decline = wire.decline()
	}
	return charge, nil
}

// identity is the part of a charge that never changes: references and amount.
func (w *wireCharge) identity() (psp.Charge, error) {
	if !isID(w.ID) || len(w.Reference) > maxID || !isMinor(w.Amount) || !isCurrency(w.Currency) {
		return psp.Charge{}, errMalformed
	}
	return psp.Charge{
		Reference: w.ID,
		PaymentID: w.Reference,
		Amount:    money.Amount{Minor: *w.Amount, Currency: money.Currency(w.Currency)},
	}, nil
}

func (w *wireCharge) refunds() ([]psp.Refund, error) {
	var refunds []psp.Refund
	for _, wire := range w.Refunds {
		refund, err := wire.refund(w.ID)
		if err != nil {
			return nil, err
		}
		refunds = append(refunds, refund)
	}
	return refunds, nil
}

// decodeRefund is the refund of an answer about that charge.
func decodeRefund(body []byte, charge string) (psp.Refund, error) {
	var wire wireRefund
	if err := json.Unmarshal(body, &wire); err != nil {
		return psp.Refund{}, errMalformed
	}
	return wire.refund(charge)
}

// refund checks the refund and that it is of that charge.
func (w *wireRefund) refund(charge string) (psp.Refund, error) {
	status, known := refundStatuses[w.Status]
	if !isID(w.ID) || !isMinor(w.Amount) || !known {
		return psp.Refund{}, errMalformed
	}
	if w.Charge != "" && w.Charge != charge {
		return psp.Refund{}, errForeign
	}
	refund := psp.Refund{Reference: w.ID, Amount: *w.Amount, Status: status}
	if w.Reference != nil {
		if len(*w.Reference) > maxID {
			return psp.Refund{}, errMalformed
		}
		refund.RefundID = *w.Reference
	}
	return refund, nil
}

var statuses = map[string]psp.Status{
	"pending":         psp.StatusPending,
	"requires_action": psp.StatusRequiresAction,
	"authorized":      psp.StatusAuthorized,
	"captured":        psp.StatusCaptured,
	"failed":          psp.StatusFailed,
	"canceled":        psp.StatusCanceled,
}

var refundStatuses = map[string]psp.RefundStatus{
	"pending":   psp.RefundPending,
	"succeeded": psp.RefundSucceeded,
	"failed":    psp.RefundFailed,
}

// isMinor reports a number of minor units that is there and not negative.
func isMinor(n *int64) bool { return n != nil && *n >= 0 }

// isCurrency reports the form of an ISO 4217 code. Whether there is such a
// currency matters to nobody here: the caller compares it with the payment's.
func isCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// isID reports what may be one segment of a path and part of a stored key:
// visible ASCII without a slash, and no relative path.
func isID(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxID && isVisible(s) && !strings.Contains(s, "/")
}

// isKey reports a key that a header carries unchanged.
func isKey(s string) bool { return s != "" && len(s) <= maxKey && isVisible(s) }

// isWord reports a code fit to be stored and shown: lower-case letters, digits, underscores.
func isWord(s string) bool {
	return s != "" && len(s) <= maxWord && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isRedirect reports an address that a browser can be sent to. That rules out
// javascript: and data:, and names in front of the host that deceive people.
func isRedirect(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}
