package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Scenario is one scenario, complete: what its file said for all is filled in.
type Scenario struct {
	Name           string              `json:"name"`
	Why            string              `json:"why"`
	Runners        []string            `json:"runners"`
	Definition     jsontext.Value      `json:"definition"`
	DefinitionFile string              `json:"definition_file"`
	Substitutions  map[string]string   `json:"substitutions"`
	Input          jsontext.Value      `json:"input"`
	Functions      map[string][]Answer `json:"functions"`
	Expect         Expect              `json:"expect"`
}

// Answer is what a function does when it is called: it returns, or it fails.
type Answer struct {
	AfterSeconds int            `json:"after_seconds"`
	Return       jsontext.Value `json:"return"`
	Error        *Error         `json:"error"`
	Repeat       bool           `json:"repeat"`
}

// Error is an error of a function, as Lambda would report it.
type Error struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// Expect is what has to come out.
type Expect struct {
	Status         string         `json:"status"`
	Output         jsontext.Value `json:"output"`
	Error          string         `json:"error"`
	Cause          string         `json:"cause"`
	States         []string       `json:"states"`
	MaxStates      int            `json:"max_states"`
	Calls          []Call         `json:"calls"`
	ElapsedSeconds *float64       `json:"elapsed_seconds"`
}

// Call is one call of a function.
type Call struct {
	Function string         `json:"function"`
	Payload  jsontext.Value `json:"payload"`
}

type file struct {
	Definition     jsontext.Value    `json:"definition"`
	DefinitionFile string            `json:"definition_file"`
	Substitutions  map[string]string `json:"substitutions"`
	Scenarios      []Scenario        `json:"scenarios"`
}

// Load reads all *.json files at the root of fsys, in the order of their names.
// It refuses unknown fields and scenarios that are incomplete or contradictory.
// Definition files are read from the same fsys.
func Load(fsys fs.FS) ([]Scenario, error) {
	names, err := fs.Glob(fsys, "*.json")
	if err != nil {
		return nil, fmt.Errorf("list scenario files: %w", err)
	}
	var all []Scenario
	seen := map[string]bool{}
	for _, name := range names {
		scenarios, err := loadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("scenario file %s: %w", name, err)
		}
		for _, s := range scenarios {
			if seen[s.Name] {
				return nil, fmt.Errorf("scenario file %s: the name %q is there twice", name, s.Name)
			}
			seen[s.Name] = true
		}
		all = append(all, scenarios...)
	}
	return all, nil
}

func loadFile(fsys fs.FS, name string) ([]Scenario, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	var f file
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	for i := range f.Scenarios {
		s := &f.Scenarios[i]
		s.inherit(f)
		if s.DefinitionFile != "" && s.Definition == nil {
			if s.Definition, err = fs.ReadFile(fsys, path.Join(path.Dir(name), s.DefinitionFile)); err != nil {
				return nil, fmt.Errorf("%q: %w", s.Name, err)
			}
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%q: %w", s.Name, err)
		}
	}
	return f.Scenarios, nil
}

// inherit fills in what the file says for all of its scenarios.
func (s *Scenario) inherit(f file) {
	if s.Definition == nil && s.DefinitionFile == "" {
		s.Definition, s.DefinitionFile = f.Definition, f.DefinitionFile
	}
	if s.Substitutions == nil {
		s.Substitutions = f.Substitutions
	}
	if s.Input == nil {
		s.Input = jsontext.Value("{}")
	}
}

// statuses are the ends that an execution can come to.
var statuses = []string{"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}

func (s *Scenario) check() error {
	switch {
	case s.Name == "":
		return errors.New("it has no name")
	case s.Definition == nil:
		return errors.New("it has no definition")
	case !slices.Contains(statuses, s.Expect.Status):
		return fmt.Errorf("the expected status %q is none of %v", s.Expect.Status, statuses)
	case len(s.Expect.States) == 0:
		return errors.New("it does not say which states are entered")
	}
	for function, answers := range s.Functions {
		for i, a := range answers {
			if (a.Return == nil) == (a.Error == nil) {
				return fmt.Errorf("answer %d of %s must have either return or error", i, function)
			}
			if a.Repeat && i != len(answers)-1 {
				return fmt.Errorf("answer %d of %s repeats, so nothing can follow", i, function)
			}
		}
	}
	return nil
}

// Takes is about how long the scenario takes in real time: what it expects, or else
// what the answers of its functions take, each once.
func (s *Scenario) Takes() time.Duration {
	if s.Expect.ElapsedSeconds != nil {
		return time.Duration(*s.Expect.ElapsedSeconds * float64(time.Second))
	}
	var all time.Duration
	for _, answers := range s.Functions {
		for _, a := range answers {
			all += time.Duration(a.AfterSeconds) * time.Second
		}
	}
	return all
}

// For reports whether a runner may run the scenario.
func (s *Scenario) For(runner string) bool {
	return len(s.Runners) == 0 || slices.Contains(s.Runners, runner)
}
