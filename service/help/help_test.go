package help

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The registry of helpers is in Python. `go generate ./service/help` writes it to service/help and to docs/helpers.md.
func TestGeneratedHelpersMatchTheRegistry(t *testing.T) {
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		python = "python3"
	}
	dir := t.TempDir()
	for _, path := range []string{"helpers.json", "../../docs/helpers.md"} {
		fresh := filepath.Join(dir, filepath.Base(path))
		command := exec.Command(python, "../../sandbox/python/guest/helpers.py", fresh)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("helpers.py: %v\n%s", err, out)
		}
		want, err := os.ReadFile(fresh)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf(
				"%s differs from the registry in sandbox/python/guest (error %v): run `go generate ./service/help`",
				path,
				err,
			)
		}
	}
}

func TestHelpersHaveASignatureAndADescription(t *testing.T) {
	count := 0
	for group, listed := range Helpers() {
		for _, helper := range listed {
			count++
			if helper.Name == "" || helper.Signature == "" || helper.Description == "" {
				t.Errorf("group %s: got %+v, want every field set", group, helper)
			}
		}
	}
	if count < 12 {
		t.Errorf("got %d helpers, want 12 or more", count)
	}
}
