package simulator

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/psp"
)

// codeNotFound is the one code by which the simulator says that it has no such
// charge. A 404 with another one is about the address.
const codeNotFound = "charge_not_found"

// maxPages bounds one look-up by reference. One reference has one charge, or a
// few where something went badly wrong; a list that goes on is no answer.
const maxPages = 5

// Lookup finds a charge by the provider's id if it is given, else by the payment
// id. It returns psp.ErrNotFound when the provider says that there is none. Of
// several charges with one payment id it returns the one that matters most:
// money taken, money held, money that may still be taken, money given back, none.
func (a *Adapter) Lookup(ctx context.Context, r psp.LookupRequest) (psp.Charge, error) {
	if r.Reference == "" {
		return a.lookupByPayment(ctx, r.PaymentID)
	}
	if !isID(r.Reference) {
		return psp.Charge{}, notSent(operationLookup, errIncomplete)
	}
	answer, err := a.send(ctx, operationLookup, request{method: http.MethodGet, path: chargePath(r.Reference)})
	if e, ok := errors.AsType[*psp.Error](err); ok && e.HTTPStatus == http.StatusNotFound && e.Code == codeNotFound {
		return psp.Charge{}, psp.ErrNotFound
	}
	if err != nil {
		return psp.Charge{}, err
	}
	charge, err := decodeCharge(answer.body)
	if err != nil {
		return psp.Charge{}, unknown(operationLookup, answer.status, err)
	}
	return charge, nil
}

func (a *Adapter) lookupByPayment(ctx context.Context, paymentID string) (psp.Charge, error) {
	if paymentID == "" {
		return psp.Charge{}, notSent(operationLookup, errIncomplete)
	}
	var found []psp.Charge
	query := url.Values{"reference": {paymentID}}
	for range maxPages {
		answer, err := a.send(ctx, operationLookup, request{method: http.MethodGet, path: "/charges?" + query.Encode()})
		if err != nil {
			return psp.Charge{}, err
		}
		charges, next, err := decodeList(answer.body, paymentID)
		if err != nil {
			return psp.Charge{}, unknown(operationLookup, answer.status, err)
		}
		found = append(found, charges...)
		if next == "" {
			return mostImportant(found)
		}
		query.Set("cursor", next)
	}
	return psp.Charge{}, unknown(operationLookup, http.StatusOK, errEndless)
}

// decodeList is one page of charges that all have that payment id, and the next
// page's cursor. A page with another payment's charge does not answer the question.
func decodeList(body []byte, paymentID string) (charges []psp.Charge, next string, err error) {
	charges, next, err = decodePage(body)
	for _, charge := range charges {
		if charge.PaymentID != paymentID {
			return nil, "", errForeign
		}
	}
	return charges, next, err
}

// decodePage is one page of charges, whole or not at all, and the next page's cursor.
func decodePage(body []byte) (charges []psp.Charge, next string, err error) {
	var page struct {
		Data       *[]jsontext.Value `json:"data"`
		NextCursor *string           `json:"next_cursor"`
	}
	if err := json.Unmarshal(body, &page); err != nil || page.Data == nil {
		return nil, "", errMalformed
	}
	for _, item := range *page.Data {
		charge, err := decodeCharge(item)
		if err != nil {
			return nil, "", err
		}
		charges = append(charges, charge)
	}
	if page.NextCursor != nil {
		next = *page.NextCursor
	}
	return charges, next, nil
}

// mostImportant is the first of the charges with the highest rank, or psp.ErrNotFound.
func mostImportant(charges []psp.Charge) (psp.Charge, error) {
	if len(charges) == 0 {
		return psp.Charge{}, psp.ErrNotFound
	}
	best := charges[0]
	for _, charge := range charges[1:] {
		if rank(charge) > rank(best) {
			best = charge
		}
	}
	return best, nil
}

// rank orders charges by what is at stake.
func rank(c psp.Charge) int {
	switch c.Status {
	case psp.StatusCaptured:
		if c.Captured > c.Refunded {
			return 5
		}
		return 2
	case psp.StatusAuthorized:
		return 4
	case psp.StatusPending, psp.StatusRequiresAction:
		return 3
	case psp.StatusCanceled:
		return 1
	case psp.StatusFailed:
		return 0
	}
	return -1 // not reached: decodeCharge knows every status
}
