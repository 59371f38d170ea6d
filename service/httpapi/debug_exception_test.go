package httpapi_test

import (
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const raisingProgram = `class Rude(Exception):
    def __str__(self):
        raise RuntimeError("no")
class Loud(Exception):
    def __str__(self):
        touched.append(1)
        return "mine"
touched = []
def fail(error):
    raise error
for error in (ValueError("bad"), ValueError(), ValueError("a\nb"), KeyError("k"), OSError(2, "gone"),
              ValueError("x" * 100000), Rude("r"), Loud("l", [1]), ValueError(10 ** 5000)):
    try:
        fail(error)
    except Exception:
        pass
if touched:
    raise SystemExit("code of the program ran")
`

// exceptionInfo has the type, the message and the traceback of any exception, and runs no code of the program for them.
func TestExceptionInfoHasTheMessage(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": raisingProgram, "exceptions": []string{"raised"}}, nil)
	info := func() (kind, message, trace string) {
		t.Helper()
		got := d.command(t, "exceptionInfo", map[string]any{"threadId": 1})
		kind, _ = got.get("exceptionId").(string)
		message, _ = got.get("details.message").(string)
		trace, _ = got.get("details.stackTrace").(string)
		if description, _ := got.get("description").(string); description != message ||
			got.get("details.typeName") != kind {
			t.Errorf("got %.500s, want the type and the message in both places", got.text)
		}
		return kind, message, trace
	}
	var first any
	for i, want := range []struct{ kind, message string }{
		{"ValueError", "bad"}, {"ValueError", ""}, {"ValueError", "a\nb"}, {"KeyError", "'k'"},
		{"FileNotFoundError", "[Errno 2] gone"}, {"ValueError", strings.Repeat("x", 5000)}, {"Rude", "r"},
		{"Loud", "'l', [1]"}, {"ValueError", "1" + strings.Repeat("0", 4000)},
	} {
		wantStop(t, a, "exception 10")
		kind, message, trace := info()
		isRight := message == want.message
		if len(want.message) > 1000 {
			isRight = strings.HasPrefix(message, want.message) && len(message) < 20_000
		}
		if kind != want.kind || !isRight {
			t.Errorf("exception %d: got %s: %.200q, want %s: %.200q", i, kind, message, want.kind, want.message)
		}
		end := want.kind
		if message != "" {
			end += ": " + message
		}
		const frames = "Traceback (most recent call last):\n  line 14, in <module>\n    fail(error)\n" +
			"  line 10, in fail\n    raise error\n"
		if trace != frames+end {
			t.Errorf("exception %d: got the traceback %.500q, want %.500q", i, trace, frames+end)
		}
		if i == 0 {
			first = a.get("where.step")
		}
		a = d.command(t, "continue", nil)
	}
	if a.get("result.status") != "completed" {
		t.Errorf("the end: got %.500s, want completed", a.text)
	}
	d.command(t, "goto", map[string]any{"step": first})
	if kind, message, trace := info(); kind != "ValueError" || message != "bad" || !strings.HasSuffix(trace, ": bad") {
		t.Errorf("a past exception: got %s: %s\n%s", kind, message, trace)
	}
}
