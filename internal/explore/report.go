package explore

import (
	"fmt"
	"io"
	"strings"
)

// Report explores every scenario whose name begins with only and writes a table in
// Markdown, then each violation with its replay string. It reports whether
// everything held.
func Report(out io.Writer, o Options, only string) bool {
	o.Reached = map[string]int{}
	fmt.Fprintf(out, "Up to %d faults.\n\n| scenario | runs | states | different ends | violations |\n|---|--:|--:|--:|--:|\n", o.Faults)
	var violations []Violation
	for _, s := range Scenarios() {
		if !strings.HasPrefix(s.Name, only) {
			continue
		}
		r := Explore(s, o)
		bounded := ""
		if !r.Complete {
			bounded = " (bounded)"
		}
		fmt.Fprintf(out, "| %s | %d%s | %d | %d | %d |\n", r.Scenario, r.Runs, bounded, r.States, r.Ends, r.Violating)
		violations = append(violations, sortedViolations(r.Violations)...)
	}
	for _, v := range violations {
		fmt.Fprintf(out, "\n%s: %s\n  make explore REPLAY='%s'\n", v.Invariant, v.Detail, v.Replay)
	}
	return len(violations) == 0
}
