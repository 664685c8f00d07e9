package machines

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

const (
	region = "us-east-1"
	// rootKey is both halves of the key of the emulator's root.
	rootKey = "test"
	// patience is what an execution may take beyond the time of its scenario: the emulator starts a process for the first
	// call of a function, and eight at a time want this machine.
	patience = 20 * time.Second
	// lookEvery is the pause between two looks at an execution.
	lookEvery = 200 * time.Millisecond
	// tidyLimit bounds the deletion of what a scenario made.
	tidyLimit = 10 * time.Second
)

// fresh connects anew for every call: the emulator closes connections that rest, and a call that meets such an end is
// sent again, which a creation or a start does not survive.
var fresh = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// stage is where scenarios are played: the AWS, and the prompter that their functions ask.
type stage struct {
	run      string // names the run, and everything made in it
	endpoint string
	role     string // of functions and machines
	code     []byte
	lambda   *lambda.Client
	machines *sfn.Client
	prompter *prompter
	address  string
	server   *http.Server
}

func newStage(ctx context.Context, endpoint string) (*stage, error) {
	code, err := buildFunction(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("address of the script: %w", err)
	}
	root := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: rootKey, SecretAccessKey: rootKey}, nil
	})
	s := &stage{
		run: "scenario-" + strings.ToLower(rand.Text()[:6]), endpoint: endpoint, code: code,
		lambda:   lambda.New(lambda.Options{Region: region, BaseEndpoint: aws.String(endpoint), Credentials: root, HTTPClient: fresh}),
		machines: sfn.New(sfn.Options{Region: region, BaseEndpoint: aws.String(endpoint), Credentials: root, HTTPClient: fresh}),
		prompter: &prompter{scenes: map[string]*scene{}}, address: "http://" + listener.Addr().String(),
	}
	if s.role, err = makeRole(ctx, endpoint, s.run); err != nil {
		return nil, errors.Join(fmt.Errorf("role of the scenarios: %w", err), listener.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("POST /{execution}/{function}", s.prompter)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	go func() { _ = s.server.Serve(listener) }() // it ends when it is closed, and a function that finds nobody says so
	return s, nil
}

// close takes the stage down. Functions that still wait for an answer wait for nothing.
func (s *stage) close(ctx context.Context) error {
	_ = s.server.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
	defer cancel()
	if err := deleteRole(ctx, s.endpoint, s.run); err != nil {
		return fmt.Errorf("role of the scenarios: %w", err)
	}
	return nil
}

// play plays one scenario and tells where it is not what is expected. An error is of the play, not of the scenario.
func (s *stage) play(ctx context.Context, number int, scene *scenario.Scenario) (differences []string, err error) {
	name := fmt.Sprintf("%s-%d", s.run, number)
	made := production{stage: s, name: name}
	defer func() { err = errors.Join(err, made.tidy(ctx)) }()
	if err := made.build(ctx, scene); err != nil {
		return nil, err
	}
	opened := s.prompter.open(name, scene)
	started, err := s.machines.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String(made.machine), Name: aws.String(name), Input: aws.String(string(scene.Input)),
	})
	if err != nil {
		return nil, fmt.Errorf("start execution: %w", err)
	}
	observed, err := s.await(ctx, *started.ExecutionArn, scene.Takes()+patience)
	if err != nil {
		return nil, err
	}
	observed.Calls = opened.script.Calls()
	return append(scene.Differences(observed), opened.remarks()...), nil
}

// await waits for the end of an execution. One that goes on beyond the limit is stopped, and is then ABORTED.
func (s *stage) await(ctx context.Context, execution string, limit time.Duration) (scenario.Observed, error) {
	deadline := time.Now().Add(limit)
	for {
		found, err := s.machines.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: aws.String(execution)})
		if err != nil {
			return scenario.Observed{}, fmt.Errorf("describe execution: %w", err)
		}
		if found.Status != sfntypes.ExecutionStatusRunning {
			states, err := s.entered(ctx, execution)
			return scenario.Observed{
				Status: string(found.Status), Output: []byte(aws.ToString(found.Output)),
				Error: aws.ToString(found.Error), Cause: aws.ToString(found.Cause), States: states,
				Elapsed: aws.ToTime(found.StopDate).Sub(aws.ToTime(found.StartDate)), RealTime: true,
			}, err
		}
		if time.Now().After(deadline) {
			_, err := s.machines.StopExecution(ctx, &sfn.StopExecutionInput{
				ExecutionArn: aws.String(execution), Cause: aws.String(fmt.Sprintf("it went on for more than %s", limit)),
			})
			if err != nil {
				return scenario.Observed{}, fmt.Errorf("stop execution: %w", err)
			}
			continue
		}
		select {
		case <-ctx.Done():
			return scenario.Observed{}, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// entered are the states of the history, in order.
func (s *stage) entered(ctx context.Context, execution string) ([]string, error) {
	var states []string
	pages := sfn.NewGetExecutionHistoryPaginator(s.machines, &sfn.GetExecutionHistoryInput{ExecutionArn: aws.String(execution)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("history of the execution: %w", err)
		}
		for _, event := range page.Events {
			if details := event.StateEnteredEventDetails; details != nil {
				states = append(states, aws.ToString(details.Name))
			}
		}
	}
	return states, nil
}

// production is what a scenario needs at AWS.
type production struct {
	stage     *stage
	name      string
	functions []string
	machine   string // its ARN
}

func (p *production) build(ctx context.Context, scene *scenario.Scenario) error {
	definition, functions, err := rename(scene, func(function string) string { return p.name + "-" + function })
	if err != nil {
		return err
	}
	for _, function := range functions {
		made := p.name + "-" + function
		_, err := p.stage.lambda.CreateFunction(ctx, &lambda.CreateFunctionInput{
			FunctionName: aws.String(made), Role: aws.String(p.stage.role), Timeout: aws.Int32(LongestSeconds + 2*int32(patience.Seconds())),
			Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"), Code: &lambdatypes.FunctionCode{ZipFile: p.stage.code},
			Environment: &lambdatypes.Environment{Variables: map[string]string{"SCRIPT_URL": p.stage.address + "/" + p.name + "/" + function}},
		})
		if err != nil {
			return fmt.Errorf("create function %s: %w", made, err)
		}
		p.functions = append(p.functions, made)
	}
	created, err := p.stage.machines.CreateStateMachine(ctx, &sfn.CreateStateMachineInput{
		Name: aws.String(p.name), Definition: aws.String(string(definition)), RoleArn: aws.String(p.stage.role), Type: sfntypes.StateMachineTypeStandard,
	})
	if err != nil {
		return fmt.Errorf("create state machine: %w", err)
	}
	p.machine = *created.StateMachineArn
	return nil
}

// tidy deletes what build made, also when the run is called off.
func (p *production) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
	defer cancel()
	var faults []error
	if p.machine != "" {
		_, err := p.stage.machines.DeleteStateMachine(ctx, &sfn.DeleteStateMachineInput{StateMachineArn: aws.String(p.machine)})
		if err != nil && !errors.As(err, new(*sfntypes.StateMachineDoesNotExist)) {
			faults = append(faults, fmt.Errorf("delete state machine: %w", err))
		}
	}
	for _, function := range slices.Backward(p.functions) {
		_, err := p.stage.lambda.DeleteFunction(ctx, &lambda.DeleteFunctionInput{FunctionName: aws.String(function)})
		if err != nil && !errors.As(err, new(*lambdatypes.ResourceNotFoundException)) {
			faults = append(faults, fmt.Errorf("delete function %s: %w", function, err))
		}
	}
	return errors.Join(faults...)
}
