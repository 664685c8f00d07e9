// Package statemachines holds the state machine definitions as they are deployed,
// and what each must do, whoever runs it.
package statemachines

import (
	_ "embed"
	"testing/fstest"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

//go:embed checkout.asl.json
var checkout []byte

//go:embed scenarios/checkout.json
var checkoutScenarios []byte

// Scenarios is what the checkout machine must do. Its functions are named
// inventory, saga, orders and notifications.
func Scenarios() ([]scenario.Scenario, error) {
	return scenario.Load(fstest.MapFS{
		"checkout.json": {Data: checkoutScenarios}, "machine/checkout.asl.json": {Data: checkout},
	})
}
