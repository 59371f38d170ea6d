package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const conditionProgram = "names = ['ann', 'bob', 'cy', 'bea']\n" +
	"for s in names:\n    t = len(s)\n    u = s\nprint('end')\n"

// reverseContinue and continue in the past stop where the program stops when it runs, whatever the condition is. Where
// the program has not evaluated a condition that only Python can evaluate, they stop and say so.
func TestConditionsHoldInThePastAsInTheProgram(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	for condition, want := range map[string]string{
		"s.startswith('b')":        "bob bea",
		"s[0] == 'b'":              "bob bea",
		"f'{s}' == 'cy'":           "cy",
		"s[:2] in ('an', 'be')":    "ann bea",
		"s == 'cy'":                "cy",
		"any(c == 'y' for c in s)": "cy",
		"s.upper() == 'X'":         "",
	} {
		points := []any{map[string]any{"line": 4, "condition": condition}, 5}
		d, a := c.openDebugSession(t, map[string]any{"code": conditionProgram, "breakpoints": points}, nil)
		sandboxID := a.get("sandbox_id").(string)
		stops := func(move, until string) (seen []string) {
			for range 10 {
				if fmt.Sprintf("%v %v", a.get("where.reason"), a.get("where.line_number")) == until {
					return seen
				}
				if name, _ := a.get("where.variables.s").(string); a.get("where.line_number") == 4.0 {
					seen = append(seen, strings.Trim(name, "'"))
					if text, _ := a.get("where.description").(string); text != "" {
						seen[len(seen)-1] += "?"
					}
				}
				a = d.command(t, move, nil)
			}
			t.Fatalf("%s: %s came to no end: %s", condition, move, a.text)
			return nil
		}
		forward := strings.Join(stops("continue", "breakpoint 5"), " ")
		a = d.command(t, "reverseContinue", nil)
		back := stops("reverseContinue", "entry 1")
		for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
			back[i], back[j] = back[j], back[i]
		}
		if forward != want || strings.Join(back, " ") != want {
			t.Errorf("%s: got the stops %q and back %q, want %q", condition, forward, back, want)
		}
		if strings.ContainsAny(condition, "([{") { // set now, so the program has not evaluated it at these steps
			d.command(t, "continue", nil)
			d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{
				map[string]any{"line": 4, "condition": condition + " or False"}, map[string]any{"line": 5}}})
			d.command(t, "goto", map[string]any{"step": 1})
			a = d.command(t, "continue", nil)
			if got := strings.Join(stops("continue", "breakpoint 5"), " "); got != "ann? bob? cy? bea?" {
				t.Errorf("%s, set later: got the stops %q, want each and that it is uncertain", condition, got)
			}
		}
		c.ok(t, "DELETE", "/sandbox/"+sandboxID, nil)
	}
}

// A breakpoint in a line without code moves to the line before that has some, and one whose condition is not an
// expression is not verified: the answer says so, also to a client that set it before the program began.
func TestBreakpointsAreMovedOrRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	code := "def f(x):\n    '''doc'''\n    global G\n    if x:\n        a = [\n            1,\n        ]\n    else:\n" +
		"        a = []\n    return a\nf(1)\nf(0)\n"
	want := []string{"1 true ", "1 true ", "1 true ", "4 true ", "6 true ", "6 true ", "9 true ", "40 false ",
		"12 false the condition is not an expression: SyntaxError: "}
	check := func(when string, list any) {
		t.Helper()
		for i, each := range list.([]any) {
			b := each.(map[string]any)
			message, _ := b["message"].(string)
			got := fmt.Sprint(b["line"], " ", b["verified"], " ", message)
			if !strings.HasPrefix(got, want[i]) || b["verified"] == true && message != "" {
				t.Errorf("%s: breakpoint %d: got %q, want %q", when, i, got, want[i])
			}
		}
		if got := len(list.([]any)); got != len(want) {
			t.Errorf("%s: got %d breakpoints, want %d", when, got, len(want))
		}
	}
	points := []any{1, 2, 3, 4, 7, 8, 9, 40, map[string]any{"line": 12, "condition": "x >"}}
	d, a := c.openDebugSession(t, map[string]any{"code": code, "breakpoints": points}, nil)
	check("before the program", a.get("breakpoints"))
	objects := []any{}
	for _, p := range points {
		if line, ok := p.(int); ok {
			p = map[string]any{"line": line}
		}
		objects = append(objects, p)
	}
	hit := ""
	for a.get("where.state") != "ended" {
		hit += fmt.Sprint(a.get("where.line_number"), " ")
		set := d.command(t, "setBreakpoints", map[string]any{"breakpoints": objects})
		check("while it is stopped", set.get("breakpoints"))
		a = d.command(t, "continue", nil)
	}
	if want := "1 4 6 12 4 9 "; hit != want {
		t.Errorf("got stops in the lines %s, want %s", hit, want)
	}
	check("in a recording", c.pastBreakpoints(t, d.execution, objects))
}

// pastBreakpoints sets breakpoints in the recording of an execution.
func (c client) pastBreakpoints(t *testing.T, execution string, list []any) any {
	t.Helper()
	past := c.ok(t, "POST", "/executions/"+execution+"/debug/sessions", map[string]any{})
	d := debugClient{c, past.get("session_id").(string), execution}
	list[len(list)-1] = map[string]any{"line": 12}
	answer := d.command(t, "setBreakpoints", map[string]any{"breakpoints": list}).get("breakpoints").([]any)
	answer[len(answer)-1] = map[string]any{"line": 12, "verified": false,
		"message": "the condition is not an expression: SyntaxError: "} // a recording has no Python that could tell
	return answer
}
