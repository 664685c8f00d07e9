package explore

import (
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Sheet is how a report is written.
type Sheet struct {
	Out      io.Writer
	Markdown bool // tables for a document, else for a terminal
}

// row writes one row of a table. The first column is text; widths are those of the
// terminal.
func (s Sheet) row(cells ...string) {
	if s.Markdown {
		write(s.Out, "| %s |\n", strings.Join(cells, " | "))
		return
	}
	write(s.Out, "%-38s", cells[0])
	for _, cell := range cells[1:] {
		write(s.Out, " %11s", cell)
	}
	write(s.Out, "\n")
}

// head is the first row.
func (s Sheet) head(cells ...string) {
	s.row(cells...)
	if s.Markdown {
		write(s.Out, "|---%s|\n", strings.Repeat("|--:", len(cells)-1))
	}
}

// Report explores every scenario whose name begins with only and writes a table,
// then each violation with its replay string. It reports whether everything held.
func Report(s Sheet, o Options, only string) bool {
	var chosen []Scenario
	for _, s := range Scenarios() {
		if strings.HasPrefix(s.Name, only) {
			chosen = append(chosen, s)
		}
	}
	reached := map[string]int{}
	write(s.Out, "Up to %d faults.\n\n", o.Faults)
	s.head("scenario", "runs", "states", "ends", "search", "violations")
	var violations []Violation
	var runs, states, ends, whole int
	for i, r := range exploreAll(chosen, o) {
		result := <-r
		search := "bounded"
		if result.Complete {
			search = "whole"
			whole++
		}
		s.row(chosen[i].Name, strconv.Itoa(result.Runs), strconv.Itoa(result.States), strconv.Itoa(result.Ends), search, strconv.Itoa(result.Violating))
		runs, states, ends = runs+result.Runs, states+result.States, ends+result.Ends
		violations = append(violations, sortedViolations(result.Violations)...)
		for name, n := range result.Reached {
			reached[name] += n
		}
	}
	s.row(fmt.Sprintf("all %d", len(chosen)), strconv.Itoa(runs), strconv.Itoa(states), strconv.Itoa(ends), fmt.Sprintf("%d whole", whole), strconv.Itoa(len(violations)))
	for _, v := range violations {
		write(s.Out, "\n%s: %s\n  make explore REPLAY='%s'\n", v.Invariant, v.Detail, v.Replay)
	}
	missing := missed(reached, only)
	if o.Faults > 0 {
		for _, name := range missing {
			write(s.Out, "\nnever reached: %s\n", name)
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
func Baselines(s Sheet, o Options) {
	write(s.Out, "\nThe same schedules, other designs, up to %d faults.\n\n", o.Faults)
	s.head("design", "runs", "violating", "invariants")
	for _, design := range baselines() {
		r := Explore(design, o)
		names := map[string]bool{}
		for _, v := range r.Violations {
			names[v.Invariant] = true
		}
		s.row(design.Name, strconv.Itoa(r.Runs), strconv.Itoa(r.Violating), strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
}

// write writes a line of a report: who reads it sees when it ends early.
func write(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
