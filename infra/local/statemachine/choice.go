package statemachine

import (
	"cmp"
	"context"
	"strconv"
)

// choice is a Choice state.
type choice struct {
	input    selection
	output   selection
	rules    []rule
	fallback target // Default, with an empty name when there is none
}

// rule is a top-level choice rule.
type rule struct {
	test   test
	target target
}

// test is a boolean or a data-test expression.
type test func(x *execution, in any) (bool, error)

func parseChoice(o *object) *choice {
	c := &choice{input: o.selection("InputPath"), output: o.selection("OutputPath")}
	if o.has("Default") {
		c.fallback = o.target("Default")
	}
	for i, item := range o.list("Choices") {
		at := element(pointer(o.at, "Choices"), i)
		if child, ok := newObject(at, item, o.problems); ok {
			r := rule{target: child.target("Next")}
			r.test = parseTest(child)
			c.rules = append(c.rules, r)
		}
	}
	return c
}

// parseTest reads an expression: And, Or or Not, or a Variable and exactly one
// comparison.
func parseTest(o *object) test {
	o.comment()
	defer o.finish()
	var found []string
	for _, operator := range []string{"And", "Or", "Not"} {
		if o.has(operator) {
			found = append(found, operator)
		}
	}
	comparison := o.has("Variable")
	for operator := range comparisons {
		if o.has(operator) {
			found = append(found, operator)
		}
	}
	if len(found) != 1 {
		o.problems.add(o.at, "needs exactly one supported comparison or And, Or, Not; there are %d", len(found))
		return nil
	}
	switch operator := found[0]; operator {
	case "And":
		return parseAll(o, operator, false)
	case "Or":
		return parseAll(o, operator, true)
	case "Not":
		return parseNot(o)
	default:
		if !comparison {
			o.missing("Variable")
			return nil
		}
		return parseComparison(o, operator)
	}
}

// parseAll reads the list of an And, which ends at the first false, or of an
// Or, which ends at the first true.
func parseAll(o *object, operator string, until bool) test {
	var tests []test
	for i, item := range o.list(operator) {
		at := element(pointer(o.at, operator), i)
		if child, ok := newObject(at, item, o.problems); ok {
			tests = append(tests, parseTest(child))
		}
	}
	return func(x *execution, in any) (bool, error) {
		for _, t := range tests {
			if got, err := t(x, in); err != nil || got == until {
				return got, err
			}
		}
		return !until, nil
	}
}

func parseNot(o *object) test {
	v, _ := o.take("Not")
	child, ok := newObject(pointer(o.at, "Not"), v, o.problems)
	if !ok {
		return nil
	}
	inner := parseTest(child)
	return func(x *execution, in any) (bool, error) {
		got, err := inner(x, in)
		return !got, err
	}
}

// comparisons are the operators known here, each with what it tells of the
// value that Variable leads to.
var comparisons = map[string]func(o *object, operator string) func(value any) bool{
	"StringEquals":             stringEquals,
	"BooleanEquals":            booleanEquals,
	"IsNull":                   isNull,
	"IsPresent":                nil, // the one that does not need a value
	"NumericEquals":            numeric(func(order int) bool { return order == 0 }),
	"NumericLessThan":          numeric(func(order int) bool { return order < 0 }),
	"NumericGreaterThan":       numeric(func(order int) bool { return order > 0 }),
	"NumericLessThanEquals":    numeric(func(order int) bool { return order <= 0 }),
	"NumericGreaterThanEquals": numeric(func(order int) bool { return order >= 0 }),
}

func parseComparison(o *object, operator string) test {
	variable, ok := o.path("Variable", true)
	if parse := comparisons[operator]; parse != nil {
		holds := parse(o, operator)
		return func(x *execution, in any) (bool, error) {
			value, found := x.lookup(variable, in)
			if !found {
				return false, x.failf(errRuntime, "the Variable %s leads to nothing", variable.text)
			}
			return holds(value), nil
		}
	}
	want := o.flag(operator)
	if !ok {
		return nil
	}
	return func(x *execution, in any) (bool, error) {
		_, found := x.lookup(variable, in)
		return found == want, nil
	}
}

func stringEquals(o *object, operator string) func(any) bool {
	want, _ := o.text(operator)
	return func(v any) bool { return v == any(want) }
}

func booleanEquals(o *object, operator string) func(any) bool {
	want := o.flag(operator)
	return func(v any) bool { return v == any(want) }
}

func isNull(o *object, operator string) func(any) bool {
	want := o.flag(operator)
	return func(v any) bool { return (v == nil) == want }
}

// numeric builds a comparison that is false for everything but numbers.
func numeric(holds func(order int) bool) func(o *object, operator string) func(any) bool {
	return func(o *object, operator string) func(any) bool {
		v, _ := o.take(operator)
		want, ok := v.(number)
		if !ok {
			o.fail(operator, "must be a number")
		}
		return func(v any) bool {
			got, ok := v.(number)
			return ok && holds(compare(got, want))
		}
	}
}

// compare orders two numbers: exactly as 64-bit integers where both are, else
// as the binary64 that the language promises.
func compare(a, b number) int {
	m, errA := strconv.ParseInt(string(a), 10, 64)
	n, errB := strconv.ParseInt(string(b), 10, 64)
	if errA == nil && errB == nil {
		return cmp.Compare(m, n)
	}
	x, _ := strconv.ParseFloat(string(a), 64) // out of range is ±Inf, which orders right
	y, _ := strconv.ParseFloat(string(b), 64)
	return cmp.Compare(x, y)
}

func (*choice) kind() string { return "Choice" }

func (c *choice) targets() []target {
	var all []target
	for _, r := range c.rules {
		all = append(all, r.target)
	}
	if c.fallback.state != "" {
		all = append(all, c.fallback)
	}
	return all
}

// run follows the first rule that holds, else Default.
func (c *choice) run(_ context.Context, x *execution, in any) (step, error) {
	effective, err := c.input.apply(x, in)
	if err != nil {
		return step{}, err
	}
	next := c.fallback.state
	for _, r := range c.rules {
		holds, err := r.test(x, effective)
		if err != nil {
			return step{}, err
		}
		if holds {
			next = r.target.state
			break
		}
	}
	if next == "" {
		return step{}, x.failf(errNoChoiceMatched, "no rule holds and there is no Default")
	}
	out, err := c.output.apply(x, effective)
	return step{output: out, next: next}, err
}
