package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// parseSettings returns the settings that a command line gives, over the environment.
func parseSettings(args ...string) (got settings, err error) {
	root := newGroup(
		"glasshouse",
		"",
		withSettings(&cobra.Command{Use: "test"}, func(_ context.Context, s settings, _ []string) error {
			got = s
			return nil
		}),
	)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(explainFlagError)
	args = append([]string{"test"}, args...)
	root.SetArgs(args)
	if err = applyEnvironment(root, args); err == nil {
		err = root.Execute()
	}
	return got, err
}

func TestDefaultPythonIsTheOneThatSetupMade(t *testing.T) {
	t.Setenv("GLASSHOUSE_PYTHON", "")
	dir := t.TempDir()
	interpreter := func(args ...string) string {
		t.Helper()
		s, err := parseSettings(append([]string{"--data-dir", dir}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return s.python.interpreter
	}
	system, err := findProgram("python3")
	if err != nil {
		t.Fatal(err)
	}
	if packaged := filepath.Join(packagedFolder, "python/bin/python"); exec.Command(packaged, "-V").Run() == nil {
		system = packaged // this machine has the package
	}
	if got := interpreter(); got != system {
		t.Errorf("without an environment in the data folder: got %s, want %s", got, system)
	}
	environment := filepath.Join(dir, "env", "abc")
	if err := os.MkdirAll(environment, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(environment, filepath.Join(dir, "env", "current")); err != nil {
		t.Fatal(err)
	}
	if got, want := interpreter(), filepath.Join(environment, "bin", "python"); got != want {
		t.Errorf("with an environment: got %s, want %s", got, want)
	}
	if got := interpreter("--python", "/other"); got != "/other" {
		t.Errorf("with --python: got %s, want /other", got)
	}
}

func TestFlagOverridesEnvironmentOverridesDefault(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		variable string
		args     []string
		want     time.Duration
	}{
		{"", nil, 10 * time.Second},
		{"20s", nil, 20 * time.Second},
		{"20s", []string{"--drain", "30s"}, 30 * time.Second},
		{"", []string{"--drain=30s"}, 30 * time.Second},
	} {
		t.Setenv("GLASSHOUSE_DRAIN", c.variable)
		if s, err := parseSettings(c.args...); err != nil || s.server.drain != c.want {
			t.Errorf(
				"GLASSHOUSE_DRAIN=%q, flags %q: got %s, %v, want %s",
				c.variable,
				c.args,
				s.server.drain,
				err,
				c.want,
			)
		}
	}
	t.Setenv("GLASSHOUSE_DRAIN", "soon")
	if _, err := parseSettings(); err == nil || !strings.Contains(err.Error(), `GLASSHOUSE_DRAIN="soon"`) {
		t.Errorf("an invalid variable: got %v, want an error that names it", err)
	}
	t.Setenv("GLASSHOUSE_DRAIN", "")
	t.Setenv("GLASSHOUSE_DATA", "a="+dir)
	if s, err := parseSettings("--data", "b="+dir); err != nil || s.python.data.String() != "a="+dir+",b="+dir {
		t.Errorf("data sets of the environment and of a flag: got %s, %v, want both", s.python.data.String(), err)
	}
}

func TestUnknownFlagsAndCommandsAreRefusedWithASuggestion(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", exitUnknownCommand, "serve"},
		{"serv", exitUnknownCommand, "did you mean serve"},
		{"nonsense", exitUnknownCommand, `no command "nonsense"`},
		{"serve --listn 127.0.0.1:0", exitFailed, "did you mean --listen?"},
		{"serve -listen 127.0.0.1:0", exitFailed, "two dashes"},
		{"serve --drain soon", exitFailed, "serve --help"},
		{"serve --parallel 0", exitFailed, "--parallel (GLASSHOUSE_PARALLEL) is too small: it must be at least 1"},
		{"serve --pool 0", exitFailed, "at least 1"},
		{"serve --recordings-max-age -1h", exitFailed, "too small"},
		{"serve --tls-cert missing.pem --tls-key missing.pem", exitFailed, "must name a certificate"},
		{"serve --model-url http://127.0.0.1:1/v1", exitFailed, "--model-url needs --model-name"},
		{"serve --model-url http://a:b@127.0.0.1:1/v1 --model-name x", exitFailed, "has credentials"},
		{"run missing.py", exitFailed, "name a file that your account can read"},
		{"check code .", exitFailed, "is a directory"},
		{"debug -", exitFailed, "name a file with the program"},
		{"serve now", exitFailed, "takes no argument"},
		{"keys", exitFailed, "create, list, revoke"},
		{"keys creat --name x", exitFailed, "did you mean create?"},
		{"run", exitFailed, "usage: glasshouse run [flags] FILE.py"},
		{"check sql a b", exitFailed, "usage: glasshouse check sql"},
		{"version", exitOK, "glasshouse dev"},
		{"--version", exitOK, "glasshouse dev"},
		{"help keys", exitOK, "revoke"},
		{"__complete serve --min-level l", exitOK, "landlock"},
		{"completion bash", exitOK, "complete"},
	} {
		cmd := exec.Command(path, strings.Fields(c.args)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("glasshouse %s: got exit code %d and %.300s, want %d and %q", c.args, code, out, c.code, c.want)
		}
	}
}

func TestFlagsStandBeforeOrAfterArguments(t *testing.T) {
	t.Parallel()
	path := binary(t)
	file := filepath.Join(t.TempDir(), "x.sql")
	if err := os.WriteFile(file, []byte("SELECT 1"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "sql", "--data-dir", "/nowhere", file}, {"check", "sql", file, "--data-dir", "/nowhere"}, {"--data-dir=/nowhere", "check", "sql", file},
	} {
		if out, err := exec.Command(path, args...).CombinedOutput(); err != nil || string(out) != "allowed\n" {
			t.Errorf("%q: got %s, %v, want allowed", args, out, err)
		}
	}
}

// TestEveryCommandHasHelp goes over all commands: each has a short text and examples, its help does not fail, and flags
// may stand before or after arguments.
func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	path := binary(t)
	help := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(path, args...).Output()
		if err != nil {
			t.Errorf("glasshouse %q: %v", args, err)
		}
		return string(out)
	}
	seen := 0
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		seen++
		for _, sub := range c.Commands() {
			visit(sub)
		}
		words := strings.Fields(c.CommandPath())[1:]
		text := help(append(words, "--help")...)
		if c.Short == "" || !strings.Contains(text, "Usage:\n  "+c.CommandPath()) {
			t.Errorf("%s: got short text %q and help %q, want both with the usage", c.CommandPath(), c.Short, text)
		}
		parent := c.Parent()
		if c.HasSubCommands() || c.Name() == "help" || parent != nil && parent.Name() == "completion" {
			return // cobra's own texts have examples of their own
		}
		if !strings.Contains(text, "\nExamples:\n  ") || !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: got examples %q, want one of the command", c.CommandPath(), c.Example)
		}
		before, after := help(append(words, "--help", "x")...), help(append(words, "x", "--help")...)
		if before != after {
			t.Errorf("%s: got %q for --help after an argument, want %q", c.CommandPath(), after, before)
		}
	}
	visit(newRootCommand())
	if seen < 20 {
		t.Errorf("got %d commands, want at least 20", seen)
	}
}

// TestCompletionScripts has each shell of this machine read its script, and asks bash's for commands and flags.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := exec.Command(path, "completion", shell).Output()
		if err != nil || !bytes.Contains(script, []byte("__complete")) {
			t.Errorf("completion %s: got %.200s, %v, want a script", shell, script, err)
		}
		program, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("report: not tested, because this machine has no %s: its completion script is valid", shell)
			continue
		}
		check := exec.Command(program, "-n")
		check.Stdin = bytes.NewReader(script)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v: %s", shell, err, out)
		}
	}
	for line, want := range map[string]string{
		"ke": "keys", "keys cr": "create", "serve --min-level f": "full", "run --ou": "--out",
	} {
		out, err := exec.Command(path, append([]string{"__complete"}, strings.Fields(line)...)...).Output()
		if err != nil || !bytes.Contains(out, []byte(want)) {
			t.Errorf("complete %q: got %s, %v, want %s", line, out, err, want)
		}
	}
}

func TestHelpListsTheFlagsOfTheCommand(t *testing.T) {
	t.Parallel()
	path := binary(t)
	for command, want := range map[string][]string{
		"serve --help": {
			"--allowed-hosts", "GLASSHOUSE_ALLOWED_HOSTS", "Server:\n", "Limits:\n", "Isolation:\n", "Python:\n", "Databases:\n", "Retention:\n",
			"Chat:\n", "Compatibility APIs:\n", "Examples:\n",
		},
		"keys create --help": {"--role", "!--allowed-hosts", "--data-dir", "Examples:\n"},
		"run --help":         {"--python", "!--allowed-hosts", "Examples:\n"},
		"check sql --help":   {"--dsn", "!--allowed-hosts", "Examples:\n"},
		"keys --help":        {"create", "list", "revoke"},
		"--help":             {"serve", "role-sql", "completion"},
	} {
		out, err := exec.Command(path, strings.Fields(command)...).Output()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		for _, text := range want {
			text, unwanted := strings.CutPrefix(text, "!")
			if bytes.Contains(out, []byte(text)) == unwanted {
				t.Errorf("%s: got help with %q: %v, want %v:\n%s", command, text, unwanted, !unwanted, out)
			}
		}
	}
}
