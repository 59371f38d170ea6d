package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const ownTextsProgram = `class X:
    def __init__(self, v):
        self.__v = v
        self.n = 1
    def __repr__(self):
        return f"own-{self.__v}"
class Endless:
    def __repr__(self):
        while True:
            pass
class Half:
    def __repr__(self):
        return 1 / 0
x, half = X(1), Half()
xs = [X(2), {"k": X(3)}]
long = {"hold": ["x" * 3000]}
print("stop")
endless = Endless()
print("stop")
`

// Where the program is stopped, variables and evaluate have the texts that the program's classes make. A recording has
// the contents.
func TestStoppedProgramShowsItsOwnTexts(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": ownTextsProgram, "breakpoints": []any{17, 19}}, nil)
	wantStop(t, a, "breakpoint 17")
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	values, refs := d.variables(t, "Globals")
	want("x", values["x"].(string), "own-1")
	want("half", values["half"].(string), "<Half>")
	want("xs", values["xs"].(string), "[own-2, {'k': own-3}]")
	page := d.command(t, "variables", map[string]any{"variablesReference": refs["xs"]})
	items, _ := page.get("variables").([]any)
	if len(items) != 2 {
		t.Fatalf("the parts of xs: got %s, want two", page.text)
	}
	want("xs[0]", items[0].(map[string]any)["value"].(string), "own-2")
	want("xs[1]", items[1].(map[string]any)["value"].(string), "{'k': own-3}")
	text := func(expression, context string) string {
		t.Helper()
		answer := d.command(t, "evaluate", map[string]any{"expression": expression, "context": context})
		text, _ := answer.get("result").(string)
		return text
	}
	want("evaluate x", text("x", "watch"), "own-1")
	if got := text("x", "hover"); strings.Contains(got, "own") {
		t.Errorf("a hover: got %q, want it without code of the program", got)
	}
	if got := text("long", "clipboard"); got != "{'hold': ['"+strings.Repeat("x", 3000)+"']}" {
		t.Errorf("a copied value: got %d characters, want all", len(got))
	}
	if got := text("long", "watch"); len(got) > 1100 {
		t.Errorf("a watched value: got %d characters, want at most 1100", len(got))
	}

	wantStop(t, d.command(t, "continue", nil), "breakpoint 19")
	values, _ = d.variables(t, "Globals")
	want("endless", values["endless"].(string), "<Endless>")
	values, _ = d.variables(t, "Globals") // the endless one is not called again
	want("x next to an endless one", values["x"].(string), "own-1")
	want("evaluate endless", text("endless", "watch"), "<Endless>")

	d.command(t, "stepBack", nil)
	values, _ = d.variables(t, "Globals")
	want("x in the recording", values["x"].(string), "<X _X__v=1, n=1>")
}

// A private name means in a hover, a console and a condition what it means in the method, live and in a recording.
func TestPrivateNamesInTheDebugger(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": ownTextsProgram + "X(9)\nprint(1)\n", "breakpoints": []any{
		map[string]any{"line": 4, "condition": "self.__v == 9"},
	}}, nil)
	wantStop(t, a, "breakpoint 4")
	check := func(contexts ...string) {
		t.Helper()
		for _, context := range contexts {
			answer := d.command(t, "evaluate", map[string]any{"expression": "self.__v", "context": context,
				"frameId": a.get("where.frame")})
			if got, _ := answer.get("result").(string); got != "9" {
				t.Errorf("self.__v in the context %s: got %s, want 9", context, answer.text)
			}
		}
	}
	check("repl", "watch", "hover", "clipboard")
	d.command(t, "continue", nil)
	wantStop(t, d.command(t, "reverseContinue", nil), "breakpoint 4")
	check("watch", "hover")
}

// Threads have the names that the program gives them.
func TestThreadsHaveTheirNames(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	code := "import threading\ndef work():\n    x = 1\n" +
		"t = threading.Thread(target=work, name='loader')\nt.start()\nt.join()"
	d, a := c.openDebugSession(t, map[string]any{"code": code, "breakpoints": []any{3}}, nil)
	wantStop(t, a, "breakpoint 3")
	names := ""
	threads, _ := d.command(t, "threads", nil).get("threads").([]any)
	for _, thread := range threads {
		names += thread.(map[string]any)["name"].(string) + " "
	}
	if names != "MainThread loader " {
		t.Errorf("got the threads %q, want MainThread and loader", names)
	}
}
