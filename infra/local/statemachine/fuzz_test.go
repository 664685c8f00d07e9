package statemachine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// A definition either does not load, and every problem has a place, or it loads
// and can be started.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"StartAt": "S", "States": {"S": {"Type": "Wait", "Seconds": 1, "End": true}}}`))
	options := Options{Functions: map[string]Function{
		"work": func(_ context.Context, payload json.RawMessage) (json.RawMessage, error) { return payload, nil },
	}}
	f.Fuzz(func(t *testing.T, definition []byte) {
		m, err := Load(definition, options)
		if err != nil {
			if m != nil {
				t.Error("got a machine with an error")
			}
			if e, ok := errors.AsType[*DefinitionError](err); !ok || e.Path != "" && e.Path[0] != '/' {
				t.Errorf("got %v, want problems with a JSON Pointer", err)
			}
			return
		}
		if !slices.Contains(m.StateNames(), m.startAt) {
			t.Errorf("the start %q is none of %v", m.startAt, m.StateNames())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if r, err := m.Run(ended, "fuzz", json.RawMessage("{}")); err != nil || r.Status != Aborted {
			t.Errorf("got %s %v, want ABORTED", r.Status, err)
		}
	})
}

// A path that is accepted is exactly its steps, finds what was placed at them
// and changes nothing else.
func FuzzPath(f *testing.F) {
	f.Add("$.a.b", `{"a": {"c": 1}}`)
	f.Fuzz(func(t *testing.T, text, data string) {
		p, err := parsePath(text)
		if err != nil {
			return
		}
		prefix := "$"
		if p.context {
			prefix = "$$"
		}
		if got := strings.Join(append([]string{prefix}, p.steps...), "."); got != text {
			t.Errorf("got the steps of %q, want those of %q", got, text)
		}
		raw, err := decodeValue([]byte(data))
		if err != nil {
			return
		}
		before, err := encodeValue(raw)
		if err != nil {
			t.Fatal(err)
		}
		placed, ok := place(raw, p.steps, "mark")
		if ok {
			if got, found := find(placed, p.steps); !found || got != "mark" {
				t.Errorf("got %v, want what was placed", got)
			}
		}
		if after, err := encodeValue(raw); err != nil || string(after) != string(before) {
			t.Errorf("got %s after placing, want %s as before (%v)", after, before, err)
		}
	})
}
