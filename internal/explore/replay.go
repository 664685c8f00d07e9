package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Replay runs what a replay string stands for once more and returns its trace, as
// a sequence for people: the schedule, what went wrong, and what did not hold.
func Replay(text string) (string, error) {
	name, rest, ok := strings.Cut(text, "@")
	budget, rest, ok2 := strings.Cut(rest, "/")
	mutant, path, ok3 := strings.Cut(rest, ":")
	faults, err := strconv.Atoi(budget)
	if !ok || !ok2 || !ok3 || err != nil {
		return "", fmt.Errorf("explore: %q is no replay string", text)
	}
	tree, err := parseChoices(path)
	if err != nil {
		return "", err
	}
	s, err := scenarioOf(name)
	if err != nil {
		return "", err
	}
	if mutant != "" {
		m, err := mutantOf(mutant)
		if err != nil {
			return "", err
		}
		s.mutant = m
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s, up to %d faults%s\n", s.Name, faults, withMutant(mutant))
	x := newExplorer(*s, Options{Faults: faults, Mutant: s.mutant, exact: true})
	defer x.end()
	var trace []string
	origin := x.origin.clone()
	origin.trace = &trace
	w := x.walk(origin, tree)
	schedule := len(trace)
	for r := byAll; r <= byReconciler && len(w.violations) == 0; r++ {
		trace = trace[:schedule]
		end := w.clone()
		end.wire()
		end.finish(r)
		if len(end.violations) > 0 || r == byReconciler {
			trace = slices.Insert(trace, schedule, "recovery by "+r.String())
			w = end
			break
		}
	}
	for _, line := range trace {
		out.WriteString(line + "\n")
	}
	for _, p := range w.payments() {
		fmt.Fprintf(&out, "%s is %s, version %d; the provider holds %d\n", p.ID, p.Status, p.Version, w.psp.Net(string(p.ID)))
	}
	for _, v := range w.violations {
		fmt.Fprintf(&out, "VIOLATED %s: %s\n", v.Invariant, v.Detail)
	}
	return out.String(), nil
}

func withMutant(name string) string {
	if name == "" {
		return ""
	}
	return ", with the defect " + name
}

func scenarioOf(name string) (*Scenario, error) {
	for _, s := range append(Scenarios(), baselines()...) {
		if strings.ReplaceAll(s.Name, " ", "_") == strings.ReplaceAll(name, " ", "_") {
			return &s, nil
		}
	}
	return nil, fmt.Errorf("explore: no scenario %q", name)
}

func mutantOf(name string) (*Mutant, error) {
	for _, m := range Mutants() {
		if m.Name == name {
			return &m, nil
		}
	}
	return nil, fmt.Errorf("explore: no mutant %q", name)
}
