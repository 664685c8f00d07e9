package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// template is what the checks need to know of template.yaml.
type template struct {
	functions []function
	shared    []string // names of variables that every function has
	metrics   []string // of our own namespace, that an alarm watches
}

// function is one Lambda function of the template.
type function struct {
	folder    string
	variables []string // beside the shared ones
	granted   []string // "action resource", the resource in the template's own words
	secret    string   // the resource that SECRETS_ID names
}

// ownNamespace is where the product counts; metrics of other namespaces are AWS's.
const ownNamespace = "Kessai"

func readTemplate(path string) (template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return template{}, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return template{}, fmt.Errorf("%s: %w", path, err)
	}
	document := root.Content[0]
	result := template{shared: keys(at(document, "Globals", "Function", "Environment", "Variables"))}
	resources := at(document, "Resources")
	for _, name := range keys(resources) {
		resource := at(resources, name)
		properties := at(resource, "Properties")
		switch word(at(resource, "Type")) {
		case "AWS::Serverless::Function":
			f, err := readFunction(resources, properties)
			if err != nil {
				return template{}, fmt.Errorf("%s: %s: %w", path, name, err)
			}
			result.functions = append(result.functions, f)
		case "AWS::CloudWatch::Alarm":
			if word(at(properties, "Namespace")) == ownNamespace {
				result.metrics = append(result.metrics, word(at(properties, "MetricName")))
			}
		}
	}
	return result, nil
}

func readFunction(resources, properties *yaml.Node) (function, error) {
	folder, ok := strings.CutPrefix(word(at(properties, "FunctionName")), "${AWS::StackName}-")
	if !ok {
		return function{}, fmt.Errorf("its name is not the stack's and its folder's")
	}
	variables := at(properties, "Environment", "Variables")
	f := function{folder: folder, variables: keys(variables), secret: word(at(variables, "SECRETS_ID"))}
	role, ok := strings.CutSuffix(word(at(properties, "Role")), ".Arn")
	if !ok {
		return function{}, fmt.Errorf("it has no role of its own")
	}
	for _, policy := range items(at(resources, role, "Properties", "Policies")) {
		for _, statement := range items(at(policy, "PolicyDocument", "Statement")) {
			for _, action := range oneOrMore(at(statement, "Action")) {
				for _, resource := range oneOrMore(at(statement, "Resource")) {
					f.granted = append(f.granted, action+" "+resource)
				}
			}
		}
	}
	f.granted = without(f.granted, serviceGrants(role, properties))
	return f, nil
}

// serviceGrants are the rights that AWS uses in the function's name, and that no code of it asks for: to write its
// log, and to read the stream that feeds it and to keep what it couldn't process.
func serviceGrants(role string, properties *yaml.Node) []string {
	logs := strings.TrimSuffix(role, "Role") + "Logs.Arn"
	grants := []string{"logs:CreateLogStream " + logs, "logs:PutLogEvents " + logs}
	events := at(properties, "Events")
	for _, name := range keys(events) {
		event := at(events, name, "Properties")
		stream := word(at(event, "Stream"))
		if stream == "" {
			continue
		}
		for _, action := range []string{"DescribeStream", "GetRecords", "GetShardIterator"} {
			grants = append(grants, "dynamodb:"+action+" "+stream)
		}
		table := strings.TrimSuffix(stream, ".StreamArn")
		grants = append(grants, "dynamodb:ListStreams ${"+table+".Arn}/stream/*",
			"sqs:SendMessage "+word(at(event, "DestinationConfig", "OnFailure", "Destination")))
	}
	return grants
}

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(some, one) })
}

// at follows keys down a document, to nil where there are none.
func at(node *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if node == nil || node.Kind != yaml.MappingNode {
			return nil
		}
		var next *yaml.Node
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				next = node.Content[i+1]
			}
		}
		node = next
	}
	return node
}

func keys(node *yaml.Node) []string {
	var all []string
	if node != nil && node.Kind == yaml.MappingNode {
		for i := 0; i < len(node.Content); i += 2 {
			all = append(all, node.Content[i].Value)
		}
	}
	return all
}

func items(node *yaml.Node) []*yaml.Node {
	if node == nil || node.Kind != yaml.SequenceNode {
		return nil
	}
	return node.Content
}

// word is the text of a scalar, whatever intrinsic function it is given to.
func word(node *yaml.Node) string {
	if node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

func oneOrMore(node *yaml.Node) []string {
	if list := items(node); list != nil {
		var all []string
		for _, item := range list {
			all = append(all, word(item))
		}
		return all
	}
	return []string{word(node)}
}
