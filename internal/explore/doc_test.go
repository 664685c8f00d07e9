package explore

import (
	"io/fs"
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
