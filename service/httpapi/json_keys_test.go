package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A key that is given twice is refused in every body, at any depth, and nothing runs. Otherwise the schema could check
// one value and the service use the other.
func TestRepeatedKeysAreRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, nil)
	large := strings.Repeat(" ", 70_000) // decoded in another way
	for _, x := range []struct{ path, body, field string }{
		{"/sandbox/" + id + "/execute", `{"code":"1","code":"2"}`, "code"},
		{"/sandbox/" + id + "/execute", `{"code":"1",` + large + `"code":"2"}`, "code"},
		{"/sandbox/" + id + "/execute", `{"code":"1","\u0063ode":"2"}`, "code"},
		{"/sandbox/" + id + "/execute", `{"code":"1","context":{"a":[{"b":1,"b":2}]}}`, "context.a[0].b"},
		{"/sandbox/" + id + "/execute", `{"code":"1",` + large + `"context":{"a":{"b":1,"b":2}}}`, "context.a.b"},
		{"/sandbox/" + id + "/execute", `{"code":"1","context":{},"context":{"a":1}}`, "context"},
		{"/sandbox/" + id + "/execute", `{"code":"1","files":[{"path":"a","path":"b","content":""}]}`, "files[0].path"},
		{"/sandbox/agent/quick-execute", `{"code":"1","code":"2"}`, "code"},
		{"/sandbox/agent/quick-execute", `{"code":"1","config":{"max_rows":1,"max_rows":2}}`, "config.max_rows"},
		{"/sandbox/agent/analyze-data", `{"table_name":"users","table_name":"documents"}`, "table_name"},
		{"/sandbox/create", `{"max_rows":1,"max_rows":2}`, "max_rows"},
		{"/sandbox/highlight", `{"code":"1","code":"2"}`, "code"},
		{"/sandbox/check", `{"code":"1","config":{"max_rows":1,"max_rows":2}}`, "config.max_rows"},
		{"/sandbox/" + id + "/check", `{"code":"1","code":"2"}`, "code"},
		{"/sandbox/" + id + "/complete", `{"code":"1","cursor":1,"cursor":2}`, "cursor"},
		{"/sandbox/" + id + "/database/query", `{"query":"SELECT 1","query":"SELECT 2"}`, "query"},
		{"/sandbox/" + id + "/database/query", `{"query":"SELECT :a","parameters":{"a":1,"a":2}}`, "parameters.a"},
		{"/sandbox/" + id + "/templates/processor", `{"processor_type":"a","processor_type":"b"}`, "processor_type"},
		{"/sandbox/" + id + "/debug", `{"code":"1","code":"2"}`, "code"},
		{"/sandbox/" + id + "/debug", `{"code":"1","context":{"a":1,"a":2}}`, "context.a"},
		{"/sandbox/" + id + "/debug/sessions", `{"code":"1","breakpoints":[{"line":1,"line":2}]}`,
			"breakpoints[0].line"},
		{"/debug/sessions/" + d.session + "/evaluate", `{"expression":"1","expression":"2"}`, "expression"},
		{"/debug/sessions/" + d.session + "/threads", `{"a":{"b":1,"b":2}}`, "a.b"},
		{"/artifacts/none/url", `{"expires_in":1,"expires_in":2}`, "expires_in"},
		{"/keys", `{"name":"a","role":"agent","role":"developer"}`, "role"},
	} {
		a := c.do(t, "POST", x.path, x.body)
		wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "given twice")
		if list, _ := a.get("errors").([]any); len(list) != 1 || list[0].(map[string]any)["field"] != x.field {
			t.Errorf("%s %.60s: got the errors %v, want one of the field %s", x.path, x.body, list, x.field)
		}
	}
	if total := c.ok(t, "GET", "/sandbox/"+id+"/history", nil).get("total_executions"); total != 0.0 {
		t.Errorf("got %v executions, want none", total)
	}
	if a := c.run(t, id, "1"); a.get("status") != "completed" {
		t.Errorf("got %s, want the sandbox usable", a.text)
	}
}

// encoding/json takes Code for code. A key in another case is an unknown key, except in context, whose keys are the
// caller's own.
func TestKeysInAnotherCaseAreRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, nil)
	for _, x := range []struct{ path, body, field string }{
		{"/sandbox/" + id + "/execute", `{"Code":"1"}`, "Code"},
		{"/sandbox/" + id + "/execute", `{"code":"1","CODE":"2"}`, "CODE"},
		{"/sandbox/" + id + "/execute", `{"code":"1","files":[{"path":"a","PATH":"b","content":""}]}`, "PATH"},
		{"/sandbox/agent/quick-execute", `{"code":"1","config":{"Max_Rows":2}}`, "Max_Rows"},
		{"/sandbox/create", `{"MAX_ROWS":2}`, "MAX_ROWS"},
		{"/sandbox/" + id + "/debug", `{"code":"1","Code":"2"}`, "Code"},
		{"/sandbox/" + id + "/debug", `{"CODE":"2"}`, "CODE"},
		{"/sandbox/" + id + "/debug/sessions", `{"code":"1","breakpoints":[{"Line":1}]}`, "breakpoints[0]"},
	} {
		wantProblem(t, c.do(t, "POST", x.path, x.body), http.StatusUnprocessableEntity, "invalid-input", x.field)
	}
	// Clients of DAP may send arguments that the service does not know; a key in another case is one of them.
	a := d.command(t, "evaluate", map[string]any{"expression": "40 + 2", "EXPRESSION": "1"})
	if a.get("result") != "42" {
		t.Errorf("got the result %v, want 42", a.get("result"))
	}
	a = c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "[code, CODE]",
		"context": map[string]any{"code": 1, "CODE": 2}})
	if got := compactJSON(a.get("result")); got != "[1,2]" {
		t.Errorf("context: got %s, want [1,2]", got)
	}
}
