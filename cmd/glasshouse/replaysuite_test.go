package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeSuite writes the file of a suite and returns its path.
func writeSuite(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "suite.txt")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestReplaySuite replays the executions of a file, and prints a line for each in the order of the file.
func TestReplaySuite(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	_, c := start(t, path, dir)
	steady, varying := c.quickRun(t, "print(db_query('SELECT 1 AS n'))"), c.quickRun(t, clockCode)
	diverging := c.quickRun(t, "import threading, time\nn = []\n"+
		"thread = threading.Thread(target=lambda: n.append(time.time_ns()))\nthread.start()\nthread.join()\n"+
		"db_query(f'SELECT {n[0]} AS n')")
	all := writeSuite(t, "# answers of the report", "", steady, "  "+varying+"  # as of today", steady)
	const none = "0123456789abcdef"
	for _, test := range []struct {
		lines     []string
		arguments []string
		code      int
		want      []string // of each line, the beginning
	}{
		{nil, []string{"--suite", all}, 0, []string{
			"identical  " + steady, "identical  " + varying, "identical  " + steady, "3 executions: identical 3"}},
		{nil, []string{"--suite", all, "--rows", "now"}, exitDiffers, []string{
			"still true      " + steady, "no longer true  " + varying + "  stdout, line 1: 20",
			"still true      " + steady, "3 executions: still true 2, no longer true 1"}},
		{[]string{varying, none, diverging}, nil, exitTrouble, []string{
			"identical  " + varying, "error      " + none + "  404 Not Found: there is no such execution",
			"diverged   " + diverging + "  request 1: SELECT ", "3 executions: identical 1, diverged 1, error 1"}},
		{[]string{varying, none}, []string{"--rows", "now"}, exitTrouble, []string{
			"no longer true  " + varying, "error           " + none, "2 executions: no longer true 1, error 1"}},
		{[]string{steady}, nil, 0, []string{"identical  " + steady, "1 execution: identical 1"}},
	} {
		arguments := append([]string{"replay", "--data-dir", dir}, test.arguments...)
		if test.lines != nil {
			arguments = append(arguments, "--suite", writeSuite(t, test.lines...))
		}
		stdout, stderr, err := runCommand(t, nil, "", arguments...)
		got := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if exitCode(t, err) != test.code || stderr != "" || len(got) != len(test.want) {
			t.Errorf("%q: got %v, %s%s\nwant the exit code %d and %q", arguments, err, stdout, stderr, test.code,
				test.want)
			continue
		}
		for n, want := range test.want {
			rest, ok := strings.CutPrefix(got[n], want)
			if !ok || strings.HasPrefix(got[n], "identical") && rest != "" {
				t.Errorf("%q: got the line %q, want %q", arguments, got[n], want)
			}
		}
	}
	stdout, _, err := runCommand(t, nil, varying+"\n"+none, "replay", "--data-dir", dir, "--suite", "-", "--json")
	lines := bufio.NewScanner(strings.NewReader(stdout))
	for _, want := range []string{"identical", "error"} {
		var r suiteResult
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &r) != nil || string(r.Grade) != want ||
			(r.Error == "") != (want == "identical") || (r.Replay != nil && r.ID != "") != (want == "identical") {
			t.Errorf("got %v and %s, want the object of a replay that is %s", err, stdout, want)
		}
	}
	if lines.Scan() || exitCode(t, err) != exitTrouble {
		t.Errorf("got %v and %s, want two lines and exit code %d", err, stdout, exitTrouble)
	}
}

// TestReplaySuiteRefusesArguments names what is wrong in the arguments and in the file of a suite.
func TestReplaySuiteRefusesArguments(t *testing.T) {
	t.Parallel()
	environ := []string{"GLASSHOUSE_URL=http://127.0.0.1:9", "GLASSHOUSE_KEY=gh_x"}
	suite := writeSuite(t, "one")
	for want, arguments := range map[string][]string{
		"give no other one":             {"--suite", suite, "two"},
		"--code is for one execution":   {"--suite", suite, "--code", suite},
		"suite.txt:2: got \"two three":  {"--suite", writeSuite(t, "one # two", "two three")},
		"has no id of an execution":     {"--suite", writeSuite(t, "# one")},
		"the file cannot be read":       {"--suite", suite + ".missing"},
		"wrong number of arguments (0)": {},
	} {
		_, stderr, err := runCommand(t, environ, "", append([]string{"replay"}, arguments...)...)
		if exitCode(t, err) != exitTrouble || !strings.Contains(stderr, want) {
			t.Errorf("%q: got %v, %s, want %q and exit code %d", arguments, err, stderr, want, exitTrouble)
		}
	}
}

// TestReplaySuiteIsInterrupted interrupts a suite whose second replay runs. The service cancels that replay, and the
// command prints what it has and how much is missing.
func TestReplaySuiteIsInterrupted(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	_, c := start(t, path, dir)
	first := c.quickRun(t, "1")
	// The clock of a replay comes from the log, so code that is slow again uses the processor.
	slow := fmt.Sprint(c.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{
		"code": "for n in range(10 ** 12): pass", "timeout": 2,
	})["execution_id"])
	cmd := exec.Command(path, "replay", "--data-dir", dir, "--suite", writeSuite(t, first, slow, slow, first))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var problems strings.Builder
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "identical  "+first+"\n" {
		t.Fatalf("got %q, %v, want the line of the first replay", line, err)
	}
	running := func(want bool) {
		t.Helper()
		eventually(t, func() error {
			answer := c.must(t, "GET", "/executions?status=running", nil)
			if list, _ := answer["executions"].([]any); (len(list) > 0) != want {
				return fmt.Errorf("got %v, want replays that run: %v", answer, want)
			}
			return nil
		})
	}
	running(true)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if line, err := lines.ReadString('\n'); line != "1 execution: identical 1\n" {
		t.Errorf("got %q, %v, want the sum", line, err)
	}
	err = cmd.Wait()
	if want := "glasshouse: interrupted: 3 of 4 executions were not replayed\n"; exitCode(t, err) != exitTrouble ||
		problems.String() != want {
		t.Errorf("got %v, %q, want %q and exit code %d", err, problems.String(), want, exitTrouble)
	}
	running(false)
}
