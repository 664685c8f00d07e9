package statemachine_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/kessai/kessai/infra/local/statemachine"
	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

// runner is this interpreter's name in scenario files.
const runner = "interpreter"

func TestScenarios(t *testing.T) {
	all, err := scenario.Load(os.DirFS("testdata/scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if !s.For(runner) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, difference := range s.Differences(play(t, s)) {
					t.Error(difference)
				}
			})
		})
	}
}

// play runs a scenario on the interpreter, in fake time.
func play(t *testing.T, s scenario.Scenario) scenario.Observed {
	t.Helper()
	script := s.Script()
	functions := map[string]statemachine.Function{}
	for name := range s.Functions {
		functions[name] = scripted(t, script, name)
	}
	m, err := statemachine.Load(s.Definition, statemachine.Options{Substitutions: s.Substitutions, Functions: functions})
	if err != nil {
		t.Fatal(err)
	}
	start := now()
	r, err := m.Run(t.Context(), "scenario", json.RawMessage(s.Input))
	if err != nil {
		t.Fatal(err)
	}
	got := scenario.Observed{
		Status: string(r.Status), Output: r.Output, Error: r.Error, Cause: r.Cause,
		Calls: script.Calls(), Elapsed: time.Since(start),
	}
	for _, e := range r.History {
		got.States = append(got.States, e.State)
	}
	if n := script.Left(); n > 0 {
		t.Errorf("%d scripted answers were never asked for", n)
	}
	return got
}

func scripted(t *testing.T, script *scenario.Script, name string) statemachine.Function {
	return func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		a, err := script.Call(name, payload)
		if err != nil {
			t.Error(err)
			return nil, err
		}
		select {
		case <-time.NewTimer(time.Duration(a.AfterSeconds) * time.Second).C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if a.Error != nil {
			return nil, messages.InvokeResponse_Error{Type: a.Error.Name, Message: a.Error.Message}
		}
		return json.RawMessage(a.Return), nil
	}
}
