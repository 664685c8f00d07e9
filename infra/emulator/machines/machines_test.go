package machines

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil { // where the program is started
		panic(err)
	}
	os.Exit(m.Run())
}

func TestEveryScenarioIsPlayedUnlessItTakesLong(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	played, left := choose(all)
	if left.others != 0 || left.long == 0 || len(played)+left.long != len(all) {
		t.Errorf("got %d played and %+v left out of %d, want all but the long ones", len(played), left, len(all))
	}
	for _, s := range played {
		if s.Takes().Seconds() > LongestSeconds {
			t.Errorf("%s: takes %s, want at most %ds", s.Name, s.Takes(), LongestSeconds)
		}
	}
	if err := known(played); err != nil {
		t.Error(err)
	}
	if err := known(nil); err == nil || strings.Count(err.Error(), "\n")+1 != len(gaps) {
		t.Errorf("got %v, want every gap named when nothing is played", err)
	}
}

func TestAGapIsNoFailureAsLongAsItIsThatGap(t *testing.T) {
	const listed = "null is present and null"
	for _, tt := range []struct {
		name, scenario string
		differences    []string
		want           string
	}{
		{"one that holds", "a Wait state waits", nil, ""},
		{"one that does not", "a Wait state waits", []string{"status: a", "output: b"}, "status: a; output: b"},
		{"a gap that is there", listed, []string{"states entered: got [Pick Default], want [Pick Null]"}, ""},
		{"a gap that is gone", listed, nil, "take it off the list"},
		{"a gap that is another", listed, []string{"status: got FAILED"}, "in another way"},
	} {
		got := judge(tt.scenario, tt.differences)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func scenarioOf(t *testing.T, text string) scenario.Scenario {
	t.Helper()
	all, err := scenario.Load(fstest.MapFS{"a.json": {Data: []byte(`{"scenarios": [` + text + `]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func TestFunctionsOfADefinitionGetNamesOfTheirOwn(t *testing.T) {
	s := scenarioOf(t, `{"name": "n", "expect": {"status": "FAILED", "states": ["S"]}, "substitutions": {"Work": "work"},
		"definition": {"States": {"A": {"Parameters": {"FunctionName": "${Work}", "Payload": {"n": 9007199254740993, "x": "work"}}},
			"B": {"Branches": [{"Parameters": {"FunctionName": "other"}}]}, "C": {"Parameters": {"FunctionName": "work"}}}}}`)
	definition, functions, err := rename(&s, func(function string) string { return "run-" + function })
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"other", "work"}; !slices.Equal(functions, want) {
		t.Errorf("functions: got %v, want %v", functions, want)
	}
	want := `{"States":{"A":{"Parameters":{"FunctionName":"run-work","Payload":{"n":9007199254740993,"x":"work"}}},` +
		`"B":{"Branches":[{"Parameters":{"FunctionName":"run-other"}}]},"C":{"Parameters":{"FunctionName":"run-work"}}}}`
	if string(definition) != want {
		t.Errorf("definition: got %s, want %s", definition, want)
	}
}

func TestAFunctionIsToldWhatItsScriptSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scenarioOf(t, `{"name": "n", "definition": {}, "expect": {"status": "FAILED", "states": ["S"]}, "functions": {
			"f": [{"return": {"a": 1}}, {"error": {"name": "E", "message": "m"}, "after_seconds": 3}], "g": [{"return": 1}]}}`)
		p := &prompter{scenes: map[string]*scene{}}
		opened := p.open("e-1", &s)
		ask := func(execution, function, payload string) *httptest.ResponseRecorder {
			answer := httptest.NewRecorder()
			request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(payload))
			request.SetPathValue("execution", execution)
			request.SetPathValue("function", function)
			p.ServeHTTP(answer, request)
			return answer
		}
		if got := ask("e-1", "f", `{"x":1}`); got.Code != http.StatusOK || got.Body.String() != `{"a": 1}` {
			t.Errorf("a return: got %d %s", got.Code, got.Body)
		}
		var told scenario.Error
		if got := ask("e-1", "f", `2`); got.Code == http.StatusOK || json.Unmarshal(got.Body.Bytes(), &told) != nil || told.Name != "E" {
			t.Errorf("an error: got %d %s", got.Code, got.Body)
		}
		if got := ask("e-1", "f", `3`); got.Code == http.StatusOK {
			t.Errorf("one call too many: got %d %s", got.Code, got.Body)
		}
		if got := ask("e-2", "f", `4`); got.Code != http.StatusBadRequest {
			t.Errorf("an execution that is not known: got %d %s", got.Code, got.Body)
		}
		if got := opened.script.Calls(); len(got) != 3 || got[0].String() != `f({"x":1})` {
			t.Errorf("calls: got %v, want the three of this execution", got)
		}
		got := strings.Join(opened.remarks(), "\n")
		for _, want := range []string{"no answer left for the function f", "1 scripted answers were never asked for"} {
			if !strings.Contains(got, want) {
				t.Errorf("remarks: got %q, want %q in them", got, want)
			}
		}
	})
}
