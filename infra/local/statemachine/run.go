package statemachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Status of an execution, in the service's words.
type Status string

// Statuses of an execution.
const (
	Running   Status = "RUNNING"
	Succeeded Status = "SUCCEEDED"
	Failed    Status = "FAILED"
	TimedOut  Status = "TIMED_OUT"
	Aborted   Status = "ABORTED"
)

// Result is how an execution ended.
type Result struct {
	Status  Status
	Output  json.RawMessage // of a Succeeded execution
	Error   string          // name, of one that did not succeed; may be empty
	Cause   string          // for people
	History []Entered
}

// Entered is one visit of a state. A retry is no new visit.
type Entered struct {
	State    string
	Type     string
	At       time.Time
	Attempts int    // invocations of a Task
	Error    string // name of the last error in this visit, also of one that was retried or caught
}

// What StartExecution of the service refuses, Run and Service.StartExecution do too.
var (
	ErrInvalidName  = errors.New("invalid execution name")
	ErrInvalidInput = errors.New("invalid execution input")
)

// Quotas of the service on executions. The limit on events ends a loop that
// never waits.
const (
	maxNameLength    = 80 // in characters
	maxEvents        = 25_000
	eventsOfStart    = 1
	eventsPerState   = 2 // entered, exited
	eventsPerAttempt = 3 // scheduled, started, ended
)

// Run runs one execution and returns when it has ended; an execution that
// fails is a Result, not an error. The errors are ErrInvalidName and
// ErrInvalidInput. When ctx ends, so does the execution, as Aborted. Functions
// that timed out may still be running when Run returns. Names are not compared
// with those of other executions: that is what a Service is for.
func (m *Machine) Run(ctx context.Context, name string, input json.RawMessage) (Result, error) {
	data, err := parseStart(name, input)
	if err != nil {
		return Result{}, err
	}
	var calls sync.WaitGroup
	return m.execute(ctx, name, data, m.invoker(ctx, &calls)), nil
}

// parseStart checks the arguments of a start.
func parseStart(name string, input json.RawMessage) (any, error) {
	forbidden := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError || strings.ContainsRune("<>{}[]?*\"#%\\^|~`$&,;:/", r)
	}
	if n := utf8.RuneCountInString(name); n == 0 || n > maxNameLength || strings.IndexFunc(name, forbidden) >= 0 {
		return nil, fmt.Errorf("%w %q", ErrInvalidName, name)
	}
	if len(input) > maxPayloadBytes {
		return nil, fmt.Errorf("%w of execution %s: %d bytes, more than %d", ErrInvalidInput, name, len(input), maxPayloadBytes)
	}
	data, err := decodeValue(input)
	if err != nil {
		return nil, fmt.Errorf("%w of execution %s: %w", ErrInvalidInput, name, err)
	}
	return data, nil
}

// Reasons why an execution ends from outside of its states.
var (
	errMachineTimeout = errors.New("the execution ran longer than the TimeoutSeconds of its state machine")
	errTooManyEvents  = failf(errRuntime, "the execution has more than %d history events", maxEvents)
)

// stopped is why an execution was ended by hand.
type stopped struct{ name, cause string }

func (s *stopped) Error() string { return "stopped: " + s.name + ": " + s.cause }

// execution is one run of a machine. It belongs to one goroutine.
type execution struct {
	machine    *Machine
	name       string
	input      any
	startedAt  time.Time
	enteredAt  time.Time
	retryCount int64
	events     int
	history    []Entered
	invoke     func(Function, json.RawMessage) <-chan answer
}

// execute runs an execution to its end. ctx ends the execution; invoke has its
// own context for the functions.
func (m *Machine) execute(ctx context.Context, name string, input any, invoke func(Function, json.RawMessage) <-chan answer) Result {
	if m.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, m.timeout, errMachineTimeout)
		defer cancel()
	}
	x := &execution{machine: m, name: name, input: input, startedAt: m.now(), events: eventsOfStart, invoke: invoke}
	here, data := m.startAt, input
	for {
		next, err := x.visit(ctx, here, data)
		if err != nil {
			return x.ended(err)
		}
		if next.next == "" {
			return x.succeeded(next.output)
		}
		here, data = next.next, next.output
	}
}

// visit enters a state, runs it and checks what it puts out.
func (x *execution) visit(ctx context.Context, name string, in any) (step, error) {
	if ctx.Err() != nil {
		return step{}, context.Cause(ctx)
	}
	if err := x.countEvents(eventsPerState); err != nil {
		return step{}, err
	}
	s := x.machine.states[name]
	x.enteredAt, x.retryCount = x.machine.now(), 0
	x.history = append(x.history, Entered{State: name, Type: s.kind(), At: x.enteredAt})
	next, err := s.run(ctx, x, in)
	if err != nil {
		return step{}, err
	}
	_, err = x.encode(next.output, "its output")
	return next, err
}

func (x *execution) countEvents(n int) error {
	if x.events += n; x.events > maxEvents {
		return errTooManyEvents
	}
	return nil
}

func (x *execution) noteAttempt() { x.history[len(x.history)-1].Attempts++ }

func (x *execution) noteError(f *failure) { x.history[len(x.history)-1].Error = f.name }

// failf is a failure of the current state itself, not of a function.
func (x *execution) failf(name, format string, args ...any) *failure {
	state := x.history[len(x.history)-1].State
	return newFailure(name, fmt.Sprintf("state %q: ", state)+fmt.Sprintf(format, args...))
}

func (x *execution) succeeded(output any) Result {
	encoded, err := x.encode(output, "its output")
	if err != nil {
		return x.ended(err)
	}
	return Result{Status: Succeeded, Output: encoded, History: x.history}
}

// ended tells what an error makes of the execution.
func (x *execution) ended(err error) Result {
	r := Result{Status: Aborted, Cause: err.Error(), History: x.history}
	if f, ok := errors.AsType[*failure](err); ok {
		x.noteError(f)
		r.Status, r.Error, r.Cause = Failed, f.name, f.cause
	}
	if s, ok := errors.AsType[*stopped](err); ok {
		r.Error, r.Cause = s.name, s.cause
	}
	if errors.Is(err, errMachineTimeout) {
		r.Status, r.Error = TimedOut, errTimeout
	}
	return r
}

// encode writes v and holds it to the quota on payloads; what names it.
func (x *execution) encode(v any, what string) (json.RawMessage, error) {
	data, err := encodeValue(v)
	if err != nil {
		return nil, x.failf(errRuntime, "%s cannot be written as JSON: %v", what, err)
	}
	if len(data) > maxPayloadBytes {
		return nil, x.failf(errDataLimit, "%s has %d bytes, more than %d", what, len(data), maxPayloadBytes)
	}
	return data, nil
}

// lookup follows a path into the data or the context object.
func (x *execution) lookup(p path, data any) (any, bool) {
	if p.context {
		return find(x.contextObject(), p.steps)
	}
	return find(data, p.steps)
}

// resolve is lookup for the places where a path must lead somewhere. No path,
// not even "$", leads into null.
func (x *execution) resolve(p path, data any) (any, error) {
	v, found := x.lookup(p, data)
	if !found || !p.context && data == nil {
		return nil, x.failf(errRuntime, "the path %s leads to nothing", p.text)
	}
	return v, nil
}

// contextTime is RFC 3339 in UTC with milliseconds, as the service writes it.
const contextTime = "2006-01-02T15:04:05.000Z07:00"

func (x *execution) contextObject() any {
	return map[string]any{
		"Execution": map[string]any{
			"Id":        executionID(x.machine.name, x.name),
			"Name":      x.name,
			"Input":     x.input,
			"StartTime": x.startedAt.UTC().Format(contextTime),
		},
		"State": map[string]any{
			"Name":        x.history[len(x.history)-1].State,
			"EnteredTime": x.enteredAt.UTC().Format(contextTime),
			"RetryCount":  number(fmt.Sprint(x.retryCount)),
		},
	}
}

// executionID has the form of an ARN, without a region or an account of AWS.
func executionID(machine, name string) string {
	return "arn:aws:states:local:000000000000:execution:" + machine + ":" + name
}

// sleep waits for d, or less when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	alarm, stop := alarmFor(ctx, d)
	defer stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-alarm:
		return nil
	}
}

// alarmFor rings after d, and never when d is 0 or when ctx ends no later: an
// execution whose time is up at the same moment has timed out, whatever state
// it is in.
func alarmFor(ctx context.Context, d time.Duration) (<-chan time.Time, func()) {
	if deadline, ok := ctx.Deadline(); d <= 0 || ok && time.Until(deadline) <= d {
		return nil, func() {}
	}
	timer := time.NewTimer(d)
	return timer.C, func() { timer.Stop() }
}
