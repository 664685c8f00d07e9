package statemachine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// What Service.StartExecution refuses besides ErrInvalidName and ErrInvalidInput.
var (
	// ErrExecutionAlreadyExists: the name belongs to an execution that has ended,
	// or that runs with another input.
	ErrExecutionAlreadyExists = errors.New("execution already exists")
	// ErrExecutionLimitExceeded: as many executions are running as may.
	ErrExecutionLimitExceeded = errors.New("too many running executions")
	// ErrExecutionDoesNotExist: no execution has the name.
	ErrExecutionDoesNotExist = errors.New("execution does not exist")
	// ErrClosed: the service has been closed.
	ErrClosed = errors.New("state machine service closed")
)

const (
	// nameReuse is how long a name stays taken after its execution has ended.
	nameReuse = 90 * 24 * time.Hour
	// maxRunning bounds the goroutines; far more than one process can make use of.
	maxRunning = 10_000
	// maxKept is how many ended executions keep their result; of older ones only
	// the name is kept, so that a service can run for weeks.
	maxKept = 1_000
)

// Execution is what a Service tells about one execution.
type Execution struct {
	ID        string // in the form of an ARN
	Name      string
	Input     json.RawMessage
	StartedAt time.Time
	StoppedAt time.Time // zero while running
	Result    Result    // Status alone while running
}

// Service runs the executions of one machine with the naming rules of a
// STANDARD workflow. It is safe for concurrent use. Executions live in memory.
type Service struct {
	machine *Machine
	work    context.Context // of the functions, as long as the service: they outlive a stopped execution
	cancel  context.CancelCauseFunc
	calls   sync.WaitGroup // executions and functions

	mu      sync.Mutex
	closed  bool
	running int
	byName  map[string]*entry
	ended   []*entry // oldest first
}

type entry struct {
	Execution
	stop context.CancelCauseFunc
	done chan struct{} // closed when the execution has ended
}

// NewService returns a service without executions. Close ends it.
func NewService(m *Machine) *Service {
	s := &Service{machine: m, byName: map[string]*entry{}}
	s.work, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// StartExecution starts an execution and returns without waiting for it. The
// end of ctx does not touch an execution that has started. Repeated with the
// same name and the same bytes of input while the execution runs, it returns that
// execution; otherwise a name can be used again 90 days after the end. An empty
// input is {}. The errors are ErrInvalidName, ErrInvalidInput,
// ErrExecutionAlreadyExists, ErrExecutionLimitExceeded, ErrClosed, and that of ctx.
func (s *Service) StartExecution(ctx context.Context, name string, input json.RawMessage) (Execution, error) {
	if err := ctx.Err(); err != nil {
		return Execution{}, fmt.Errorf("start execution %s: %w", name, err)
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	data, err := parseStart(name, input)
	if err != nil {
		return Execution{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Execution{}, fmt.Errorf("start execution %s: %w", name, ErrClosed)
	}
	s.forget(s.machine.now())
	if e, taken := s.byName[name]; taken {
		if e.Result.Status == Running && bytes.Equal(e.Input, input) {
			return e.snapshot(), nil
		}
		return Execution{}, fmt.Errorf("start execution %s: %w", name, ErrExecutionAlreadyExists)
	}
	if s.running >= maxRunning {
		return Execution{}, fmt.Errorf("start execution %s: %w", name, ErrExecutionLimitExceeded)
	}
	return s.start(name, bytes.Clone(input), data).snapshot(), nil
}

// start registers an execution and sets it going. The caller holds the lock.
func (s *Service) start(name string, input json.RawMessage, data any) *entry {
	ctx, stop := context.WithCancelCause(s.work)
	e := &entry{
		Execution: Execution{
			ID: executionID(s.machine.name, name), Name: name, Input: input,
			StartedAt: s.machine.now(), Result: Result{Status: Running},
		},
		stop: stop, done: make(chan struct{}),
	}
	s.byName[name] = e
	s.running++
	s.calls.Go(func() {
		defer stop(nil)
		result := s.machine.execute(ctx, name, data, s.machine.invoker(s.work, &s.calls))
		s.mu.Lock()
		defer s.mu.Unlock()
		e.Result, e.StoppedAt = result, s.machine.now()
		s.running--
		s.ended = append(s.ended, e)
		if n := len(s.ended) - maxKept; n > 0 {
			old := s.ended[n-1]
			old.Input, old.Result = nil, Result{Status: old.Result.Status, Error: old.Result.Error}
		}
		close(e.done)
	})
	return e
}

// forget frees the names of executions that ended long ago. The caller holds
// the lock.
func (s *Service) forget(now time.Time) {
	n := 0
	for n < len(s.ended) && now.Sub(s.ended[n].StoppedAt) >= nameReuse {
		delete(s.byName, s.ended[n].Name)
		n++
	}
	s.ended = slices.Delete(s.ended, 0, n)
}

func (e *entry) snapshot() Execution {
	x := e.Execution
	x.Input = bytes.Clone(x.Input)
	x.Result.Output = bytes.Clone(x.Result.Output)
	x.Result.History = slices.Clone(x.Result.History)
	return x
}

// Execution tells about one execution, or ErrExecutionDoesNotExist.
func (s *Service) Execution(name string) (Execution, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byName[name]
	if !ok {
		return Execution{}, fmt.Errorf("execution %s: %w", name, ErrExecutionDoesNotExist)
	}
	return e.snapshot(), nil
}

// Executions lists all executions whose names are taken, the latest start
// first. Of the ended ones only the newest thousand have input, output and history.
func (s *Service) Executions() []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Execution, 0, len(s.byName))
	for _, e := range s.byName {
		all = append(all, e.snapshot())
	}
	slices.SortFunc(all, func(a, b Execution) int {
		if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
			return c
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	return all
}

// StopExecution ends a running execution as Aborted with the given error name
// and cause. Functions that it has called go on. Stopping an execution that has
// ended changes nothing. The only error is ErrExecutionDoesNotExist.
func (s *Service) StopExecution(name, errorName, cause string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.byName[name]
	if !ok {
		return fmt.Errorf("stop execution %s: %w", name, ErrExecutionDoesNotExist)
	}
	e.stop(&stopped{name: errorName, cause: cause})
	return nil
}

// Wait waits until an execution has ended and returns it. The errors are
// ErrExecutionDoesNotExist and that of ctx.
func (s *Service) Wait(ctx context.Context, name string) (Execution, error) {
	s.mu.Lock()
	e, ok := s.byName[name]
	s.mu.Unlock()
	if !ok {
		return Execution{}, fmt.Errorf("wait for execution %s: %w", name, ErrExecutionDoesNotExist)
	}
	if err := e.await(ctx); err != nil {
		return Execution{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.snapshot(), nil
}

func (e *entry) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for execution %s: %w", e.Name, ctx.Err())
	case <-e.done:
		return nil
	}
}

// WaitIdle waits until no execution is running. Executions that start meanwhile
// are waited for too. The only error is that of ctx.
func (s *Service) WaitIdle(ctx context.Context) error {
	for e := s.anyRunning(); e != nil; e = s.anyRunning() {
		if err := e.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) anyRunning() *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byName {
		if e.Result.Status == Running {
			return e
		}
	}
	return nil
}

// Close starts nothing any more, ends what is running as Aborted, ends the
// context of every function and waits for all of them. The only error is that of
// ctx, when a function does not return in time. Close may be repeated.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(ErrClosed)
	idle := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close state machine service: %w", ctx.Err())
	}
}
