package explore

import (
	"context"
	"errors"
	"fmt"

	"github.com/kessai/kessai/internal/payment"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// pspPort is the way to the provider.
type pspPort struct {
	w    *world
	fake *psptest.Fake
}

var _ psp.Provider = (*pspPort)(nil)

var errSilence = errors.New("explore: no answer from the psp")

func (p *pspPort) Name() string                   { return p.fake.Name() }
func (p *pspPort) Capabilities() psp.Capabilities { return p.fake.Capabilities() }

// pspFault is the error that a caller gets.
func pspFault(operation psptest.Operation, f fault) error {
	outcome := psp.OutcomeUnknown
	if f == throttled {
		outcome = psp.OutcomeThrottled
	}
	return &psp.Error{Operation: string(operation), Outcome: outcome, Err: errSilence}
}

// send makes one call that may move money.
func (p *pspPort) send(operation psptest.Operation, s sending, run func() (any, error)) (answer any, err error) {
	p.w.do(&call{
		name:   func() string { return fmt.Sprintf("psp %s key %s", operation, short(s.key)) },
		faults: sendFaults, sends: true,
		apply: func() {
			p.w.noteSending(s)
			answer, err = run()
			p.w.happened()
		},
		fail: func(f fault) {
			if f != applied {
				p.w.noteSending(s)
			}
			answer, err = nil, pspFault(operation, f)
		},
		digest: func() uint64 { return digestAnswer(answer) ^ digestError(err) },
		land: func(w *world) {
			_, _ = run()
			w.happened()
		},
	})
	return answer, err
}

func (p *pspPort) Create(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
	a, err := p.send(psptest.OperationCreate, sending{"charge of " + r.PaymentID, r.Key, r.Amount.Minor},
		func() (any, error) { return p.fake.Create(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Charge)
	return c, err
}

func (p *pspPort) Capture(ctx context.Context, r psp.CaptureRequest) (psp.Charge, error) {
	a, err := p.send(psptest.OperationCapture, sending{"capture of " + r.Reference, r.Key, r.Amount.Minor},
		func() (any, error) { return p.fake.Capture(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Charge)
	return c, err
}

func (p *pspPort) Cancel(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
	if a := p.w.current; a == nil || a.name == "sweep" {
		p.w.reach("void by the sweep")
	}
	a, err := p.send(psptest.OperationCancel, sending{"void of " + r.Reference, r.Key, 0},
		func() (any, error) { return p.fake.Cancel(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Charge)
	return c, err
}

func (p *pspPort) Refund(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
	for _, c := range p.fake.Charges() {
		if c.Reference == r.Reference && p.w.status(payment.ID(c.PaymentID)).Dead() {
			p.w.reach("refund of late money")
		}
	}
	a, err := p.send(psptest.OperationRefund, sending{"refund " + r.RefundID, r.Key, r.Amount.Minor},
		func() (any, error) { return p.fake.Refund(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Refund)
	return c, err
}

func (p *pspPort) Lookup(ctx context.Context, r psp.LookupRequest) (c psp.Charge, err error) {
	p.w.do(&call{
		name:   func() string { return "psp lookup" },
		faults: askFaults,
		apply: func() {
			if p.w.blind() {
				c, err = psp.Charge{}, psp.ErrNotFound
				return
			}
			c, err = p.fake.Lookup(context.WithoutCancel(ctx), r)
		},
		fail:   func(f fault) { c, err = psp.Charge{}, pspFault(psptest.OperationLookup, f) },
		digest: func() uint64 { return digestCharge(c) ^ digestError(err) },
	})
	return c, err
}

// short is the end of a key, for a trace.
func short(key string) string {
	if len(key) > 12 {
		return "…" + key[len(key)-12:]
	}
	return key
}
