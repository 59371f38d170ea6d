package httpapi_test

import (
	"fmt"
	"net/http"
	"testing"

	"glasshouse/sandbox"
)

// exceptionInfo has the exceptions that led to one: each inner one led to the one around it.
func TestExceptionInfoHasTheCauses(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	for code, want := range map[string]string{
		"try:\n    {}['key']\nexcept KeyError as e:\n    raise RuntimeError('config') from e": "KeyError 'key'",
		"try:\n    {}['key']\nexcept KeyError:\n    raise RuntimeError('config')":             "KeyError 'key'",
		"try:\n    {}['key']\nexcept KeyError:\n    raise RuntimeError('config') from None":   "<nil> <nil>",
		"raise RuntimeError('config')": "<nil> <nil>",
		"class E(Exception):\n    def __str__(self): return 1 / 0\nraise RuntimeError from E('inner')": "E inner",
	} {
		d, a := c.openDebugSession(t, map[string]any{"code": code, "exceptions": []string{"uncaught"}}, nil)
		info := d.command(t, "exceptionInfo", map[string]any{"threadId": 1})
		inner := map[string]any{}
		if list, _ := info.get("details.innerException").([]any); len(list) > 0 {
			inner = list[0].(map[string]any)
		}
		if got := fmt.Sprint(inner["typeName"], " ", inner["message"]); got != want {
			t.Errorf("%q: got %s, want %s", code, got, want)
		}
		c.ok(t, "DELETE", "/sandbox/"+a.get("sandbox_id").(string), nil)
	}
}

// The history of a local variable needs no frame if only one call has it. Otherwise the answer asks for one.
func TestHistoryOfALocalVariable(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	changes := func(code, name string) string {
		execution := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": code, "record": true})
		return fmt.Sprintf("/executions/%v/variables/%s/changes?from=1", execution.get("execution_id"), name)
	}
	const once = "def f():\n    d = 1\n    d = 2\n    return d\n"
	for _, test := range []struct {
		code string
		want int
	}{{once + "f()", 2}, {once + "x = 1", 0}, {once + "d = 1\nf()", 1}} {
		a := c.ok(t, "GET", changes(test.code, "d"), nil)
		if got := len(a.get("changes").([]any)); got != test.want {
			t.Errorf("%q: got %d changes, want %d: %s", test.code, got, test.want, a.text)
		}
		c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "globals().pop('d', None)"})
	}
	wantProblem(t, c.do(t, "GET", changes(once+"f()\nf()", "d"), nil), http.StatusUnprocessableEntity,
		"invalid-input", "several calls")
}
