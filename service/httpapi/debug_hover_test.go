package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const hoverProgram = `touched = []
class Order:
    @property
    def total(self):
        touched.append(1)
        return 3
    def __repr__(self):
        touched.append(2)
        return "mine"
def half(n):
    part = n // 2
    return part
order = Order()
amount = 7
share = half(amount)
for i in range(4):
    amount += i
done = share
`

// A hover shows the value and where it comes from, live and in a recording, and runs no code of the program.
func TestHoverSaysWhereAValueComesFrom(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": hoverProgram, "breakpoints": []any{12, 18}}, nil)
	wantStop(t, a, "breakpoint 12")
	hover := func(expression string, frame any) string {
		t.Helper()
		text, _ := d.command(t, "evaluate", map[string]any{"expression": expression, "context": "hover",
			"frameId": frame}).get("result").(string)
		return text
	}
	want := func(expression string, frame any, want string) {
		t.Helper()
		if got := hover(expression, frame); got != want {
			t.Errorf("a hover on %s: got %q, want %q", expression, got, want)
		}
	}
	frames := d.command(t, "stackTrace", map[string]any{"threadId": 1}).get("stackFrames").([]any)
	inner, outer := frames[0].(map[string]any)["id"], frames[1].(map[string]any)["id"]
	half := "3\nline 11: part = n // 2\ncheck line 11: n // 2 drops the fraction: 7 // 2 leaves a rest of 1"
	want("part", inner, half)
	want("n", inner, "7\nan argument of the call in line 15: share = half(amount)\nread amount = 7")
	want("amount", outer, "7\nline 14: amount = 7")
	want("part + 1", inner, "4")

	wantStop(t, d.command(t, "continue", nil), "breakpoint 18")
	live := func() {
		t.Helper()
		want("amount", 0, "13\nline 17: amount += i (ran 4 times)\nread i = 3")
		made := "3\nline 15: share = half(amount)\ncheck line 11: n // 2"
		if got := hover("share", 0); !strings.HasPrefix(got, made) {
			t.Errorf("a hover on a result: got %q, want the lines that made it", got)
		}
		made = "\nline 13: order = Order()"
		if got := hover("order", 0); !strings.Contains(got, made) || strings.Contains(got, "mine") {
			t.Errorf("a hover on an object: got %q, want it without its __repr__", got)
		}
		if a := d.do(t, "POST", "/debug/sessions/"+d.session+"/evaluate",
			map[string]any{"expression": "order.total", "context": "hover"}); a.status != 422 {
			t.Errorf("a hover on a property: got %s, want a refusal", a.text)
		}
		want("touched", 0, "[]\nline 1: touched = []")
	}
	live()
	d.command(t, "continue", nil)
	past := c.ok(t, "POST", "/executions/"+d.execution+"/debug/sessions", nil)
	d = debugClient{c, past.get("session_id").(string), d.execution}
	d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 18}}})
	wantStop(t, d.command(t, "continue", nil), "breakpoint 18")
	live()
}
