package statemachine

import "strings"

// template is a payload template: JSON in which every field whose name ends in
// ".$" takes its value from a path. Exactly one of its parts is used.
type template struct {
	literal any
	source  *path
	fields  map[string]template
	items   []template
}

// pathSuffix marks a field whose value is a path.
const pathSuffix = ".$"

// parseTemplate reads a template whose outermost value must be an object.
func parseTemplate(at string, v any, p *problems) *template {
	if _, ok := v.(map[string]any); !ok {
		p.add(at, "must be an object")
		return nil
	}
	t := parseTemplateValue(at, v, p)
	return &t
}

func parseTemplateValue(at string, v any, p *problems) template {
	switch v := v.(type) {
	case map[string]any:
		return parseTemplateFields(at, v, p)
	case []any:
		t := template{items: make([]template, len(v))}
		for i, item := range v {
			t.items[i] = parseTemplateValue(element(at, i), item, p)
		}
		return t
	}
	return template{literal: v}
}

func parseTemplateFields(at string, fields map[string]any, p *problems) template {
	t := template{fields: make(map[string]template, len(fields))}
	for name, v := range fields {
		here := pointer(at, name)
		plain, dynamic := strings.CutSuffix(name, pathSuffix)
		if !dynamic {
			t.fields[name] = parseTemplateValue(here, v, p)
			continue
		}
		if _, twice := fields[plain]; twice || plain == "" {
			p.add(here, "the name %q without %q is empty or already there", name, pathSuffix)
			continue
		}
		if source, ok := parseSource(here, v, p); ok {
			t.fields[plain] = template{source: &source}
		}
	}
	return t
}

func parseSource(at string, v any, p *problems) (path, bool) {
	text, ok := v.(string)
	if !ok {
		p.add(at, "must be a string with a path")
		return path{}, false
	}
	if !strings.HasPrefix(text, "$") {
		p.add(at, "must be a path: intrinsic functions are not supported")
		return path{}, false
	}
	return p.path(at, text, true)
}

// fill builds the payload from in, the input of the template. A path that
// leads nowhere is the uncatchable States.Runtime, as on the service; the
// language's specification has States.ParameterPathFailure for it.
func (t *template) fill(x *execution, in any) (any, error) {
	switch {
	case t.source != nil:
		return x.resolve(*t.source, in)
	case t.fields != nil:
		filled := make(map[string]any, len(t.fields))
		for name, field := range t.fields {
			v, err := field.fill(x, in)
			if err != nil {
				return nil, err
			}
			filled[name] = v
		}
		return filled, nil
	case t.items != nil:
		filled := make([]any, len(t.items))
		for i := range t.items {
			v, err := t.items[i].fill(x, in)
			if err != nil {
				return nil, err
			}
			filled[i] = v
		}
		return filled, nil
	}
	return t.literal, nil
}
