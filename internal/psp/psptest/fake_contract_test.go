package psptest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// The Fake keeps the part of the contract that needs no network: what a hook
// returns stands for what an adapter would have made of the fault.
func TestFakeKeepsTheContract(t *testing.T) {
	psptest.Run(t, func(*testing.T) psptest.Harness {
		fake := psptest.NewFake("simulator")
		return psptest.Harness{
			Provider: fake,
			Break:    func(o psptest.Operation, f psptest.Fault) bool { return breakFake(fake, o, f) },
			Heal: func() {
				for _, operation := range psptest.Operations() {
					fake.Before(operation, nil)
					fake.After(operation, nil)
				}
			},
			Sent: func() []psptest.Sent {
				var all []psptest.Sent
				for _, c := range fake.Calls() {
					all = append(all, psptest.Sent{Operation: c.Operation, Key: c.Key})
				}
				return all
			},
			Charges: func(paymentID string) []psp.Charge {
				var all []psp.Charge
				for _, c := range fake.Charges() {
					if c.PaymentID == paymentID {
						all = append(all, c)
					}
				}
				return all
			},
		}
	})
}

func breakFake(fake *psptest.Fake, operation psptest.Operation, fault psptest.Fault) bool {
	lost := errors.New("lost")
	told := func(e psp.Error) error {
		e.Operation, e.Outcome = string(operation), fault.Outcome()
		return &e
	}
	failure, found := map[psptest.Fault]error{
		psptest.FaultSilenceBefore:     lost,
		psptest.FaultSilenceAfter:      lost,
		psptest.FaultErrorBefore:       lost,
		psptest.FaultErrorAfter:        lost,
		psptest.FaultConnectionRefused: told(psp.Error{}),
		psptest.FaultInProgress:        told(psp.Error{HTTPStatus: 409}),
		psptest.FaultThrottled:         told(psp.Error{HTTPStatus: 429, RetryAfter: 7 * time.Second}),
	}[fault]
	if !found {
		return false
	}
	hook := func() error { return failure }
	if fault.Effect() {
		fake.After(operation, hook)
	} else {
		fake.Before(operation, hook)
	}
	return true
}
