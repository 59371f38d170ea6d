package main

import (
	"os"
	"os/exec"
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
	path, dir := binary(t), dataDir(t)
	_, c := start(t, path, dir)
	folder := t.TempDir()
	if err := os.Symlink(filepath.Dir(path), filepath.Join(folder, "bin")); err != nil {
		t.Fatal(err)
	}
	const address = "http://127.0.0.1:8080"
	if !isShort || !strings.Contains(script, address) {
		t.Fatalf("got the commands %q and the output %q, want %s in the commands and ... in the output", script, want,
			address)
	}
	cmd := exec.Command("bash", "-c", strings.ReplaceAll(script, address, c.address))
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "GLASSHOUSE_DATA_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("got %v and\n%s\nwant\n%s", err, out, want)
	}
}
