package statemachine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/infra/local/statemachine"
)

// maxBytes is the quota on payloads.
const maxBytes = 262_144

func load(t *testing.T, definition string, options statemachine.Options) *statemachine.Machine {
	t.Helper()
	m, err := statemachine.Load([]byte(definition), options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t *testing.T, m *statemachine.Machine, input string) statemachine.Result {
	t.Helper()
	r, err := m.Run(t.Context(), "run", json.RawMessage(input))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func working(fn statemachine.Function) statemachine.Options {
	return statemachine.Options{Functions: map[string]statemachine.Function{"work": fn}}
}

// now and elapse are the clock of the bubble that a test runs in.
func now() time.Time         { return time.Now() } //nolint:forbidigo // fake in a bubble
func elapse(d time.Duration) { time.Sleep(d) }     //nolint:forbidigo // takes no time in a bubble

// text is a JSON string of exactly n bytes, quotes included.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

func TestAnOutputMayHaveExactly256KiB(t *testing.T) {
	m := load(t, machineOf(`{"Type": "Pass", "Result": `+text(maxBytes)+`, "Next": "End"}`), echoes)
	if r := run(t, m, `{}`); r.Status != statemachine.Succeeded {
		t.Errorf("got %s %s, want SUCCEEDED", r.Status, r.Error)
	}
	m = load(t, machineOf(`{"Type": "Pass", "Result": `+text(maxBytes+1)+`, "Next": "End"}`), echoes)
	if r := run(t, m, `{}`); r.Error != "States.DataLimitExceeded" || len(r.History) != 1 || r.History[0].Error != r.Error {
		t.Errorf("got %s in %v, want States.DataLimitExceeded in the first state", r.Error, r.History)
	}
}

func TestTheQuotaCountsBytesOfUTF8(t *testing.T) {
	two := strings.Repeat("é", (maxBytes-2)/2) // fits; with the quotes of one more it does not
	m := load(t, passOf(""), echoes)
	if _, err := m.Run(t.Context(), "run", json.RawMessage(`"`+two+`"`)); err != nil {
		t.Error(err)
	}
	m = load(t, passOf(`, "Parameters": {"a.$": "$"}`), echoes)
	if r := run(t, m, `"`+two+`"`); r.Error != "States.DataLimitExceeded" {
		t.Errorf("got %s %q, want States.DataLimitExceeded", r.Status, r.Error)
	}
}

func TestArgumentsBeyondTheQuotaAreNotSent(t *testing.T) {
	var calls atomic.Int64
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		calls.Add(1)
		return nil, nil
	})
	m := load(t, machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
		"Parameters": {"FunctionName": "work", "Payload": {"a.$": "$", "b.$": "$"}},
		"Catch": [{"ErrorEquals": ["States.DataLimitExceeded"], "ResultPath": null, "Next": "End"}], "Next": "End"}`), options)
	if r := run(t, m, text(maxBytes/2)); r.Status != statemachine.Succeeded || calls.Load() != 0 {
		t.Errorf("got %s after %d calls, want the limit caught by its name and no call", r.Status, calls.Load())
	}
}

func TestOnlyItsOwnNameCatchesAResultThatIsTooLarge(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(text(maxBytes)), nil // fits, but not with what the integration wraps around it
	})
	for _, tt := range []struct {
		errorEquals string
		status      statemachine.Status
	}{
		{"States.ALL", statemachine.Failed},
		{"States.TaskFailed", statemachine.Failed},
		{"States.DataLimitExceeded", statemachine.Succeeded},
	} {
		m := load(t, taskOf(`, "ResultPath": null, "Catch": [{"ErrorEquals": ["`+tt.errorEquals+`"], "Next": "End"}]`), options)
		if r := run(t, m, `{}`); r.Status != tt.status {
			t.Errorf("Catch %s: got %s, want %s", tt.errorEquals, r.Status, tt.status)
		}
	}
}

func TestAnErrorOutputBeyondTheQuotaFailsTheExecution(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") })
	m := load(t, taskOf(`, "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.failure", "Next": "End"}]`), options)
	if r := run(t, m, `{"a":`+text(maxBytes-6)+`}`); r.Error != "States.DataLimitExceeded" {
		t.Errorf("got %s %q, want States.DataLimitExceeded", r.Status, r.Error)
	}
}

func TestWhatCannotStartIsRefused(t *testing.T) {
	m := load(t, passOf(""), echoes)
	for _, name := range []string{"", "a b", "a/b", "a:b", "a\x00", "a\u0085b", "<a>", strings.Repeat("x", 81), "\xff"} {
		if _, err := m.Run(t.Context(), name, json.RawMessage(`{}`)); !errors.Is(err, statemachine.ErrInvalidName) {
			t.Errorf("name %q: got %v, want ErrInvalidName", name, err)
		}
	}
	for _, input := range []string{"", "{", "{} {}", `{"a":1,"a":2}`, text(maxBytes + 1)} {
		if _, err := m.Run(t.Context(), strings.Repeat("é", 80), json.RawMessage(input)); !errors.Is(err, statemachine.ErrInvalidInput) {
			t.Errorf("input %.20q: got %v, want ErrInvalidInput", input, err)
		}
	}
}

func TestFullJitterPicksFromTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limits []time.Duration
		options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") })
		options.Jitter = func(limit time.Duration) time.Duration {
			limits = append(limits, limit)
			return limit / 4
		}
		m := load(t, retryOf(`{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 4, "MaxAttempts": 3, "MaxDelaySeconds": 10, "JitterStrategy": "FULL"}`), options)
		start := now()
		run(t, m, `{}`)
		if want := []time.Duration{4 * time.Second, 8 * time.Second, 10 * time.Second}; !slices.Equal(limits, want) {
			t.Errorf("got the limits %v, want %v", limits, want)
		}
		if got, want := time.Since(start), 5500*time.Millisecond; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestJitterStaysWithinTheBackOff(t *testing.T) {
	for _, picked := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") })
			options.Jitter = func(time.Duration) time.Duration { return picked }
			m := load(t, retryOf(`{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1, "JitterStrategy": "FULL"}`), options)
			start := now()
			run(t, m, `{}`)
			if got, want := time.Since(start), min(max(picked, 0), time.Second); got != want {
				t.Errorf("jitter %s: got %s, want %s", picked, got, want)
			}
		})
	}
}

func TestTheDefaultJitterIsRandomWithinTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") })
		m := load(t, retryOf(`{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 100, "MaxAttempts": 20, "BackoffRate": 1, "JitterStrategy": "FULL"}`), options)
		start := now()
		run(t, m, `{}`)
		if got := time.Since(start); got <= 0 || got >= 2000*time.Second {
			t.Errorf("got %s for 20 retries, want something between nothing and all of it", got)
		}
	})
}

func TestAFunctionThatTimedOutGoesOnAndStillWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := make(chan string, 1)
		options := working(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			elapse(10 * time.Second)
			written <- "zombie"
			return nil, ctx.Err()
		})
		m := load(t, taskOf(`, "TimeoutSeconds": 1`), options)
		r := run(t, m, `{}`)
		if r.Status != statemachine.Failed || r.Error != "States.Timeout" || len(written) != 0 {
			t.Errorf("got %s %s with %d written, want FAILED States.Timeout with nothing yet", r.Status, r.Error, len(written))
		}
		elapse(time.Minute)
		if len(written) != 1 {
			t.Error("the zombie has not written")
		}
	})
}

func TestTheEndOfTheCallersContextAbortsTheExecutionAndReachesItsFunctions(t *testing.T) {
	for _, state := range []string{"wait", "work", "retry"} {
		synctest.Test(t, func(t *testing.T) {
			var stopped atomic.Bool
			options := working(func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
				if string(payload) == `"retry"` {
					return nil, errors.New("no")
				}
				<-ctx.Done()
				stopped.Store(true)
				return nil, ctx.Err()
			})
			m := load(t, `{"StartAt": "Pick", "States": {
				"Pick": {"Type": "Choice", "Choices": [{"Variable": "$", "StringEquals": "wait", "Next": "Wait"}], "Default": "Work"},
				"Wait": {"Type": "Wait", "Seconds": 60, "End": true},
				"Work": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload.$": "$"},
					"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 60}], "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}], "End": true},
				"End": {"Type": "Succeed"}}}`, options)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r, err := m.Run(ctx, "run", json.RawMessage(`"`+state+`"`))
			if err != nil || r.Status != statemachine.Aborted || len(r.History) != 2 {
				t.Errorf("%s: got %s %v after %v, want ABORTED", state, r.Status, err, r.History)
			}
			synctest.Wait()
			if stopped.Load() != (state == "work") {
				t.Errorf("%s: the function heard of the end: got %t", state, stopped.Load())
			}
		})
	}
}

func TestAnExecutionWhoseContextHasEndedEntersNoState(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := load(t, passOf(""), echoes).Run(ctx, "run", json.RawMessage(`{}`))
	if err != nil || r.Status != statemachine.Aborted || len(r.History) != 0 {
		t.Errorf("got %s %v %v, want ABORTED before the first state", r.Status, err, r.History)
	}
}

func TestALoopThatNeverWaitsEndsAtTheQuotaOfEvents(t *testing.T) {
	const loop = `"Loop": {"Type": "Choice", "Choices": [{"Variable": "$.stop", "IsPresent": true, "Next": "End"}], "Default": "Loop"},
		"End": {"Type": "Succeed"}}}`
	for definition, want := range map[string]int{
		`{"StartAt": "Loop", "States": {` + loop: 12_499, // 1 event and 2 for each state
		`{"StartAt": "Work", "States": {"Work": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
			"Parameters": {"FunctionName": "work", "Payload": {}}, "Next": "Loop"}, ` + loop: 12_498, // and 3 for an attempt: exactly 25,000
	} {
		r := run(t, load(t, definition, echoes), `{}`)
		if r.Status != statemachine.Failed || r.Error != "States.Runtime" || len(r.History) != want {
			t.Errorf("got %s %s after %d states, want FAILED States.Runtime after %d", r.Status, r.Error, len(r.History), want)
		}
	}
}

func TestEveryAttemptOfATaskCountsForTheQuotaOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			calls++
			return nil, errors.New("no")
		})
		m := load(t, retryOf(`{"ErrorEquals": ["States.ALL"], "MaxAttempts": 99999999, "BackoffRate": 1}`), options)
		r := run(t, m, `{}`)
		if want := (25_000 - 1 - 2) / 3; r.Error != "States.Runtime" || calls != want || r.History[0].Attempts != want {
			t.Errorf("got %s %s after %d calls and %d attempts, want FAILED States.Runtime after %d", r.Status, r.Error, calls, r.History[0].Attempts, want)
		}
	})
}

func TestTheContextObjectTellsWhoRunsSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := echoes
		options.Name = "checkout"
		zone := time.FixedZone("", 3600)
		options.Now = func() time.Time { return now().In(zone) }
		m := load(t, `{"StartAt": "Wait", "States": {
			"Wait": {"Type": "Wait", "Seconds": 2, "Next": "Tell"},
			"Tell": {"Type": "Pass", "Parameters": {"id.$": "$$.Execution.Id", "name.$": "$$.Execution.Name", "input.$": "$$.Execution.Input",
				"started.$": "$$.Execution.StartTime", "state.$": "$$.State.Name", "entered.$": "$$.State.EnteredTime"}, "End": true}}}`, options)
		r := run(t, m, `{"a":1}`)
		want := `{"entered":"2000-01-01T00:00:02.000Z","id":"arn:aws:states:local:000000000000:execution:checkout:run",` +
			`"input":{"a":1},"name":"run","started":"2000-01-01T00:00:00.000Z","state":"Tell"}`
		if string(r.Output) != want {
			t.Errorf("got %s, want %s", r.Output, want)
		}
	})
}

func TestTheHistoryTellsEveryVisitWithItsAttemptsAndItsLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("no") })
		m := load(t, taskOf(`, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}], "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}]`), options)
		start := now()
		got := run(t, m, `{}`).History
		want := []statemachine.Entered{
			{State: "S", Type: "Task", At: start, Attempts: 3, Error: "errorString"},
			{State: "End", Type: "Succeed", At: start.Add(3 * time.Second)},
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestAnAnswerThatIsNoJSONIsARuntimeError(t *testing.T) {
	for _, answer := range []string{"{", `{"a":1} 2`, "\xff"} {
		options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(answer), nil })
		m := load(t, taskOf(`, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}]`), options)
		if r := run(t, m, `{}`); r.Error != "States.Runtime" {
			t.Errorf("answer %q: got %s %q, want States.Runtime", answer, r.Status, r.Error)
		}
	}
}

func TestNoAnswerIsNull(t *testing.T) {
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil })
	m := load(t, taskOf(`, "OutputPath": "$.Payload"`), options)
	if r := run(t, m, `{}`); string(r.Output) != "null" {
		t.Errorf("got %s %s, want null", r.Status, r.Output)
	}
}

func TestRunsOfOneMachineDoNotTouchEachOther(t *testing.T) {
	m := load(t, `{"StartAt": "A", "States": {
		"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload.$": "$"},
			"ResultSelector": {"n.$": "$.Payload.n"}, "ResultPath": "$.below.a", "Next": "B"},
		"B": {"Type": "Pass", "Parameters": {"n.$": "$.below.a.n", "fixed": {"x": []}}, "ResultPath": "$.below.b", "End": true}}}`, echoes)
	for n := range 20 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			number := string(rune('a' + n))
			r := run(t, m, `{"below":{},"n":"`+number+`"}`)
			want := `{"below":{"a":{"n":"` + number + `"},"b":{"fixed":{"x":[]},"n":"` + number + `"}},"n":"` + number + `"}`
			if string(r.Output) != want {
				t.Errorf("got %s, want %s", r.Output, want)
			}
		})
	}
}

func TestDataThatNestsTooDeepIsARuntimeError(t *testing.T) {
	const deepest = 10_000 // of package jsontext
	options := working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Repeat("[", deepest) + strings.Repeat("]", deepest)), nil
	})
	if r := run(t, load(t, taskOf(""), options), `{}`); r.Error != "States.Runtime" {
		t.Errorf("got %s %q, want States.Runtime", r.Status, r.Error)
	}
}
