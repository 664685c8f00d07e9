package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/kessai/kessai/infra"
)

// function is what the state machine invokes: a Lambda handler in bytes.
type function func(context.Context, []byte) ([]byte, error)

// machine runs the deployed definition of the saga one call after the other, on the
// actor that runs it: no goroutine, no time. It knows the few kinds of states that
// the definition has. The runner of the one-process product knows them all.
type machine struct {
	definition *definition
	functions  map[string]function
}

type definition struct {
	StartAt string
	States  map[string]struct {
		Type           string
		Parameters     struct{ FunctionName, Payload any }
		ResultSelector map[string]any
		ResultPath     *string
		Retry          []struct {
			ErrorEquals []string
			MaxAttempts int
		}
		Catch []struct {
			ErrorEquals []string
			Next        string
		}
		Next string
	}
}

var parseDefinition = sync.OnceValue(func() *definition {
	d := &definition{}
	if err := json.Unmarshal(infra.CheckoutDefinition, d); err != nil {
		panic("explore: the saga's definition: " + err.Error())
	}
	return d
})

func loadMachine(functions map[string]function) *machine {
	return &machine{definition: parseDefinition(), functions: functions}
}

// maxStates bounds an execution; the longest way has eleven.
const maxStates = 20

// run drives an execution to its end.
func (m *machine) run(e execution) {
	raw, err := json.Marshal(e.input)
	if err != nil {
		panic(err)
	}
	data := map[string]any{}
	if err := json.Unmarshal(raw, &data); err != nil {
		panic(err)
	}
	here := m.definition.StartAt
	for range maxStates {
		s, known := m.definition.States[here]
		if !known {
			panic("explore: no state " + here)
		}
		if s.Type != "Task" {
			return // Succeed or Fail
		}
		name, _ := s.Parameters.FunctionName.(string)
		payload, _ := json.Marshal(fill(s.Parameters.Payload, data))
		var out []byte
		var err error
		for attempt := 0; ; attempt++ {
			out, err = m.functions[strings.Trim(name, "${}")](background(), payload)
			retried := false
			for _, r := range s.Retry {
				retried = retried || err != nil && slices.Contains(r.ErrorEquals, nameOf(err)) && attempt < r.MaxAttempts
			}
			if !retried {
				break
			}
		}
		if err != nil {
			next := ""
			for _, c := range s.Catch {
				if slices.Contains(c.ErrorEquals, nameOf(err)) || slices.Contains(c.ErrorEquals, "States.ALL") {
					next = c.Next
					break
				}
			}
			if next == "" {
				return
			}
			here = next
			continue
		}
		if s.ResultPath != nil && s.ResultSelector != nil {
			var answer any
			if err := json.Unmarshal(out, &answer); err != nil {
				panic(err)
			}
			data[strings.TrimPrefix(*s.ResultPath, "$.")] = fill(s.ResultSelector, map[string]any{"Payload": answer})
		}
		if here = s.Next; here == "" {
			return
		}
	}
	panic("explore: an execution goes in circles")
}

// fill fills a template: a field whose name ends with .$ has a path for its value.
func fill(template any, data map[string]any) any {
	fields, ok := template.(map[string]any)
	if !ok {
		return template
	}
	filled := map[string]any{}
	for name, v := range fields {
		if path, isPath := strings.CutSuffix(name, ".$"); isPath {
			filled[path] = lookup(fmt.Sprint(v), data)
			continue
		}
		filled[name] = fill(v, data)
	}
	return filled
}

func lookup(path string, data map[string]any) any {
	var here any = data
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "$."), ".") {
		fields, ok := here.(map[string]any)
		if !ok {
			panic("explore: no " + path)
		}
		here = fields[step]
	}
	return here
}

// nameOf is how the state machine sees an error: by the type of the outermost, or by
// the name that Lambda itself gives one.
func nameOf(err error) string {
	if named, ok := err.(interface{ Name() string }); ok {
		return named.Name()
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if errors.Is(err, context.Canceled) {
		return "States.Timeout"
	}
	return t.Name()
}
