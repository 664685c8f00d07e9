package store

import "cmp"

// Holds evaluates the condition against an item as it is now, nil when it is
// absent. It is the meaning that every adapter gives to a Condition: values of
// different types are unequal and never compare, and strings compare by bytes.
func (c Condition) Holds(old Item) bool {
	switch c.Op {
	case OpAlways:
		return true
	case OpExists:
		return c.present(old)
	case OpAbsent:
		return !c.present(old)
	case OpEqual:
		return equal(old[c.Attr], c.Value)
	case OpNotEqual:
		return !equal(old[c.Attr], c.Value)
	case OpLess:
		order, ok := compare(old[c.Attr], c.Value)
		return ok && order < 0
	case OpAtLeast:
		order, ok := compare(old[c.Attr], c.Value)
		return ok && order >= 0
	case OpAll:
		for _, term := range c.Terms {
			if !term.Holds(old) {
				return false
			}
		}
		return true
	case OpAny:
		for _, term := range c.Terms {
			if term.Holds(old) {
				return true
			}
		}
		return false
	}
	return false
}

// Simplify returns an equivalent condition without constants inside: OpAlways,
// All() and Any() survive only as the whole of it. What always holds becomes the
// zero Condition, what never does becomes Any().
func (c Condition) Simplify() Condition {
	if c.Op != OpAll && c.Op != OpAny {
		return c
	}
	kept := make([]Condition, 0, len(c.Terms))
	for _, term := range c.Terms {
		term = term.Simplify()
		always, never := term.Op == OpAlways, term.Op == OpAny && len(term.Terms) == 0
		switch {
		case c.Op == OpAll && never, c.Op == OpAny && always:
			return term
		case always, never:
		default:
			kept = append(kept, term)
		}
	}
	switch {
	case len(kept) == 1:
		return kept[0]
	case len(kept) == 0 && c.Op == OpAll:
		return Condition{}
	}
	return Condition{Op: c.Op, Terms: kept}
}

func (c Condition) present(old Item) bool {
	if c.Attr == "" {
		return old != nil
	}
	_, ok := old[c.Attr]
	return ok
}

// equal compares scalars only: the operand of a condition is never a list or map.
func equal(have, want any) bool {
	switch want := want.(type) {
	case string:
		s, ok := have.(string)
		return ok && s == want
	case int64:
		n, ok := have.(int64)
		return ok && n == want
	case bool:
		b, ok := have.(bool)
		return ok && b == want
	}
	return false
}

func compare(have, want any) (order int, ok bool) {
	switch want := want.(type) {
	case int64:
		n, ok := have.(int64)
		return cmp.Compare(n, want), ok
	case string:
		s, ok := have.(string)
		return cmp.Compare(s, want), ok
	}
	return 0, false
}
