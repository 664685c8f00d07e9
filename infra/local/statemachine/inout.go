package statemachine

// selection is an InputPath or OutputPath: what part of the data goes on.
type selection struct {
	set  bool
	null bool
	path path
}

// selection takes an optional InputPath or OutputPath.
func (o *object) selection(field string) selection {
	if v, ok := o.fields[field]; ok && v == nil {
		o.take(field)
		return selection{set: true, null: true}
	}
	p, ok := o.path(field, true)
	return selection{set: ok, path: p}
}

// apply selects from data. An absent field selects everything and a null one
// gives an empty object.
func (s selection) apply(x *execution, data any) (any, error) {
	switch {
	case !s.set:
		return data, nil
	case s.null:
		return map[string]any{}, nil
	}
	return x.resolve(s.path, data)
}

// placement is a ResultPath: where the result goes in the raw input.
type placement struct {
	null bool
	path path
}

// placement takes an optional ResultPath, "$" when absent.
func (o *object) placement() placement {
	const field = "ResultPath"
	if v, ok := o.fields[field]; ok && v == nil {
		o.take(field)
		return placement{null: true}
	}
	p, _ := o.path(field, false)
	return placement{path: p}
}

// apply combines the raw input of a state with a result. A null ResultPath
// throws the result away.
func (p placement) apply(x *execution, raw, result any) (any, error) {
	if p.null {
		return raw, nil
	}
	out, ok := place(raw, p.path.steps, result)
	if !ok {
		return nil, x.failf(errResultPathMatch, "ResultPath %s needs an object where the input has none", p.path.text)
	}
	return out, nil
}
