package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func rewritten(t *testing.T) (source, result map[string]any, functions []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + templateFile)
	if err != nil {
		t.Fatal(err)
	}
	made, err := rewriteTemplate(text, "place", 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &source); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(made.text, &result); err != nil {
		t.Fatal(err)
	}
	return source, result, made.functions
}

func TestEveryFunctionOfTheTemplateGetsItsZip(t *testing.T) {
	_, result, functions := rewritten(t)
	if len(functions) == 0 {
		t.Fatal("functions: got none, want those of the template")
	}
	places := map[string]bool{}
	for _, resource := range result["Resources"].(map[string]any) {
		if resource := resource.(map[string]any); resource["Type"] == "AWS::Serverless::Function" {
			places[resource["Properties"].(map[string]any)["CodeUri"].(string)] = true
		}
	}
	for _, function := range functions {
		if !places["s3://place/"+function+".zip"] {
			t.Errorf("CodeUri of %s: got none of its own in %v", function, places)
		}
	}
}

func TestOnlyTheArchiveIsLeftOut(t *testing.T) {
	source, result, _ := rewritten(t)
	for name, resource := range source["Resources"].(map[string]any) {
		_, kept := result["Resources"].(map[string]any)[name]
		archive := resource.(map[string]any)["Type"] == "AWS::Events::Archive"
		if kept == archive {
			t.Errorf("%s kept: got %v, want %v", name, kept, !archive)
		}
	}
}

func TestFunctionsGetTheTrueLengthBetweenSweeps(t *testing.T) {
	_, result, _ := rewritten(t)
	function := result["Globals"].(map[string]any)["Function"].(map[string]any)
	variables := function["Environment"].(map[string]any)["Variables"].(map[string]any)
	if got := variables["RECONCILE_EVERY"]; got != "3s" {
		t.Errorf("RECONCILE_EVERY: got %v, want 3s", got)
	}
}

func TestTagsOfTheTemplateSurvive(t *testing.T) {
	text, err := os.ReadFile("../../" + templateFile)
	if err != nil {
		t.Fatal(err)
	}
	made, err := rewriteTemplate(text, "place", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"!Ref PaymentsTable", "!GetAtt PaymentsTable.StreamArn", "!If ["} {
		if !strings.Contains(string(made.text), tag) {
			t.Errorf("rewritten template: got no %q in it", tag)
		}
	}
}

func TestTemplateAndFoldersHaveToNameTheSameFunctions(t *testing.T) {
	err := sameFunctions([]string{"api", "orders"}, map[string]string{"api": "", "refunds": ""})
	if err == nil || !strings.Contains(err.Error(), "orders") || !strings.Contains(err.Error(), "refunds") {
		t.Errorf("sameFunctions: got %v, want an error that names both", err)
	}
	if err := sameFunctions([]string{"api"}, map[string]string{"api": ""}); err != nil {
		t.Errorf("sameFunctions: got %v, want none", err)
	}
}

func TestEverySweepIsCalledWithTheInputOfItsSchedule(t *testing.T) {
	text, err := os.ReadFile("../../" + templateFile)
	if err != nil {
		t.Fatal(err)
	}
	made, err := rewriteTemplate(text, "place", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range made.schedules {
		got[s.function] = string(s.event)
	}
	if len(got) != 2 || got["reconcile"] != scheduledEvent || got["notifications"] != `{"command":"sweep"}` {
		t.Errorf("schedules: got %v, want the sweeps of reconcile and notifications", got)
	}
}
