package explore

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kinds of fault in the table of doc.go.
const kinds = 72

func TestEveryTestOfTheFaultTableExists(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	there := testsOf(t, filepath.Join("..", ".."))
	row := regexp.MustCompile(`(?m)^\t *(\d+)  .+ → .+: (.+)$`)
	rows := row.FindAllStringSubmatch(string(doc), -1)
	if len(rows) != kinds {
		t.Errorf("got %d rows, want %d", len(rows), kinds)
	}
	for _, r := range rows {
		for name := range strings.SplitSeq(r[2], ", ") {
			if !there[name] {
				t.Errorf("fault %s: there is no %s", r[1], name)
			}
		}
	}
}

func TestEveryInvariantIsListed(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\t([SL]-[A-Z-]+) `).FindAllStringSubmatch(string(doc), -1) {
		listed[row[1]] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`violate\("([SL]-[A-Z-]+)"`).FindAllStringSubmatch(string(text), -1) {
			held[m[1]] = true
		}
	}
	if len(held) < 30 || !maps.Equal(held, listed) {
		t.Errorf("got %d invariants held, %d listed, want the same", len(held), len(listed))
	}
	for _, m := range Mutants() {
		for _, name := range m.Killer {
			if !held[name] {
				t.Errorf("%s: nothing holds %s", m.Name, name)
			}
		}
	}
}

// testsOf are the names of all tests below a folder.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
