package statemachine_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/kessai/kessai/infra/local/statemachine"
)

type DeclinedError struct{ Code string }

func (e DeclinedError) Error() string { return "declined: " + e.Code }

type pointerError struct{}

func (*pointerError) Error() string { return "pointer" }

// lambdaError calls itself by a name that no Go type can have.
type lambdaError struct{ name string }

func (e *lambdaError) Error() string     { return "throttled" }
func (e *lambdaError) ErrorName() string { return e.name }

// failures are the ways in which a function can fail, by the payload that asks
// for them, with the name that they have on AWS.
var failures = []struct {
	kind, name string
	fail       func() error
}{
	{"a named type", "DeclinedError", func() error { return DeclinedError{Code: "x"} }},
	{"a pointer", "pointerError", func() error { return &pointerError{} }},
	{"a plain error", "errorString", func() error { return errors.New("plain") }},
	{"a wrapped error", "wrapError", func() error { return fmt.Errorf("wrapped: %w", DeclinedError{}) }},
	{"joined errors", "joinError", func() error { return errors.Join(DeclinedError{}, DeclinedError{}) }},
	{"the end of a context", "deadlineExceededError", func() error { return context.DeadlineExceeded }},
	{"a ready response", "Custom.Name", func() error { return messages.InvokeResponse_Error{Type: "Custom.Name", Message: "m"} }},
	{"a panic with a string", "string", func() error { panic("oops") }},
	{"a panic with an error", "DeclinedError", func() error { panic(DeclinedError{}) }},
	{"a panic with nil", "PanicNilError", func() error { panic(nil) }}, //nolint:govet // on purpose
	{"a panic of the runtime", "boundsError", func() error { var none []int; i := 1; none[i] = 1; return nil }},
	{"a panic with a ready response", "Custom.Panic", func() error { panic(messages.InvokeResponse_Error{Type: "Custom.Panic"}) }},
}

func failAs(kind string) error {
	for _, f := range failures {
		if f.kind == kind {
			return f.fail()
		}
	}
	return nil
}

func TestAFunctionsErrorIsNamedAfterItsGoType(t *testing.T) {
	options := working(func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) {
		var kind string
		if err := json.Unmarshal(payload, &kind); err != nil {
			return nil, err
		}
		return nil, failAs(kind)
	})
	m := load(t, machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
		"Parameters": {"FunctionName": "work", "Payload.$": "$"}, "Next": "End"}`), options)
	for _, f := range failures {
		t.Run(f.kind, func(t *testing.T) {
			r := run(t, m, strconv.Quote(f.kind))
			var cause struct{ ErrorType, ErrorMessage string }
			if err := json.Unmarshal([]byte(r.Cause), &cause); err != nil {
				t.Errorf("the cause %q is no error response: %v", r.Cause, err)
			}
			if r.Status != statemachine.Failed || r.Error != f.name || cause.ErrorType != f.name {
				t.Errorf("got %s %q with %q, want FAILED %q", r.Status, r.Error, r.Cause, f.name)
			}
		})
	}
}

var asLambda = flag.Bool("lambda", false, "run as a Lambda function (the test starts itself)")

// TestMain lets the test binary be a Lambda function.
func TestMain(m *testing.M) {
	flag.Parse()
	if *asLambda {
		lambda.Start(func(kind string) error { return failAs(kind) })
	}
	os.Exit(m.Run())
}

// The table of names is not taken on trust: the real runtime client of
// aws-lambda-go reports the same errors to a Lambda Runtime API.
func TestTheNamesAreThoseThatAWSLambdaGoReports(t *testing.T) {
	for _, f := range failures {
		t.Run(f.kind, func(t *testing.T) {
			t.Parallel()
			reported := make(chan []byte, 1)
			mux := http.NewServeMux()
			mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
				if len(reported) > 0 { // one event only
					<-r.Context().Done()
					return
				}
				w.Header().Set("Lambda-Runtime-Aws-Request-Id", "id")
				w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(now().Add(time.Minute).UnixMilli(), 10))
				_ = json.NewEncoder(w).Encode(f.kind)
			})
			mux.HandleFunc("POST /2018-06-01/runtime/invocation/id/error", func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				reported <- body
				w.WriteHeader(http.StatusAccepted)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer server.CloseClientConnections()
			defer cancel()
			function := exec.CommandContext(ctx, os.Args[0], "-lambda")
			function.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+strings.TrimPrefix(server.URL, "http://"))
			if err := function.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cancel(); _ = function.Wait() }()
			var got struct{ ErrorType string }
			if err := json.Unmarshal(<-reported, &got); err != nil || got.ErrorType != f.name {
				t.Errorf("got %q (%v), want %q", got.ErrorType, err, f.name)
			}
		})
	}
}

func TestWhoStandsInForLambdaNamesItsErrorsItself(t *testing.T) {
	for name, want := range map[string]string{
		"Lambda.TooManyRequestsException": "Lambda.TooManyRequestsException",
		"":                                "Lambda.Unknown",
		"States.Timeout":                  "States.Runtime", // the language's names are not for functions
		"\xff":                            "\uFFFD",
		strings.Repeat("é", 200):          strings.Repeat("é", 128),
	} {
		options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, &lambdaError{name: name} })
		if r := run(t, load(t, taskOf(""), options), `{}`); r.Error != want {
			t.Errorf("name %q: got %q, want %q", name, r.Error, want)
		}
	}
}

func TestOnlyTheOutermostErrorMayNameItself(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, fmt.Errorf("wrapped: %w", &lambdaError{name: "Lambda.ServiceException"})
	})
	if r := run(t, load(t, taskOf(""), options), `{}`); r.Error != "wrapError" {
		t.Errorf("got %q, want wrapError", r.Error)
	}
}

func TestACauseHasABound(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New(strings.Repeat("é", maxBytes))
	})
	m := load(t, taskOf(`, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}]`), options)
	r := run(t, m, `{}`)
	var got struct{ Cause string }
	if err := json.Unmarshal(r.Output, &got); err != nil || len(got.Cause) > 32_768 || len(got.Cause) < 32_000 {
		t.Errorf("got a cause of %d bytes (%v), want just under 32768", len(got.Cause), err)
	}
}

func TestAPanicTellsItsStack(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("oops") })
	r := run(t, load(t, taskOf(""), options), `{}`)
	var cause messages.InvokeResponse_Error
	if err := json.Unmarshal([]byte(r.Cause), &cause); err != nil {
		t.Fatal(err)
	}
	if len(cause.StackTrace) < 2 || !strings.Contains(cause.StackTrace[0].Label, "TestAPanicTellsItsStack") {
		t.Errorf("got %s, want this test's function first in the stack", r.Cause)
	}
}

func TestAFunctionThatEndsItsGoroutineDoesNotHang(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		runtime.Goexit()
		return nil, nil
	})
	if r := run(t, load(t, taskOf(""), options), `{}`); r.Error != "Runtime.ExitError" {
		t.Errorf("got %s %q, want Runtime.ExitError", r.Status, r.Error)
	}
}

func TestAFunctionPastItsOwnTimeFailsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		work func(ctx context.Context) error
	}{
		{"when it heeds its context", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		{"when it does not", func(context.Context) error { elapse(time.Minute); return nil }},
		{"when it turns the end into success", func(ctx context.Context) error { <-ctx.Done(); return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := working(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) { return nil, tt.work(ctx) })
				options.FunctionTimeout = 3 * time.Second
				defer elapse(time.Hour) // a bubble must not end before its goroutines
				start := now()
				r := run(t, load(t, taskOf(""), options), `{}`)
				if elapsed := time.Since(start); r.Error != "Sandbox.Timedout" || elapsed != 3*time.Second {
					t.Errorf("got %s %q after %s, want Sandbox.Timedout after 3s", r.Status, r.Error, elapsed)
				}
			})
		})
	}
}

func TestAFunctionInTimeSeesItsDeadlineAndAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := working(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			deadline, _ := ctx.Deadline()
			return json.Marshal(time.Until(deadline).String())
		})
		options.FunctionTimeout = 3 * time.Second
		if r := run(t, load(t, taskOf(`, "OutputPath": "$.Payload"`), options), `{}`); string(r.Output) != `"3s"` {
			t.Errorf("got %s %s, want \"3s\"", r.Status, r.Output)
		}
	})
}
