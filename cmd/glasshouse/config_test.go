package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Without --python it is the interpreter that set-up made in the data folder.
func TestTheInterpreterThatSetUpMade(t *testing.T) {
	t.Setenv("GLASSHOUSE_PYTHON", "")
	dir := t.TempDir()
	took := func(args ...string) string {
		t.Helper()
		c, _, err := parse("run", append([]string{"--data-dir", dir}, args...), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.python
	}
	if got := took(); got != "python3" {
		t.Errorf("where nothing was made: %s", got)
	}
	made := filepath.Join(dir, "env", "abc")
	if err := os.MkdirAll(made, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(made, filepath.Join(dir, "env", "current")); err != nil {
		t.Fatal(err)
	}
	if got := took(); got != filepath.Join(made, "bin", "python") {
		t.Errorf("where one was made: %s", got)
	}
	if got := took("--python", "/other"); got != "/other" {
		t.Errorf("where one is named: %s", got)
	}
}

// A command's help is of that command; serve's has every setting.
func TestHelpIsOfTheCommand(t *testing.T) {
	path := binary(t)
	for command, want := range map[string][2]string{
		"serve --help":       {"--allowed-hosts", "where they matter"},
		"keys create --help": {"--role", "--allowed-hosts"},
		"run --help":         {"--python", "--allowed-hosts"},
		"check sql --help":   {"--dsn", "--allowed-hosts"},
	} {
		out, err := exec.Command(path, strings.Fields(command)...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want[0]) || strings.Contains(string(out), want[1]) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if out, err := exec.Command(path, "keys", "--help").CombinedOutput(); err == nil || !strings.Contains(string(out), "keys create --name NAME") {
		t.Errorf("keys --help: %v %s", err, out)
	}
}
