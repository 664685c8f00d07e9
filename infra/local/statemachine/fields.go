package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DefinitionError is one thing wrong, or not supported here, in a definition.
type DefinitionError struct {
	Path   string // JSON Pointer (RFC 6901) to the offender, "" for the whole document
	Reason string
}

// Error tells the place and the reason.
func (e *DefinitionError) Error() string {
	return fmt.Sprintf("state machine definition: at %q: %s", e.Path, e.Reason)
}

// problems collects everything wrong with a definition, so that one load
// reports all of it.
type problems struct {
	list []*DefinitionError
	task bool // a Task state is being read: only those have a retry count
}

func (p *problems) add(at, format string, args ...any) {
	p.list = append(p.list, &DefinitionError{Path: at, Reason: fmt.Sprintf(format, args...)})
}

// err joins the problems in the order of their paths, or is nil.
func (p *problems) err() error {
	slices.SortStableFunc(p.list, func(a, b *DefinitionError) int { return strings.Compare(a.Path, b.Path) })
	errs := make([]error, len(p.list))
	for i, e := range p.list {
		errs[i] = e
	}
	return errors.Join(errs...)
}

// path parses a path; context says whether one into the context object will do.
func (p *problems) path(at, text string, context bool) (path, bool) {
	parsed, err := parsePath(text)
	switch {
	case err != nil:
		p.add(at, "%v", err)
	case parsed.context && !context:
		p.add(at, "must not be a path into the context object")
	case parsed.usesRetryCount() && !p.task:
		p.add(at, "only a Task state has $$.State.RetryCount")
	default:
		return parsed, true
	}
	return path{}, false
}

// pointer appends one step to a JSON Pointer.
func pointer(at, step string) string {
	return at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
}

// element appends an array index to a JSON Pointer.
func element(at string, i int) string { return pointer(at, strconv.Itoa(i)) }

// object reads the fields of one JSON object of a definition. Every field must
// be taken by somebody; what is left over when finish is called is unknown and
// an error.
type object struct {
	at       string
	fields   map[string]any
	taken    map[string]bool
	problems *problems
}

func newObject(at string, v any, p *problems) (*object, bool) {
	fields, ok := v.(map[string]any)
	if !ok {
		p.add(at, "must be an object")
		return nil, false
	}
	return &object{at: at, fields: fields, taken: map[string]bool{}, problems: p}, true
}

func (o *object) fail(field, format string, args ...any) {
	o.problems.add(pointer(o.at, field), format, args...)
}

func (o *object) has(field string) bool {
	_, ok := o.fields[field]
	return ok
}

func (o *object) take(field string) (any, bool) {
	v, ok := o.fields[field]
	o.taken[field] = true
	return v, ok
}

// need takes a field that must be there.
func (o *object) need(field string) (any, bool) {
	v, ok := o.take(field)
	if !ok {
		o.fail(field, "is required")
	}
	return v, ok
}

// text takes an optional string.
func (o *object) text(field string) (string, bool) {
	v, ok := o.take(field)
	if !ok {
		return "", false
	}
	s, ok := v.(string)
	if !ok {
		o.fail(field, "must be a string")
	}
	return s, ok
}

// needText takes a string that must be there and must not be empty.
func (o *object) needText(field string) (string, bool) {
	if !o.has(field) {
		return "", o.missing(field)
	}
	s, ok := o.text(field)
	if ok && s == "" {
		o.fail(field, "must not be empty")
		return "", false
	}
	return s, ok
}

func (o *object) missing(field string) bool {
	_, ok := o.need(field)
	return ok
}

// flag takes an optional boolean, false when absent.
func (o *object) flag(field string) bool {
	v, ok := o.take(field)
	if !ok {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.fail(field, "must be a boolean")
	}
	return b
}

// integer takes an optional whole number within low..high.
func (o *object) integer(field string, low, high int64) (int64, bool) {
	v, ok := o.take(field)
	if !ok {
		return 0, false
	}
	n, ok := wholeNumber(v)
	if !ok || n < low || n > high {
		o.fail(field, "must be a whole number from %d to %d", low, high)
		return 0, false
	}
	return n, true
}

// wholeNumber reads a JSON number written without fraction and exponent.
func wholeNumber(v any) (int64, bool) {
	text, ok := v.(number)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// list takes a required, non-empty array.
func (o *object) list(field string) []any {
	v, ok := o.need(field)
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok || len(items) == 0 {
		o.fail(field, "must be a non-empty array")
		return nil
	}
	return items
}

// comment takes the one field that every object may have.
func (o *object) comment() { o.text("Comment") }

// path takes an optional path; context says whether one into the context
// object will do.
func (o *object) path(field string, context bool) (path, bool) {
	text, ok := o.text(field)
	if !ok {
		return path{}, false
	}
	return o.problems.path(pointer(o.at, field), text, context)
}

// finish reports every field that nobody took.
func (o *object) finish() {
	for field := range o.fields {
		if !o.taken[field] {
			o.fail(field, "unknown or unsupported field")
		}
	}
}
