package scenario_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

const minimal = `"name": "n", "definition": {}, "expect": {"status": "FAILED", "states": ["S"]}`

func files(content string) fstest.MapFS {
	return fstest.MapFS{"a.json": {Data: []byte(content)}, "machine.asl": {Data: []byte(`{"from": "file"}`)}, "notes.txt": {}}
}

func TestAFileThatIsNotUnderstoodDoesNotLoad(t *testing.T) {
	tests := []struct{ name, content, reason string }{
		{"no JSON", `{`, "EOF"},
		{"an unknown field", `{"scenario": []}`, "scenario"},
		{"an unknown field of a scenario", `{"scenarios": [{` + minimal + `, "x": 1}]}`, "x"},
		{"no name", `{"scenarios": [{"definition": {}, "expect": {"status": "FAILED", "states": ["S"]}}]}`, "no name"},
		{"no definition", `{"scenarios": [{"name": "n", "expect": {"status": "FAILED", "states": ["S"]}}]}`, "no definition"},
		{"a definition file that is not there", `{"definition_file": "x.asl", "scenarios": [{"name": "n", "expect": {"status": "FAILED", "states": ["S"]}}]}`, "x.asl"},
		{"a status that does not exist", `{"scenarios": [{"name": "n", "definition": {}, "expect": {"status": "DONE", "states": ["S"]}}]}`, "DONE"},
		{"no states", `{"scenarios": [{"name": "n", "definition": {}, "expect": {"status": "FAILED"}}]}`, "states"},
		{"an answer that does nothing", `{"scenarios": [{` + minimal + `, "functions": {"f": [{}]}}]}`, "either return or error"},
		{"an answer that does both", `{"scenarios": [{` + minimal + `, "functions": {"f": [{"return": 1, "error": {"name": "E"}}]}}]}`, "either return or error"},
		{"an answer after one that repeats", `{"scenarios": [{` + minimal + `, "functions": {"f": [{"return": 1, "repeat": true}, {"return": 2}]}}]}`, "repeats"},
		{"a name twice", `{"scenarios": [{` + minimal + `}, {` + minimal + `}]}`, "twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := scenario.Load(files(tt.content))
			if err == nil || !strings.Contains(err.Error(), tt.reason) || !strings.Contains(err.Error(), "a.json") {
				t.Errorf("got %v, want an error with a.json and %q", err, tt.reason)
			}
		})
	}
}

func TestAScenarioTakesFromItsFileWhatItDoesNotSay(t *testing.T) {
	all, err := scenario.Load(files(`{"definition_file": "machine.asl", "substitutions": {"A": "file"}, "scenarios": [
		{"name": "takes", "expect": {"status": "FAILED", "states": ["S"]}},
		{"name": "says", "definition": {"from": "scenario"}, "substitutions": {"A": "scenario"}, "input": {"a": 1}, "runners": ["x"],
			"expect": {"status": "FAILED", "states": ["S"]}}]}`))
	if err != nil || len(all) != 2 {
		t.Fatalf("got %v %v, want two scenarios", all, err)
	}
	if s := all[0]; string(s.Definition) != `{"from": "file"}` || s.Substitutions["A"] != "file" || string(s.Input) != "{}" || !s.For("anybody") {
		t.Errorf("got %+v", s)
	}
	if s := all[1]; string(s.Definition) != `{"from": "scenario"}` || s.Substitutions["A"] != "scenario" || string(s.Input) != `{"a": 1}` || s.For("y") || !s.For("x") {
		t.Errorf("got %+v", s)
	}
}

func TestAScriptAnswersInTurnAndWritesDownItsCalls(t *testing.T) {
	all, err := scenario.Load(files(`{"scenarios": [{` + minimal + `, "functions": {
		"f": [{"return": null}, {"error": {"name": "E", "message": "m"}, "after_seconds": 2}],
		"g": [{"return": 1, "repeat": true}]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second script starts anew
		p := all[0].Script()
		if n := p.Left(); n != 2 {
			t.Errorf("got %d answers left, want 2", n)
		}
		first, err1 := p.Call("f", []byte("1"))
		second, err2 := p.Call("f", []byte("2"))
		_, err3 := p.Call("f", []byte("3"))
		if err1 != nil || string(first.Return) != "null" || err2 != nil || second.Error.Name != "E" || second.AfterSeconds != 2 || err3 == nil {
			t.Errorf("got %+v %v, %+v %v, %v", first, err1, second, err2, err3)
		}
		for range 3 {
			if a, err := p.Call("g", nil); err != nil || string(a.Return) != "1" {
				t.Errorf("got %+v %v, want 1 again", a, err)
			}
		}
		if got := p.Calls(); len(got) != 6 || got[1].String() != "f(2)" || p.Left() != 0 {
			t.Errorf("got %v and %d left, want 6 calls and none left", got, p.Left())
		}
	}
}

func TestEveryDifferenceIsTold(t *testing.T) {
	all, err := scenario.Load(files(`{"scenarios": [{"name": "n", "definition": {}, "expect": {
		"status": "FAILED", "output": {"a": [1, {"b": "{any}"}], "big": 9007199254740993}, "error": "E", "cause": "reason", "states": ["S", "T"], "max_states": 2,
		"calls": [{"function": "f", "payload": {"x": 1}}, {"function": "g"}], "elapsed_seconds": 1.5}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s := all[0]
	holds := scenario.Observed{
		Status: "FAILED", Output: []byte(`{"big":9007199254740993,"a":[1,{"b":[null]}]}`), Error: "E", Cause: "the reason is", States: []string{"S", "T"},
		Calls:   []scenario.Call{{Function: "f", Payload: []byte(`{"x":1}`)}, {Function: "g", Payload: []byte(`2`)}},
		Elapsed: 1500 * time.Millisecond,
	}
	if got := s.Differences(holds); len(got) != 0 {
		t.Errorf("got %v, want no differences", got)
	}
	later := holds
	later.Elapsed, later.RealTime = holds.Elapsed+time.Hour, true
	if got := s.Differences(later); len(got) != 0 {
		t.Errorf("got %v, want no differences where a real clock went on", got)
	}
	later.Elapsed = holds.Elapsed - 1
	if got := s.Differences(later); len(got) != 1 {
		t.Errorf("got %v, want one where even a real clock is too early", got)
	}
	unmeasured := holds
	unmeasured.Elapsed = -1
	if got := s.Differences(unmeasured); len(got) != 0 {
		t.Errorf("got %v, want no differences where no time was taken", got)
	}
	for word, change := range map[string]func(*scenario.Observed){
		"status":     func(o *scenario.Observed) { o.Status = "SUCCEEDED" },
		"output":     func(o *scenario.Observed) { o.Output = []byte(`{"big":9007199254740992,"a":[1,{"b":1}]}`) },
		"output: ":   func(o *scenario.Observed) { o.Output = []byte(`{"big":9007199254740993,"a":[1,{"b":1}],"c":1}`) },
		"output: g":  func(o *scenario.Observed) { o.Output = []byte(`{"big":9007199254740993,"a":[1,{"c":1}]}`) },
		"output: go": func(o *scenario.Observed) { o.Output = nil },
		"error":      func(o *scenario.Observed) { o.Error = "F" },
		"cause":      func(o *scenario.Observed) { o.Cause = "" },
		"states":     func(o *scenario.Observed) { o.States = []string{"T", "S"} },
		"at most 2":  func(o *scenario.Observed) { o.States = []string{"S", "T", "T"} },
		"calls":      func(o *scenario.Observed) { o.Calls = o.Calls[:1] },
		"calls: ": func(o *scenario.Observed) {
			o.Calls = []scenario.Call{{Function: "f", Payload: []byte(`{"x":2}`)}, o.Calls[1]}
		},
		"elapsed": func(o *scenario.Observed) { o.Elapsed++ },
	} {
		changed := holds
		change(&changed)
		got := s.Differences(changed)
		if len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), word) {
			t.Errorf("got %v, want something with %q", got, word)
		}
	}
}

func TestAScenarioTakesWhatItExpectsOrWhatItsFunctionsTake(t *testing.T) {
	all, err := scenario.Load(files(`{"scenarios": [
		{"name": "said", "definition": {}, "functions": {"f": [{"after_seconds": 60, "return": 1}]}, "expect": {"status": "FAILED", "states": ["S"], "elapsed_seconds": 1.5}},
		{"name": "not said", "definition": {}, "functions": {"f": [{"after_seconds": 2, "return": 1}, {"after_seconds": 3, "return": 1, "repeat": true}], "g": [{"return": 1}]},
			"expect": {"status": "FAILED", "states": ["S"]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{1500 * time.Millisecond, 5 * time.Second} {
		if got := all[i].Takes(); got != want {
			t.Errorf("%s: got %s, want %s", all[i].Name, got, want)
		}
	}
}
