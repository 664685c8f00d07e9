package statemachine

import (
	"maps"
	"slices"
)

// target is a reference to another state, and where the definition makes it.
type target struct{ state, at string }

// target takes a required name of a state.
func (o *object) target(field string) target {
	name, _ := o.needText(field)
	return target{state: name, at: pointer(o.at, field)}
}

// transition takes Next and End, of which a state needs exactly one. The name
// is "" for the end.
func (o *object) transition() target {
	end := o.flag("End")
	switch next := o.has("Next"); {
	case next && end:
		o.fail("End", "must not be true beside Next")
		o.take("Next")
	case next:
		return o.target("Next")
	case !end:
		o.fail("Next", "is required where End is not true")
	}
	return target{at: pointer(o.at, "End")}
}

// checkGraph reports targets that do not exist, states that nothing leads to,
// and states from which no end can be reached.
func (m *Machine) checkGraph(start target, p *problems) {
	before := map[string][]string{} // state -> the states that lead to it
	check := func(t target) bool {
		if _, ok := m.states[t.state]; !ok && t.state != "" {
			p.add(t.at, "there is no state %q", t.state)
		}
		return t.state != ""
	}
	check(start)
	var ends []string
	for name, s := range m.states {
		for _, t := range s.targets() {
			if check(t) {
				before[t.state] = append(before[t.state], name)
			} else {
				ends = append(ends, name)
			}
		}
	}
	after := func(name string) (next []string) {
		if s, ok := m.states[name]; ok {
			for _, t := range s.targets() {
				next = append(next, t.state)
			}
		}
		return next
	}
	entered := closure([]string{start.state}, after)
	ending := closure(ends, func(name string) []string { return before[name] })
	for _, name := range slices.Sorted(maps.Keys(m.states)) {
		if !entered[name] {
			p.add(pointer("/States", name), "nothing leads to this state")
		}
		if !ending[name] {
			p.add(pointer("/States", name), "no terminal state can be reached from here")
		}
	}
}

// closure is everything that can be reached from the given names.
func closure(from []string, next func(string) []string) map[string]bool {
	reached := map[string]bool{}
	for len(from) > 0 {
		name := from[len(from)-1]
		from = from[:len(from)-1]
		if !reached[name] {
			reached[name] = true
			from = append(from, next(name)...)
		}
	}
	return reached
}
