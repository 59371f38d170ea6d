package main

import (
	"strings"
	"testing"
)

const endless = "open('kept.txt', 'w').write('kept')\nprint('begun')\nwhile True: pass"

// A run that reaches the operator's time limit is an error of the code in the words of E2B. Its output, the sandbox and
// its files stay.
func TestE2BRunThatReachesItsTimeLimit(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t, "--default-execution-time", "2", "--max-execution-time", "2")
	id := c.create(t, 300)
	lines, err := c.run(t.Context(), id, endless, nil)
	if err != nil || find(lines, "stdout").Text != "begun\n" || find(lines, "end_of_execution").Type == "" {
		t.Errorf("got %+v, %v, want the output and the end", lines, err)
	}
	failed := find(lines, "error")
	if failed.Name != "ExecutionTimeout" || !strings.Contains(failed.Value, "max_execution_time = 2 s") {
		t.Errorf("got the error %+v, want ExecutionTimeout with the limit", failed)
	}
	lines, err = c.run(t.Context(), id, "print(open('kept.txt').read())", nil)
	if err != nil || find(lines, "stdout").Text != "kept\n" || find(lines, "error").Type != "" {
		t.Errorf("the next run: got %+v, %v, want the file", lines, err)
	}
}

// LibreChat shows a model stderr, and takes the files that a run has written.
func TestLibreChatRunThatReachesItsTimeLimit(t *testing.T) {
	t.Parallel()
	c, _ := startLibreChat(t, "--default-execution-time", "2", "--max-execution-time", "2")
	a := c.python(t, "", endless)
	if a.status != 200 || a.Stdout != "begun\n" || !strings.Contains(a.Stderr, "max_execution_time = 2 s") ||
		a.Run.Code != 1 || a.Run.Status == nil || *a.Run.Status != "TO" || len(a.Files) != 1 {
		t.Errorf("got %+v, want the output, the file, the limit in stderr and the status TO", a)
	}
	if next := c.python(t, a.Session, "print(open('kept.txt').read())"); next.Stdout != "kept\n" {
		t.Errorf("the next run: got %+v, want the file", next)
	}
}
