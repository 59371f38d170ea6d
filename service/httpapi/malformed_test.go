package httpapi_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The problem for a body with very many errors is short.
func TestProblemListsFewOfManyErrors(t *testing.T) {
	t.Parallel()
	a := newUser(t, sandbox.RoleAgent).do(t, "POST", "/sandbox/agent/quick-execute", `{"code":"1","files":[`+
		strings.Repeat(`{},`, 40_000)+`{}]}`)
	wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "files[0]", "; and 39981 more")
	if len(a.text) > 10_000 {
		t.Errorf("got a problem of %d bytes, want at most 10000", len(a.text))
	}
}

// The name of a wrong field is cut, so that the answer is not a multiple of the request.
func TestProblemCutsLongNames(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	name := strings.Repeat("a", 1<<20)
	for path, body := range map[string]string{
		"/sandbox/agent/quick-execute": `{"code":"1","` + name + `":1}`,
		"/sandbox/create":              `{"` + name + `":1}`,
		"/sandbox/" + id + "/debug":    `{"code":"1","` + name + `":1}`,
		"/sandbox/" + id + "/execute":  `{"code":"1","context":{"` + name + `":1,"` + name + `":2}}`,
	} {
		a := c.do(t, "POST", path, body)
		wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "aaaa")
		if len(a.text) > 25_000 {
			t.Errorf("%.60s: got a problem of %d bytes, want at most 25000", path, len(a.text))
		}
	}
}

// Decoded values take many times the size of a body, so most values of a large body are not decoded. Not parallel: it
// measures memory.
func TestLargeBodyTakesLittleMemory(t *testing.T) {
	c := newUser(t, sandbox.RoleAgent)
	numbers := strings.Repeat("1,", 2_000_000) + "1]}"
	took := func(body string) (answer, uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := c.do(t, "POST", "/sandbox/agent/quick-execute", body)
		runtime.ReadMemStats(&after)
		return a, (after.TotalAlloc - before.TotalAlloc) >> 20
	}
	a, wrong := took(`{"code":"1","files":[` + numbers)
	wantProblem(t, a, http.StatusBadRequest, "malformed", "more than 100000 values")
	a, right := took(`{"code":"sum(context.n)","context":{"n":[` + numbers + `}`)
	if a.status != http.StatusOK || a.get("result") != 2000001.0 {
		t.Errorf("got HTTP %d, want 200 and the sum: %.300s", a.status, a.text)
	}
	if wrong > 100 || right > 400 {
		t.Errorf("got %d MB for a rejected body and %d MB for a context, want at most 100 and 400", wrong, right)
	}
	wantProblem(t, c.do(t, "POST", "/sandbox/agent/quick-execute", "["+strings.Repeat("1,", 100_000)+"1]"),
		http.StatusBadRequest, "malformed", "the body must be a JSON object")
}

// A guest can send its own end of the socket to the supervisor, which then keeps that end open after the guest's death.
// The supervisor's writes must fail nevertheless.
func TestGuestThatSendsItsOwnSocketTimesOut(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted", "max_execution_time": 1})
	a := c.run(t, id, `
import array, json, os, socket, struct, time
body = json.dumps({"id": 77, "what": "query", "sql": "SELECT repeat('x', 1000) AS a FROM generate_series(1, 5000)", "params": {}, "form": "plain"}).encode()
s = socket.socket(fileno=os.dup(3))
s.sendall(struct.pack(">IB", len(body), ord("A")) + body)
time.sleep(0.3)  # the service writes rows now, and reads nothing
s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3]))])
time.sleep(60)
`)
	if a.get("status") != "timeout" {
		t.Errorf("got %s, want a timeout", a.text)
	}
}

// A guest that reports a stop is stopped, so it uses no CPU time while its time limit is paused.
func TestForgedStopPausesTheGuest(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	opened := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions", map[string]any{"code": `
import os, struct
body = b'{"reason":"step","ids":[],"text":"","step":1}'
os.write(3, struct.pack('>IB', len(body), ord('S')) + body)
while True:
    pass
`})
	// in the meantime
	c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "import time\ntime.sleep(1)"})
	c.ok(t, "DELETE", "/debug/sessions/"+opened.get("session_id").(string), nil)
	record := c.ok(t, "GET", "/executions/"+opened.get("execution_id").(string), nil)
	if cpu, _ := record.get("usage.cpu_ms").(float64); record.get("status") == "running" || cpu > 200 {
		t.Errorf("got the status %v after %v ms of CPU time, want an ended execution and at most 200",
			record.get("status"), cpu)
	}
}

// Functions are not shown as variables, so they are not reported as changed either.
func TestFunctionsAreNotReportedAsChanged(t *testing.T) {
	t.Parallel()
	d, _ := newUser(t, sandbox.RoleDeveloper).openDebugSession(t,
		map[string]any{"code": "def f():\n    pass\nx = 1\ny = 2", "stop_on_entry": true}, nil)
	for _, want := range []string{"<nil>", "[x]"} {
		if a := d.command(t, "next", nil); fmt.Sprint(a.get("where.changed")) != want {
			t.Errorf("got the changed variables %v, want %s", a.get("where.changed"), want)
		}
	}
}
