package statemachines_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/kessai/kessai/infra/local/statemachine"
	"github.com/kessai/kessai/infra/local/statemachine/scenario"
	"github.com/kessai/kessai/infra/statemachines"
)

func TestTheCheckoutMachineDoesWhatItsScenariosSay(t *testing.T) {
	all, err := statemachines.Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, difference := range s.Differences(play(t, s)) {
					t.Error(difference)
				}
			})
		})
	}
}

// play runs a scenario on the embedded interpreter, in fake time.
func play(t *testing.T, s scenario.Scenario) scenario.Observed {
	t.Helper()
	script := s.Script()
	functions := map[string]statemachine.Function{}
	for _, name := range s.Substitutions {
		functions[name] = func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
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
	m, err := statemachine.Load(s.Definition, statemachine.Options{Substitutions: s.Substitutions, Functions: functions})
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(t.Context(), "scenario", json.RawMessage(s.Input))
	if err != nil {
		t.Fatal(err)
	}
	if n := script.Left(); n > 0 {
		t.Errorf("%d scripted answers were never asked for", n)
	}
	got := scenario.Observed{Status: string(r.Status), Output: r.Output, Error: r.Error, Cause: r.Cause, Calls: script.Calls(), Elapsed: -1}
	for _, e := range r.History {
		got.States = append(got.States, e.State)
	}
	return got
}
