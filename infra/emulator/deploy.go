package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cloudformationtypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

const (
	templateFile   = "template.yaml"
	definitionFile = "infra/statemachines/checkout.asl.json"
	definitionKey  = "checkout.asl.json"
	bucket         = "kessai-deploy"

	// deployLimit bounds the wait for the stack, which takes seconds.
	deployLimit = 2 * time.Minute
)

// stack is what a deploy leaves: the template's outputs, and the physical name of each resource.
type stack struct {
	outputs   map[string]string
	resources map[string]string
	schedules []schedule
}

// deploy uploads code, definition and template, creates the stack and waits for it.
func deploy(ctx context.Context, s settings, zips map[string]string) (stack, error) {
	source, err := os.ReadFile(templateFile)
	if err != nil {
		return stack{}, fmt.Errorf("template: %w", err)
	}
	rewritten, err := rewriteTemplate(source, bucket, s.reconcileEvery)
	if err != nil {
		return stack{}, err
	}
	if err := sameFunctions(rewritten.functions, zips); err != nil {
		return stack{}, err
	}
	w := wire{url: s.awsURL()}
	if err := w.upload(ctx, bucket, nil); err != nil {
		return stack{}, err
	}
	if err := w.upload(ctx, bucket+"/template.yaml", rewritten.text); err != nil {
		return stack{}, err
	}
	files := map[string]string{definitionKey: definitionFile}
	for name, path := range zips {
		files[name+".zip"] = path
	}
	for key, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return stack{}, fmt.Errorf("upload: %w", err)
		}
		if err := w.upload(ctx, bucket+"/"+key, content); err != nil {
			return stack{}, err
		}
	}
	created, err := createStack(ctx, s)
	created.schedules = rewritten.schedules
	return created, err
}

// sameFunctions makes sure that template and folders name the same functions. The emulator would deploy a function
// without code and answer for it.
func sameFunctions(wanted []string, zips map[string]string) error {
	var faults []error
	for _, name := range wanted {
		if _, built := zips[name]; !built {
			faults = append(faults, fmt.Errorf("the template's function %s has no folder %s/%s", name, functionsDir, name))
		}
	}
	for name := range zips {
		if !slices.Contains(wanted, name) {
			faults = append(faults, fmt.Errorf("the folder %s/%s is no function of the template", functionsDir, name))
		}
	}
	return errors.Join(faults...)
}

func createStack(ctx context.Context, s settings) (stack, error) {
	client := cloudformation.New(cloudformation.Options{Region: region, BaseEndpoint: aws.String(s.awsURL()), Credentials: aws.CredentialsProviderFunc(credentials)})
	var parameters []cloudformationtypes.Parameter
	for key, value := range s.parameters {
		parameters = append(parameters, cloudformationtypes.Parameter{ParameterKey: aws.String(key), ParameterValue: aws.String(value)})
	}
	_, err := client.CreateStack(ctx, &cloudformation.CreateStackInput{
		StackName:    aws.String(stackName),
		TemplateURL:  aws.String(s.awsURL() + "/" + bucket + "/template.yaml"),
		Parameters:   parameters,
		Capabilities: []cloudformationtypes.Capability{cloudformationtypes.CapabilityCapabilityIam, cloudformationtypes.CapabilityCapabilityAutoExpand},
	})
	if err != nil {
		return stack{}, fmt.Errorf("create stack: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, deployLimit)
	defer cancel()
	for {
		answer, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(stackName)})
		if err != nil {
			return stack{}, fmt.Errorf("state of the stack: %w", err)
		}
		switch status := answer.Stacks[0].StackStatus; {
		case status == cloudformationtypes.StackStatusCreateComplete:
			return describe(ctx, client, answer.Stacks[0])
		case !strings.HasSuffix(string(status), "_IN_PROGRESS"):
			return stack{}, fmt.Errorf("stack is %s: %s", status, failures(ctx, client))
		}
		select {
		case <-ctx.Done():
			return stack{}, fmt.Errorf("stack not ready: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func describe(ctx context.Context, client *cloudformation.Client, created cloudformationtypes.Stack) (stack, error) {
	result := stack{outputs: map[string]string{}, resources: map[string]string{}}
	for _, output := range created.Outputs {
		result.outputs[aws.ToString(output.OutputKey)] = aws.ToString(output.OutputValue)
	}
	answer, err := client.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: aws.String(stackName)})
	if err != nil {
		return stack{}, fmt.Errorf("resources of the stack: %w", err)
	}
	for _, resource := range answer.StackResources {
		result.resources[aws.ToString(resource.LogicalResourceId)] = aws.ToString(resource.PhysicalResourceId)
	}
	return result, nil
}

// failures tells which resources failed and why, which is all one wants to know then.
func failures(ctx context.Context, client *cloudformation.Client) string {
	answer, err := client.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: aws.String(stackName)})
	if err != nil {
		return err.Error()
	}
	var reasons []string
	for _, event := range answer.StackEvents {
		if strings.HasSuffix(string(event.ResourceStatus), "_FAILED") {
			reasons = append(reasons, aws.ToString(event.LogicalResourceId)+": "+aws.ToString(event.ResourceStatusReason))
		}
	}
	return strings.Join(reasons, "; ")
}
