package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var load = sync.OnceValues(loadCode)

// product is the product's template and code, for a test to spoil.
func product(t *testing.T) (template, code) {
	t.Helper()
	t.Chdir("../..")
	read, err := readTemplate(templateFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return read, c
}

func functionOf(t *testing.T, read template, folder string) *function {
	t.Helper()
	i := slices.IndexFunc(read.functions, func(f function) bool { return f.folder == folder })
	if i < 0 {
		t.Fatalf("function %s: got none in the template", folder)
	}
	return &read.functions[i]
}

func contains(faults []string, words ...string) bool {
	return slices.ContainsFunc(faults, func(fault string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(fault, word) })
	})
}

func TestARightThatTheCodeNeedsIsMissed(t *testing.T) {
	tests := []struct{ folder, right string }{
		{"webhook-apply", "dynamodb:ConditionCheckItem PaymentsTable.Arn"}, // only ever part of a transaction
		{"webhook-apply", "dynamodb:GetItem PaymentsTable.Arn"},
		{"webhook-ingest", "secretsmanager:GetSecretValue WebhookSecret.Id"},
		{"outbox-relay", "events:PutEvents EventBus.Arn"},
		{"reconcile", "dynamodb:Query ${PaymentsTable.Arn}/index/due"},
		{"reconcile", "states:StartExecution arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${AWS::StackName}-checkout"},
		{"inventory", "dynamodb:UpdateItem InventoryTable.Arn"},
		{"orders", "dynamodb:PutItem OrdersTable.Arn"},
	}
	for _, test := range tests {
		t.Run(test.folder+" "+test.right, func(t *testing.T) {
			read, c := product(t)
			f := functionOf(t, read, test.folder)
			if !slices.Contains(f.granted, test.right) {
				t.Fatalf("%s: got %v, want %s among it", test.folder, f.granted, test.right)
			}
			f.granted = without(f.granted, []string{test.right})
			if faults := checkPolicies(read, c); !contains(faults, test.folder+" calls", test.right) {
				t.Errorf("faults: got %q, want the missing right", faults)
			}
		})
	}
}

func TestARightThatNoCodeNeedsIsFound(t *testing.T) {
	read, c := product(t)
	for _, right := range []string{"dynamodb:Scan PaymentsTable.Arn", "dynamodb:GetItem OrdersTable.Arn", "secretsmanager:GetSecretValue OperatorSecret.Id"} {
		f := functionOf(t, read, "webhook-ingest")
		f.granted = append(f.granted, right)
		if faults := checkPolicies(read, c); !contains(faults, "webhook-ingest never calls", right) {
			t.Errorf("faults: got %q, want the needless right %s", faults, right)
		}
	}
}

func TestAVariableWithoutDeclarationOrReaderIsFound(t *testing.T) {
	read, c := product(t)
	read.shared = append(without(read.shared, []string{"PSP_TIMEOUT"}), "UNREAD")
	own := functionOf(t, read, "orders")
	own.variables = append(own.variables, "UNREAD_TOO")
	faults := checkVariables(read, c)
	for _, words := range [][]string{{"webhook-apply reads PSP_TIMEOUT"}, {"no function reads UNREAD,"}, {"orders does not read UNREAD_TOO"}} {
		if !contains(faults, words...) {
			t.Errorf("faults: got %q, want %q among them", faults, words)
		}
	}
}

func TestAnAlarmOnWhatNothingCountsIsFound(t *testing.T) {
	read, c := product(t)
	read.metrics = append(read.metrics, "Imagined")
	if faults := checkMetrics(read, c); !contains(faults, "Imagined") || len(faults) != 1 {
		t.Errorf("faults: got %q, want the imagined metric alone", faults)
	}
}

func TestAnErrorNameThatNoTypeHasIsFound(t *testing.T) {
	_, c := product(t)
	definition := filepath.Join(t.TempDir(), "definition.json")
	text := `{"States":{"A":{"Retry":[{"ErrorEquals":["States.Timeout","UnavailableError"]}],"Catch":[{"ErrorEquals":["InventedError"]}]}}}`
	if err := os.WriteFile(definition, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	faults, err := checkErrorNames(definition, c)
	if err != nil || len(faults) != 1 || !contains(faults, "InventedError") {
		t.Errorf("faults: got %q and %v, want InventedError alone", faults, err)
	}
}

func TestRightsThatAWSUsesInTheFunctionsNameAreLeftOut(t *testing.T) {
	read, _ := product(t)
	for _, f := range read.functions {
		for _, right := range f.granted {
			if strings.HasPrefix(right, "logs:") || strings.HasPrefix(right, "sqs:") || strings.Contains(right, "Stream") {
				t.Errorf("%s: got %s, want it left out", f.folder, right)
			}
		}
	}
}
