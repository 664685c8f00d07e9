package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kessai/kessai/infra"
	"github.com/kessai/kessai/infra/local/statemachine"
	"github.com/kessai/kessai/internal/checkout"
)

// participants are the functions of the saga by their names in the definition.
type participants map[string]func(context.Context, []byte) ([]byte, error)

// saga runs the deployed definition in this process.
type saga struct{ service *statemachine.Service }

// functionTimeout is the time of the saga's functions, as in the template.
const functionTimeout = 29 * time.Second

func newSaga(p participants) (*saga, error) {
	options := statemachine.Options{
		Name: "checkout", Substitutions: map[string]string{}, Functions: map[string]statemachine.Function{}, FunctionTimeout: functionTimeout,
	}
	for name, invoke := range p {
		options.Substitutions[name] = name
		options.Functions[name] = func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
			return invoke(ctx, payload)
		}
	}
	machine, err := statemachine.Load(infra.CheckoutDefinition, options)
	if err != nil {
		return nil, fmt.Errorf("state machine: %w", err)
	}
	return &saga{statemachine.NewService(machine)}, nil
}

// Start starts an execution. A name that exists already is a success.
func (s *saga) Start(ctx context.Context, name string, input checkout.Input) error {
	text, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode input of %s: %w", name, err)
	}
	_, err = s.service.StartExecution(ctx, name, text)
	if errors.Is(err, statemachine.ErrExecutionAlreadyExists) {
		return nil
	}
	return err
}

func (s *saga) close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	_ = s.service.Close(ctx) // executions do not outlive the process
}
