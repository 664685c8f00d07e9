package statemachine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kessai/kessai/infra/local/statemachine"
)

// echo answers with its payload.
func echo(_ context.Context, payload json.RawMessage) (json.RawMessage, error) { return payload, nil }

var echoes = statemachine.Options{Functions: map[string]statemachine.Function{"work": echo}}

// machineOf is a definition of one state "S" and a state "End".
func machineOf(state string) string {
	return `{"StartAt": "S", "States": {"S": ` + state + `, "End": {"Type": "Succeed"}}}`
}

// taskOf is a machine of one Task with more fields.
func taskOf(fields string) string {
	return machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
		"Parameters": {"FunctionName": "work", "Payload": {}}, "Next": "End"` + fields + `}`)
}

// retryOf and catchOf are machines of one Task with a list of retriers or catchers.
func retryOf(retriers string) string { return taskOf(`, "Retry": [` + retriers + `]`) }
func catchOf(catchers string) string { return taskOf(`, "Catch": [` + catchers + `]`) }

// choiceOf is a machine of one Choice with one rule.
func choiceOf(rule string) string {
	return machineOf(`{"Type": "Choice", "Choices": [` + rule + `]}`)
}

func passOf(fields string) string {
	return machineOf(`{"Type": "Pass", "Next": "End"` + fields + `}`)
}

func TestADefinitionThatIsNotUnderstoodDoesNotLoad(t *testing.T) {
	long := strings.Repeat("x", 81)
	tests := []struct {
		name       string
		definition string
		path       string
		reason     string
	}{
		// the document
		{"no JSON", `{"StartAt"`, "/StartAt", "valid JSON"},
		{"nothing", ``, "", "valid JSON"},
		{"trailing data", machineOf(`{"Type": "Succeed"}`) + `{}`, "", "data after"},
		{"a name twice", `{"StartAt": "S", "States": {"S": {"Type": "Fail", "Type": "Fail"}}}`, "/States/S/Type", "duplicate"},
		{"invalid UTF-8", "{\"Comment\": \"\xff\"}", "/Comment", "UTF-8"},
		{"no object", `[]`, "", "object"},
		{"too large", `{"Comment": "` + strings.Repeat("x", 1<<20) + `"}`, "", "bytes"},

		// the machine
		{"an unknown field", `{"StartAt": "S", "states": {}, "States": {"S": {"Type": "Fail"}}}`, "/states", "unknown"},
		{"no StartAt", `{"States": {"S": {"Type": "Fail"}}}`, "/StartAt", "required"},
		{"no States", `{"StartAt": "S"}`, "/States", "required"},
		{"StartAt of no state", `{"StartAt": "X", "States": {"S": {"Type": "Fail"}}}`, "/StartAt", `no state "X"`},
		{"a StartAt that is no string", `{"StartAt": 1, "States": {"S": {"Type": "Fail"}}}`, "/StartAt", "string"},
		{"an empty StartAt", `{"StartAt": "", "States": {"S": {"Type": "Fail"}}}`, "/StartAt", "empty"},
		{"States that is no object", `{"StartAt": "S", "States": []}`, "/States", "object"},
		{"JSONata", `{"QueryLanguage": "JSONata", "StartAt": "S", "States": {"S": {"Type": "Fail"}}}`, "/QueryLanguage", "JSONPath"},
		{"another version", `{"Version": "2.0", "StartAt": "S", "States": {"S": {"Type": "Fail"}}}`, "/Version", "1.0"},
		{"a Comment that is no string", `{"Comment": 1, "StartAt": "S", "States": {"S": {"Type": "Fail"}}}`, "/Comment", "string"},
		{"a machine time-out of 0", `{"TimeoutSeconds": 0, "StartAt": "S", "States": {"S": {"Type": "Fail"}}}`, "/TimeoutSeconds", "from 1"},
		{"a machine time-out of part of a second", `{"TimeoutSeconds": 1.5, "StartAt": "S", "States": {"S": {"Type": "Fail"}}}`, "/TimeoutSeconds", "whole"},
		{"a long state name", `{"StartAt": "` + long + `", "States": {"` + long + `": {"Type": "Fail"}}}`, "/States/" + long, "80"},
		{"a state that is no object", `{"StartAt": "S", "States": {"S": 1}}`, "/States/S", "object"},
		{"a placeholder without value", taskOf(`, "Comment": "${Nothing}"`), "/States/S/Comment", "placeholder"},
		{"a placeholder without value in a name", `{"StartAt": "${X}", "States": {"${X}": {"Type": "Fail"}}}`, "/States/${X}", "placeholder"},

		// the graph
		{"Next of no state", machineOf(`{"Type": "Pass", "Next": "X"}`), "/States/S/Next", `no state "X"`},
		{"Default of no state", machineOf(`{"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": true, "Next": "End"}], "Default": "X"}`), "/States/S/Default", `no state "X"`},
		{"a choice of no state", choiceOf(`{"Variable": "$.a", "IsNull": true, "Next": "X"}`), "/States/S/Choices/0/Next", `no state "X"`},
		{"a catcher of no state", catchOf(`{"ErrorEquals": ["E"], "Next": "X"}`), "/States/S/Catch/0/Next", `no state "X"`},
		{"a state that nothing leads to", machineOf(`{"Type": "Pass", "End": true}`), "/States/End", "nothing leads"},
		{"a loop that nothing leads to", `{"StartAt": "S", "States": {"S": {"Type": "Fail"}, "L": {"Type": "Pass", "Next": "L"}}}`, "/States/L", "nothing leads"},
		{"no end", `{"StartAt": "S", "States": {"S": {"Type": "Pass", "Next": "S"}}}`, "/States/S", "no terminal state"},
		{"a dead end beside an end", `{"StartAt": "S", "States": {
			"S": {"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": true, "Next": "L"}], "Default": "End"},
			"L": {"Type": "Pass", "Next": "L"}, "End": {"Type": "Succeed"}}}`, "/States/L", "no terminal state"},
		{"neither Next nor End", machineOf(`{"Type": "Pass"}`), "/States/S/Next", "required"},
		{"End that is false and no Next", machineOf(`{"Type": "Pass", "End": false}`), "/States/S/Next", "required"},
		{"Next beside End", machineOf(`{"Type": "Pass", "Next": "End", "End": true}`), "/States/S/End", "beside"},
		{"End that is no boolean", machineOf(`{"Type": "Pass", "Next": "End", "End": "true"}`), "/States/S/End", "boolean"},

		// states and their fields
		{"no Type", machineOf(`{"Next": "End"}`), "/States/S/Type", "required"},
		{"a type with another case", machineOf(`{"Type": "pass", "Next": "End"}`), "/States/S/Type", `"pass"`},
		{"Parallel", machineOf(`{"Type": "Parallel", "Branches": [], "Next": "End"}`), "/States/S/Type", `"Parallel"`},
		{"Map", machineOf(`{"Type": "Map", "Next": "End"}`), "/States/S/Type", `"Map"`},
		{"JSONata in a state", passOf(`, "QueryLanguage": "JSONata"`), "/States/S/QueryLanguage", "JSONPath"},
		{"Assign", passOf(`, "Assign": {"a": 1}`), "/States/S/Assign", "unknown"},
		{"Output", passOf(`, "Output": "{% 1 %}"`), "/States/S/Output", "unknown"},
		{"ResultSelector in a Pass state", passOf(`, "ResultSelector": {}`), "/States/S/ResultSelector", "unknown"},
		{"Result beside Parameters", passOf(`, "Result": 1, "Parameters": {}`), "/States/S/Parameters", "beside"},
		{"Parameters that is no object", passOf(`, "Parameters": "x"`), "/States/S/Parameters", "object"},
		{"Next in a Succeed state", machineOf(`{"Type": "Succeed", "Next": "End"}`), "/States/S/Next", "unknown"},
		{"ResultPath in a Succeed state", machineOf(`{"Type": "Succeed", "ResultPath": "$"}`), "/States/S/ResultPath", "unknown"},
		{"InputPath in a Fail state", machineOf(`{"Type": "Fail", "InputPath": "$"}`), "/States/S/InputPath", "unknown"},
		{"Error beside ErrorPath", machineOf(`{"Type": "Fail", "Error": "E", "ErrorPath": "$.e"}`), "/States/S/ErrorPath", "beside"},
		{"an intrinsic function in CausePath", machineOf(`{"Type": "Fail", "CausePath": "States.Format('a')"}`), "/States/S/CausePath", "path"},
		{"Retry in a Pass state", passOf(`, "Retry": []`), "/States/S/Retry", "unknown"},

		// paths
		{"an index", passOf(`, "InputPath": "$.a[0]"`), "/States/S/InputPath", "only"},
		{"an unfinished path", passOf(`, "OutputPath": "$."`), "/States/S/OutputPath", "only"},
		{"a variable", passOf(`, "InputPath": "$a.b"`), "/States/S/InputPath", "only"},
		{"the whole context object", passOf(`, "InputPath": "$$"`), "/States/S/InputPath", "context object"},
		{"a part of the context object that is not there", passOf(`, "InputPath": "$$.Execution.RoleArn"`), "/States/S/InputPath", "context object"},
		{"a part below a text of the context object", passOf(`, "InputPath": "$$.State.Name.x"`), "/States/S/InputPath", "context object"},
		{"a ResultPath into the context object", passOf(`, "ResultPath": "$$.Execution.Input.x"`), "/States/S/ResultPath", "context object"},
		{"a SecondsPath into the context object", machineOf(`{"Type": "Wait", "SecondsPath": "$$.Execution.Input.x", "Next": "End"}`), "/States/S/SecondsPath", "context object"},
		{"a retry count outside a Task", passOf(`, "Parameters": {"n.$": "$$.State.RetryCount"}`), "/States/S/Parameters/n.$", "RetryCount"},
		{"a path that is no string", passOf(`, "InputPath": 1`), "/States/S/InputPath", "string"},
		{"an intrinsic function", passOf(`, "Parameters": {"a": [{"b.$": "States.UUID()"}]}`), "/States/S/Parameters/a/0/b.$", "intrinsic"},
		{"a template path that is no string", passOf(`, "Parameters": {"a.$": 1}`), "/States/S/Parameters/a.$", "string"},
		{"a template name twice", passOf(`, "Parameters": {"a": 1, "a.$": "$.a"}`), "/States/S/Parameters/a.$", "already"},
		{"a template without a name", passOf(`, "Parameters": {".$": "$.a"}`), "/States/S/Parameters/.$", "empty"},

		// Wait
		{"neither Seconds nor SecondsPath", machineOf(`{"Type": "Wait", "Next": "End"}`), "/States/S", "either"},
		{"Seconds beside SecondsPath", machineOf(`{"Type": "Wait", "Seconds": 1, "SecondsPath": "$.s", "Next": "End"}`), "/States/S", "either"},
		{"negative Seconds", machineOf(`{"Type": "Wait", "Seconds": -1, "Next": "End"}`), "/States/S/Seconds", "from 0"},
		{"Seconds beyond the quota", machineOf(`{"Type": "Wait", "Seconds": 100000000, "Next": "End"}`), "/States/S/Seconds", "99999999"},
		{"Timestamp", machineOf(`{"Type": "Wait", "Timestamp": "2026-01-02T03:04:05Z", "Next": "End"}`), "/States/S/Timestamp", "unknown"},

		// Choice
		{"no Choices", machineOf(`{"Type": "Choice", "Default": "End"}`), "/States/S/Choices", "required"},
		{"empty Choices", machineOf(`{"Type": "Choice", "Choices": [], "Default": "End"}`), "/States/S/Choices", "non-empty"},
		{"End of a Choice", machineOf(`{"Type": "Choice", "Choices": [{"Variable": "$.a", "IsNull": true, "Next": "End"}], "End": true}`), "/States/S/End", "unknown"},
		{"a rule that is no object", choiceOf(`1`), "/States/S/Choices/0", "object"},
		{"a rule without Next", choiceOf(`{"Variable": "$.a", "IsNull": true}`), "/States/S/Choices/0/Next", "required"},
		{"a rule without comparison", choiceOf(`{"Variable": "$.a", "Next": "End"}`), "/States/S/Choices/0", "exactly one"},
		{"a rule with two comparisons", choiceOf(`{"Variable": "$.a", "IsNull": true, "IsPresent": true, "Next": "End"}`), "/States/S/Choices/0", "exactly one"},
		{"a rule without Variable", choiceOf(`{"IsNull": true, "Next": "End"}`), "/States/S/Choices/0/Variable", "required"},
		{"an operator that is not known", choiceOf(`{"Variable": "$.a", "StringMatches": "a*", "Next": "End"}`), "/States/S/Choices/0/StringMatches", "unsupported"},
		{"a timestamp operator", choiceOf(`{"Variable": "$.a", "TimestampEquals": "x", "Next": "End"}`), "/States/S/Choices/0/TimestampEquals", "unsupported"},
		{"a string operator with a number", choiceOf(`{"Variable": "$.a", "StringEquals": 1, "Next": "End"}`), "/States/S/Choices/0/StringEquals", "string"},
		{"a numeric operator with a string", choiceOf(`{"Variable": "$.a", "NumericEquals": "1", "Next": "End"}`), "/States/S/Choices/0/NumericEquals", "number"},
		{"a boolean operator with a string", choiceOf(`{"Variable": "$.a", "BooleanEquals": "true", "Next": "End"}`), "/States/S/Choices/0/BooleanEquals", "boolean"},
		{"an empty And", choiceOf(`{"And": [], "Next": "End"}`), "/States/S/Choices/0/And", "non-empty"},
		{"a nested Next", choiceOf(`{"Not": {"Variable": "$.a", "IsNull": true, "Next": "End"}, "Next": "End"}`), "/States/S/Choices/0/Not/Next", "unknown"},
		{"a nested rule that is not known", choiceOf(`{"Or": [{"And": [{"Variable": "$.a", "X": 1}]}], "Next": "End"}`), "/States/S/Choices/0/Or/0/And/0/X", "unknown"},
		{"a list of Not", choiceOf(`{"Not": [], "Next": "End"}`), "/States/S/Choices/0/Not", "object"},
		{"Variable beside And", choiceOf(`{"Variable": "$.a", "And": [{"Variable": "$.a", "IsNull": true}], "Next": "End"}`), "/States/S/Choices/0/Variable", "unknown"},

		// Task
		{"no Resource", machineOf(`{"Type": "Task", "Parameters": {"FunctionName": "work", "Payload": {}}, "Next": "End"}`), "/States/S/Resource", "required"},
		{"a function as Resource", machineOf(`{"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:0:function:f", "Parameters": {"FunctionName": "work", "Payload": {}}, "Next": "End"}`), "/States/S/Resource", "only"},
		{"a task token", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "work", "Payload": {}}, "Next": "End"}`), "/States/S/Resource", "only"},
		{"no Parameters", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Next": "End"}`), "/States/S/Parameters", "required"},
		{"a function that is not there", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "other", "Payload": {}}, "Next": "End"}`), "/States/S/Parameters/FunctionName", `"other"`},
		{"a function from a path", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName.$": "$.f", "Payload": {}}, "Next": "End"}`), "/States/S/Parameters/FunctionName.$", "unsupported"},
		{"no Payload", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work"}, "Next": "End"}`), "/States/S/Parameters/Payload", "required"},
		{"Payload twice", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": {}, "Payload.$": "$"}, "Next": "End"}`), "/States/S/Parameters/Payload.$", "already"},
		{"an asynchronous call", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": {}, "InvocationType": "Event"}, "Next": "End"}`), "/States/S/Parameters/InvocationType", "unsupported"},
		{"a heartbeat", taskOf(`, "HeartbeatSeconds": 1`), "/States/S/HeartbeatSeconds", "unknown"},
		{"credentials", taskOf(`, "Credentials": {}`), "/States/S/Credentials", "unknown"},
		{"a task time-out in a string", taskOf(`, "TimeoutSeconds": "5"`), "/States/S/TimeoutSeconds", "whole"},
		{"a catcher that is no object", catchOf(`"E"`), "/States/S/Catch/0", "object"},
		{"Parameters of a Task that is no object", machineOf(`{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": [], "Next": "End"}`), "/States/S/Parameters", "object"},
		{"a ResultSelector that is no object", taskOf(`, "ResultSelector": "$.Payload"`), "/States/S/ResultSelector", "object"},
		{"a task time-out of 0", taskOf(`, "TimeoutSeconds": 0`), "/States/S/TimeoutSeconds", "from 1"},
		{"metadata of the SDK", taskOf(`, "ResultSelector": {"a": [{"id.$": "$.SdkResponseMetadata.RequestId"}]}`), "/States/S/ResultSelector/a/0/id", "invocation's result"},
		{"the whole result of an invocation", taskOf(`, "ResultSelector": {"all.$": "$"}`), "/States/S/ResultSelector/all", "invocation's result"},

		// Retry and Catch
		{"an empty Retry", retryOf(``), "/States/S/Retry", "non-empty"},
		{"an empty Catch", catchOf(``), "/States/S/Catch", "non-empty"},
		{"a retrier that is no object", retryOf(`1`), "/States/S/Retry/0", "object"},
		{"no ErrorEquals", retryOf(`{}`), "/States/S/Retry/0/ErrorEquals", "required"},
		{"an empty ErrorEquals", retryOf(`{"ErrorEquals": []}`), "/States/S/Retry/0/ErrorEquals", "non-empty"},
		{"an error that is no string", retryOf(`{"ErrorEquals": [1]}`), "/States/S/Retry/0/ErrorEquals/0", "string"},
		{"an error without a name", catchOf(`{"ErrorEquals": [""], "Next": "End"}`), "/States/S/Catch/0/ErrorEquals/0", "string"},
		{"States.ALL with others", retryOf(`{"ErrorEquals": ["E", "States.ALL"]}`), "/States/S/Retry/0/ErrorEquals/1", "alone"},
		{"States.ALL before others", catchOf(`{"ErrorEquals": ["States.ALL"], "Next": "End"}, {"ErrorEquals": ["E"], "Next": "End"}`), "/States/S/Catch/0/ErrorEquals/0", "last"},
		{"States.Runtime", catchOf(`{"ErrorEquals": ["States.Runtime"], "Next": "End"}`), "/States/S/Catch/0/ErrorEquals/0", "neither"},
		{"a reserved name that does not exist", retryOf(`{"ErrorEquals": ["States.Oops"]}`), "/States/S/Retry/0/ErrorEquals/0", `"States.Oops"`},
		{"a name twice in Retry", retryOf(`{"ErrorEquals": ["E"]}, {"ErrorEquals": ["F", "E"]}`), "/States/S/Retry/1/ErrorEquals/1", "already"},
		{"IntervalSeconds 0", retryOf(`{"ErrorEquals": ["E"], "IntervalSeconds": 0}`), "/States/S/Retry/0/IntervalSeconds", "from 1"},
		{"negative MaxAttempts", retryOf(`{"ErrorEquals": ["E"], "MaxAttempts": -1}`), "/States/S/Retry/0/MaxAttempts", "from 0"},
		{"MaxAttempts beyond the quota", retryOf(`{"ErrorEquals": ["E"], "MaxAttempts": 100000000}`), "/States/S/Retry/0/MaxAttempts", "99999999"},
		{"a shrinking back-off", retryOf(`{"ErrorEquals": ["E"], "BackoffRate": 0.9}`), "/States/S/Retry/0/BackoffRate", "at least 1"},
		{"a back-off beyond all numbers", retryOf(`{"ErrorEquals": ["E"], "BackoffRate": 1e999}`), "/States/S/Retry/0/BackoffRate", "number"},
		{"a back-off that is no number", retryOf(`{"ErrorEquals": ["E"], "BackoffRate": "2"}`), "/States/S/Retry/0/BackoffRate", "number"},
		{"MaxDelaySeconds that is the interval", retryOf(`{"ErrorEquals": ["E"], "IntervalSeconds": 5, "MaxDelaySeconds": 5}`), "/States/S/Retry/0/MaxDelaySeconds", "greater"},
		{"MaxDelaySeconds below the default interval", retryOf(`{"ErrorEquals": ["E"], "MaxDelaySeconds": 1}`), "/States/S/Retry/0/MaxDelaySeconds", "greater"},
		{"MaxDelaySeconds beyond a year", retryOf(`{"ErrorEquals": ["E"], "MaxDelaySeconds": 31622401}`), "/States/S/Retry/0/MaxDelaySeconds", "31622400"},
		{"a jitter that is not known", retryOf(`{"ErrorEquals": ["E"], "JitterStrategy": "full"}`), "/States/S/Retry/0/JitterStrategy", "FULL"},
		{"an unknown field of a retrier", retryOf(`{"ErrorEquals": ["E"], "MaxAttempt": 1}`), "/States/S/Retry/0/MaxAttempt", "unknown"},
		{"a catcher without Next", catchOf(`{"ErrorEquals": ["E"]}`), "/States/S/Catch/0/Next", "required"},
		{"an unknown field of a catcher", catchOf(`{"ErrorEquals": ["E"], "Next": "End", "Output": {}}`), "/States/S/Catch/0/Output", "unknown"},
		{"a catcher's ResultPath into the context object", catchOf(`{"ErrorEquals": ["E"], "Next": "End", "ResultPath": "$$.State.Name"}`), "/States/S/Catch/0/ResultPath", "context object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := statemachine.Load([]byte(tt.definition), echoes)
			if m != nil || err == nil {
				t.Fatalf("got a machine and the error %v, want no machine and an error", err)
			}
			if !slices.ContainsFunc(problemsOf(err), func(e *statemachine.DefinitionError) bool {
				return e.Path == tt.path && strings.Contains(e.Reason, tt.reason)
			}) {
				t.Errorf("got %v, want %q at %q", err, tt.reason, tt.path)
			}
		})
	}
}

// problemsOf takes a load error apart.
func problemsOf(err error) []*statemachine.DefinitionError {
	if e, ok := errors.AsType[*statemachine.DefinitionError](err); ok {
		all := []*statemachine.DefinitionError{}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				all = append(all, e.(*statemachine.DefinitionError))
			}
			return all
		}
		return append(all, e)
	}
	return nil
}

func TestWhatIsAtTheEdgeOfTheRulesLoads(t *testing.T) {
	name := strings.Repeat("é", 80)
	for _, definition := range []string{
		`{"Version": "1.0", "QueryLanguage": "JSONPath", "TimeoutSeconds": 99999999, "StartAt": "` + name + `", "States": {"` + name + `": {"Type": "Fail"}}}`,
		passOf(`, "End": false`),
		passOf(`, "QueryLanguage": "JSONPath", "InputPath": "$$.Execution.Input.a.b"`),
		passOf(`, "InputPath": "$.error-info._x9"`),
		taskOf(`, "TimeoutSeconds": 99999999, "ResultSelector": {"in.$": "$$.Execution.Input", "text": "$.not a path"}`),
		retryOf(`{"Comment": "c", "ErrorEquals": ["E", "States.Timeout"], "IntervalSeconds": 99999999, "MaxAttempts": 99999999, "BackoffRate": 1, "JitterStrategy": "FULL"},
			{"ErrorEquals": ["States.ALL"], "MaxDelaySeconds": 31622400, "MaxAttempts": 0}`),
		catchOf(`{"Comment": "c", "ErrorEquals": ["E", "States.TaskFailed", "States.DataLimitExceeded"], "ResultPath": null, "Next": "S"}`),
		machineOf(`{"Type": "Wait", "Seconds": 0, "Next": "End"}`),
		strings.Repeat(" ", 1<<20-len(passOf(""))) + passOf(""),
	} {
		if _, err := statemachine.Load([]byte(definition), echoes); err != nil {
			t.Errorf("got %v, want no error for %s", err, definition)
		}
	}
}

func TestOneLoadReportsEverythingInTheOrderOfThePaths(t *testing.T) {
	_, err := statemachine.Load([]byte(`{"X": 1, "StartAt": "S", "States": {
		"S": {"Type": "Pass", "Next": "Y", "InputPath": "a"}, "A": {"Type": "Map"}}}`), echoes)
	var got []string
	for _, e := range problemsOf(err) {
		got = append(got, e.Path)
	}
	want := []string{"/States/A", "/States/A/Type", "/States/S/InputPath", "/States/S/Next", "/X"}
	if !slices.IsSorted(got) || !isSubset(want, got) {
		t.Errorf("got %v, want all of %v, sorted", got, want)
	}
}

func TestWhatIsWrongIsReportedOnce(t *testing.T) {
	_, err := statemachine.Load([]byte(`{"StartAt": "S", "States": {"S": {"Type": "Pass", "Next": "B"}, "B": 1}}`), echoes)
	if all := problemsOf(err); len(all) != 1 || all[0].Path != "/States/B" {
		t.Errorf("got %v, want one problem at /States/B", err)
	}
	_, err = statemachine.Load([]byte(`{"StartAt": "S", "States": {"S": {"Type": "Pass", "Next": "S", "End": true}}}`), echoes)
	if all := problemsOf(err); len(all) != 1 || all[0].Path != "/States/S/End" {
		t.Errorf("got %v, want one problem at /States/S/End", err)
	}
}

func isSubset(part, all []string) bool {
	for _, s := range part {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

func TestPlaceholdersAreReplacedInTheTextOfTheDefinition(t *testing.T) {
	definition := strings.Replace(taskOf(`, "Comment": "${A}-${A}${B2_}", "TimeoutSeconds": ${T}`), `"work"`, `"${Name}"`, 1)
	options := statemachine.Options{
		Substitutions: map[string]string{"A": "a", "B2_": "", "T": "30", "Name": "arn:aws:lambda:x:0:function:work", "Unused": "u"},
		Functions:     map[string]statemachine.Function{"arn:aws:lambda:x:0:function:work": echo},
	}
	if _, err := statemachine.Load([]byte(definition), options); err != nil {
		t.Error(err)
	}
	for _, value := range []string{`"`, `a"b`, `a\b`, "a\nb", "${A}", "\xff"} {
		options.Substitutions["A"] = value
		_, err := statemachine.Load([]byte(definition), options)
		if err == nil || !strings.Contains(err.Error(), "${A}") {
			t.Errorf("value %q: got %v, want an error that names ${A}", value, err)
		}
	}
}

func TestAMachineTellsItsStatesAndTheErrorsItMatchesOn(t *testing.T) {
	m, err := statemachine.Load([]byte(taskOf(`, "Retry": [{"ErrorEquals": ["B", "A"]}], "Catch": [{"ErrorEquals": ["C", "A"], "Next": "End"}]`)), echoes)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(m.ErrorNames(), m.StateNames()), "[A B C] [End S]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
