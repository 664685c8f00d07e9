package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

func TestTheLocalTemplateDeclaresEveryVariableOfTheEnvironmentFile(t *testing.T) {
	text := localTemplate(t)
	var document struct {
		Globals struct {
			Function struct {
				Architectures []string `yaml:"Architectures"`
				Environment   struct {
					Variables map[string]any `yaml:"Variables"`
				} `yaml:"Environment"`
			} `yaml:"Function"`
		} `yaml:"Globals"`
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("env.json")
	if err != nil {
		t.Fatal(err)
	}
	var environment struct{ Parameters map[string]string }
	if err := json.Unmarshal(file, &environment); err != nil {
		t.Fatal(err)
	}
	declared := document.Globals.Function.Environment.Variables
	if want := strings.Replace(runtime.GOARCH, "amd64", "x86_64", 1); !slices.Equal(document.Globals.Function.Architectures, []string{want}) {
		t.Errorf("Architectures: got %v, want %s as the binary is", document.Globals.Function.Architectures, want)
	}
	elsewhere := map[string]bool{"SECRETS_ID": true, "ORDER_REJECT_PREFIX": true} // declared by the functions that read them
	for name := range environment.Parameters {
		if _, ok := declared[name]; !ok && !elsewhere[name] {
			t.Errorf("%s: got no declaration of it, so sam local would not set it", name)
		}
	}
	for name := range declared {
		if _, ok := environment.Parameters[name]; !ok {
			t.Errorf("%s: got no value of it in env.json", name)
		}
	}
}

// sam local finds a route's function by its id alone, and refuses an authorizer without an identity source.
func TestTheLocalTemplateHasOnlyNamesThatSamLocalKnows(t *testing.T) {
	var document struct {
		Resources map[string]struct {
			Type       string               `yaml:"Type"`
			Properties map[string]yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(localTemplate(t), &document); err != nil {
		t.Fatal(err)
	}
	functions, authorizers := 0, 0
	for id, resource := range document.Resources {
		switch resource.Type {
		case "AWS::Serverless::Function":
			functions++
			if name, ok := resource.Properties["FunctionName"]; ok {
				t.Errorf("%s: got the name %v, want none", id, name.Value)
			}
		case "AWS::ApiGatewayV2::Authorizer":
			authorizers++
			var got []string
			source := resource.Properties["IdentitySource"]
			if err := source.Decode(&got); err != nil || !slices.Equal(got, []string{"$context.routeKey"}) {
				t.Errorf("%s: got identity source %v, %v, want what every request has", id, got, err)
			}
		}
	}
	if functions == 0 || authorizers == 0 {
		t.Errorf("got %d functions and %d authorizers, want some of each", functions, authorizers)
	}
}

// localTemplate is what is made of the product's template when it was built for this machine.
func localTemplate(t *testing.T) []byte {
	t.Helper()
	// What sam build leaves: the template, and a binary beside it. The test's own will do.
	built := t.TempDir()
	in, out := filepath.Join(built, "template.yaml"), filepath.Join(built, "local.yaml")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(built, "ApiFunction"), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{own: filepath.Join(built, "ApiFunction", "bootstrap"), "../../template.yaml": in} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeTemplate(in, out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
