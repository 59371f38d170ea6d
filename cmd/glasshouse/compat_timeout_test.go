package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

const endless = "open('kept.txt', 'w').write('kept')\nprint('begun')\nwhile True: pass"

// A run that reaches the operator's time limit is an error of the code in the words of E2B. Its output, the sandbox and
// its files stay.
func TestE2BRunThatReachesItsTimeLimit(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t, "--default-execution-time", "2", "--max-execution-time", "2")
	id := c.create(t, 300)
	lines, err := c.run(t.Context(), id, endless, nil)
	printed := ""
	for _, l := range lines {
		if l.Type == "stdout" { // the service may read the text in two parts
			printed += l.Text
		}
	}
	if err != nil || printed != "begun\n" || find(lines, "end_of_execution").Type == "" {
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

// The kernel of a run that reaches its time limit goes on. Code that an interrupt ends keeps its variables.
func TestJupyterRunThatReachesItsTimeLimit(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t, "--default-execution-time", "2", "--max-execution-time", "2")
	s := c.connect(t, c.newKernel(t))
	s.run("kept = 1")
	got := textOf(s.run(endless))
	if !strings.HasPrefix(got, "stdout: begun\nTimeoutError: ") || !strings.Contains(got, "max_execution_time = 2 s") {
		t.Errorf("got %q, want the output, and TimeoutError with the limit", got)
	}
	if got := textOf(s.run("print(open('kept.txt').read(), kept)")); got != "stdout: kept 1\n" {
		t.Errorf("the next run: got %q, want the file and the variable", got)
	}
}

// The sandboxes of these tests live for some seconds.
var shortLife = []string{"--default-lifetime", "5", "--max-lifetime", "5"}

// The clients of a kernel whose sandbox has expired see it dead, and lose their connections.
func TestJupyterKernelThatExpires(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t, shortLife...)
	kernel := c.newKernel(t)
	s := c.connect(t, kernel)
	s.until(func(m kernelMessage) bool { return m.Content["execution_state"] == "dead" })
	wantClose(t, s, websocket.StatusGoingAway)
	c.must(t, http.StatusNotFound, "GET", "/api/kernels/"+kernel, "", nil)
	c.must(t, http.StatusNotFound, "POST", "/api/kernels/"+kernel+"/restart", "", nil)
	if got := textOf(c.connect(t, c.newKernel(t)).run("1 + 1")); got != "execute_result: 2\n" {
		t.Errorf("another kernel: got %q, want the value", got)
	}
}

// A request for a session of LibreChat that has expired runs in a new one, and names the files that are missing.
func TestLibreChatSessionThatExpires(t *testing.T) {
	t.Parallel()
	c, _ := startLibreChat(t, shortLife...)
	first := c.python(t, "", "open('a.txt', 'w').write('a')")
	eventually(t, func() error {
		if status, text := c.get(t, "/files/"+first.Session); status != http.StatusGone {
			return fmt.Errorf("got HTTP %d %s, want 410", status, text)
		}
		return nil
	})
	a := c.python(t, first.Session, "print('on')", first.Files...)
	if a.Stdout != "on\n" || a.Session == first.Session || !strings.Contains(a.Stderr, "a.txt is not available") {
		t.Errorf("got %+v, want a new session, and the missing file named", a)
	}
}
