package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// template is the stage's template, rewritten for the emulator.
type template struct {
	text      []byte
	functions []string // names of the folders it wants
	schedules []schedule
}

// schedule is a function that is called again and again.
type schedule struct {
	function string // folder
	event    []byte
}

// scheduledEvent is what a function gets whose schedule names no input of its own.
const scheduledEvent = `{"version":"0","detail-type":"Scheduled Event","source":"aws.scheduler","detail":"{}","resources":[]}`

// rewriteTemplate does to the template what `sam deploy` does to it, which is to write the places of uploaded files
// into it, and then what the emulator needs. The list of the latter is all that differs from a deploy:
//
//   - Architectures: functions run as processes of this machine, so they are built for it.
//   - AWS::Events::Archive is left out: the emulator refuses the type, and nothing here replays an archive.
//   - RECONCILE_EVERY: a test wants seconds where EventBridge Scheduler, and so the parameter, knows minutes. The
//     functions get the true length; what is not whole minutes is then carried out by callEvery.
func rewriteTemplate(source []byte, bucket string, reconcileEvery time.Duration) (template, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return template{}, fmt.Errorf("template: %w", err)
	}
	root := document.Content[0]
	defaults := child(child(root, "Globals"), "Function")
	variables := child(child(defaults, "Environment"), "Variables")
	resources := child(root, "Resources")
	if variables == nil || resources == nil {
		return template{}, fmt.Errorf("template: no environment for all functions, or no resources")
	}
	remove(defaults, "CodeUri")
	set(defaults, "Architectures", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{scalar(lambdaArchitecture())}})
	set(variables, "RECONCILE_EVERY", scalar(reconcileEvery.String()))

	var result template
	var dropped []string
	for i := 0; i < len(resources.Content); i += 2 {
		name, resource := resources.Content[i].Value, resources.Content[i+1]
		properties := child(resource, "Properties")
		switch child(resource, "Type").Value {
		case "AWS::Serverless::Function":
			folder, err := functionFolder(name, properties)
			if err != nil {
				return template{}, err
			}
			result.functions = append(result.functions, folder)
			result.schedules = append(result.schedules, schedulesOf(folder, child(properties, "Events"))...)
			set(properties, "CodeUri", scalar(fmt.Sprintf("s3://%s/%s.zip", bucket, folder)))
		case "AWS::Serverless::StateMachine":
			set(properties, "DefinitionUri", scalar(fmt.Sprintf("s3://%s/%s", bucket, definitionKey)))
		case "AWS::Events::Archive":
			dropped = append(dropped, name)
		}
	}
	for _, name := range dropped {
		remove(resources, name)
	}
	text, err := yaml.Marshal(&document)
	if err != nil {
		return template{}, fmt.Errorf("template: %w", err)
	}
	result.text = text
	return result, nil
}

func schedulesOf(folder string, events *yaml.Node) []schedule {
	var all []schedule
	for i := 0; events != nil && i+1 < len(events.Content); i += 2 {
		event := events.Content[i+1]
		if child(event, "Type").Value != "ScheduleV2" {
			continue
		}
		input := scheduledEvent
		if own := child(child(event, "Properties"), "Input"); own != nil {
			input = own.Value
		}
		all = append(all, schedule{function: folder, event: []byte(input)})
	}
	return all
}

// functionFolder tells the folder from the function's name, which is the stack's name and the folder's.
func functionFolder(resource string, properties *yaml.Node) (string, error) {
	name := child(properties, "FunctionName")
	if name != nil {
		if folder, ok := strings.CutPrefix(name.Value, "${AWS::StackName}-"); ok {
			return folder, nil
		}
	}
	return "", fmt.Errorf("template: FunctionName of %s is not ${AWS::StackName}- and its folder", resource)
}

func lambdaArchitecture() string {
	if runtime.GOARCH == "amd64" {
		return "x86_64"
	}
	return runtime.GOARCH
}

// child is the value of a key in a mapping, nil if there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func set(mapping *yaml.Node, key string, value *yaml.Node) {
	remove(mapping, key)
	mapping.Content = append(mapping.Content, scalar(key), value)
}

func remove(mapping *yaml.Node, key string) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			return
		}
	}
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Tag: "!!str"}
}
