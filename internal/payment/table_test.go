package payment_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/kessai/kessai/internal/payment"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

// Every event in every status has a decision, so that a new status or event
// cannot be added without deciding what it means everywhere.
func TestTransitionMatrix(t *testing.T) {
	words := map[payment.Verdict]string{
		payment.Illegal: "illegal", payment.TooEarly: "too early", payment.OldNews: "old news", payment.Noted: "noted",
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 1, 2, ' ', 0)
	fmt.Fprintln(w, "status\tevent\tnext")
	for _, from := range payment.Statuses() {
		for _, event := range payment.EventTypes() {
			next, verdict := payment.Next(from, event)
			word, stays := words[verdict]
			if !stays {
				word = "-> " + string(next)
			}
			if stays && next != from {
				t.Errorf("%s, %s: %s moves to %s, want it to stay", from, event, word, next)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", from, event, word)
		}
	}
	w.Flush()
	golden(t, "testdata/transitions.golden", b.String())
}

// S-TERMINAL-STABLE: captured becomes only refunded, and a dead payment only
// refunded, for money that came late.
func TestTerminalStatusesOnlyBecomeRefunded(t *testing.T) {
	for _, from := range payment.Statuses() {
		for _, event := range payment.EventTypes() {
			if next, _ := payment.Next(from, event); from.Terminal() && next != from {
				t.Errorf("%s moves %s to %s in the table, want it to stay", event, from, next)
			}
		}
	}
}

func TestUnknownEventIsIllegal(t *testing.T) {
	if next, verdict := payment.Next(payment.StatusProcessing, "payment.surprise"); verdict != payment.Illegal || next != payment.StatusProcessing {
		t.Errorf("got %s, verdict %d; want it to stay, illegal", next, verdict)
	}
	if next, verdict := payment.Next("surprise", payment.EventCaptured); verdict != payment.Illegal || next != "surprise" {
		t.Errorf("got %s, verdict %d; want an unknown status to stay, illegal", next, verdict)
	}
	_, _, changed, err := processing().Apply(payment.Event{Type: "payment.surprise"})
	if te, ok := errors.AsType[*payment.TransitionError](err); !ok || changed || te.Early {
		t.Errorf("got %v, changed %v, want an illegal transition", err, changed)
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run go test -update and read the diff\ngot:\n%s", path, got)
	}
}
