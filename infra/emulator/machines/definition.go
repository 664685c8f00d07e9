package machines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

// rename fills in a definition's substitutions and puts other names in the place of its functions. It lists the
// functions, each once, as the scenario names them.
func rename(s *scenario.Scenario, name func(function string) string) (definition []byte, functions []string, err error) {
	text := string(s.Definition)
	for placeholder, value := range s.Substitutions {
		text = strings.ReplaceAll(text, "${"+placeholder+"}", value)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber() // numbers stay as they were written
	var document any
	if err := decoder.Decode(&document); err != nil {
		return nil, nil, fmt.Errorf("definition: %w", err)
	}
	found := map[string]bool{}
	renameIn(document, func(function string) string {
		found[function] = true
		return name(function)
	})
	for function := range found {
		functions = append(functions, function)
	}
	slices.Sort(functions)
	definition, err = json.Marshal(document)
	if err != nil {
		return nil, nil, fmt.Errorf("definition: %w", err)
	}
	return definition, functions, nil
}

func renameIn(value any, name func(string) string) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if function, is := inner.(string); is && key == "FunctionName" {
				value[key] = name(function)
				continue
			}
			renameIn(inner, name)
		}
	case []any:
		for _, inner := range value {
			renameIn(inner, name)
		}
	}
}
