package machines

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/kessai/kessai/infra/local/statemachine/scenario"
)

// program is the function, seen from the repository's root.
const program = "./infra/emulator/machines/scripted"

// buildFunction makes the zip of the function for this machine, on which the emulator runs it.
func buildFunction(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kessai-scripted-")
	if err != nil {
		return nil, fmt.Errorf("folder of the function: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := filepath.Join(dir, "bootstrap")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", binary, program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build of %s: %w", program, err)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("build of %s: %w", program, err)
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	header := &zip.FileHeader{Name: "bootstrap", Method: zip.Deflate} // it is uploaded once for every function
	header.SetMode(0o755)
	entry, err := archive.CreateHeader(header)
	if err != nil {
		return nil, fmt.Errorf("zip of %s: %w", program, err)
	}
	if _, err := entry.Write(content); err != nil {
		return nil, fmt.Errorf("zip of %s: %w", program, err)
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("zip of %s: %w", program, err)
	}
	return packed.Bytes(), nil
}

// prompter tells functions what to answer. A function asks at /{execution}/{its name in the scenario}.
type prompter struct {
	mu     sync.Mutex
	scenes map[string]*scene
}

// scene is one scenario that is being played.
type scene struct {
	script *scenario.Script
	mu     sync.Mutex
	excess []string // calls that the scenario has no answer for
}

func (p *prompter) open(execution string, s *scenario.Scenario) *scene {
	p.mu.Lock()
	defer p.mu.Unlock()
	opened := &scene{script: s.Script()}
	p.scenes[execution] = opened
	return opened
}

func (p *prompter) scene(execution string) *scene {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scenes[execution]
}

func (p *prompter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := p.scene(r.PathValue("execution"))
	payload, err := io.ReadAll(r.Body)
	if err != nil || s == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a, err := s.script.Call(r.PathValue("function"), payload)
	if err != nil {
		s.mu.Lock()
		s.excess = append(s.excess, err.Error())
		s.mu.Unlock()
		a = scenario.Answer{Error: &scenario.Error{Name: "NoAnswerLeft", Message: err.Error()}}
	}
	select {
	case <-time.After(time.Duration(a.AfterSeconds) * time.Second):
	case <-r.Context().Done():
		return
	}
	if a.Error == nil {
		_, _ = w.Write(a.Return) // the function may be gone
		return
	}
	told, err := json.Marshal(a.Error)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusConflict)
	_, _ = w.Write(told)
}

// remarks are what the script has to say when the execution is over.
func (s *scene) remarks() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append([]string(nil), s.excess...)
	if n := s.script.Left(); n > 0 {
		list = append(list, fmt.Sprintf("%d scripted answers were never asked for", n))
	}
	return list
}
