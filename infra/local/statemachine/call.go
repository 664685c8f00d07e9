package statemachine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"
)

// answer is what one invocation came to: a payload or an error response.
type answer struct {
	payload json.RawMessage
	failed  *messages.InvokeResponse_Error
}

// errFunctionTimeout is why a function's context ended when its own time was up.
var errFunctionTimeout = errors.New("the function's time is up")

// invoker returns a call that runs functions with ctx, each in a goroutine of
// its own that calls counts until it has ended.
func (m *Machine) invoker(ctx context.Context, calls *sync.WaitGroup) func(Function, json.RawMessage) <-chan answer {
	return func(fn Function, payload json.RawMessage) <-chan answer {
		answered := make(chan answer, 2) // an answer and a time-out, and nobody may be there to take them
		calls.Go(func() {
			if m.functionTimeout > 0 {
				callWithin(ctx, m.functionTimeout, answered, func(ctx context.Context) answer { return call(ctx, fn, payload) })
			} else {
				answered <- call(ctx, fn, payload)
			}
		})
		return answered
	}
}

// callWithin answers with Sandbox.Timedout as soon as the time is up. Lambda
// freezes a function where it stands then; here its context ends, and what it
// does after that is its own affair and no answer any more.
func callWithin(ctx context.Context, limit time.Duration, answered chan<- answer, run func(context.Context) answer) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errFunctionTimeout)
	defer cancel()
	timedOut := func() bool { return errors.Is(context.Cause(ctx), errFunctionTimeout) }
	late := answer{failed: &messages.InvokeResponse_Error{
		Type: "Sandbox.Timedout", Message: fmt.Sprintf("task timed out after %.2f seconds", limit.Seconds()),
	}}
	stop := context.AfterFunc(ctx, func() {
		if timedOut() {
			answered <- late
		}
	})
	defer stop()
	if a := run(ctx); timedOut() {
		answered <- late
	} else {
		answered <- a
	}
}

// call runs a function to its end, also when it panics or ends its goroutine.
func call(ctx context.Context, fn Function, payload json.RawMessage) answer {
	done := make(chan answer, 1)
	go func() {
		a := answer{failed: &messages.InvokeResponse_Error{
			Type: "Runtime.ExitError", Message: "the function ended without an answer",
		}}
		defer func() { done <- a }()
		defer func() {
			if v := recover(); v != nil {
				a = answer{failed: panicResponse(v)}
			}
		}()
		out, err := fn(ctx, payload)
		a = answer{payload: out}
		if err != nil {
			a.failed = errorResponse(err)
		}
	}()
	return <-done
}

// errorResponse names an error as package lambda of aws-lambda-go does: by the
// Go type of the outermost error. See doc.go.
func errorResponse(err error) *messages.InvokeResponse_Error {
	//nolint:errorlint // only the outermost error counts
	switch e := err.(type) {
	case messages.InvokeResponse_Error:
		return &e
	case interface{ ErrorName() string }:
		return &messages.InvokeResponse_Error{Type: e.ErrorName(), Message: err.Error()}
	}
	return &messages.InvokeResponse_Error{Type: typeName(err), Message: err.Error()}
}

func panicResponse(v any) *messages.InvokeResponse_Error {
	if e, ok := v.(messages.InvokeResponse_Error); ok {
		return &e
	}
	return &messages.InvokeResponse_Error{Type: typeName(v), Message: fmt.Sprint(v), StackTrace: stack()}
}

// typeName is the name of a type without package and pointer, "" when it has none.
func typeName(v any) string {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// maxStackFrames is what aws-lambda-go keeps of a panic's stack.
const maxStackFrames = 32

func stack() []*messages.InvokeResponse_Error_StackFrame {
	const skip = 5 // Callers, stack, panicResponse, the deferred function, the runtime's panic
	pcs := make([]uintptr, maxStackFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(skip, pcs)])
	var found []*messages.InvokeResponse_Error_StackFrame
	for {
		frame, more := frames.Next()
		found = append(found, &messages.InvokeResponse_Error_StackFrame{
			Path: frame.File, Line: int32(frame.Line), Label: frame.Function,
		})
		if !more {
			return found
		}
	}
}

// unknownError is what Step Functions calls an error without a name.
const unknownError = "Lambda.Unknown"

// functionFailure turns a function's error response into the failure of a
// task: the type is the name, the whole response the cause. A function must not
// use the names that belong to the language.
func functionFailure(response messages.InvokeResponse_Error) *failure {
	cause, _ := json.Marshal(response) // texts and line numbers always can
	switch {
	case response.Type == "":
		return newFailure(unknownError, string(cause))
	case strings.HasPrefix(response.Type, reservedErrorPrefix):
		return failf(errRuntime, "the function's error has the reserved name %q: %s", response.Type, cause)
	}
	return newFailure(response.Type, string(cause))
}
