package psptest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/kessai/kessai/internal/psp"
)

// OperationList is the reading of all charges. It is no call about a payment:
// Calls does not count it. A Before hook may fail it, Alter changes each charge.
const OperationList Operation = "list"

// fakePage is the length of a page of the Fake's list: short, so that a handful of
// charges has several.
const fakePage = 5

var errCursor = errors.New("psptest: no cursor of this list")

// List is one page of the charges as they are now, oldest first. The Fake has no
// clock: since is not looked at.
func (f *Fake) List(_ context.Context, _ time.Time, cursor string) (charges []psp.Charge, next string, err error) {
	f.mu.Lock()
	hook, alter := f.before[OperationList], f.alter[OperationList]
	f.mu.Unlock()
	if err := run(hook, OperationList); err != nil {
		return nil, "", err
	}
	all := f.Charges()
	start := 0
	if cursor != "" {
		if start, err = strconv.Atoi(cursor); err != nil || start < 0 || start > len(all) {
			return nil, "", errCursor
		}
	}
	end := min(start+fakePage, len(all))
	for _, c := range all[start:end] {
		if alter != nil {
			alter(&c)
		}
		charges = append(charges, c)
	}
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	return charges, next, nil
}

// Forget is a provider that has lost every trace of a payment's charges.
func (f *Fake) Forget(paymentID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var kept []*charge
	for _, c := range f.charges {
		if c.PaymentID != paymentID {
			kept = append(kept, c)
		}
	}
	f.forgotten += len(f.charges) - len(kept)
	f.charges = kept
}
