package explore

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// Report explores every scenario whose name begins with only and writes a table in
// Markdown, then each violation with its replay string. It reports whether
// everything held.
func Report(out io.Writer, o Options, only string) bool {
	var chosen []Scenario
	for _, s := range Scenarios() {
		if strings.HasPrefix(s.Name, only) {
			chosen = append(chosen, s)
		}
	}
	reached := map[string]int{}
	write(out, "Up to %d faults.\n\n| scenario | runs | states | different ends | violations |\n|---|--:|--:|--:|--:|\n", o.Faults)
	var violations []Violation
	for i, r := range exploreAll(chosen, o) {
		result := <-r
		bounded := ""
		if !result.Complete {
			bounded = " (bounded)"
		}
		write(out, "| %s | %d%s | %d | %d | %d |\n", chosen[i].Name, result.Runs, bounded, result.States, result.Ends, result.Violating)
		violations = append(violations, sortedViolations(result.Violations)...)
		for name, n := range result.Reached {
			reached[name] += n
		}
	}
	for _, v := range violations {
		write(out, "\n%s: %s\n  make explore REPLAY='%s'\n", v.Invariant, v.Detail, v.Replay)
	}
	missing := missed(reached, only)
	if o.Faults > 0 {
		for _, name := range missing {
			write(out, "\nnever reached: %s\n", name)
		}
	}
	return len(violations) == 0 && (o.Faults == 0 || len(missing) == 0)
}

// exploreAll explores scenarios at once, as many as there are processors. Each has
// its own channel, so that results can be read in order.
func exploreAll(scenarios []Scenario, o Options) []chan Result {
	results := make([]chan Result, len(scenarios))
	var next atomic.Int64
	for i := range results {
		results[i] = make(chan Result, 1)
	}
	for range runtime.GOMAXPROCS(0) {
		go func() { // ends when nothing is left
			for i := int(next.Add(1)) - 1; i < len(scenarios); i = int(next.Add(1)) - 1 {
				results[i] <- Explore(scenarios[i], o)
			}
		}()
	}
	return results
}

// Sometimes are the rare states that an exploration must have reached: one that
// never sees them proves nothing about them.
func Sometimes() []string {
	return []string{
		"own write refused", "a late call arrived", "key expired at the psp", // of the explorer
		"LateCapture", "VersionConflict", "OutcomeUnknown", "LeaseHeld", "WebhookDuplicate", "PaymentNeedsPerson",
		"ExecutionNotStarted", "CheckoutCompensating", // metrics of the flows
		"forgery", "card number sent", "fence lost", "refund of late money", "void by the sweep", "stock released",
	}
}

func missed(reached map[string]int, only string) []string {
	if only != "" {
		return nil
	}
	return slices.DeleteFunc(Sometimes(), func(name string) bool { return reached[name] > 0 })
}

// Baselines explores naive handlers under the same faults and writes how often each
// violated what.
func Baselines(out io.Writer, o Options) {
	write(out, "\nThe same schedules, other designs, up to %d faults.\n\n| design | runs | violating runs | invariants |\n|---|--:|--:|---|\n", o.Faults)
	for _, s := range baselines() {
		r := Explore(s, o)
		names := map[string]bool{}
		for _, v := range r.Violations {
			names[v.Invariant] = true
		}
		write(out, "| %s | %d | %d | %s |\n", s.Name, r.Runs, r.Violating, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
}

// write writes a line of a report: who reads it sees when it ends early.
func write(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
