package statemachine

import (
	"errors"
	"fmt"
	"maps"
	"strings"
)

// path is a parsed JSONPath of the two forms this interpreter knows: "$" with
// any number of ".name" steps into the data, and "$$" with at least two into
// the context object.
type path struct {
	text    string
	context bool
	steps   []string
}

// root reports whether the path is "$": the whole of the data.
func (p path) root() bool { return !p.context && len(p.steps) == 0 }

var errPathSyntax = errors.New(`only "$", "$.name" and "$$.name" paths are supported; ` +
	`a name is ASCII letters, digits, "_" and "-", starting with a letter or "_"`)

// parsePath parses text and refuses all of JSONPath that it does not know:
// brackets, indexes, filters, wildcards, escapes, variables.
func parsePath(text string) (path, error) {
	p := path{text: text}
	rest, ok := strings.CutPrefix(text, "$$")
	p.context = ok
	if !ok {
		if rest, ok = strings.CutPrefix(text, "$"); !ok {
			return path{}, fmt.Errorf("path %q: %w", text, errPathSyntax)
		}
	}
	for rest != "" {
		step, found := strings.CutPrefix(rest, ".")
		end := strings.IndexByte(step, '.')
		if end < 0 {
			end = len(step)
		}
		if !found || !isPathName(step[:end]) {
			return path{}, fmt.Errorf("path %q: %w", text, errPathSyntax)
		}
		p.steps, rest = append(p.steps, step[:end]), step[end:]
	}
	if p.context && !knownContextPath(p.steps) {
		return path{}, fmt.Errorf("path %q: the context object here holds only "+
			"$$.Execution.Id, Name, Input and StartTime, $$.State.Name, EnteredTime and RetryCount", text)
	}
	return p, nil
}

func isPathName(name string) bool {
	for i, c := range []byte(name) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return name != ""
}

// knownContextPath refuses what the context object of an execution holds on
// AWS but not here, so that a definition cannot work in one place only.
func knownContextPath(steps []string) bool {
	if len(steps) < 2 {
		return false
	}
	if len(steps) > 2 {
		return steps[0] == "Execution" && steps[1] == "Input"
	}
	switch steps[0] + "." + steps[1] {
	case "Execution.Id", "Execution.Name", "Execution.Input", "Execution.StartTime",
		"State.Name", "State.EnteredTime", "State.RetryCount":
		return true
	}
	return false
}

// usesRetryCount reports whether the path is $$.State.RetryCount, which only
// states that can be retried have.
func (p path) usesRetryCount() bool {
	return p.context && p.steps[0] == "State" && p.steps[1] == "RetryCount"
}

// find follows steps into v. A step into anything but an object, or to a name
// that is not there, finds nothing; a null that is there is found.
func find(v any, steps []string) (any, bool) {
	for _, step := range steps {
		fields, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = fields[step]; !ok {
			return nil, false
		}
	}
	return v, true
}

// place returns a copy of raw with v at steps, creating objects on the way.
// It reports false when a step would have to go into something that is no
// object. raw itself stays as it is.
func place(raw any, steps []string, v any) (any, bool) {
	if len(steps) == 0 {
		return v, true
	}
	fields, ok := raw.(map[string]any)
	if !ok {
		return nil, false
	}
	below, exists := fields[steps[0]]
	if !exists && len(steps) > 1 {
		below = map[string]any{}
	}
	below, ok = place(below, steps[1:], v)
	if !ok {
		return nil, false
	}
	fields = maps.Clone(fields)
	fields[steps[0]] = below
	return fields, true
}
