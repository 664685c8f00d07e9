package psptest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Vector is one webhook whose signature is known to hold or not.
type Vector struct {
	Name     string            `json:"name"`
	Scheme   string            `json:"scheme"`
	Secret   string            `json:"secret"`
	Headers  map[string]string `json:"headers"`
	Valid    *bool             `json:"valid"`     // nil when only the shape is known
	VerifyAt int64             `json:"verify_at"` // Unix seconds to take as now
	Note     string            `json:"note"`
	Body     []byte            `json:"-"`
}

// PublishedVectors are the webhooks of the provider from public test suites.
// They are kept beside the checkout, not in it; where they are absent the test
// is skipped.
func PublishedVectors(t *testing.T, provider string) []Vector {
	t.Helper()
	folder := filepath.Join(repository(t), "..", "shared", "vectors", provider)
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("the published vectors are not beside this checkout")
	}
	var vectors []Vector
	for _, file := range files {
		var v struct {
			Vector
			PayloadFile string `json:"payload_file"`
		}
		read(t, file, &v)
		if v.Body, err = os.ReadFile(filepath.Join(folder, v.PayloadFile)); err != nil {
			t.Fatal(err)
		}
		vectors = append(vectors, v.Vector)
	}
	return vectors
}

// CommittedVectors are the webhooks in a JSON file of the test's own package.
func CommittedVectors(t *testing.T, file string) []Vector {
	t.Helper()
	var content []struct {
		Vector
		Text string `json:"body"`
	}
	read(t, file, &content)
	var vectors []Vector
	for _, v := range content {
		v.Body = []byte(v.Text)
		vectors = append(vectors, v.Vector)
	}
	return vectors
}

func read(t *testing.T, file string, value any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// repository is the folder with go.mod.
func repository(t *testing.T) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("no go.mod above the test")
		}
		folder = parent
	}
}
