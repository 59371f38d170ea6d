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

// setVariable sets the parts of an object as well as variables: attributes, entries, items, also those of a local
// variable and those beyond a page.
func TestSetVariableSetsParts(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	code := `class P:
    pass
def f():
    p = P()
    p.price, entries, items, pair = 1, {'kk': 1, 2: [3]}, list(range(5000)), (1, 2)
    print(p)
f()`
	d, _ := c.openDebugSession(t, map[string]any{"code": code, "breakpoints": []int{6}}, nil)
	_, references := d.variables(t, "Locals")
	stack, _ := d.command(t, "stackTrace", map[string]any{"threadId": 1}).get("stackFrames").([]any)
	frame := stack[0].(map[string]any)["id"]
	for _, part := range []struct{ variable, name, value, expression, want string }{
		{"p", "price", "7 + 1", "p.price", "8"},
		{"entries", "'kk'", "p.price", "entries['kk']", "8"},
		{"items", "1", "'x'", "items[1]", "'x'"},
		{"items", "4321", "9", "items[4321]", "9"},
	} {
		set := d.command(t, "setVariable", map[string]any{
			"variablesReference": references[part.variable], "name": part.name, "value": part.value,
		})
		got := d.command(t, "evaluate", map[string]any{"expression": part.expression, "frameId": frame})
		if set.get("value") != part.want || got.get("result") != part.want {
			t.Errorf("%s = %s: got %s and then %s, want %s", part.expression, part.value, set.text, got.text, part.want)
		}
		_, references = d.variables(t, "Locals")
	}
	for part, want := range map[[2]string]string{
		{"pair", "0"}: "TypeError", {"p", "none"}: "no part", {"items", "5000"}: "no part",
	} {
		body := fmt.Sprintf(`{"variablesReference":%v,"name":"%s","value":"1"}`, references[part[0]], part[1])
		wantProblem(t, d.do(t, "POST", "/debug/sessions/"+d.session+"/setVariable", body),
			http.StatusUnprocessableEntity, "invalid-input", want)
	}
}
