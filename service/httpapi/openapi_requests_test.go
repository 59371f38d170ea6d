package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The tests of this file have requests about which the OpenAPI document and the service disagreed.

// A method that a path does not have is answered 405 with those that it has, even if another path with a parameter has
// the method.
func TestMethodsOfAPathAreNamed(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, x := range []struct{ method, path, allow string }{
		{"GET", "/sandbox/create", "POST"},
		{"DELETE", "/sandbox/create", "POST"},
		{"DELETE", "/sandbox/statistics", "GET"},
		{"GET", "/sandbox/agent/quick-execute", "POST"},
		{"PUT", "/sandbox/" + id + "/execute", "POST"},
		{"GET", "/sandbox/" + id, "DELETE"},
		{"PUT", "/sandbox/" + id + "/files", "GET, POST"},
		{"DELETE", "/sandbox/" + id + "/files", "GET, POST"},
		{"POST", "/executions", "GET"},
	} {
		for _, prefix := range []string{"", "/api/v1"} {
			a := c.do(t, x.method, prefix+x.path, nil)
			wantProblem(t, a, http.StatusMethodNotAllowed, "method-not-allowed", x.method)
			if got := a.header.Get("Allow"); got != x.allow {
				t.Errorf("%s %s%s: got Allow %q, want %q", x.method, prefix, x.path, got, x.allow)
			}
		}
	}
	c.ok(t, "GET", "/sandbox/"+id+"/status", nil)
}

// A request without a valid key is answered 401, whatever else is wrong with it.
func TestKeyIsCheckedFirst(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/executions?limit=1;x", "/executions?limit=1&limit=2", "/executions?Limit=1",
		"/executions?limit=", "/sandbox/statistics?nothing=1"} {
		wantProblem(t, client{}.do(t, "GET", path, nil), http.StatusUnauthorized, "unauthorized")
		wantProblem(t, client{secret: "gh_wrong"}.do(t, "GET", path, nil), http.StatusUnauthorized, "unauthorized")
	}
}

// JSON Schema takes 1.0 for an integer. The numbers of context, which are the caller's own, keep their type.
func TestIntegersMayHaveAFraction(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	a := c.do(t, "POST", "/sandbox/create", `{"max_rows": 10.0, "max_execution_time": 3e1}`)
	id, _ := a.get("sandbox_id").(string)
	if a.status != http.StatusOK || a.get("data.config.max_rows") != 10.0 {
		t.Fatalf("got HTTP %d, want max_rows 10: %s", a.status, a.text)
	}
	t.Cleanup(func() { c.afterTest(t, "DELETE", "/sandbox/"+id) })
	a = c.ok(t, "POST", "/sandbox/"+id+"/execute", `{"code": "repr([a, b])", "context": {"a": 1.0, "b": "2.0"}}`)
	if got := fmt.Sprint(a.get("result")); got != "[1.0, '2.0']" {
		t.Errorf("context: got %s, want [1.0, '2.0']", got)
	}
	c.ok(t, "POST", "/sandbox/"+id+"/complete", `{"code": "pri", "cursor": 3.0}`)
	a = c.ok(t, "POST", "/sandbox/agent/quick-execute",
		`{"code": "(a, '1.0')", "context": {"a": 2.0}, "config": {"max_rows": 1e1}}`)
	if got := compactJSON(a.get("result")); got != `[2,"1.0"]` {
		t.Errorf("quick-execute: got %s", got)
	}
	d := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions", `{"code": "x = 1\ny = 2", "breakpoints": [{"line": 2.0}]}`)
	if d.get("line") != 2.0 && !strings.Contains(string(d.text), `"line":2`) {
		t.Errorf("breakpoint: got %s, want a stop at line 2", d.text)
	}
	c.ok(t, "DELETE", "/debug/sessions/"+d.get("session_id").(string), nil)
	wantProblem(t, c.do(t, "POST", "/sandbox/create", `{"max_rows": 10.5}`), 422, "invalid-input", "max_rows")
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/complete", `{"code": "pri", "cursor": 0.5}`), 422, "invalid-input",
		"cursor")
}

// Bounds that the document names hold, and null is as good as nothing.
func TestBoundsOfTheDocumentHold(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	execute := "/sandbox/" + id + "/execute"
	for _, x := range []struct{ path, body, field string }{
		{"/artifacts/none/url", `{"expires_in": -1}`, "expires_in"},
		{"/artifacts/none/url", `{"expires_in": 604801}`, "expires_in"},
		{"/artifacts/none/url", `{"expires_in": 1e30}`, "expires_in"},
		{execute, `{"code": "1", "timeout": 1e300}`, "timeout"},
		{execute, `{"code": "1", "files": [{"path": "a", "content": "x", "content_base64": "eA=="}]}`, "either"},
		{execute, `{"code": "1", "files": [{"path": "a", "content_base64": "e"}]}`, "files[0].content_base64"},
		{"/sandbox/create", `{"environment": ""}`, "environment"},
	} {
		wantProblem(t, c.do(t, "POST", x.path, x.body), http.StatusUnprocessableEntity, "invalid-input", x.field)
	}
	c.ok(t, "POST", execute, `{"code": "1", "timeout": null, "files": null, "context": null}`)
	a := c.ok(t, "POST", execute, `{"code": "open('/data/a').read() + open('/data/b').read()", "files": [
		{"path": "a", "content_base64": ""}, {"path": "b", "content": "b"}]}`)
	if a.get("result") != "b" {
		t.Errorf("got %s, want the result b", a.text)
	}
}

// A part of a form that was meant as a file is not dropped because its name is missing.
func TestFilesOfAFormHaveNames(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	path := "/sandbox/" + c.create(t, nil) + "/files"
	form := func(name string) string {
		return "--b\r\nContent-Disposition: form-data; name=" + name + "\r\n\r\nlost\r\n" +
			"--b\r\nContent-Disposition: form-data; name=files; filename=kept\r\n\r\nkept\r\n--b--\r\n"
	}
	a := c.do(t, "POST", path, form("files"), "Content-Type", "multipart/form-data; boundary=b")
	wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "filename")
	if a = c.do(t, "POST", path, form("note"), "Content-Type", "multipart/form-data; boundary=b"); a.status != 200 {
		t.Errorf("a form with another field: got HTTP %d, want 200: %s", a.status, a.text)
	}
}
