package explore

import (
	"fmt"
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
	for r := byAll; r <= byReconciler; r++ {
		var trace []string
		x := &explorer{scenario: *s, options: Options{Faults: faults}, result: Result{Reached: map[string]int{}}, trace: &trace}
		w, _ := x.play(&choices{path: tree.path, widths: make([]int, len(tree.path))}, false)
		schedule := len(trace)
		if len(w.violations) == 0 {
			w.finish(r)
		} else {
			r = byReconciler // it did not come to a recovery
		}
		last := r == byReconciler
		if len(w.violations) == 0 && !last {
			continue
		}
		for i, line := range trace {
			if i == schedule {
				fmt.Fprintf(&out, "recovery by %s\n", r)
			}
			out.WriteString(line + "\n")
		}
		for _, p := range w.payments() {
			fmt.Fprintf(&out, "%s is %s, version %d; the provider holds %d\n", p.ID, p.Status, p.Version, w.psp.Net(string(p.ID)))
		}
		for _, v := range w.violations {
			fmt.Fprintf(&out, "VIOLATED %s: %s\n", v.Invariant, v.Detail)
		}
		break
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
