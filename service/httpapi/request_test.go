package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A filter that has no effect would show items that the client wants to exclude.
func TestFiltersThatHaveNoEffectAreRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	e := c.run(t, id, "open('artifacts/a.txt', 'w').write('abc')")
	artifact := e.get("artifacts").([]any)[0].(map[string]any)["artifact_id"].(string)
	d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, nil)
	for _, x := range []struct{ method, path, says string }{
		{"GET", "/executions?status=", "status"},
		{"GET", "/executions?user_id=", "user_id"},
		{"GET", "/executions?sandbox_id", "sandbox_id"},
		{"GET", "/executions?text=", "text"},
		// The search of a long text in long code could take minutes.
		{"GET", "/executions?text=" + strings.Repeat("x", 201), "text"},
		{"GET", "/artifacts?text=" + strings.Repeat("x", 201), "text"},
		{"GET", "/executions?after=", "after"},
		{"GET", "/executions?limit=", "limit"},
		{"GET", "/executions?since=", "since"},
		{"GET", "/executions?=x", "query"},
		{"GET", "/executions?state=failed", "state"},
		{"GET", "/executions?until=0001-01-01T00:00:00Z", "until"},
		{"GET", "/executions?since=0000-12-31T00:00:00Z", "since"},
		{"GET", "/executions?until=1500-01-01T00:00:00Z", "until"},
		{"GET", "/executions?since=9999-12-31T23:59:59-14:00", "since"},
		{"GET", "/executions?since=yesterday", "since"},
		{"GET", "/sandbox/" + id + "/history?after=", "after"},
		{"GET", "/sandbox/" + id + "/files/x?version=1", "version"},
		{"GET", "/artifacts/" + artifact + "?version=1", "version"},
		{"GET", "/debug/sessions/" + d.session + "/events?from=1", "from"},
		{"POST", "/debug/sessions/" + d.session + "/next?wait=x", "wait"},
		{"POST", "/debug/sessions/" + d.session + "/next?wait=61", "wait"},
		{"POST", "/debug/sessions/" + d.session + "/next?waits=1", "waits"},
		{"GET", "/metrics?x=1", "x"},
	} {
		a := c.do(t, x.method, x.path, nil)
		wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", x.says)
	}
	for _, query := range []string{"", "?since=1970-01-01T00:00:00Z&until=9999-12-31T23:59:59Z",
		"?since=2026-01-31T12:00:00.123%2B05:30"} {
		c.ok(t, "GET", "/executions"+query, nil)
	}
	wantProblem(t, admin.do(t, "GET", "/pending-writes?status=", nil), 422, "invalid-input", "status")
	wantProblem(t, admin.do(t, "GET", "/pending-writes?state=pending", nil), 422, "invalid-input", "state")
}

func TestUnsatisfiableRangeIsAProblem(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.ok(t, "PUT", "/sandbox/"+id+"/files/a.txt", "abc")
	e := c.run(t, id, "open('artifacts/a.txt', 'w').write('abc')")
	artifact := e.get("artifacts").([]any)[0].(map[string]any)["artifact_id"].(string)
	for _, path := range []string{"/sandbox/" + id + "/files/a.txt", "/artifacts/" + artifact} {
		for _, header := range []string{"bytes=9-", "bytes=x-y", "bytes=5-2"} {
			a := c.do(t, "GET", path, nil, "Range", header)
			wantProblem(t, a, http.StatusRequestedRangeNotSatisfiable, "range-not-satisfiable", "3 bytes")
			if a.header.Get("Content-Range") != "bytes */3" || a.header.Get("ETag") != "" ||
				a.header.Get("Content-Disposition") != "" {
				t.Errorf("%s: got the headers %v, want Content-Range: bytes */3 and none of the file", header, a.header)
			}
		}
		a := c.do(t, "GET", path, nil, "If-Match", `"other"`)
		wantProblem(t, a, http.StatusPreconditionFailed, "precondition-failed", "If-Match")
		if a := c.do(t, "HEAD", path, nil, "Range", "bytes=9-"); a.status != 416 || len(a.text) != 0 {
			t.Errorf("HEAD: got HTTP %d and %q, want 416 without a body", a.status, a.text)
		}
		if a := c.do(t, "GET", path, nil, "Range", "bytes=1-"); a.status != 206 || string(a.text) != "bc" {
			t.Errorf("got HTTP %d %q, want 206 and bc", a.status, a.text)
		}
	}
}

// RFC 7240: preferences are compared whole and without regard to case, and have parameters.
func TestPreferAndAcceptAreParsedExactly(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	for _, x := range []struct {
		header, value string
		status        int
		contentType   string
	}{
		{"Prefer", "respond-async", 202, "application/json"},
		{"Prefer", "Respond-Async", 202, "application/json"},
		{"Prefer", "return=minimal, respond-async; x=1", 202, "application/json"},
		{"Prefer", "respond-async,wait=100", 200, "application/json"},
		{"Prefer", "wait=100, respond-async", 200, "application/json"},
		{"Prefer", "no-respond-asyncx", 200, "application/json"},
		{"Prefer", "respond-asyncx", 200, "application/json"},
		{"Prefer", `x="a, respond-async"`, 200, "application/json"},
		{"Prefer", "x; respond-async", 200, "application/json"}, // a parameter of x
		{"Accept", "text/event-stream", 200, "text/event-stream"},
		{"Accept", "application/json;q=0.5, Text/Event-Stream", 200, "text/event-stream"},
		{"Accept", "text/event-streamx", 200, "application/json"},
		{"Accept", "text/event-stream;q=0", 200, "application/json"},
		{"Accept", `application/json;x="text/event-stream"`, 200, "application/json"},
	} {
		a := c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1"}`, x.header, x.value)
		if a.status != x.status || a.header.Get("Content-Type") != x.contentType {
			t.Errorf("%s: %s: got HTTP %d %s, want %d %s: %.200s", x.header, x.value, a.status,
				a.header.Get("Content-Type"), x.status, x.contentType, a.text)
		}
		if location := a.header.Get("Location"); location != "" { // the sandbox is idle again
			c.ok(t, "GET", location+"?wait=60", nil)
		}
	}
	// Several lines of a header are one list.
	if a := c.doLines(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1"}`, http.Header{
		"Prefer": {"return=minimal", "respond-async"}}); a.status != 202 {
		t.Errorf("got HTTP %d, want 202: %s", a.status, a.text)
	}
}

// doLines is do with headers that may have several lines.
func (c client) doLines(t testing.TB, method, path, body string, headers http.Header) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, serverURL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = headers.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.text, _ = io.ReadAll(resp.Body)
	return a
}
