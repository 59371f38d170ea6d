package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// If a program takes the recorder away, its breakpoints become unverified at once, and the recording has the reason.
func TestProgramThatTakesTheRecorderAway(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	const reason = "the program called sys.settrace; later steps are not recorded"
	a := c.ok(t, "POST", "/sandbox/"+c.create(t, nil)+"/debug/sessions?wait=0", map[string]any{
		"breakpoints": []any{5}, "code": "import threading\nx = 1\nthreading._sys.settrace(None)\ny = 2\nz = 3\n" +
			"while True: pass"})
	d := debugClient{c, a.get("session_id").(string), a.get("execution_id").(string)}
	stream := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	e, ok := stream.next()
	for ok && e.name != "breakpoint" {
		e, ok = stream.next()
	}
	breakpoint, _ := e.data["breakpoint"].(map[string]any)
	message, _ := breakpoint["message"].(string)
	if breakpoint["verified"] != false || breakpoint["line"] != 5.0 || !strings.Contains(message, reason) {
		t.Errorf("got the event %v, want the unverified breakpoint with the reason: %s", e.data, a.text)
	}
	a = d.do(t, "POST", "/debug/sessions/"+d.session+"/pause", map[string]any{})
	wantProblem(t, a, 422, "invalid-input", "cannot stop", reason)
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
	text := d.ok(t, "GET", "/executions/"+d.execution+"/explain", nil).get("explanation").(string)
	if !strings.Contains(text, "Not recorded: after step 3: "+reason) {
		t.Errorf("got %s, want the reason in it", text)
	}
	steps := d.ok(t, "GET", "/executions/"+d.execution+"/steps", nil).get("steps").([]any)
	last := steps[len(steps)-1].(map[string]any)
	if result := last["result"].(map[string]any); result["status"] != "lost" || result["error"] != reason {
		t.Errorf("got the last step %v, want it to tell the gap", last)
	}
}

// Steps and breakpoints go on after a RecursionError that the program has caught.
func TestRecordingGoesOnAfterARecursionError(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, a := c.openDebugSession(t, map[string]any{"breakpoints": []any{8}, "code": "def f(n):\n    return f(n + 1)\n" +
		"try:\n    f(0)\nexcept RecursionError:\n    deep = True\nx = [deep]\ny = x"}, nil)
	wantStop(t, a, "breakpoint 8")
	if got := a.get("where.variables.x"); got != "[True]" {
		t.Errorf("got x = %v, want [True]: %s", got, a.text)
	}
	wantStop(t, d.command(t, "stepBack", nil), "step 7")
	d.command(t, "continue", nil)
}
