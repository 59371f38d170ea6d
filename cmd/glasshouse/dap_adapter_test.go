package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// maxEditorWait is how long an editor waits for a message. It is longer than any test needs on a busy machine.
const maxEditorWait = 3 * time.Minute

// editor starts `glasshouse dap` as an editor does, and speaks DAP with it.
type editor struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	seq  int
	seen []dapMessage // that nobody has waited for
}

type dapMessage struct {
	Seq        int
	Type       string
	Command    string
	Event      string
	RequestSeq int `json:"request_seq"`
	Success    bool
	Message    string
	Body       map[string]any
}

func startEditor(t *testing.T, arguments ...string) *editor {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"dap"}, arguments...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &editor{t: t, cmd: cmd, in: in, out: bufio.NewReader(out)}
}

func (e *editor) send(command string, arguments map[string]any) (seq int) {
	e.t.Helper()
	e.seq++
	body, err := json.Marshal(map[string]any{
		"seq": e.seq, "type": "request", "command": command, "arguments": arguments,
	})
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		e.t.Fatal(err)
	}
	return e.seq
}

// wait returns the first message that fits and that wait has not returned before. If none comes within maxEditorWait,
// it kills the adapter, which ends the test with the other messages.
func (e *editor) wait(what string, fits func(dapMessage) bool) dapMessage {
	e.t.Helper()
	defer time.AfterFunc(maxEditorWait, func() { _ = e.cmd.Process.Kill() }).Stop()
	for n, m := range e.seen {
		if fits(m) {
			e.seen = append(e.seen[:n], e.seen[n+1:]...)
			return m
		}
	}
	for {
		header, err := e.out.ReadString('\n')
		if err != nil {
			e.t.Fatalf("waiting for %s: %v; other messages: %+v", what, err, e.seen)
		}
		size, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(header, "Content-Length:")))
		if err != nil {
			e.t.Fatalf("got the header %q, want Content-Length", header)
		}
		body := make([]byte, 2+size) // with the empty line
		if _, err := io.ReadFull(e.out, body); err != nil {
			e.t.Fatal(err)
		}
		var m dapMessage
		if err := json.Unmarshal(body, &m); err != nil {
			e.t.Fatalf("%v: %s", err, body)
		}
		if fits(m) {
			return m
		}
		e.seen = append(e.seen, m)
	}
}

// request sends a request and returns its response.
func (e *editor) request(command string, arguments map[string]any) dapMessage {
	e.t.Helper()
	seq := e.send(command, arguments)
	return e.wait("the response to "+command, func(m dapMessage) bool {
		return m.Type == "response" && m.RequestSeq == seq
	})
}

func (e *editor) event(name string) dapMessage {
	e.t.Helper()
	return e.wait("the event "+name, func(m dapMessage) bool { return m.Type == "event" && m.Event == name })
}

// must sends a request that has to succeed.
func (e *editor) must(command string, arguments map[string]any) dapMessage {
	e.t.Helper()
	m := e.request(command, arguments)
	if !m.Success {
		e.t.Fatalf("%s: got the error %q", command, m.Message)
	}
	return m
}

// variable returns the value of a local variable where the program stands.
func (e *editor) variable(name string) string {
	e.t.Helper()
	stack := e.must("stackTrace", map[string]any{"threadId": 1}).Body["stackFrames"].([]any)
	scopes := e.must("scopes", map[string]any{"frameId": stack[0].(map[string]any)["id"]}).Body["scopes"].([]any)
	variables := e.must("variables", map[string]any{
		"variablesReference": scopes[0].(map[string]any)["variablesReference"],
	}).Body["variables"].([]any)
	for _, v := range variables {
		if v := v.(map[string]any); v["name"] == name {
			return fmt.Sprint(v["value"])
		}
	}
	return fmt.Sprintf("none of %v", variables)
}

// An editor starts the adapter with a file on its disk. The program stops at a breakpoint, runs on, and restarts with
// what the file has then. Its sandbox ends with it.
func TestEditorStartsAFile(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	_, c := start(t, binary(t), dir)
	program := filepath.Join(t.TempDir(), "größe.py")
	write := func(factor int) {
		text := fmt.Sprintf("total = 0\nfor i in range(3):\n    total += %d * i\nprint('total', total)\n", factor)
		if err := os.WriteFile(program, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	e := startEditor(t, "--data-dir", dir)
	if m := e.request("threads", nil); m.Success || !strings.Contains(m.Message, "launch") {
		t.Errorf("threads before launch: got %+v, want an error that names launch", m)
	}
	if m := e.must("initialize", map[string]any{"adapterID": "glasshouse"}); m.Body["supportsStepBack"] != true {
		t.Errorf("capabilities: got %v, want supportsStepBack", m.Body)
	}
	pipe, large := filepath.Join(t.TempDir(), "pipe.py"), filepath.Join(t.TempDir(), "large.py")
	bytes, escaped := filepath.Join(t.TempDir(), "bytes.py"), filepath.Join(t.TempDir(), "escaped.py")
	err := errors.Join(os.WriteFile(escaped, []byte(strings.Repeat("#\x01\n", 50_000)), 0o600), // larger as JSON
		unix.Mkfifo(pipe, 0o600), os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<40),
		os.WriteFile(bytes, []byte{'#', 0xff}, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		pipe: "pipe.py is not a regular file", "/dev/zero": "/dev/zero is not a regular file",
		filepath.Dir(pipe): "is not a regular file", large: "at most 256 KiB",
		bytes: "bytes.py is not UTF-8", escaped: "at most 256 KiB",
	} {
		m := e.request("launch", map[string]any{"program": program})
		if m.Success || !strings.Contains(m.Message, want) {
			t.Errorf("launch of %s: got %+v, want an error with %q", program, m, want)
		}
	}
	for want, arguments := range map[string]map[string]any{
		"command line":   {"program": program, "args": []string{"--fast"}},
		"GLASSHOUSE_KEY": {"program": program, "token": c.key},
		"environment":    {"program": program, "env": map[string]any{"A": "b"}},
		"/session":       {"program": program, "cwd": "/tmp"},
		"no such file":   {"program": program + ".missing"},
		"program":        {},
		"max_memory_mb":  {"program": program, "config": map[string]any{"max_memory_mb": -1}},
	} {
		if m := e.request("launch", arguments); m.Success || !strings.Contains(m.Message, want) {
			t.Errorf("launch with %v: got %+v, want an error with %q", arguments, m, want)
		}
	}

	if got := c.activeSandboxes(t); got != 0.0 {
		t.Errorf("sandboxes after launches that failed: got %v, want 0", got)
	}

	launch := map[string]any{
		"type": "glasshouse", "request": "launch", "program": program, "config": map[string]any{"max_rows": 7},
	}
	e.must("launch", launch)
	e.event("initialized")
	set := e.must("setBreakpoints", map[string]any{
		"source": map[string]any{
			"path": program,
		}, "breakpoints": []any{map[string]any{"line": 3, "condition": "i == 2"}},
	})
	if first := set.Body["breakpoints"].([]any)[0].(map[string]any); first["verified"] != true {
		t.Errorf("the breakpoint: got %v, want it verified", first)
	}
	e.must("configurationDone", nil)
	e.event("stopped")
	if got := e.variable("total"); got != "1" {
		t.Errorf("total at the breakpoint: got %s, want 1", got)
	}
	stack := e.must("stackTrace", map[string]any{"threadId": 1}).Body["stackFrames"].([]any)[0].(map[string]any)
	if path := stack["source"].(map[string]any)["path"]; path != program {
		t.Errorf("the path of the frame: got %v, want %s", path, program)
	}
	if got := c.activeSandboxes(t); got != 1.0 {
		t.Errorf("sandboxes while the program runs: got %v, want 1", got)
	}

	write(10)
	e.must("restart", map[string]any{"arguments": launch})
	e.event("stopped")
	if got := e.variable("total"); got != "10" {
		t.Errorf("total after the restart with a changed file: got %s, want 10", got)
	}
	e.must("continue", map[string]any{"threadId": 1})
	printed := ""
	e.wait("the output", func(m dapMessage) bool { // which may come in several events
		if m.Event == "output" {
			printed += fmt.Sprint(m.Body["output"])
		}
		return strings.Contains(printed, "total 30")
	})
	e.event("terminated")
	e.must("disconnect", nil)
	if err := e.cmd.Wait(); err != nil {
		t.Errorf("the adapter after disconnect: got %v, want exit 0", err)
	}
	if got := c.activeSandboxes(t); got != 0.0 {
		t.Errorf("sandboxes after disconnect: got %v, want 0", got)
	}

	missing := startEditor(t, "--data-dir", dir)
	missing.must("initialize", nil)
	if m := missing.request("launch", map[string]any{"program": program, "sandbox": "of-nobody"}); m.Success ||
		!strings.Contains(m.Message, "no such sandbox") {
		t.Errorf("launch in an unknown sandbox: got %+v, want an error that says so", m)
	}
	missing.must("disconnect", nil)
}

// An editor without a service, or whose connection to it ends, is told why.
func TestEditorIsToldOfALostService(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	program := filepath.Join(t.TempDir(), "loop.py")
	if err := os.WriteFile(program, []byte("while True:\n    pass\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	alone := startEditor(t, "--data-dir", dir)
	if m := alone.request("launch", map[string]any{"program": program}); m.Success ||
		!strings.Contains(m.Message, "glasshouse serve") {
		t.Errorf("launch without a service: got %+v, want an error that says how to start one", m)
	}
	alone.in.Close()
	if err := alone.cmd.Wait(); err != nil {
		t.Errorf("the adapter after its input ended: got %v, want exit 0", err)
	}

	service, _ := start(t, binary(t), dir)
	e := startEditor(t, "--data-dir", dir)
	e.must("initialize", nil)
	e.must("launch", map[string]any{"program": program, "noDebug": true, "stopOnEntry": true})
	e.event("initialized")
	e.must("configurationDone", nil)
	_ = service.Process.Kill()
	e.wait("the reason", func(m dapMessage) bool {
		return m.Event == "output" && strings.Contains(fmt.Sprint(m.Body["output"]), "connection to the service")
	})
	e.event("terminated")
}

func (c *client) activeSandboxes(t *testing.T) any {
	t.Helper()
	statistics, _ := c.must(t, "GET", "/sandbox/statistics", nil)["statistics"].(map[string]any)
	return statistics["active_sandboxes"]
}
