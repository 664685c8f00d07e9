package infra_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// importRule is a rule of depguard, as far as .golangci.yml uses them.
type importRule struct {
	Mode  string   `yaml:"list-mode"` // strict: what is not allowed is refused
	Files []string `yaml:"files"`
	Allow []string `yaml:"allow"`
	Deny  []struct {
		Package string `yaml:"pkg"`
	} `yaml:"deny"`
}

// importRules are those that golangci-lint holds the code to. Tests hold it to the
// same ones, since golangci-lint is not there on every machine.
func importRules(t *testing.T) map[string]importRule {
	t.Helper()
	text, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]importRule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		t.Fatal(err)
	}
	return configuration.Linters.Settings.Depguard.Rules
}

var globWords = strings.NewReplacer("**", ".*", "*", "[^/]*", "{", "(", "}", ")", ",", "|", ".", `\.`)

// about reports whether the rule is about a file, whose path begins with "/".
func (r importRule) about(file string) bool {
	if slices.Contains(r.Files, "!$test") && strings.HasSuffix(file, "_test.go") {
		return false
	}
	return slices.ContainsFunc(r.Files, func(pattern string) bool {
		return pattern == "$all" || regexp.MustCompile("^"+globWords.Replace(pattern)+"$").MatchString(file)
	})
}

func (r importRule) refuses(imported string) bool {
	for _, denied := range r.Deny {
		if strings.HasPrefix(imported, denied.Package) {
			return true
		}
	}
	return r.Mode == "strict" && !slices.ContainsFunc(r.Allow, func(allowed string) bool {
		first, _, _ := strings.Cut(imported, "/")
		return allowed == "$gostd" && !strings.Contains(first, ".") || strings.HasPrefix(imported, allowed)
	})
}

// refusal is the name of the rule that refuses an import, "" when none does.
func refusal(rules map[string]importRule, file, imported string) string {
	for name, r := range rules {
		if r.about(file) && r.refuses(imported) {
			return name
		}
	}
	return ""
}

const module = "github.com/kessai/kessai/"

func TestTheImportRulesRefuseWhatPointsRight(t *testing.T) {
	rules := importRules(t)
	for _, c := range []struct {
		file, imported string
		refused        bool
	}{
		{"/internal/payment/table.go", "net/http", true},
		{"/internal/payment/table.go", module + "internal/journal", true},
		{"/internal/payment/table.go", "github.com/oklog/ulid/v2", true},
		{"/internal/payment/table.go", module + "internal/money", false},
		{"/internal/payment/table.go", "time", false},
		{"/internal/payment/table_test.go", module + "internal/flowtest", false},
		{"/internal/charge/send.go", module + "internal/store", true},
		{"/internal/charge/send.go", module + "internal/psp/simulator", true},
		{"/internal/charge/send.go", module + "internal/psp", false},
		{"/internal/delivery/service.go", module + "internal/store/memory", true},
		{"/internal/merchant/service.go", module + "internal/api", true},
		{"/internal/outbox/outbox.go", "github.com/aws/aws-sdk-go-v2/aws", true},
		{"/internal/outbox/eventbridge/eventbridge.go", "github.com/aws/aws-sdk-go-v2/aws", false},
		{"/internal/order/order.go", module + "internal/payment", true},
		{"/internal/order/order.go", module + "internal/store", false},
		{"/internal/psp/psp.go", module + "internal/api", true},
		{"/internal/store/dynamo/table.go", module + "internal/telemetry", true},
		{"/internal/api/handler.go", module + "functions/api", true},
		{"/infra/local/simulator/server.go", module + "internal/money", true},
		{"/infra/local/product.go", module + "internal/bootstrap", false},
	} {
		if got := refusal(rules, c.file, c.imported); (got != "") != c.refused {
			t.Errorf("%s imports %s: got rule %q, want refused %t", c.file, c.imported, got, c.refused)
		}
	}
}

func TestEveryImportKeepsTheRules(t *testing.T) {
	rules := importRules(t)
	seen := 0
	for _, root := range []string{"functions", "infra", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			file := strings.TrimPrefix(filepath.ToSlash(path), "..")
			for _, spec := range parsed.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				seen++
				if name := refusal(rules, file, imported); name != "" {
					t.Errorf("%s imports %s, which rule %s refuses", file, imported, name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 1000 {
		t.Errorf("got %d imports, want those of the whole module", seen)
	}
}
