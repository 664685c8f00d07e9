package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// anyValue in an expected value matches every value.
const anyValue = "{any}"

// Observed is what a run came to.
type Observed struct {
	Status  string
	Output  []byte // JSON, of a run that succeeded
	Error   string
	Cause   string
	States  []string
	Calls   []Call
	Elapsed time.Duration // negative when the runner did not measure it
	// RealTime says that Elapsed was taken with a real clock: it is then held to be at least what is expected.
	RealTime bool
}

// Differences tells in plain words where an observation is not what the
// scenario expects; none means that it holds.
func (s *Scenario) Differences(got Observed) []string {
	var list []string
	differ := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	want := s.Expect
	if got.Status != want.Status {
		differ("status: got %s (%s: %s), want %s", got.Status, got.Error, got.Cause, want.Status)
	}
	if want.Output != nil && !matchJSON(want.Output, got.Output) {
		differ("output: got %s, want %s", got.Output, want.Output)
	}
	if want.Error != "" && got.Error != want.Error {
		differ("error: got %q, want %q", got.Error, want.Error)
	}
	if !strings.Contains(got.Cause, want.Cause) {
		differ("cause: got %q, want something with %q", got.Cause, want.Cause)
	}
	if !slices.Equal(got.States, want.States) {
		differ("states entered: got %v, want %v", got.States, want.States)
	}
	if want.MaxStates > 0 && len(got.States) > want.MaxStates {
		differ("states entered: got %d, want at most %d", len(got.States), want.MaxStates)
	}
	if want.Calls != nil && !matchCalls(want.Calls, got.Calls) {
		differ("calls: got %s, want %s", got.Calls, want.Calls)
	}
	if want.ElapsedSeconds != nil && got.Elapsed >= 0 {
		if wanted := time.Duration(*want.ElapsedSeconds * float64(time.Second)); got.Elapsed < wanted || got.Elapsed > wanted && !got.RealTime {
			differ("elapsed: got %s, want %s", got.Elapsed, wanted)
		}
	}
	return list
}

func matchCalls(want, got []Call) bool {
	return slices.EqualFunc(want, got, func(want, got Call) bool {
		return want.Function == got.Function && (want.Payload == nil || matchJSON(want.Payload, got.Payload))
	})
}

// String shows a call as function(payload).
func (c Call) String() string { return c.Function + "(" + string(c.Payload) + ")" }

func matchJSON(want, got []byte) bool {
	w, err := decode(want)
	if err != nil {
		return false
	}
	g, err := decode(got)
	return err == nil && match(w, g)
}

func decode(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // an amount must not pass through a float
	err = dec.Decode(&v)
	return v, err
}

func match(want, got any) bool {
	switch want := want.(type) {
	case string:
		return want == anyValue || any(want) == got
	case []any:
		got, ok := got.([]any)
		return ok && slices.EqualFunc(want, got, match)
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok || len(want) != len(got) {
			return false
		}
		for name, w := range want {
			if g, ok := got[name]; !ok || !match(w, g) {
				return false
			}
		}
		return true
	}
	return want == got
}
