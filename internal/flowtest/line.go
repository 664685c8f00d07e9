package flowtest

import (
	"context"
	"errors"
	"sync"

	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/psp/psptest"
)

// errTimeout is a call whose answer nobody waited for any longer.
var errTimeout = errors.New("flowtest: no answer from the psp in time")

// Line is the way to a provider. It can keep a request in the air: its caller
// gives up, and it arrives later all the same.
type Line struct {
	psp.Provider

	mu   sync.Mutex
	dead bool
	hold map[psptest.Operation]int
	held []func()
}

// Hold keeps the next call of the operation in the air; its caller hears nothing.
func (l *Line) Hold(operation psptest.Operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold == nil {
		l.hold = map[psptest.Operation]int{}
	}
	l.hold[operation]++
}

// Arrive lets every request that is in the air reach the provider, and returns
// how many there were. Their answers go nowhere.
func (l *Line) Arrive() int {
	l.mu.Lock()
	held := l.held
	l.held = nil
	l.mu.Unlock()
	for _, arrive := range held {
		arrive()
	}
	return len(held)
}

func (l *Line) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.hold)
}

func (l *Line) setDead(dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = dead
}

// keeps reports whether the call stays in the air, or its caller is dead.
func (l *Line) keeps(operation psptest.Operation, arrive func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	if l.hold[operation] == 0 {
		return nil
	}
	l.hold[operation]--
	l.held = append(l.held, arrive)
	return &psp.Error{Operation: string(operation), Outcome: psp.OutcomeUnknown, Err: errTimeout}
}

// Create is the provider's, unless it is held.
func (l *Line) Create(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
	late := func() { _, _ = l.Provider.Create(context.WithoutCancel(ctx), r) }
	if err := l.keeps(psptest.OperationCreate, late); err != nil {
		return psp.Charge{}, err
	}
	return l.Provider.Create(ctx, r)
}

// Capture is the provider's, unless it is held.
func (l *Line) Capture(ctx context.Context, r psp.CaptureRequest) (psp.Charge, error) {
	late := func() { _, _ = l.Provider.Capture(context.WithoutCancel(ctx), r) }
	if err := l.keeps(psptest.OperationCapture, late); err != nil {
		return psp.Charge{}, err
	}
	return l.Provider.Capture(ctx, r)
}

// Cancel is the provider's, unless it is held.
func (l *Line) Cancel(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
	late := func() { _, _ = l.Provider.Cancel(context.WithoutCancel(ctx), r) }
	if err := l.keeps(psptest.OperationCancel, late); err != nil {
		return psp.Charge{}, err
	}
	return l.Provider.Cancel(ctx, r)
}

// Refund is the provider's, unless it is held.
func (l *Line) Refund(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
	late := func() { _, _ = l.Provider.Refund(context.WithoutCancel(ctx), r) }
	if err := l.keeps(psptest.OperationRefund, late); err != nil {
		return psp.Refund{}, err
	}
	return l.Provider.Refund(ctx, r)
}
