package psptest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/kessai/kessai/internal/psp"
)

// Operation is one kind of call to a provider, in the words of psp.Error.
type Operation string

// Operations of a provider.
const (
	OperationCreate  Operation = "create"
	OperationCapture Operation = "capture"
	OperationCancel  Operation = "cancel"
	OperationRefund  Operation = "refund"
	OperationLookup  Operation = "lookup"
)

// Operations are all of them.
func Operations() []Operation {
	return []Operation{OperationCreate, OperationCapture, OperationCancel, OperationRefund, OperationLookup}
}

// Call is one call as the Fake saw it.
type Call struct {
	Operation Operation
	Key       string // "" for a look-up
	PaymentID string // of a create, and of a look-up by it
	Reference string // the charge it was about, "" for a create
	RefundID  string // of a refund
	Minor     int64  // the amount asked for, 0 where there is none
	Arrived   bool   // false when it was lost before its effect
	Replayed  bool   // answered from the first call with that key
	Err       error  // what the caller was told, nil for an answer
}

// Fake is a psp.Provider and psp.Webhooks in memory. Make it with NewFake. It is
// safe for concurrent use, and hooks may call it again.
type Fake struct {
	name string

	mu           sync.Mutex
	capabilities psp.Capabilities
	charges      []*charge
	forgotten    int
	answers      map[string]stored // by idempotency key
	refused      map[string]bool   // keys that a _once token has refused
	calls        []*Call
	before       map[Operation]func() error
	after        map[Operation]func() error
	alter        map[Operation]func(*psp.Charge)
	alterRefund  func(*psp.Refund)
	pending      []Event
	events       map[string]Event
	disputes     map[string]*dispute
	refundCount  int
}

// stored is the answer that a key gets again.
type stored struct {
	fingerprint string
	answer      answer
}

// answer is what a call brings: a charge or a refund, or an error.
type answer struct {
	charge psp.Charge
	refund psp.Refund
	err    error
	// forget says that the call had no effect: its key is as good as new.
	forget bool
}

var (
	_ psp.Provider = (*Fake)(nil)
	_ psp.Webhooks = (*Fake)(nil)
)

// NewFake is a provider of that name without any charge. Keys are promised to
// live for a day, and look-ups to be authoritative.
func NewFake(name string) *Fake {
	return &Fake{
		name:         name,
		capabilities: psp.Capabilities{KeyLifetime: 24 * time.Hour, AuthoritativeLookup: true},
		answers:      map[string]stored{},
		refused:      map[string]bool{},
		before:       map[Operation]func() error{},
		after:        map[Operation]func() error{},
		alter:        map[Operation]func(*psp.Charge){},
		events:       map[string]Event{},
		disputes:     map[string]*dispute{},
	}
}

// Name is the name given to NewFake.
func (f *Fake) Name() string { return f.name }

// Capabilities are those last promised.
func (f *Fake) Capabilities() psp.Capabilities {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.capabilities
}

// Promise sets the capabilities.
func (f *Fake) Promise(c psp.Capabilities) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capabilities = c
}

// Create makes a charge that behaves as its payment method says, see Tokens.
func (f *Fake) Create(ctx context.Context, r psp.CreateRequest) (psp.Charge, error) {
	call := Call{Operation: OperationCreate, Key: r.Key, PaymentID: r.PaymentID, Minor: r.Amount.Minor}
	if r.PaymentID == "" || r.PaymentMethod == "" || r.Amount.Minor <= 0 {
		return psp.Charge{}, f.unsent(call, errIncomplete)
	}
	content := []any{r.PaymentID, r.Amount, r.PaymentMethod.Reveal(), r.ManualCapture, r.ReturnURL, r.Metadata}
	a := f.exchange(ctx, call, content, func() answer { return f.create(r) })
	return a.charge, a.err
}

// Capture takes held funds; another status is OutcomeRejected.
func (f *Fake) Capture(ctx context.Context, r psp.CaptureRequest) (psp.Charge, error) {
	call := Call{Operation: OperationCapture, Key: r.Key, Reference: r.Reference, Minor: r.Amount.Minor}
	if r.Reference == "" || r.Amount.Minor <= 0 {
		return psp.Charge{}, f.unsent(call, errIncomplete)
	}
	a := f.exchange(ctx, call, []any{r.Reference, r.Amount}, func() answer { return f.capture(r) })
	return a.charge, a.err
}

// Cancel voids a charge that is not captured; a captured one is OutcomeRejected.
func (f *Fake) Cancel(ctx context.Context, r psp.CancelRequest) (psp.Charge, error) {
	call := Call{Operation: OperationCancel, Key: r.Key, Reference: r.Reference}
	if r.Reference == "" {
		return psp.Charge{}, f.unsent(call, errIncomplete)
	}
	a := f.exchange(ctx, call, []any{r.Reference}, func() answer { return f.cancel(r) })
	return a.charge, a.err
}

// Refund returns captured funds; more than is left is OutcomeRejected.
func (f *Fake) Refund(ctx context.Context, r psp.RefundRequest) (psp.Refund, error) {
	call := Call{Operation: OperationRefund, Key: r.Key, Reference: r.Reference, RefundID: r.RefundID, Minor: r.Amount.Minor}
	if r.Reference == "" || r.RefundID == "" || r.Amount.Minor <= 0 {
		return psp.Refund{}, f.unsent(call, errIncomplete)
	}
	a := f.exchange(ctx, call, []any{r.Reference, r.RefundID, r.Amount}, func() answer { return f.refund(r) })
	return a.refund, a.err
}

// Lookup finds the charge; of several with one payment id, one with money.
func (f *Fake) Lookup(ctx context.Context, r psp.LookupRequest) (psp.Charge, error) {
	call := Call{Operation: OperationLookup, Reference: r.Reference, PaymentID: r.PaymentID}
	if r.Reference == "" && r.PaymentID == "" {
		return psp.Charge{}, f.unsent(call, errIncomplete)
	}
	a := f.exchange(ctx, call, nil, func() answer {
		c := f.find(r)
		if c == nil {
			return answer{err: psp.ErrNotFound}
		}
		return answer{charge: c.snapshot()}
	})
	return a.charge, a.err
}

var (
	errIncomplete = errors.New("the request lacks a field")
	errKey        = errors.New("no idempotency key")
)

// maxKey is the longest idempotency key, in bytes, that psp.CreateRequest allows.
const maxKey = 64

// exchange takes one call from its request to its answer. The effect runs with
// the lock held, hooks without.
func (f *Fake) exchange(ctx context.Context, call Call, content []any, effect func() answer) answer {
	if call.Operation != OperationLookup && (call.Key == "" || len(call.Key) > maxKey) {
		return answer{err: f.unsent(call, errKey)}
	}
	if err := ctx.Err(); err != nil {
		return answer{err: f.unsent(call, err)}
	}
	row, hook := f.record(call)
	if err := run(hook, call.Operation); err != nil {
		f.settle(row, err)
		return answer{err: err}
	}
	a, hook := f.serve(row, content, effect)
	if err := run(hook, call.Operation); err != nil {
		a = answer{err: err}
	}
	f.settle(row, a.err)
	return a
}

// serve runs the effect, once for each key.
func (f *Fake) serve(row *Call, content []any, effect func() answer) (answer, func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row.Arrived = true
	a := f.once(row, content, effect)
	if change := f.alter[row.Operation]; change != nil && a.err == nil {
		change(&a.charge)
	}
	if f.alterRefund != nil && row.Operation == OperationRefund && a.err == nil {
		f.alterRefund(&a.refund)
	}
	return a, f.after[row.Operation]
}

func (f *Fake) once(row *Call, content []any, effect func() answer) answer {
	if row.Key == "" {
		return effect()
	}
	fingerprint := fingerprintOf(row.Operation, content)
	if first, found := f.answers[row.Key]; found {
		if first.fingerprint != fingerprint {
			return answer{err: refusal(row.Operation, psp.OutcomeKeyReused, 422, "idempotency_key_reused")}
		}
		row.Replayed = true
		return first.answer.clone()
	}
	a := effect()
	if !a.forget {
		f.answers[row.Key] = stored{fingerprint, a.clone()}
	}
	return a
}

// fingerprintOf is the same for the same request only. Metadata that is nil and
// metadata that is empty are the same request.
func fingerprintOf(operation Operation, content []any) string {
	text, err := json.Marshal(append([]any{operation}, content...), json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("psptest: a request that cannot be written: %v", err))
	}
	return string(text)
}

func (a answer) clone() answer {
	a.charge = cloneCharge(a.charge)
	return a
}

func cloneCharge(c psp.Charge) psp.Charge {
	c.Refunds = slices.Clone(c.Refunds)
	if c.Decline != nil {
		decline := *c.Decline
		c.Decline = &decline
	}
	return c
}

func (f *Fake) record(call Call) (*Call, func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, &call)
	return &call, f.before[call.Operation]
}

func (f *Fake) settle(row *Call, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	row.Err = err
}

func (f *Fake) unsent(call Call, cause error) error {
	return &psp.Error{Operation: string(call.Operation), Outcome: psp.OutcomeNotSent, Err: cause}
}

// run is the hook's error in the form of a provider's. One that is neither a
// *psp.Error nor psp.ErrNotFound leaves the outcome unknown.
func run(hook func() error, operation Operation) error {
	if hook == nil {
		return nil
	}
	err := hook()
	if err == nil || errors.Is(err, psp.ErrNotFound) {
		return err
	}
	if _, ok := errors.AsType[*psp.Error](err); ok {
		return err
	}
	return &psp.Error{Operation: string(operation), Outcome: psp.OutcomeUnknown, Err: err}
}

func refusal(operation Operation, outcome psp.Outcome, status int, code string) error {
	return &psp.Error{Operation: string(operation), Outcome: outcome, HTTPStatus: status, Code: code}
}
