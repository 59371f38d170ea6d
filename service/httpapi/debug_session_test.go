package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox"
)

const steppedProgram = `def double(n):
    twice = n * 2
    return twice
total = 0
for i in range(4):
    total += double(i)
big = list(range(1000000))
done = total`

// debugClient is a client with a debug session.
type debugClient struct {
	client
	session, execution string
}

func (c client) openDebugSession(t testing.TB, body map[string]any, config map[string]any) (debugClient, answer) {
	t.Helper()
	id := c.create(t, config)
	a := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions?wait=60", body)
	session, _ := a.get("session_id").(string)
	execution, _ := a.get("execution_id").(string)
	if session == "" || execution == "" {
		t.Fatalf("got %s, want a session and an execution", a.text)
	}
	return debugClient{c, session, execution}, a
}

func TestMalformedDebugCommands(t *testing.T) {
	t.Parallel()
	d, _ := newUser(t, sandbox.RoleDeveloper).openDebugSession(t, map[string]any{"code": "x = 1\ny = 2",
		"stop_on_entry": true}, nil)
	path := "/debug/sessions/" + d.session
	for _, body := range []string{`{"x":`, `[]`, `next`} {
		wantProblem(t, d.do(t, "POST", path+"/next", body), http.StatusBadRequest, "malformed", "JSON object")
	}
	wantProblem(t, d.do(t, "POST", path+"/evaluate", `{}`), http.StatusUnprocessableEntity, "invalid-input",
		"an expression")
	// An integer may be written in every way that JSON Schema takes for one.
	whole := d.command(t, "stackTrace", map[string]any{"threadId": 1, "levels": 10})
	if a := d.ok(t, "POST", path+"/stackTrace", `{"threadId":1.0,"levels":1e1}`); string(a.text) != string(whole.text) {
		t.Errorf("with 1.0 and 1e1 got the stack %s, want %s", a.text, whole.text)
	}
	for _, body := range []string{`{"threadId":1.5}`, `{"levels":1e19}`, `{"levels":9223372036854775808}`} {
		wantProblem(t, d.do(t, "POST", path+"/stackTrace", body), http.StatusUnprocessableEntity, "invalid-input",
			"invalid arguments")
	}
	if a := d.command(t, "next", nil); a.get("where.line_number") != 2.0 {
		t.Errorf("got line %v, want 2", a.get("where.line_number"))
	}
}

func (d debugClient) command(t testing.TB, name string, arguments map[string]any) answer {
	t.Helper()
	return d.ok(t, "POST", "/debug/sessions/"+d.session+"/"+name, arguments)
}

// wantStop checks where a move ended: "reason line".
func wantStop(t testing.TB, a answer, want string) {
	t.Helper()
	if got := fmt.Sprintf("%v %v", a.get("where.reason"), a.get("where.line_number")); got != want {
		t.Errorf("got the stop %s, want %s: %s", got, want, a.text)
	}
}

// variables returns the values and the references of a scope's variables by name. The scope's own reference is under "".
func (d debugClient) variables(t testing.TB, scope string) (map[string]any, map[string]any) {
	t.Helper()
	stack := d.command(t, "stackTrace", map[string]any{"threadId": 1})
	frame := stack.get("stackFrames").([]any)[0].(map[string]any)["id"]
	for _, s := range d.command(t, "scopes", map[string]any{"frameId": frame}).get("scopes").([]any) {
		s := s.(map[string]any)
		if s["name"] != scope {
			continue
		}
		values, refs := map[string]any{"": s["variablesReference"]}, map[string]any{}
		for _, v := range d.command(t, "variables",
			map[string]any{"variablesReference": s["variablesReference"]}).get("variables").([]any) {
			v := v.(map[string]any)
			values[v["name"].(string)], refs[v["name"].(string)] = v["value"], v["variablesReference"]
		}
		return values, refs
	}
	t.Fatalf("there is no scope %s", scope)
	return nil, nil
}

func TestStepForwardAndBack(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t, map[string]any{"code": steppedProgram,
		"breakpoints": []any{2, map[string]any{"line": 8}, map[string]any{"line": 99}}}, nil)
	wantStop(t, a, "breakpoint 2")
	if views, _ := a.get("breakpoints").([]any); len(views) != 3 || views[2].(map[string]any)["verified"] != false {
		t.Errorf("got the breakpoints %s, want the third unverified", a.text)
	}
	if a.get("where.function") != "double" || a.get("where.variables.n") != "0" || a.get("where.live") != true {
		t.Errorf("the first stop: got %s, want double with n = 0, live", a.text)
	}
	a = d.command(t, "next", nil)
	wantStop(t, a, "step 3")
	if a.get("where.variables.twice") != "0" || fmt.Sprint(a.get("where.changed")) != "[twice]" {
		t.Errorf("after the line: got %s, want twice changed", a.text)
	}
	wantStop(t, d.command(t, "stepOut", nil), "step 5")
	wantStop(t, d.command(t, "next", nil), "step 6")
	wantStop(t, d.command(t, "stepIn", nil), "breakpoint 2")

	values, _ := d.variables(t, "Locals")
	if values["n"] != "1" {
		t.Errorf("got the locals %v, want n = 1", values)
	}
	if set := d.command(t, "setVariable", map[string]any{"variablesReference": values[""], "name": "n",
		"value": "n + 49"}); set.get("value") != "50" {
		t.Errorf("setVariable: got %s, want 50", set.text)
	}
	if values, _ := d.variables(t, "Locals"); values["n"] != "50" {
		t.Errorf("after setVariable: got %v, want n = 50", values)
	}
	if got := d.command(t, "evaluate", map[string]any{"expression": "total + i"}); got.get("result") != "1" {
		t.Errorf("evaluate: got %s, want 1", got.text)
	}
	wantProblem(t, d.do(t, "POST", "/debug/sessions/"+d.session+"/evaluate", `{"expression":"1 / 0"}`),
		http.StatusUnprocessableEntity, "invalid-input", "ZeroDivisionError")

	a = d.command(t, "stepBack", nil)
	wantStop(t, a, "step 6")
	if a.get("where.live") != false {
		t.Errorf("a past step: got %s, want live false", a.text)
	}
	wantProblem(t, d.do(t, "POST", "/debug/sessions/"+d.session+"/setVariable",
		`{"variablesReference":1,"name":"n","value":"1"}`), http.StatusConflict, "busy", "past step")
	wantStop(t, d.command(t, "reverseContinue", nil), "breakpoint 2")
	if got := d.command(t, "evaluate", map[string]any{"expression": "n"}); got.get("result") != "0" {
		t.Errorf("a past value: got %s, want 0", got.text)
	}
	wantStop(t, d.command(t, "goto", map[string]any{"step": 1}), "goto 1")
	wantStop(t, d.command(t, "continue", nil), "breakpoint 2")
	a = d.command(t, "continue", nil)
	wantStop(t, a, "breakpoint 2")
	if a.get("where.live") != true {
		t.Errorf("forward to the present: got %s, want live true", a.text)
	}

	d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 8}}})
	wantStop(t, d.command(t, "continue", nil), "breakpoint 8")
	_, refs := d.variables(t, "Globals")
	page := d.command(t, "variables", map[string]any{"variablesReference": refs["big"], "start": 999998, "count": 5})
	if items, _ := page.get("variables").([]any); len(items) != 2 || items[1].(map[string]any)["value"] != "999999" {
		t.Errorf("a page of a long list: got %s, want its last two items", page.text)
	}
	if got := d.command(t, "completions", map[string]any{"text": "tot",
		"column": 4}); !strings.Contains(string(got.text), `"label":"total"`) {
		t.Errorf("completions: got %s, want total", got.text)
	}
	a = d.command(t, "continue", nil)
	if a.get("where.state") != "ended" || a.get("result.status") != "completed" {
		t.Errorf("the end: got %s, want completed", a.text)
	}
	// 0 + 100 + 4 + 6
	if got := d.command(t, "evaluate", map[string]any{"expression": "total"}); got.get("result") != "110" {
		t.Errorf("at the end: got %s, want 110, with the variable that was set", got.text)
	}
	wantStop(t, d.command(t, "reverseContinue", nil), "breakpoint 8")

	past := c.ok(t, "POST", "/executions/"+d.execution+"/debug/sessions", nil)
	again := debugClient{c, past.get("session_id").(string), d.execution}
	wantStop(t, past, "entry 1")
	again.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 3,
		"condition": "twice > 50"}}})
	a = again.command(t, "continue", nil)
	wantStop(t, a, "breakpoint 3")
	if a.get("where.variables.twice") != "100" {
		t.Errorf("a condition in the past: got %s, want twice = 100", a.text)
	}
	again.ok(t, "DELETE", "/debug/sessions/"+again.session, nil)
	wantProblem(t, again.do(t, "GET", "/debug/sessions/"+again.session, nil), http.StatusNotFound, "not-found")
}

func TestStopsAtExceptionsAndChanges(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, a := c.openDebugSession(t,
		map[string]any{"code": "x = 1\ntry:\n    int('a')\nexcept ValueError:\n    x = 2\nx = 3\n{}['k']",
			"exceptions": []string{"raised"}, "stop_on_entry": true}, nil)
	wantStop(t, a, "entry 1")
	info := d.command(t, "dataBreakpointInfo", map[string]any{"name": "x"})
	d.command(t, "setDataBreakpoints",
		map[string]any{"breakpoints": []any{map[string]any{"dataId": info.get("dataId")}}})
	wantStop(t, d.command(t, "continue", nil), "data breakpoint 2")
	wantStop(t, d.command(t, "continue", nil), "exception 3")
	if got := d.command(t, "exceptionInfo", map[string]any{"threadId": 1}); got.get("exceptionId") != "ValueError" {
		t.Errorf("exceptionInfo: got %s, want ValueError", got.text)
	}
	wantStop(t, d.command(t, "continue", nil), "data breakpoint 6")
	d.command(t, "setDataBreakpoints", map[string]any{"breakpoints": []any{}})
	d.command(t, "setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
	wantStop(t, d.command(t, "continue", nil), "exception 7")
	if a := d.command(t, "continue", nil); a.get("result.status") != "failed" ||
		a.get("result.exception.type") != "KeyError" {
		t.Errorf("the end: got %s, want failed with KeyError", a.text)
	}
}

// A client can pause a running program, set its breakpoints and end it. Paused time does not count towards its limit.
func TestPausedTimeIsNotCounted(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	_, a := c.openDebugSession(t, map[string]any{"code": "n = 0\nwhile n >= 0:\n    n += 1\n    m = n"},
		map[string]any{"max_execution_time": 1, "cpu_percent": 100})
	if a.get("where.state") != "ended" || a.get("result.status") != "timeout" {
		t.Errorf("an endless loop: got %s, want timeout", a.text)
	}
	id := c.create(t, map[string]any{"max_execution_time": 4, "cpu_percent": 100})
	a = c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions",
		map[string]any{"code": "n = 0\nwhile n >= 0:\n    n += 1\n    m = n", "stop_on_entry": true})
	d := debugClient{c, a.get("session_id").(string), a.get("execution_id").(string)}
	wantStop(t, a, "entry 1")
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/execute", `{"code":"1"}`), http.StatusConflict, "busy")
	for range 2 {
		d.command(t, "evaluate", map[string]any{"expression": "__import__('time').sleep(2.5)"})
	}
	if hang := d.do(t, "POST", "/debug/sessions/"+d.session+"/evaluate",
		`{"expression":"[0 for _ in iter(int, 1) if 0]"}`); !strings.Contains(string(hang.text), "too long") {
		t.Errorf("an endless expression: got %s, want an error that it takes too long", hang.text)
	}
	d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 4,
		"condition": "n % 2 == 0"}}})
	wantStop(t, d.command(t, "continue", nil), "breakpoint 4")
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
	if a := c.ok(t, "GET", "/executions/"+d.execution, nil); a.get("status") != "cancelled" {
		t.Errorf("after the session was closed: got %s, want cancelled", a.text)
	}
	if a := c.run(t, id, "1 + 1"); a.get("result") != 2.0 {
		t.Errorf("the next execution: got %s, want 2", a.text)
	}
}

func TestPauseStopsARunningProgram(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, map[string]any{"max_execution_time": 60})
	a := c.ok(t, "POST", "/sandbox/"+id+"/debug/sessions?wait=0", map[string]any{"code": "while True:\n    n = 1"})
	d := debugClient{c, a.get("session_id").(string), a.get("execution_id").(string)}
	if a := d.command(t, "pause", nil); a.get("where.reason") != "pause" || a.get("where.live") != true {
		t.Errorf("got %s, want a live stop", a.text)
	}
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
}

func TestOneClientDrivesOthersObserve(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, _ := c.openDebugSession(t, map[string]any{"code": steppedProgram, "stop_on_entry": true}, nil)
	path := "/debug/sessions/" + d.session
	wantProblem(t, c.do(t, "POST", path+"/next", nil, "X-Debug-Client", "other"), http.StatusConflict, "busy", "drive")
	if a := c.do(t, "POST", path+"/threads", nil, "X-Debug-Client", "other"); a.status != http.StatusOK ||
		!strings.Contains(string(a.text), "MainThread") {
		t.Errorf("an observer's request: got %s, want the threads", a.text)
	}
	c.do(t, "POST", path+"/drive", nil, "X-Debug-Client", "other")
	wantProblem(t, c.do(t, "POST", path+"/next", nil), http.StatusConflict, "busy", "drive")
	if a := c.do(t, "POST", path+"/next", nil, "X-Debug-Client", "other"); a.status != http.StatusOK {
		t.Errorf("the new driver's request: got %s, want HTTP 200", a.text)
	}
	wantProblem(t, newUser(t, sandbox.RoleDeveloper).do(t, "GET", path, nil), http.StatusNotFound, "not-found")
	wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "POST", "/sandbox/x/debug/sessions", `{"code":"1"}`),
		http.StatusForbidden, "forbidden")
	wantProblem(t, c.do(t, "POST", path+"/nonsense", nil), http.StatusUnprocessableEntity, "invalid-input", "nonsense")
	d.ok(t, "DELETE", path, nil)
}

// Events have ids; a client that sends the last one gets the events after it.
func TestDebugEventsResume(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, _ := c.openDebugSession(t, map[string]any{"code": "print('hello')\nx = 1\ny = 2", "stop_on_entry": true,
		"breakpoints": []any{map[string]any{"line": 2, "logMessage": "x is to come"}}}, nil)
	d.command(t, "continue", nil)
	path := "/debug/sessions/" + d.session + "/events"
	list := c.stream(t, "GET", path, nil).all()
	checkEventIDs(t, list, 0)
	text := string(mustJSON(t, list[len(list)-4].data)) + string(mustJSON(t, list[len(list)-3].data))
	var kinds []string
	for _, event := range list {
		kinds = append(kinds, event.name)
	}
	if got := strings.Join(kinds, " "); got != "stopped continued output output exited terminated" ||
		!strings.Contains(text, "x is to come") || !strings.Contains(text, `hello\n`) {
		t.Errorf("got the events %s:\n%s", got, text)
	}
	if rest := c.stream(t, "GET", path, nil, "Last-Event-ID", "4").all(); !reflect.DeepEqual(rest, list[4:]) {
		t.Errorf("after the fourth event: got %v, want %v", rest, list[4:])
	}
}

// The output of log points is bounded, and sending it takes little memory. Not parallel: it measures memory.
func TestLogPointOutputIsBounded(t *testing.T) {
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, a := c.openDebugSession(t, map[string]any{
		"code": "x = 'A' * 15000\nfor i in range(2000):\n    pass", "breakpoints": []any{map[string]any{"line": 3,
			"logMessage": "{i}" + strings.Repeat("{x}", 15)}},
	}, nil)
	for a.get("where.state") == "running" {
		a = d.ok(t, "GET", "/debug/sessions/"+d.session, nil)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil).all()
	runtime.ReadMemStats(&after)
	size := 0
	for _, e := range list {
		text, _ := e.data["output"].(string)
		if size += len(text); len(text) > 10_100 {
			t.Fatalf("got an event of %d bytes: %.20s; want at most 10100", len(text), text)
		}
	}
	checkEventIDs(t, list, list[0].id-1)
	if last := list[len(list)-1]; last.name != "terminated" || size < 4<<20 || size > 16<<20 {
		t.Errorf("got %d bytes in %d events, the last %s; want 4 to 16 MiB and terminated", size, len(list), last.name)
	}
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 400 {
		t.Errorf("got %d MB allocated for events of %d MB, want at most 400", allocated, size>>20)
	}
}

// abandonEvaluate sends an endless expression and leaves when stream shows that the expression runs.
func (d debugClient) abandonEvaluate(t *testing.T, stream *eventReader) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // the output shows that the expression runs
		for {
			if e, ok := stream.next(); !ok || e.name == "output" {
				cancel()
				return
			}
		}
	}()
	body := strings.NewReader(`{"expression":"print('begun') or [0 for _ in iter(int, 1) if 0]"}`)
	req, err := http.NewRequestWithContext(ctx, "POST", serverURL+"/debug/sessions/"+d.session+"/evaluate", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.secret)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("an endless expression: got HTTP %d, want the request to be abandoned", resp.StatusCode)
	}
}

// If a client abandons a request, its expression is interrupted and the next request is served. A busy machine may need
// several tries to show that the interrupt comes first.
func TestAbandonedEvaluateIsInterrupted(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, nil)
	stream := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	eventually(t, "the next request to be served before the expression's own timeout of 5 s", func() bool {
		start := time.Now()
		d.abandonEvaluate(t, stream)
		if a := d.command(t, "evaluate",
			map[string]any{"expression": "x + 1 if 'x' in globals() else 0"}); a.status != http.StatusOK {
			t.Errorf("the next request: got %s, want success", a.text)
		}
		return time.Since(start) < 4*time.Second
	})
	wantStop(t, d.command(t, "next", nil), "step 2")
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
}

// A client that joins a session gets its breakpoints.
func TestDebugSessionHasItsBreakpoints(t *testing.T) {
	t.Parallel()
	d, opened := newUser(t, sandbox.RoleDeveloper).openDebugSession(t, map[string]any{
		"code": steppedProgram, "breakpoints": []any{2, map[string]any{"line": 3, "condition": "twice > 2"}},
	}, nil)
	if opened.get("where.line_number") != 2.0 {
		t.Fatalf("got %s, want a stop in line 2", opened.text)
	}
	joined := func() string {
		return compactJSON(d.ok(t, "GET", "/debug/sessions/"+d.session, nil).get("breakpoints"))
	}
	want := `[{"id":1,"line":2,"verified":true},{"condition":"twice \u003e 2","id":2,"line":3,"verified":true}]`
	if got := joined(); got != want {
		t.Errorf("got the breakpoints %s, want %s", got, want)
	}
	d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{
		map[string]any{"line": 8, "logMessage": "{total}", "hitCondition": ">= 1"}, map[string]any{"line": 99},
	}})
	want = `[{"hitCondition":"\u003e= 1","id":3,"line":8,"logMessage":"{total}","verified":true}]`
	if got := joined(); got != want {
		t.Errorf("after setBreakpoints: got %s, want %s", got, want)
	}
}
