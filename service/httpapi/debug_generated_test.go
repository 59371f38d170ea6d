package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// generatedFrames stops at the uncaught exception of a program and returns the names of its frames, innermost first,
// and the number of the first.
func (c client) generatedFrames(t *testing.T, code string) (d debugClient, names string, first any) {
	t.Helper()
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	a := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions",
		map[string]any{"code": code, "exceptions": []string{"uncaught"}})
	d = debugClient{c, a.get("session_id").(string), a.get("execution_id").(string)}
	if a.get("where.reason") != "exception" {
		t.Fatalf("got %s, want a stop at the exception", a.text)
	}
	frames, _ := d.command(t, "stackTrace", map[string]any{"threadId": 1}).get("stackFrames").([]any)
	for _, f := range frames {
		f := f.(map[string]any)
		names += fmt.Sprint(f["name"], ":", f["line"], " ")
	}
	return d, names, frames[0].(map[string]any)["id"]
}

// An exception raised in code that exec has made stops the program, and the frames of that code can be inspected.
// Frames of libraries are left out.
func TestFramesOfGeneratedCode(t *testing.T) {
	t.Parallel()
	const h = `src = "def h(v):\n    w = v * 2\n    return missing + w\n"` + "\n"
	for _, test := range []struct{ code, want string }{
		{h + "exec(compile(src, '<generated>', 'exec'))\nh(4)", "h:3 <module>:3 "},
		{h + "exec(compile(src, 'module.py', 'exec'))\nh(4)", "h:3 <module>:3 "},
		{h + "names = {}\nexec(src, names)\nnames['h'](4)", "h:3 <module>:4 "},
		{h + "exec(src + 'h(4)')", "h:3 <module>:4 <module>:2 "},
		{"w = 8\neval('w + missing')", "<module>:1 <module>:2 "},
		{h + "exec(src)\ndef f():\n    return sorted([4], key=h)\nf()", "h:3 f:4 <module>:5 "},
		{"import json\nw = 8\njson.loads('{')", "<module>:3 "},
		{h + "def f(v):\n    w = v * 2\n    return missing\nexec('f(4)')", "f:4 <module>:5 "},
	} {
		t.Run(test.want, func(t *testing.T) { testGeneratedFrames(t, test.code, test.want) })
	}
}

func testGeneratedFrames(t *testing.T, code, want string) {
	c := newUser(t, sandbox.RoleAdmin) // may choose a profile that allows exec
	d, names, frame := c.generatedFrames(t, code)
	if names != want {
		t.Errorf("%s: got the frames %s, want %s", code, names, want)
	}
	got := d.command(t, "evaluate", map[string]any{"expression": "w", "frameId": frame, "context": "repl"})
	if got.get("result") != "8" {
		t.Errorf("%s: w is %s, want 8", code, got.text)
	}
	if !strings.HasPrefix(names, "h:3 ") {
		return
	}
	values, _ := d.variables(t, "Locals")
	if fmt.Sprintf("%v %v %d", values["v"], values["w"], len(values)) != "4 8 3" { // and the reference
		t.Errorf("%s: got the locals %v, want v and w", code, values)
	}
}

// The frames are gone when the session leaves the stop.
func TestFramesOfGeneratedCodeAreAtTheStopOnly(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin) // may choose a profile that allows exec
	d, names, frame := c.generatedFrames(t, "x = 1\nexec('y = 2\\n1 / 0')")
	if names != "<module>:2 <module>:2 " {
		t.Errorf("got the frames %s, want two", names)
	}
	page := d.command(t, "stackTrace", map[string]any{"threadId": 1, "startFrame": 1, "levels": 1})
	if frames, _ := page.get("stackFrames").([]any); len(frames) != 1 || page.get("totalFrames") != 2.0 {
		t.Errorf("a page of the stack: got %s, want the second frame of two", page.text)
	}
	d.command(t, "stepBack", nil)
	past := d.command(t, "stackTrace", map[string]any{"threadId": 1})
	if past.get("totalFrames") != 1.0 {
		t.Errorf("at a past step: got %s, want one frame", past.text)
	}
	a := d.do(t, "POST", "/debug/sessions/"+d.session+"/scopes", map[string]any{"frameId": frame})
	if a.status == 200 {
		t.Errorf("the scopes of a frame that is gone: got %s, want an error", a.text)
	}
}
