package statemachine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Quotas of the service on a definition.
const (
	maxDefinitionBytes = 1 << 20
	maxStateNameLength = 80 // in characters
)

// Function stands for one Lambda function: payload and answer are JSON. It may
// be called from several executions at once. Its context ends with the
// function's own time, or when the Service is closed or the caller of Run gives
// up, never because a state timed out: like a real one, the function then goes
// on and may still write.
type Function func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error)

// Options says what a definition is loaded with.
type Options struct {
	// Name of the state machine, part of every execution's id; "statemachine" when empty.
	Name string
	// Substitutions are the values for the definition's ${Placeholders}.
	Substitutions map[string]string
	// Functions by FunctionName, as it stands after substitution. A definition
	// that names another one does not load.
	Functions map[string]Function
	// FunctionTimeout is the time that every invocation has, the Timeout of the
	// Lambda functions. Past it the invocation fails with Sandbox.Timedout. 0 is no limit.
	FunctionTimeout time.Duration
	// Now tells the times in the context object and in histories; time.Now when nil.
	// Waits, back-offs and time-outs always use timers of package time.
	Now func() time.Time
	// Jitter picks the delay of a retry with full jitter, from 0 to limit; random when nil.
	Jitter func(limit time.Duration) time.Duration
}

// Machine is a loaded definition. It never changes, and any number of
// executions may run on it at once.
type Machine struct {
	name            string
	startAt         string
	timeout         time.Duration // of a whole execution, 0 for none
	functionTimeout time.Duration // of one invocation, 0 for none
	states          map[string]state
	errorEquals     []string
	now             func() time.Time
	jitter          func(time.Duration) time.Duration
}

// state is one state of a machine.
type state interface {
	// kind is the Type in the definition.
	kind() string
	// targets are the states that may follow; one with an empty name is the end.
	targets() []target
	// run does the work of one visit. Its error is a *failure, or the reason why the
	// whole execution stopped.
	run(ctx context.Context, x *execution, in any) (step, error)
}

// step is the outcome of a visit: the output, and the next state or "" at the end.
type step struct {
	output any
	next   string
}

// Load parses a definition in the Amazon States Language. It refuses whatever
// it does not know or what could not run; the error joins one *DefinitionError
// per problem, in the order of their paths.
func Load(definition []byte, options Options) (*Machine, error) {
	p := &problems{}
	root, ok := readDefinition(definition, options.Substitutions, p)
	if !ok {
		return nil, p.err()
	}
	m := &Machine{
		name: options.Name, functionTimeout: options.FunctionTimeout,
		now: options.Now, jitter: options.Jitter, states: map[string]state{},
	}
	if m.name == "" {
		m.name = "statemachine"
	}
	if m.now == nil {
		m.now = time.Now //nolint:forbidigo // the default of the injected clock
	}
	if m.jitter == nil {
		m.jitter = func(limit time.Duration) time.Duration { return rand.N(limit + 1) }
	}
	m.parse(root, options.Functions)
	if err := p.err(); err != nil {
		return nil, err
	}
	return m, nil
}

// ErrorNames lists, sorted, every name that a Retry or Catch of the machine
// matches on, so that a test can compare them with what the functions return.
func (m *Machine) ErrorNames() []string { return slices.Clone(m.errorEquals) }

// StateNames lists the states of the machine, sorted.
func (m *Machine) StateNames() []string { return slices.Sorted(maps.Keys(m.states)) }

func readDefinition(definition []byte, values map[string]string, p *problems) (*object, bool) {
	if len(definition) > maxDefinitionBytes {
		p.add("", "is %d bytes, more than %d", len(definition), maxDefinitionBytes)
		return nil, false
	}
	v, err := decodeValue(substitute(definition, values, p))
	if err != nil {
		at := ""
		if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			at = string(syntax.JSONPointer)
		}
		p.add(at, "is no valid JSON: %v", err)
		return nil, false
	}
	refusePlaceholders("", v, p)
	return newObject("", v, p)
}

var placeholder = regexp.MustCompile(`\$\{[A-Za-z0-9_]+\}`)

// substitute replaces placeholders in the text of the definition, as
// CloudFormation does. A value that could change the structure of the JSON
// around it is refused.
func substitute(definition []byte, values map[string]string, p *problems) []byte {
	for name, value := range values {
		unsafe := strings.IndexFunc(value, func(r rune) bool { return r == '"' || r == '\\' || unicode.IsControl(r) })
		if unsafe >= 0 || strings.Contains(value, "${") || !utf8.ValidString(value) {
			p.add("", "the value for ${%s} must not hold quotes, backslashes, control characters or placeholders", name)
		}
	}
	return placeholder.ReplaceAllFunc(definition, func(match []byte) []byte {
		if value, ok := values[string(match[2:len(match)-1])]; ok {
			return []byte(value)
		}
		return match
	})
}

// refusePlaceholders reports every placeholder that got no value.
func refusePlaceholders(at string, v any, p *problems) {
	refuse := func(at, text string) {
		if strings.Contains(text, "${") {
			p.add(at, "no value for the placeholder in %q", text)
		}
	}
	switch v := v.(type) {
	case string:
		refuse(at, v)
	case []any:
		for i, item := range v {
			refusePlaceholders(element(at, i), item, p)
		}
	case map[string]any:
		for name, field := range v {
			refuse(pointer(at, name), name)
			refusePlaceholders(pointer(at, name), field, p)
		}
	}
}

func (m *Machine) parse(o *object, functions map[string]Function) {
	o.comment()
	o.queryLanguage()
	if version, ok := o.text("Version"); ok && version != "1.0" {
		o.fail("Version", `must be "1.0"`)
	}
	if seconds, ok := o.integer("TimeoutSeconds", 1, maxSeconds); ok {
		m.timeout = time.Duration(seconds) * time.Second
	}
	start := o.target("StartAt")
	m.startAt = start.state
	if v, ok := o.need("States"); ok {
		m.parseStates(pointer(o.at, "States"), v, o.problems, functions)
	}
	o.finish()
	m.checkGraph(start, o.problems)
}

func (m *Machine) parseStates(at string, v any, p *problems, functions map[string]Function) {
	states, ok := newObject(at, v, p)
	if !ok {
		return
	}
	names := map[string]bool{}
	for name, v := range states.fields {
		if n := utf8.RuneCountInString(name); n == 0 || n > maxStateNameLength {
			states.fail(name, "a state name has 1 to %d characters", maxStateNameLength)
		}
		m.states[name] = broken{}
		if o, ok := newObject(pointer(at, name), v, p); ok {
			s := parseState(o, functions)
			m.states[name] = s
			if t, ok := s.(*task); ok {
				t.collectErrorNames(names)
			}
		}
	}
	m.errorEquals = slices.Sorted(maps.Keys(names))
}

func parseState(o *object, functions map[string]Function) state {
	kind, ok := o.needText("Type")
	if !ok {
		return broken{}
	}
	o.comment()
	o.queryLanguage()
	o.problems.task = kind == "Task"
	var s state
	switch kind {
	case "Task":
		s = parseTask(o, functions)
	case "Choice":
		s = parseChoice(o)
	case "Wait":
		s = parseWait(o)
	case "Pass":
		s = parsePass(o)
	case "Succeed":
		s = parseSucceed(o)
	case "Fail":
		s = parseFail(o)
	default:
		o.fail("Type", "the state type %q is unknown or unsupported", kind)
		return broken{}
	}
	o.finish()
	return s
}

// queryLanguage takes the optional QueryLanguage of a machine or a state.
func (o *object) queryLanguage() {
	const field, only = "QueryLanguage", "JSONPath"
	if language, ok := o.text(field); ok && language != only {
		o.fail(field, "only %s is supported, not %q", only, language)
	}
}

// broken holds the place of a state that could not be read, so that references
// to it are not reported as well. A machine that has one is never returned.
type broken struct{}

func (broken) kind() string      { return "" }
func (broken) targets() []target { return []target{{}} }
func (broken) run(context.Context, *execution, any) (step, error) {
	return step{}, failf(errRuntime, "the state is broken")
}
