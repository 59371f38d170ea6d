package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDebuggingDocument pastes the first commands of docs/debugging.md, and compares the beginning of what they print.
func TestDebuggingDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "debugging.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, want := fencedBlocks(string(text), "sh")[0], fencedBlocks(string(text), "text")[0]
	want, _, isShort := strings.Cut(want, "  ...\n")
	if !isShort {
		t.Fatal("want an output that ends with ...")
	}
	if out, err := paste(t, script); err != nil || !strings.HasPrefix(out, want) {
		t.Errorf("got %v and\n%s\nwant\n%s", err, out, want)
	}
}
