package api

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/idempotency"
	"github.com/kessai/kessai/internal/problem"
)

// form takes fields out of a JSON object and collects everything that is wrong
// with them. What nobody asked for is unknown and wrong as well. Names count
// exactly as written.
type form struct {
	object value
	path   string // before the names of its fields, "" at the top
	asked  map[string]bool
	faults *[]problem.Field
}

// readForm decodes a request's body.
func (c *call) readForm() (*form, error) {
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	object, err := decode(body)
	if err != nil {
		return nil, err
	}
	return &form{object: object, asked: map[string]bool{}, faults: &[]problem.Field{}}, nil
}

// presence says whether a field may be left out.
type presence bool

const (
	required presence = true
	optional presence = false
)

func (f *form) fault(name, message string) {
	*f.faults = append(*f.faults, problem.Field{Name: shorten(f.path + name), Message: message})
}

// take is the value of a field, nil when it is left out.
func (f *form) take(name string, p presence) *value {
	f.asked[name] = true
	for i := range f.object.members {
		if f.object.members[i].name == name {
			return &f.object.members[i].value
		}
	}
	if p == required {
		f.fault(name, "is required")
	}
	return nil
}

// textRule is what a text must be.
type textRule struct {
	max     int // characters; at least one is needed
	ok      func(string) bool
	message string // of what is wrong, without the value
}

func (r textRule) allows(s string) bool {
	n := utf8.RuneCountInString(s)
	return n >= 1 && n <= r.max && (r.ok == nil || r.ok(s))
}

// text is a string field, "" when it is left out or wrong.
func (f *form) text(name string, p presence, rule textRule) string {
	v := f.take(name, p)
	if v == nil {
		return ""
	}
	if v.kind != jsontext.KindString || !rule.allows(v.text) {
		f.fault(name, rule.message)
		return ""
	}
	return v.text
}

// word is a string field with one of those values, the first when it is left out.
func (f *form) word(name string, allowed ...string) string {
	v := f.take(name, optional)
	if v == nil {
		return allowed[0]
	}
	if v.kind != jsontext.KindString || !slices.Contains(allowed, v.text) {
		f.fault(name, "must be one of "+strings.Join(allowed, ", "))
		return ""
	}
	return v.text
}

// integer is a number field, 0 when it is left out or wrong. A number with a
// fraction or an exponent is none.
func (f *form) integer(name string, p presence, least, most int64) int64 {
	v := f.take(name, p)
	if v == nil {
		return 0
	}
	n, err := strconv.ParseInt(v.text, 10, 64)
	if v.kind != jsontext.KindNumber || err != nil || n < least || n > most {
		f.fault(name, fmt.Sprintf("must be an integer from %d to %d", least, most))
		return 0
	}
	return n
}

// done says what was wrong, nil when nothing was.
func (f *form) done() error {
	f.refuseUnknown()
	if len(*f.faults) == 0 {
		return nil
	}
	detail := "One field is not valid."
	if n := len(*f.faults); n > 1 {
		detail = fmt.Sprintf("%d fields are not valid.", n)
	}
	shown := (*f.faults)[:min(len(*f.faults), maxFaults)]
	return &problem.Error{Code: problem.InvalidRequest, Detail: detail, Fields: shown}
}

func (f *form) refuseUnknown() {
	for _, m := range f.object.members {
		if !f.asked[m.name] {
			f.fault(m.name, "is not a field of this request")
		}
	}
}

const (
	// maxFaults bounds an answer; a client that has more is not reading them.
	maxFaults = 100
	// maxFaultName is the most of a field's path that an answer repeats, in
	// characters: a name of metadata with what stands before it.
	maxFaultName = 60
)

// shorten cuts a name that the client made up.
func shorten(name string) string {
	if utf8.RuneCountInString(name) <= maxFaultName {
		return named(name)
	}
	return string([]rune(name)[:maxFaultName])
}

// named shows the field whose name is empty.
func named(name string) string {
	if name == "" {
		return `""`
	}
	return name
}

// fingerprint identifies a decoded request. Fields that were left out are left
// out of it, so that a field added later changes no fingerprint.
func fingerprint(request any) (string, error) {
	canonical, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("fingerprint: %w", err)
	}
	return idempotency.Fingerprint(canonical), nil
}
