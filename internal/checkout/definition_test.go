package checkout_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kessai/kessai/infra"
	"github.com/kessai/kessai/internal/checkout"
	"github.com/kessai/kessai/internal/command"
)

// definition is what these tests read of the state machine.
type definition struct {
	Comment        string
	StartAt        string
	TimeoutSeconds int
	States         map[string]definedState
}

type definedState struct {
	Type           string
	Next           string
	TimeoutSeconds int
	Retry          []retrier
	Catch          []struct {
		ErrorEquals []string
		Next        string
	}
}

type retrier struct {
	ErrorEquals                                   []string
	IntervalSeconds, MaxAttempts, MaxDelaySeconds int
	BackoffRate                                   float64
	JitterStrategy                                string
}

func readDefinition(t *testing.T) definition {
	t.Helper()
	var d definition
	if err := json.Unmarshal(infra.CheckoutDefinition, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// seconds is the longest that a state can take: every attempt its whole time, and
// every pause as long as its jitter allows.
func (s definedState) seconds() int {
	if s.Type != "Task" {
		return 0
	}
	attempts, pauses := 1, 0.0
	for _, r := range s.Retry {
		pause := float64(r.IntervalSeconds)
		for range r.MaxAttempts {
			attempts++
			pauses += min(pause, float64(r.MaxDelaySeconds))
			pause *= r.BackoffRate
		}
	}
	return attempts*s.TimeoutSeconds + int(pauses)
}

// longest is the time of the longest way from a state to an end. A way has no
// circle, or the time would not end.
func (d definition) longest(t *testing.T, from string, way []string) int {
	t.Helper()
	if slices.Contains(way, from) {
		t.Fatalf("%v leads back to %s", way, from)
	}
	way = append(way, from)
	s, after := d.States[from], 0
	for _, next := range s.targets() {
		after = max(after, d.longest(t, next, way))
	}
	return s.seconds() + after
}

func (s definedState) targets() []string {
	var all []string
	if s.Next != "" {
		all = append(all, s.Next)
	}
	for _, c := range s.Catch {
		all = append(all, c.Next)
	}
	return all
}

// expressSeconds is the longest that an EXPRESS execution may take.
const expressSeconds = 300

func TestTheTimeBudgetIsWhatTheDefinitionSays(t *testing.T) {
	d := readDefinition(t)
	needs := d.longest(t, d.StartAt, nil)
	if needs > d.TimeoutSeconds || d.TimeoutSeconds >= expressSeconds {
		t.Errorf("the longest way takes %d seconds of %d, want less than that and than %d", needs, d.TimeoutSeconds, expressSeconds)
	}
	for _, stated := range []string{
		fmt.Sprintf("= %d of %d seconds", needs, d.TimeoutSeconds),
		fmt.Sprintf("3 x 5 + 3 = %d seconds", d.States["ReserveStock"].seconds()),
		fmt.Sprintf("3 x 25 + 3 = %d where", d.States["Charge"].seconds()),
		fmt.Sprintf("the %d of an EXPRESS execution", expressSeconds),
	} {
		if !strings.Contains(d.Comment, stated) {
			t.Errorf("the comment does not say %q", stated)
		}
	}
}

func TestEveryTaskIsBoundedRepeatedAndCaught(t *testing.T) {
	for name, s := range readDefinition(t).States {
		if s.Type != "Task" {
			continue
		}
		if s.TimeoutSeconds == 0 || len(s.Retry) != 1 || s.Retry[0].JitterStrategy != "FULL" || s.Retry[0].MaxDelaySeconds == 0 {
			t.Errorf("%s: got time-out %d and retriers %+v, want a time-out, and repeats with jitter and a cap", name, s.TimeoutSeconds, s.Retry)
		}
		if last := s.Catch[len(s.Catch)-1]; !slices.Equal(last.ErrorEquals, []string{"States.ALL"}) || last.Next != "Stopped" {
			t.Errorf("%s: got last catcher %+v, want everything else to stop the execution", name, last)
		}
	}
}

// TestErrorsLeadToCompensationOnlyByName: nothing is undone because of an error
// that nobody has told from a committed state.
func TestErrorsLeadToCompensationOnlyByName(t *testing.T) {
	for name, s := range readDefinition(t).States {
		for _, c := range s.Catch {
			want := "Stopped"
			switch {
			case slices.Equal(c.ErrorEquals, []string{"BackwardError"}):
				want = "CancelOrder"
			case slices.Equal(c.ErrorEquals, []string{"WaitingError"}):
				want = "Waiting"
			}
			if c.Next != want {
				t.Errorf("%s: %v leads to %s, want %s", name, c.ErrorEquals, c.Next, want)
			}
		}
	}
}

// TestTheErrorsOfTheFunctionsAreThoseOfTheDefinition: Step Functions knows an
// error by the name of its Go type alone.
func TestTheErrorsOfTheFunctionsAreThoseOfTheDefinition(t *testing.T) {
	name := func(err error) string { return reflect.TypeOf(err).Elem().Name() }
	waiting, turned := name(&checkout.WaitingError{}), name(&checkout.BackwardError{})
	again, never := name(&command.UnavailableError{}), name(&command.InvalidCommandError{})
	repeated, caught := map[string]bool{}, map[string]bool{}
	for state, s := range readDefinition(t).States {
		for _, r := range s.Retry {
			for _, e := range r.ErrorEquals {
				repeated[e] = true
			}
			if !slices.Contains(r.ErrorEquals, again) || slices.Contains(r.ErrorEquals, never) {
				t.Errorf("%s repeats %v, want %s and never %s", state, r.ErrorEquals, again, never)
			}
		}
		for _, c := range s.Catch {
			for _, e := range c.ErrorEquals {
				caught[e] = true
			}
		}
	}
	own := func(names map[string]bool) []string {
		maps.DeleteFunc(names, func(e string, _ bool) bool { return strings.Contains(e, ".") })
		return slices.Sorted(maps.Keys(names))
	}
	if got, want := own(repeated), []string{again}; !slices.Equal(got, want) {
		t.Errorf("got %v repeated, want %v", got, want)
	}
	if got, want := own(caught), []string{turned, waiting}; !slices.Equal(got, want) {
		t.Errorf("got %v caught, want %v", got, want)
	}
}

// TestTheSagaTellsEachStepWhatItMayTell: a command that can end in WaitingError or
// BackwardError belongs to a state that catches it.
func TestEachStateCatchesWhatItsCommandTells(t *testing.T) {
	tells := map[string][]string{
		"Charge": {"WaitingError", "BackwardError"}, "Complete": {"WaitingError", "BackwardError"},
		"UndoCharge": {"WaitingError"}, "Close": {"WaitingError"},
	}
	for state, s := range readDefinition(t).States {
		var named []string
		for _, c := range s.Catch {
			named = append(named, c.ErrorEquals...)
		}
		want := append(slices.Clone(tells[state]), "States.ALL")
		if s.Type == "Task" && !slices.Equal(named, want) {
			t.Errorf("%s: got %v, want %v", state, named, want)
		}
	}
}
