// Program run explores every schedule and every fault of the product's flows, and
// prints a table of what it found. With -replay it shows one run step by step.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/kessai/kessai/internal/explore"
)

func main() {
	faults := flag.Int("faults", 1, "how many faults a run may have")
	runs := flag.Int("runs", 0, "the most runs of a scenario, 0 for all")
	only := flag.String("scenario", "", "explore only scenarios whose name begins so")
	replay := flag.String("replay", "", "show the run that a replay string stands for")
	markdown := flag.Bool("markdown", false, "write the tables for a document")
	flag.Parse()
	debug.SetGCPercent(800) // short-lived garbage, and memory to spare
	if *replay != "" {
		text, err := explore.Replay(*replay)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		_, _ = os.Stdout.WriteString(text)
		return
	}
	o := explore.Options{Faults: *faults, MaxRuns: *runs}
	sheet := explore.Sheet{Out: os.Stdout, Markdown: *markdown}
	held := explore.Report(sheet, o, *only)
	if *only == "" {
		explore.Baselines(sheet, o)
	}
	if !held {
		os.Exit(1)
	}
}
