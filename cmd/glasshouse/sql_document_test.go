package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSQLDocument pastes the commands about a wrong report in docs/sql.md, and compares what they print, whose long
// lines the page breaks.
func TestSQLDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Where the rows went\n")
	if !found {
		t.Fatal("docs/sql.md has no section about the rows of a statement")
	}
	script, want := fencedBlocks(section, "sh")[0], fencedBlocks(section, "text")[0]
	out, err := paste(t, script)
	unbroken := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if err != nil || unbroken(out) != unbroken(want) {
		t.Errorf("got %v and\n%s\nwant\n%s", err, out, want)
	}
}
