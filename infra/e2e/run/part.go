package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kessai/kessai/infra/emulator/machines"
)

// The parts of a run, in their order.
const (
	partSuite    = "suite"
	partContract = "contract"
	partMachines = "machines"
)

var parts = []string{partSuite, partContract, partMachines}

// onlyPart is the one part that is asked for, "" for all.
func onlyPart() (string, error) {
	only, set := os.LookupEnv("E2E_ONLY")
	if set && !slices.Contains(parts, only) {
		return "", fmt.Errorf("E2E_ONLY=%q is none of %v", only, parts)
	}
	return only, nil
}

// place is where the parts run.
type place struct {
	endpoint string   // of AWS
	suite    []string // environment of the suite, beside this program's own
}

// run runs the parts that can run here, or of these only one. One that fails does not keep the next from running.
func (p place) run(ctx context.Context, only string, here map[string]bool) error {
	if only != "" && !here[only] {
		return fmt.Errorf("E2E_ONLY=%s has nothing here to run against", only)
	}
	var faults []error
	for _, part := range parts {
		if !here[part] || only != "" && only != part || ctx.Err() != nil {
			continue
		}
		fmt.Println("running", part)
		faults = append(faults, p.runPart(ctx, part))
	}
	return errors.Join(append(faults, ctx.Err())...)
}

func (p place) runPart(ctx context.Context, part string) error {
	switch part {
	case partSuite:
		return goTest(ctx, p.suite, "./infra/e2e")
	case partContract:
		return goTest(ctx, nil, "./internal/store/dynamo", "-run", "Contract", "-endpoint", p.endpoint)
	case partMachines:
		return machines.Run(ctx, p.endpoint, os.Stdout)
	}
	return fmt.Errorf("there is no part %q", part)
}
