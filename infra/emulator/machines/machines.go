package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
	"github.com/kessai/kessai/infra/statemachines"
)

const (
	// LongestSeconds is how long a scenario may take in real time to be run.
	LongestSeconds = 20

	// runner is the emulator's name in scenario files.
	runner = "emulator"

	// language has the scenarios that no machine of the product needs to be read for, seen from the repository's root.
	language = "infra/local/statemachine/testdata/scenarios"

	// sideBySide is how many executions run at a time. They wait most of the time.
	sideBySide = 8
)

// Run plays the scenarios on the AWS at endpoint, which is reached with the key of the emulator's root, and writes a line
// for each that fails and one for all. It is started from the repository's root, needs the go command, and can be
// repeated. The error says how many failed, or what kept the scenarios from being run.
func Run(ctx context.Context, endpoint string, out io.Writer) (err error) {
	all, err := load()
	if err != nil {
		return err
	}
	played, left := choose(all)
	if err := known(played); err != nil {
		return err
	}
	started := time.Now()
	s, err := newStage(ctx, endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	failed, differ := 0, 0 // they are told in the error too, should nobody be there to read out
	for i, wrong := range s.playAll(ctx, played) {
		_, listed := gaps[played[i].Name]
		switch {
		case wrong != "":
			failed++
			_, _ = fmt.Fprintf(out, "FAIL  %s: %s\n", played[i].Name, wrong)
		case listed:
			differ++
		}
	}
	_, _ = fmt.Fprintf(out, "scenarios of state machines in %.0fs: %d as specified, %d known gaps, %d failed; left out: %d of more than %ds, %d for other runners\n",
		time.Since(started).Seconds(), len(played)-failed-differ, differ, failed, left.long, LongestSeconds, left.others)
	if failed > 0 {
		return fmt.Errorf("%d of %d scenarios of state machines failed", failed, len(played))
	}
	return ctx.Err()
}

func load() ([]scenario.Scenario, error) {
	all, err := scenario.Load(os.DirFS(language))
	if err != nil {
		return nil, fmt.Errorf("scenarios of the language: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no scenarios in %s", language)
	}
	product, err := statemachines.Scenarios()
	if err != nil {
		return nil, fmt.Errorf("scenarios of the product: %w", err)
	}
	return append(all, product...), nil
}

// leftOut counts the scenarios that are not played.
type leftOut struct{ long, others int }

func choose(all []scenario.Scenario) (played []scenario.Scenario, left leftOut) {
	for _, s := range all {
		switch {
		case !s.For(runner):
			left.others++
		case s.Takes() > LongestSeconds*time.Second:
			left.long++
		default:
			played = append(played, s)
		}
	}
	return played, left
}

// known says which gaps are of no scenario that is played.
func known(played []scenario.Scenario) error {
	names := map[string]bool{}
	for _, s := range played {
		names[s.Name] = true
	}
	var faults []error
	for name := range gaps {
		if !names[name] {
			faults = append(faults, fmt.Errorf("the gap %q is of no scenario that is played", name))
		}
	}
	return errors.Join(faults...)
}

// playAll plays scenarios, some side by side, and tells what is wrong with each in their order.
func (s *stage) playAll(ctx context.Context, played []scenario.Scenario) []string {
	wrong := make([]string, len(played))
	slots := make(chan struct{}, sideBySide)
	var group sync.WaitGroup
	for i := range played {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			differences, err := s.play(ctx, i, &played[i])
			if err != nil {
				wrong[i] = "could not be played: " + err.Error()
				return
			}
			wrong[i] = judge(played[i].Name, differences)
		})
	}
	group.Wait()
	return wrong
}
