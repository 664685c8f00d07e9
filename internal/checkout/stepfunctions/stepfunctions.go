// Package stepfunctions starts executions of the checkout state machine on AWS
// Step Functions.
package stepfunctions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/kessai/kessai/internal/checkout"
)

// API is the call that is used.
type API interface {
	StartExecution(ctx context.Context, in *sfn.StartExecutionInput, o ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
}

// Starter starts executions of one state machine. Safe for concurrent use.
type Starter struct {
	API     API
	Machine string // ARN
}

// Start starts an execution. A name that exists already is a success: names hold
// a counter that is raised before each start, so that the one that exists was
// started for the same news.
func (s *Starter) Start(ctx context.Context, name string, input checkout.Input) error {
	text, err := json.Marshal(input)
	if err != nil {
		return fmt.Errorf("encode input of %s: %w", name, err)
	}
	_, err = s.API.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String(s.Machine), Name: aws.String(name), Input: aws.String(string(text)),
	})
	if _, exists := errors.AsType[*types.ExecutionAlreadyExists](err); exists {
		return nil
	}
	if err != nil {
		return fmt.Errorf("start execution %s: %w", name, err)
	}
	return nil
}
