package dbtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Case is a statement of a case file with its expected outcome.
type Case struct{ File, Want, SQL string }

// Cases reads the case files of a pattern. A case is a line "### outcome", and the statement below it
// up to the next such line.
func Cases(t testing.TB, pattern string) []Case {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no case files %s: %v", pattern, err)
	}
	var cases []Case
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range strings.Split(string(text), "\n### ")[1:] {
			want, sql, _ := strings.Cut(strings.TrimSuffix(chunk, "\n"), "\n")
			cases = append(cases, Case{filepath.Base(name), want, sql})
		}
	}
	return cases
}
