package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// An editor's user learns why a program ended: the debug console has what Python prints, with the editor's file, then
// come the exit code and the end. A program that cannot begin ends in the same way, and stops nowhere.
func TestEditorShowsWhyTheProgramEnded(t *testing.T) {
	t.Parallel()
	const file = `  File "/home/ada/double.py", line `
	for name, test := range map[string]struct {
		code   string
		exit   float64
		source float64 // the line that the output links to
		want   []string
	}{
		"completed": {"print('a')", 0, 0, nil},
		"no line":   {"# nothing", 0, 0, nil},
		"uncaught": {"def f():\n    1 / 0\nf()", 1, 2,
			[]string{file + "2, in f\n", "    1 / 0\n", "ZeroDivisionError: division by zero\n"}},
		"chain": {"try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['k']", 1, 4,
			[]string{"ZeroDivisionError: division by zero\n\nDuring handling", "KeyError: 'k'"}},
		"syntax error":   {"x = 1\ndef f(:\n    pass", 1, 2, []string{file + "2\n", "SyntaxError: "}},
		"null byte":      {"x = 1\x00", 1, 1, []string{"SyntaxError: "}},
		"refused import": {"x = 1\nimport ctypes", 1, 2, []string{file + "2", "ctypes"}},
		"exit code":      {"raise SystemExit(3)", 3, 0, []string{"exit code 3\n"}},
		"exit message":   {"raise SystemExit('no data')", 1, 0, []string{"no data\n", "exit code 1\n"}},
		"exit zero":      {"raise SystemExit(0)", 0, 0, nil},
		"time limit":     {"while True:\n    pass", 1, 0, []string{"max_execution_time"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newUser(t, sandbox.RoleDeveloper) // a user may have few sandboxes at once
			id := c.create(t, map[string]any{"max_execution_time": 2})
			e := dapConnect(t)
			e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
			e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": test.code,
				"path": "/home/ada/double.py"})
			e.waitEvent("initialized")
			e.configure()
			text, source := "", any(nil)
			for {
				m := e.nextEvent()
				body, _ := m["body"].(map[string]any)
				if m["event"] == "output" && body["category"] != "stdout" {
					text += body["output"].(string)
					if from, ok := body["source"].(map[string]any); ok {
						source = body["line"]
						e.wantEqual("the file", from["path"], "/home/ada/double.py")
						e.wantEqual("its name", from["name"], "double.py")
					}
				}
				if m["event"] == "stopped" {
					t.Errorf("got the stop %v, want none", body)
				}
				if m["event"] == "exited" {
					e.wantEqual("the exit code", body["exitCode"], test.exit)
					break
				}
			}
			e.waitEvent("terminated")
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q in it", text, want)
				}
			}
			if len(test.want) == 0 && text != "" {
				t.Errorf("got %q, want nothing", text)
			}
			if test.source > 0 {
				e.wantEqual("the line of the output", source, test.source)
			}
		})
	}
}

// nextEvent returns the next event.
func (e *dapClient) nextEvent() map[string]any {
	e.t.Helper()
	for {
		if len(e.events) > 0 {
			m := e.events[0]
			e.events = e.events[1:]
			return m
		}
		if m := e.read(); m["type"] == "event" {
			return m
		}
	}
}

// The filter uncaught stops where the exception was raised that ended the program, whatever except clauses are around
// it. The recording of the run stops there, too, in both directions.
func TestUncaughtIsWhatEndedTheProgram(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	for code, want := range map[string]string{
		"x = 1\ntry:\n    int('a')\nexcept KeyError:\n    pass":                                          "exception 3",
		"x = 1\ntry:\n    int('a')\nexcept ValueError:\n    raise":                                       "exception 3",
		"def f():\n    1 / 0\ndef g():\n    try:\n        f()\n    finally:\n        x = 1\ng()\ny = 1":  "exception 2",
		"x = 1\nprint(x)\nraise SystemExit(2)":                                                           "exception 3",
		"x = 1\nprint(x)\nraise SystemExit(0)":                                                           "",
		"x = 1\ntry:\n    int('a')\nexcept ValueError:\n    pass\ny = 1":                                 "",
		"class C:\n    def __getattr__(self, n):\n        raise AttributeError(n)\ngetattr(C(), 'y', 3)": "",
	} {
		d, a := c.openDebugSession(t, map[string]any{"code": code, "exceptions": []string{"uncaught"}}, nil)
		sandboxID := a.get("sandbox_id").(string)
		if want != "" {
			wantStop(t, a, want)
			info := d.command(t, "exceptionInfo", map[string]any{"threadId": 1})
			if info.get("breakMode") != "unhandled" {
				t.Errorf("%q: got %s, want an unhandled exception", code, info.text)
			}
			a = d.command(t, "continue", nil)
		}
		if a.get("where.state") != "ended" {
			t.Errorf("%q: got %.300s, want the end", code, a.text)
		}
		past := c.ok(t, "POST", "/executions/"+d.execution+"/debug/sessions", map[string]any{})
		d.session = past.get("session_id").(string)
		d.command(t, "setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
		end := want
		if want == "" {
			end = "end"
		}
		for _, move := range []string{"continue", "reverseContinue"} {
			a := d.command(t, move, nil)
			if want == "" {
				if reason, _ := a.get("where.reason").(string); reason == "exception" {
					t.Errorf("%q: %s got %.300s, want no exception", code, move, a.text)
				}
				continue
			}
			if move == "reverseContinue" {
				d.command(t, "setExceptionBreakpoints", map[string]any{"filters": []string{}})
				d.command(t, "continue", nil)
				d.command(t, "setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
				a = d.command(t, move, nil)
			}
			wantStop(t, a, end)
		}
		c.ok(t, "DELETE", "/sandbox/"+sandboxID, nil)
	}
}
