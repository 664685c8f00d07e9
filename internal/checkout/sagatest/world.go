package sagatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kessai/kessai/infra"
	"github.com/kessai/kessai/infra/local/statemachine"
	"github.com/kessai/kessai/internal/bootstrap"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/flowtest"
	"github.com/kessai/kessai/internal/inventory"
	"github.com/kessai/kessai/internal/notification"
	"github.com/kessai/kessai/internal/order"
	"github.com/kessai/kessai/internal/outbox"
	"github.com/kessai/kessai/internal/psp"
	"github.com/kessai/kessai/internal/reconcile"
	"github.com/kessai/kessai/internal/store/memory"
)

// RejectPrefix begins the SKUs that the order participant refuses.
const RejectPrefix = "reject-"

// Names of the functions in the definition.
const (
	SagaStep      = "SagaStepFunction"
	Inventory     = "InventoryFunction"
	Orders        = "OrdersFunction"
	Notifications = "NotificationsFunction"
)

// World is a world with checkouts. Its methods are for one goroutine, except Start.
type World struct {
	*flowtest.World
	Checkouts *checkout.Service
	Saga      *checkout.Saga
	Stock     *inventory.Participant
	Orders    *order.Participant
	Notices   *notification.Participant
	Mail      *Mailbox
	Relay     *outbox.Relay
	Machine   *statemachine.Machine

	// Around, when set, stands around each invocation of a function. It may be
	// called by several executions at once.
	Around func(c Call, invoke func() ([]byte, error)) ([]byte, error)
	// Deaf says that nothing is read off the table's stream.
	Deaf bool
	// OnStart, when set, is asked before each start of an execution. Its error is the
	// caller's answer, and nothing was started.
	OnStart func(name string) error
	// Rough is set by a test that lets functions fail, so that executions may end
	// without success.
	Rough bool

	calls atomic.Int64

	made   []string         // checkouts
	supply map[string]int64 // pieces in all, by SKU

	mu     sync.Mutex
	names  map[string]bool
	inputs map[string]json.RawMessage // by checkout
	line   []start
	ended  []Execution
}

// Call is one invocation of a function by the state machine.
type Call struct {
	N        int64 // counts the world's invocations from 1
	Function string
	Command  string
}

// String is the function's short name and its command.
func (c Call) String() string { return fmt.Sprintf("%d %s.%s", c.N, c.Function, c.Command) }

// Execution is one execution that has ended.
type Execution struct {
	Name   string
	Result statemachine.Result
}

type start struct {
	name  string
	input json.RawMessage
}

// New is a world at flowtest.Start, without a checkout and without stock.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{World: flowtest.New(t), Mail: &Mailbox{}, names: map[string]bool{}, inputs: map[string]json.RawMessage{}, supply: map[string]int64{}}
	log := slog.New(slog.NewJSONHandler(w.Logs, nil))
	w.Stock = inventory.New(memory.New(memory.Options{Now: w.Clock.Now}), w.Clock.Now)
	w.Orders = order.New(memory.New(memory.Options{Now: w.Clock.Now}), w.Clock.Now, order.RefuseSKUsFrom(RejectPrefix))
	w.Notices = notification.New(notification.Options{
		Table: memory.New(memory.Options{Now: w.Clock.Now}), Sender: w.Mail, Now: w.Clock.Now,
		Jitter: func(int64) int64 { return 0 }, Log: log,
	})
	ids := firstID
	core := bootstrap.Core{
		Payments: w.Table, Durations: flowtest.Durations, Now: w.Clock.Now, Meter: w.Meter, Log: log,
		Providers: map[string]psp.Provider{flowtest.PSP: w.Line},
		NewULID:   func() string { ids++; return flowtest.ULID(ids) },
	}
	w.Checkouts = core.Checkouts(w, bootstrap.Told{Notices: w.Notices})
	w.Checkouts.Spread = unspread
	w.Checkouts.Pause = w.Charges.Journal.Pause
	w.Saga = &checkout.Saga{Service: w.Checkouts, Payments: w.Charges, Stock: w.Stock}
	w.Relay = &outbox.Relay{Publisher: silent{}, Sagas: w.Checkouts}
	w.Sweeper.Repairs[reconcile.KindCheckout] = w.Checkouts.Repair
	w.Machine = w.load()
	t.Cleanup(func() {
		if !t.Failed() {
			w.Check()
		}
	})
	return w
}

// firstID keeps the ids of checkouts away from those of flowtest's own payments.
const firstID int64 = 500_000

func unspread(d time.Duration) time.Duration { return d }

// silent is an event bus that nobody listens to.
type silent struct{}

func (silent) Publish(_ context.Context, events []outbox.Event) []error {
	return make([]error, len(events))
}

// load reads the deployed definition.
func (w *World) load() *statemachine.Machine {
	w.Helper()
	functions := map[string]func(context.Context, []byte) ([]byte, error){
		SagaStep:      checkout.Handler{Saga: w.Saga}.Invoke,
		Inventory:     inventory.NewHandler(w.Stock).Invoke,
		Orders:        order.NewHandler(w.Orders).Invoke,
		Notifications: notification.NewHandler(w.Notices).Invoke,
	}
	options := statemachine.Options{
		Name: "checkout", Substitutions: map[string]string{}, Functions: map[string]statemachine.Function{},
		Now: w.Clock.Now, Jitter: func(time.Duration) time.Duration { return 0 },
	}
	for name, invoke := range functions {
		options.Substitutions[name] = name
		options.Functions[name] = w.function(name, invoke)
	}
	machine, err := statemachine.Load(infra.CheckoutDefinition, options)
	if err != nil {
		w.Fatal(err)
	}
	return machine
}

func (w *World) function(name string, invoke func(context.Context, []byte) ([]byte, error)) statemachine.Function {
	return func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		var r struct {
			Command string `json:"command"`
		}
		if err := json.Unmarshal(payload, &r); err != nil {
			return nil, err
		}
		call := Call{N: w.calls.Add(1), Function: name, Command: r.Command}
		plainly := func() ([]byte, error) { return invoke(ctx, payload) }
		if w.Around != nil {
			return w.Around(call, plainly)
		}
		return plainly()
	}
}

// Start puts an execution in the line. A name that was there before is a success.
func (w *World) Start(_ context.Context, name string, input checkout.Input) error {
	text, err := json.Marshal(input)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.OnStart != nil {
		if err := w.OnStart(name); err != nil {
			return err
		}
	}
	if !w.names[name] {
		w.names[name] = true
		w.inputs[input.CheckoutID] = text
		w.line = append(w.line, start{name, text})
	}
	return nil
}

// Waiting is how many executions have not begun yet.
func (w *World) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.line)
}

// RunNext runs the execution that has waited longest to its end.
func (w *World) RunNext() Execution {
	w.Helper()
	next, ok := w.take()
	if !ok {
		w.Fatal("no execution waits")
	}
	return w.run(next)
}

// Again runs one more execution of a checkout to its end, whatever its status: one
// that was started long ago, and comes only now.
func (w *World) Again(checkoutID string) Execution {
	w.Helper()
	w.mu.Lock()
	s := start{fmt.Sprintf("%s-again-%d", checkoutID, len(w.ended)), w.inputs[checkoutID]}
	w.mu.Unlock()
	return w.run(s)
}

func (w *World) take() (start, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) == 0 {
		return start{}, false
	}
	next := w.line[0]
	w.line = w.line[1:]
	return next, true
}

func (w *World) run(s start) Execution {
	result, err := w.Machine.Run(w.Context(), s.name, s.input)
	if err != nil {
		w.Fatal(err)
	}
	if !w.Rough && result.Status != statemachine.Succeeded {
		w.Errorf("execution %s: got %s %s %s, want it to succeed", s.name, result.Status, result.Error, result.Cause)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, Execution{s.name, result})
	return w.ended[len(w.ended)-1]
}

// Lose drops every execution that waits: they died before their first step.
func (w *World) Lose() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = nil
}

// Ended are the executions that have ended.
func (w *World) Ended() []Execution {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Execution(nil), w.ended...)
}

// States are the states that an execution entered.
func (x Execution) States() []string {
	var names []string
	for _, entered := range x.Result.History {
		names = append(names, entered.State)
	}
	return names
}

// Mailbox is a sender that keeps what it delivered.
type Mailbox struct {
	mu   sync.Mutex
	down bool
	got  []notification.Notification
}

// Deliver keeps n, unless the mailbox is down.
func (m *Mailbox) Deliver(_ context.Context, n notification.Notification) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errors.New("mailbox: down")
	}
	m.got = append(m.got, n)
	return nil
}

// SetDown makes it refuse, or take again.
func (m *Mailbox) SetDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

// Delivered are the deliveries for a checkout.
func (m *Mailbox) Delivered(checkoutID string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, got := range m.got {
		if got.CheckoutID == checkoutID {
			n++
		}
	}
	return n
}
