package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"gopkg.in/yaml.v3"
)

// What the emulator leaves out of a deploy is made up for here and in package stream, all of it:
//
//   - Stream mappings: package stream.
//   - Time to live: its CloudFormation drops TimeToLiveSpecification. enableExpiry sets it by the API.
//   - The authorizer's identity source: without one in the template, its CloudFormation puts the Authorization header
//     there, and requests without a key never reach the product. clearIdentitySource takes it out again.
//   - Schedules: its scheduler looks once in ten seconds, and knows minutes as the real one does. callEvery calls the
//     functions itself when a run asks for anything but whole minutes.
//
// What remains, and is not hidden: StartExecution with the name of a running execution is always refused where AWS
// accepts the same input again; where its Step Functions differ from the specification, package machines lists the
// scenarios and make e2e holds the list to be true: the whole machine's TimeoutSeconds is not enforced, for one;
// throttling, reserved capacity of tables, point-in-time recovery and deletion protection of the API and tables are
// recorded and do nothing.

// enableExpiry turns the template's time to live on.
func enableExpiry(ctx context.Context, s settings, deployed stack) error {
	source, err := os.ReadFile(templateFile)
	if err != nil {
		return fmt.Errorf("template: %w", err)
	}
	var document struct {
		Resources map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(source, &document); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	client := dynamodb.New(dynamodb.Options{Region: region, BaseEndpoint: aws.String(s.awsURL()), Credentials: aws.CredentialsProviderFunc(credentials)})
	for name, resource := range document.Resources {
		specification := child(&resource.Properties, "TimeToLiveSpecification")
		if resource.Type != "AWS::DynamoDB::Table" || specification == nil {
			continue
		}
		_, err := client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName: aws.String(deployed.resources[name]),
			TimeToLiveSpecification: &types.TimeToLiveSpecification{
				AttributeName: aws.String(child(specification, "AttributeName").Value), Enabled: aws.Bool(true),
			},
		})
		if err != nil {
			return fmt.Errorf("time to live of %s: %w", name, err)
		}
	}
	return nil
}

// clearIdentitySource makes the authorizer see every request, as the template says.
func clearIdentitySource(ctx context.Context, s settings, deployed stack) error {
	place := "/v2/apis/" + deployed.resources["HttpApi"] + "/authorizers/" + deployed.resources["HttpAuthorizer"]
	if err := (wire{url: s.awsURL()}).apigateway(ctx, place, []byte(`{"identitySource":[]}`)); err != nil {
		return fmt.Errorf("identity source of the authorizer: %w", err)
	}
	return nil
}

// wholeMinutes says whether the template's schedule can be trusted with the length.
func wholeMinutes(every time.Duration) bool { return every%time.Minute == 0 }

// callEvery calls a function on a schedule of its own until ctx ends. A call that outlasts its interval is followed by
// the next one at once, never joined by it.
func callEvery(ctx context.Context, every time.Duration, s schedule, c carrier) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, failure, err := c.Invoke(ctx, stackName+"-"+s.function, s.event)
		if ctx.Err() == nil && (err != nil || failure != "") {
			slog.WarnContext(ctx, "scheduled call failed", "function", s.function, "failure", failure, "error", err)
		}
	}
}
