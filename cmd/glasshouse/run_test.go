package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunPrintsOutputAndResult(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), emptyDataDir(t)
	file := filepath.Join(dir, "x.py")
	if err := os.WriteFile(file, []byte("print('out')\n6 * 7"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "run", "--data-dir", dir, file).Output(); err != nil ||
		string(out) != "out\n42\n" {
		t.Errorf("got %q, %v, want out and 42", out, err)
	}
	if err := os.WriteFile(file, []byte("x = 1\ndef ("), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "run", "--data-dir", dir, file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "line 2, column ") {
		t.Errorf("got %q, %v, want the line of the syntax error", out, err)
	}
}
