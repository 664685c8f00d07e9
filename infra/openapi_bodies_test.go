package infra_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// variant is an example with one place of it changed.
type variant struct {
	at    string // slash before each name or index
	value any
}

// variants returns value once for each change that changes offers for a place in it.
func variants(at string, value any, changes func(at string, value any) []any) []variant {
	var all []variant
	for _, changed := range changes(at, value) {
		all = append(all, variant{at, changed})
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			for _, c := range variants(at+"/"+name, inner, changes) {
				whole := maps.Clone(v)
				whole[name] = c.value
				all = append(all, variant{c.at, whole})
			}
		}
	case []any:
		for i, inner := range v {
			for _, c := range variants(at+"/"+strconv.Itoa(i), inner, changes) {
				whole := slices.Clone(v)
				whole[i] = c.value
				all = append(all, variant{c.at, whole})
			}
		}
	}
	return all
}

// refusesVariants holds every variant of every example of a body that wanted picks against its schema.
func refusesVariants(t *testing.T, wanted func(body) bool, changes func(at string, value any) []any) {
	t.Helper()
	d := load(t)
	seen := map[string]bool{} // operations share most of their answers
	for b := range d.bodies() {
		if (b.mediaType != jsonType && b.mediaType != problemType) || !wanted(b) {
			continue
		}
		for name, example := range b.Examples.FromOldest() {
			value := decoded(t, example.Value)
			key := fmt.Sprint(b.Schema.GetReference(), value)
			if b.Schema.IsReference() && seen[key] {
				continue
			}
			seen[key] = true
			for _, v := range variants("", value, changes) {
				if d.allows(b.Schema, v.value) == nil {
					t.Errorf("%s: example %s changed at %q is allowed", b.at, name, v.at)
				}
			}
		}
	}
}

// inside reports whether at is in an object of this name, or is one.
func inside(at, name string) bool { return strings.Contains(at+"/", "/"+name+"/") }

// journalFacts reports whether at is in the facts of a journal row, alone or in a list, whose names depend on its type.
func journalFacts(at string) bool {
	parts := strings.Split(at, "/")
	if len(parts) < 2 || parts[1] != "data" {
		return false
	}
	_, err := strconv.Atoi(slices.Concat(parts, []string{""})[2])
	alone := len(parts) == 2 || err != nil
	return alone || len(parts) > 3 && parts[3] == "data"
}

func TestEveryBodyIsClosed(t *testing.T) {
	refusesVariants(t, func(body) bool { return true }, func(at string, value any) []any {
		object, ok := value.(map[string]any)
		if !ok || inside(at, "metadata") || journalFacts(at) {
			return nil
		}
		wider := maps.Clone(object)
		wider["unknown_field"] = "x"
		return []any{wider}
	})
}

func TestEveryFieldOfAnAnswerIsAlwaysThere(t *testing.T) {
	answers := func(b body) bool { return !b.request && b.mediaType == jsonType }
	refusesVariants(t, answers, func(at string, value any) []any {
		object, ok := value.(map[string]any)
		if !ok || inside(at, "metadata") || journalFacts(at) {
			return nil
		}
		var narrower []any
		for field := range object {
			less := maps.Clone(object)
			delete(less, field)
			narrower = append(narrower, less)
		}
		return narrower
	})
}

func TestEveryFieldHasOneType(t *testing.T) {
	refusesVariants(t, func(body) bool { return true }, func(at string, value any) []any {
		if journalFacts(at+"/") && strings.TrimRight(at, "/") != "/data" && !strings.HasSuffix(at, "/data") {
			return nil
		}
		switch value.(type) {
		case map[string]any, []any, int:
			return []any{"x"}
		case bool:
			return []any{"true"}
		case nil: // of a text or of a number
			return []any{[]any{}}
		}
		return []any{[]any{}, 1}
	})
}
