package stream

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Filter is one pattern of a mapping's filter criteria: literals, prefix and exists on the fields of a record.
type Filter struct {
	pattern map[string]any
}

// ParseFilter reads a pattern. An operator that this package does not carry out is an error here,
// because a filter that matches by mistake is found out much later.
func ParseFilter(text string) (Filter, error) {
	var pattern map[string]any
	if err := json.Unmarshal([]byte(text), &pattern); err != nil {
		return Filter{}, fmt.Errorf("filter pattern %q: %w", text, err)
	}
	if err := checkPattern(pattern); err != nil {
		return Filter{}, fmt.Errorf("filter pattern %q: %w", text, err)
	}
	return Filter{pattern: pattern}, nil
}

func checkPattern(pattern map[string]any) error {
	for field, want := range pattern {
		switch want := want.(type) {
		case map[string]any:
			if err := checkPattern(want); err != nil {
				return err
			}
		case []any:
			for _, rule := range want {
				if err := checkRule(rule); err != nil {
					return fmt.Errorf("%s: %w", field, err)
				}
			}
		default:
			return fmt.Errorf("%s: a leaf is a list, not %v", field, want)
		}
	}
	return nil
}

func checkRule(rule any) error {
	operators, ok := rule.(map[string]any)
	if !ok {
		return nil // a literal
	}
	for name, operand := range operators {
		_, isText := operand.(string)
		_, isBool := operand.(bool)
		known := (name == "prefix" && isText) || (name == "exists" && isBool)
		if !known {
			return fmt.Errorf("operator %s is not carried out here", name)
		}
	}
	return nil
}

// Match says whether a record, as decoded JSON, fits the pattern.
func (f Filter) Match(record map[string]any) bool {
	return matchFields(f.pattern, record)
}

func matchFields(pattern, fields map[string]any) bool {
	for name, want := range pattern {
		value, present := fields[name]
		switch want := want.(type) {
		case map[string]any:
			inner, _ := value.(map[string]any)
			if !matchFields(want, inner) {
				return false
			}
		case []any:
			if !matchAny(want, value, present) {
				return false
			}
		}
	}
	return true
}

func matchAny(rules []any, value any, present bool) bool {
	for _, rule := range rules {
		if matchRule(rule, value, present) {
			return true
		}
	}
	return false
}

func matchRule(rule, value any, present bool) bool {
	operators, ok := rule.(map[string]any)
	if !ok {
		return present && rule == value
	}
	if exists, ok := operators["exists"].(bool); ok {
		return exists == present
	}
	prefix, _ := operators["prefix"].(string)
	text, isText := value.(string)
	return isText && strings.HasPrefix(text, prefix)
}
