package dynamo

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kessai/kessai/internal/store"
)

// expression collects the placeholders of one request's expressions.
type expression struct {
	names        map[string]string // by placeholder
	placeholders map[string]string // by name
	values       map[string]types.AttributeValue
}

func newExpression() *expression {
	return &expression{
		names:        make(map[string]string),
		placeholders: make(map[string]string),
		values:       make(map[string]types.AttributeValue),
	}
}

// name returns the placeholder of an attribute's name.
func (x *expression) name(attr string) string {
	if p, ok := x.placeholders[attr]; ok {
		return p
	}
	p := "#" + strconv.Itoa(len(x.names))
	x.names[p], x.placeholders[attr] = attr, p
	return p
}

// value returns a new placeholder of a value.
func (x *expression) value(v any) string {
	p := ":" + strconv.Itoa(len(x.values))
	x.values[p] = toValue(v)
	return p
}

// attrNames and attrValues are nil when empty, which DynamoDB would refuse.
func (x *expression) attrNames() map[string]string {
	if len(x.names) == 0 {
		return nil
	}
	return x.names
}

func (x *expression) attrValues() map[string]types.AttributeValue {
	if len(x.values) == 0 {
		return nil
	}
	return x.values
}

// condition returns the condition as an expression, nil when it always holds.
func (x *expression) condition(c store.Condition) *string {
	c = c.Simplify()
	if c.Op == store.OpAlways {
		return nil
	}
	s := x.term(c)
	return &s
}

// term writes a simplified condition that is not constantly true.
func (x *expression) term(c store.Condition) string {
	switch c.Op {
	case store.OpAlways: // only ever the whole condition
	case store.OpExists:
		return "attribute_exists(" + x.attr(c) + ")"
	case store.OpAbsent:
		return "attribute_not_exists(" + x.attr(c) + ")"
	case store.OpEqual:
		return x.attr(c) + " = " + x.value(c.Value)
	case store.OpNotEqual:
		n := x.attr(c)
		return "(attribute_not_exists(" + n + ") OR " + n + " <> " + x.value(c.Value) + ")"
	case store.OpLess:
		return x.attr(c) + " < " + x.value(c.Value)
	case store.OpAtLeast:
		return x.attr(c) + " >= " + x.value(c.Value)
	case store.OpAll:
		return x.join(c.Terms, " AND ")
	case store.OpAny:
		if len(c.Terms) == 0 { // never
			pk := x.name(attrPK)
			return "(attribute_exists(" + pk + ") AND attribute_not_exists(" + pk + "))"
		}
		return x.join(c.Terms, " OR ")
	}
	panic("dynamo: condition that was not validated")
}

func (x *expression) join(terms []store.Condition, operator string) string {
	parts := make([]string, len(terms))
	for i, term := range terms {
		parts[i] = x.term(term)
	}
	return "(" + strings.Join(parts, operator) + ")"
}

// attr is the attribute a condition is about. An item exists when its key does.
func (x *expression) attr(c store.Condition) string {
	if c.Attr == "" {
		return x.name(attrPK)
	}
	return x.name(c.Attr)
}

// update returns an update expression that names each attribute it changes. The
// order is fixed, so that equal writes are equal requests.
func (x *expression) update(set store.Item, remove []string, add map[string]int64) string {
	var sets, adds, removes []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		sets = append(sets, x.name(name)+" = "+x.value(set[name]))
	}
	for _, name := range remove {
		removes = append(removes, x.name(name))
	}
	for _, name := range slices.Sorted(maps.Keys(add)) {
		adds = append(adds, x.name(name)+" "+x.value(add[name]))
	}
	var clauses []string
	for _, clause := range []struct {
		word  string
		parts []string
	}{{"SET ", sets}, {"REMOVE ", removes}, {"ADD ", adds}} {
		if len(clause.parts) > 0 {
			clauses = append(clauses, clause.word+strings.Join(clause.parts, ", "))
		}
	}
	return strings.Join(clauses, " ")
}
