package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

const editedProgram = `def rate(net):
    tax = net * 2
    return tax
total = 10
items = [1]
total = total + rate(total)
count = len(items)
done = total + count`

// edits returns a list of edits as "step code: changes by user".
func edits(list any) (out []string) {
	found, _ := list.([]any)
	for _, each := range found {
		e := each.(map[string]any)
		changes := ""
		for _, c := range e["changes"].([]any) {
			c := c.(map[string]any)
			changes += fmt.Sprintf(" %v=%v", c["name"], c["value"])
		}
		out = append(out, fmt.Sprintf("%v %v:%s by %v", e["step"], e["code"], changes, e["user_id"]))
	}
	return out
}

// A value that a person sets is seen at once everywhere, and the history says that the code did not make it.
func TestValueSetByAPersonIsRecordedAsSuch(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": editedProgram, "breakpoints": []any{2, 7}}, nil)
	wantStop(t, a, "breakpoint 2")
	user, _ := c.ok(t, "GET", "/executions/"+d.execution, nil).get("user_id").(string)
	step := a.get("where.step")
	values, _ := d.variables(t, "Locals")
	d.command(t, "setVariable", map[string]any{"variablesReference": values[""], "name": "net", "value": "net + 40"})

	want := fmt.Sprintf("%v net = net + 40: net=50 by %s", step, user)
	session := "/debug/sessions/" + d.session
	wantEdit := func(what string, a answer, path string, want ...string) {
		t.Helper()
		if got := edits(a.get(path)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got the edits %q, want %q: %.600s", what, got, want, a.text)
		}
	}
	wantValue := func(what string) {
		t.Helper()
		where := c.ok(t, "GET", session, nil)
		if where.get("where.variables.net") != "50" {
			t.Errorf("%s: got where %s, want net = 50", what, where.text)
		}
		wantEdit(what, where, "where.edits", want)
		if values, _ := d.variables(t, "Locals"); values["net"] != "50" {
			t.Errorf("%s: got the variables %v, want net = 50", what, values)
		}
		for _, how := range []string{"watch", "hover", "repl"} {
			stack := d.command(t, "stackTrace", map[string]any{"threadId": 1})
			frame := stack.get("stackFrames").([]any)[0].(map[string]any)["id"]
			got, _ := d.command(t, "evaluate", map[string]any{"expression": "net", "context": how, "frameId": frame}).
				get("result").(string)
			if got, _, _ = strings.Cut(got, "\n"); got != "50" {
				t.Errorf("%s: evaluate (%s) got %s, want 50", what, how, got)
			}
		}
	}
	wantValue("at the live position")
	d.command(t, "stepBack", nil)
	wantStop(t, d.command(t, "next", nil), "breakpoint 2")
	wantValue("back and forward again")
	// The program itself uses the value, and the step that it was set at keeps it.
	wantStop(t, d.command(t, "next", nil), "step 3")
	if got := c.ok(t, "GET", session, nil); got.get("where.variables.tax") != "100" ||
		fmt.Sprint(got.get("where.changed")) != "[tax]" {
		t.Errorf("got %s, want tax = 100, which alone the line changed", got.text)
	}
	wantStop(t, d.command(t, "stepBack", nil), "breakpoint 2")
	wantValue("at the past step")

	// Code in the console that changes a variable in place, or sets one, is an edit too. A question is none.
	wantStop(t, d.command(t, "next", nil), "step 3")
	wantStop(t, d.command(t, "continue", nil), "breakpoint 7")
	step = c.ok(t, "GET", session, nil).get("where.step")
	for _, code := range []string{"items.append(5)", "len(items)", "extra = 1"} {
		d.command(t, "evaluate", map[string]any{"expression": code, "context": "repl"})
	}
	wants := []string{want, fmt.Sprintf("%v items.append(5): items=[1, 5] by %s", step, user),
		fmt.Sprintf("%v extra = 1: extra=1 by %s", step, user)}
	if got := c.ok(t, "GET", session, nil); got.get("where.variables.items") != "[1, 5]" {
		t.Errorf("after a change in place: got %s, want items = [1, 5]", got.text)
	}
	execution := "/executions/" + d.execution
	wantEdit("the running execution", c.ok(t, "GET", execution, nil), "edits", wants...)
	if a := d.command(t, "continue", nil); a.get("where.state") != "ended" {
		t.Fatalf("got %s, want the end", a.text)
	}

	for name, reader := range map[string]client{
		"the admin": admin, "the user after a restart": {secret: c.secret, server: smallServerURL},
	} {
		wantEdit(name, reader.finished(t, d.execution), "edits", wants...)
		steps := reader.ok(t, "GET", execution+"/steps", nil)
		var edited []string
		for _, step := range steps.get("steps").([]any) {
			edited = append(edited, edits(step.(map[string]any)["edits"])...)
		}
		if fmt.Sprint(edited) != fmt.Sprint(wants) {
			t.Errorf("%s, steps: got %q, want %q", name, edited, wants)
		}
		why := reader.ok(t, "GET", execution+"/why?name=done", nil)
		text, _ := why.get("text").(string)
		for _, part := range []string{"net did not come from the code: " + user, "net = net + 40", "items = [1, 5]"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s, why: got %s, want it to say %q", name, text, part)
			}
		}
		explained, _ := reader.ok(t, "GET", execution+"/explain", nil).get("explanation").(string)
		for _, part := range []string{"by a person in the debugger", "net = net + 40   # by " + user, "# net = 10"} {
			if part == "# net = 10" == strings.Contains(explained, part) {
				t.Errorf("%s, explain: got %s, looked for %q", name, explained, part)
			}
		}
		view := reader.ok(t, "GET", fmt.Sprintf("%s/steps/%v", execution, step), nil)
		wantEdit(name+", one step", view, "edits", wants[1:]...)
		changes := reader.ok(t, "GET", execution+"/variables/items/changes", nil)
		var by []any
		for _, change := range changes.get("changes").([]any) {
			edit, _ := change.(map[string]any)["edit"].(map[string]any)
			by = append(by, edit["user_id"])
		}
		if fmt.Sprint(by) != fmt.Sprint([]any{nil, user}) {
			t.Errorf("%s, changes: got %s, want the second one by %s", name, changes.text, user)
		}
	}
	other := newUser(t, sandbox.RoleDeveloper)
	wantProblem(t, other.do(t, "GET", execution, nil), http.StatusNotFound, "not-found", "")
}
