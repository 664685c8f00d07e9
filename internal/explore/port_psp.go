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
type pspPort struct{ w *world }

var _ psp.Provider = (*pspPort)(nil)

var errSilence = errors.New("explore: no answer from the psp")

func (p *pspPort) Name() string                   { return p.w.psp.Name() }
func (p *pspPort) Capabilities() psp.Capabilities { return p.w.psp.Capabilities() }

// pspFault is the error that a caller gets.
func pspFault(operation psptest.Operation, f fault) error {
	outcome := psp.OutcomeUnknown
	if f == throttled {
		outcome = psp.OutcomeThrottled
	}
	return &psp.Error{Operation: string(operation), Outcome: outcome, Err: errSilence}
}

// told is an answer of the provider: a charge or a refund, or an error.
type told struct {
	what any
	err  error
}

func digestTold(answer any) uint64 {
	t, _ := answer.(told)
	return digestAnswer(t.what) ^ digestError(t.err)
}

// send makes one call that may move money.
func (p *pspPort) send(operation psptest.Operation, s sending, run func(f *psptest.Fake) (any, error)) (any, error) {
	effect := func(w *world) any {
		what, err := run(w.provider())
		w.happened()
		return told{what, err}
	}
	answer, _ := p.w.do(&call{
		name:   func() string { return fmt.Sprintf("psp %s key %s", operation, short(s.key)) },
		faults: sendFaults, sends: true, asks: s,
		run: func(w *world) any {
			w.noteSending(s)
			return effect(w)
		},
		fail: func(w *world, f fault, _ any) any {
			if f != applied {
				w.noteSending(s)
			}
			return told{nil, pspFault(operation, f)}
		},
		digest: digestTold,
		land:   func(w *world) { effect(w) },
	}).(told)
	return answer.what, answer.err
}

func (p *pspPort) Create(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
	a, err := p.send(psptest.OperationCreate, sending{"charge of " + r.PaymentID, r.Key, r.Amount.Minor},
		func(f *psptest.Fake) (any, error) { return f.Create(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Charge)
	return c, err
}

func (p *pspPort) Capture(ctx context.Context, r psp.CaptureRequest) (psp.Charge, error) {
	a, err := p.send(psptest.OperationCapture, sending{"capture of " + r.Reference, r.Key, r.Amount.Minor},
		func(f *psptest.Fake) (any, error) { return f.Capture(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Charge)
	return c, err
}

func (p *pspPort) Cancel(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
	if a := p.w.current; a == nil || a.name == "sweep" {
		p.w.reach("void by the sweep")
	}
	a, err := p.send(psptest.OperationCancel, sending{"void of " + r.Reference, r.Key, 0},
		func(f *psptest.Fake) (any, error) { return f.Cancel(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Charge)
	return c, err
}

func (p *pspPort) Refund(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
	p.w.effect(r.Reference, func(w *world) {
		for _, c := range w.psp.Charges() {
			if c.Reference == r.Reference && w.status(payment.ID(c.PaymentID)).Dead() {
				w.reach("refund of late money")
			}
		}
	})
	a, err := p.send(psptest.OperationRefund, sending{"refund " + r.RefundID, r.Key, r.Amount.Minor},
		func(f *psptest.Fake) (any, error) { return f.Refund(context.WithoutCancel(ctx), r) })
	c, _ := a.(psp.Refund)
	return c, err
}

func (p *pspPort) Lookup(ctx context.Context, r psp.LookupRequest) (psp.Charge, error) {
	answer, _ := p.w.do(&call{
		name:   func() string { return "psp lookup" },
		faults: askFaults, asks: r,
		run: func(w *world) any {
			if w.blind() {
				return told{psp.Charge{}, psp.ErrNotFound}
			}
			c, err := w.provider().Lookup(context.WithoutCancel(ctx), r)
			return told{c, err}
		},
		fail:   func(_ *world, f fault, _ any) any { return told{psp.Charge{}, pspFault(psptest.OperationLookup, f)} },
		digest: digestTold,
	}).(told)
	c, _ := answer.what.(psp.Charge)
	return c, answer.err
}

// short is the end of a key, for a trace.
func short(key string) string {
	if len(key) > 12 {
		return "…" + key[len(key)-12:]
	}
	return key
}
