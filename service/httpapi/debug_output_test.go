package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const printingProgram = `import time
print("before")
print("half", end="")
x = 1
def late():
    time.sleep(0.05)
    print("é", end="")
late()
done = True`

// Printed text arrives before the stop that follows it.
func TestDebugOutputPrecedesTheStopAfterIt(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, a := c.openDebugSession(t, map[string]any{"code": printingProgram, "breakpoints": []any{4, 9}}, nil)
	wantStop(t, a, "breakpoint 4")
	stream := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	until := func(kind string) (printed string) {
		t.Helper()
		for {
			e, ok := stream.next()
			if !ok {
				t.Fatalf("the stream ended before %s; it printed %q", kind, printed)
			}
			if e.name == "output" && e.data["category"] == "stdout" {
				printed += e.data["output"].(string)
			}
			if e.name == kind {
				return printed
			}
		}
	}
	if got := until("stopped"); got != "before\nhalf" {
		t.Errorf("before the first stop: got %q, want both lines", got)
	}
	d.command(t, "evaluate", map[string]any{"expression": "print('asked', flush=True)", "context": "repl"})
	d.command(t, "continue", nil)
	if got := until("stopped"); got != "asked\né" {
		t.Errorf("before the second stop: got %q, want the output since the first", got)
	}
	d.command(t, "continue", nil)
	if got := until("terminated"); got != "" {
		t.Errorf("at the end: got %q, want no output again", got)
	}
	if e := c.ok(t, "GET", "/executions/"+d.execution, nil); e.get("stdout") != "before\nhalfasked\né" {
		t.Errorf("the execution: got %s, want the whole output", e.text)
	}
}

// Each of many printed lines arrives before the stop that follows it.
func TestDebugOutputAndStopsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	const iterations = 40
	d, _ := c.openDebugSession(t, map[string]any{"code": fmt.Sprintf("for i in range(%d):\n    print(i)\n    x = i",
		iterations), "breakpoints": []any{3}}, nil)
	for range iterations {
		d.command(t, "continue", nil)
	}
	stream := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	printed, stops := "", 0
	for {
		e, ok := stream.next()
		if !ok || e.name == "terminated" {
			break
		}
		if e.name == "output" {
			printed += e.data["output"].(string)
		}
		if e.name == "stopped" {
			if want := fmt.Sprintf("%d\n", stops); printed != want {
				t.Errorf("before stop %d: got %q, want its own line", stops, printed)
			}
			printed = ""
			stops++
		}
	}
	if stops != iterations {
		t.Errorf("got %d stops, want one for each iteration", stops)
	}
}

// Output beyond max_output_size is dropped, and one event has a note about it.
func TestDebugOutputIsBounded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": "for i in range(300):\n    print('x' * 99)\n    y = i"},
		map[string]any{"max_output_size": 10_000})
	stream := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	size, notes := 0, ""
	for {
		e, ok := stream.next()
		if !ok || e.name == "terminated" {
			break
		}
		if e.name == "output" {
			if text := e.data["output"].(string); e.data["category"] == "stdout" {
				size += len(text)
			} else {
				notes += text
			}
		}
	}
	if size != 10_000 || strings.Count(notes, "max_output_size") != 1 {
		t.Errorf("got %d bytes and the note %q, want 10000 and one note", size, notes)
	}
}

func TestDAPClientGetsOutputBeforeTheStop(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	id := c.create(t, nil)
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": printingProgram})
	e.mustRequest("setBreakpoints", map[string]any{"source": map[string]any{},
		"breakpoints": []any{map[string]any{"line": 4}}})
	e.mustRequest("configurationDone", nil)
	for printed := ""; printed != "before\nhalf"; { // in any number of events
		printed += e.waitEvent("output")["output"].(string)
	}
	if body := e.waitEvent("stopped"); body["reason"] != "breakpoint" {
		t.Errorf("got the stop %v, want a breakpoint", body)
	}
	e.mustRequest("disconnect", nil)
}
