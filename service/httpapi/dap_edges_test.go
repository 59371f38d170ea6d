package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// tour sends every request that is possible at a stop in line 3 of steppedProgram, live or in a recording. The client
// checks each message against the schema.
func (e *dapClient) tour(past bool) {
	e.t.Helper()
	source := map[string]any{"path": "/home/ada/double.py"}
	frame := e.wantStop("breakpoint", 3)
	e.mustRequest("threads", nil)
	ref, values := e.locals(frame)
	e.wantEqual("locals", values, "map[n:1 twice:2]")
	e.wantEqual("evaluate", e.evaluate("n + twice", frame), 3)
	for _, m := range []map[string]any{
		e.request("setVariable", map[string]any{"variablesReference": ref, "name": "n", "value": "1"}),
		e.request("setExpression", map[string]any{"expression": "n", "value": "1", "frameId": frame}),
		e.request("completions", map[string]any{"frameId": frame, "text": "n", "column": 2}),
	} {
		e.wantEqual(fmt.Sprint(m["command"], " answers"), m["success"], !past)
	}
	for command, arguments := range map[string]map[string]any{
		"source": {"sourceReference": 1}, "loadedSources": {}, "modules": {}, "breakpointLocations": {"source": source,
			"line": 1, "endLine": 8}, "cancel": {"requestId": 1},
	} {
		e.mustRequest(command, arguments)
	}
	if m := e.request("exceptionInfo", map[string]any{"threadId": 1}); m["success"] != false {
		e.t.Errorf("exceptionInfo without an exception: got %v, want an error", m)
	}
	targets := e.mustRequest("gotoTargets", map[string]any{"source": source, "line": 2})["targets"].([]any)
	e.mustRequest("goto", map[string]any{"threadId": 1, "targetId": targets[0].(map[string]any)["id"]})
	frame = e.wantStop("goto", 2)
	e.wantEqual("the first time", e.evaluate("n", frame), 0)
	e.mustRequest("restartFrame", map[string]any{"frameId": frame})
	e.wantStop("restart", 2)
	e.setBreakpoints(breakpointAt(6, "condition", "i == 2"))
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"raised"}})
	e.move("stepBack")
	e.wantStop("step", 6)
	info := e.mustRequest("dataBreakpointInfo", map[string]any{"name": "i"})
	e.mustRequest("setDataBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"dataId": info["dataId"]}}})
	e.move("continue")
	e.wantStop("data breakpoint", 6)
	e.mustRequest("setDataBreakpoints", map[string]any{"breakpoints": []any{}})
	e.move("reverseContinue")
	e.wantStop("entry", 1)
	e.mustRequest("disconnect", map[string]any{"terminateDebuggee": true})
}

// The answers are the same over TCP and WebSocket, live and from a recording, and in a service that has not made the
// recording, as after a restart.
func TestDAPTransportsAnswerTheSame(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	id := c.create(t, nil)
	recorded := c.debugStream(t, id, map[string]any{"code": steppedProgram}).execution.ID
	// Each editor connects in its own subtest: the service closes a connection that does not attach within 10 s.
	overTCP := func(of *services) func(testing.TB) *dapClient {
		return func(t testing.TB) *dapClient { return dapConnectTo(t, of) }
	}
	overWebSocket := func(server string) func(testing.TB) *dapClient {
		return func(t testing.TB) *dapClient { return dapConnectWebSocket(t, c, server) }
	}
	live, past := map[string]any{"code": steppedProgram}, map[string]any{"execution": recorded}
	for name, way := range map[string]struct {
		connect func(testing.TB) *dapClient
		to      map[string]any
	}{
		"TCP":                                   {overTCP(testServices), live},
		"a WebSocket":                           {overWebSocket(serverURL), live},
		"TCP, after a restart":                  {overTCP(smallServices), past},
		"a WebSocket, after a restart":          {overWebSocket(smallServerURL), past},
		"TCP, past, of the service that ran it": {overTCP(testServices), past},
	} {
		t.Run(name, func(t *testing.T) {
			to := maps.Clone(way.to)
			to["token"], to["path"] = c.secret, "/home/ada/double.py"
			isPast := to["execution"] != nil
			if !isPast {
				to["sandbox"] = c.create(t, nil)
			}
			e := way.connect(t)
			e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
			e.mustRequest("attach", to)
			e.waitEvent("initialized")
			e.configure(breakpointAt(3, "condition", "n == 1"))
			if isPast {
				e.wantStop("entry", 1)
				e.move("continue")
			}
			e.tour(isPast)
		})
	}
}

// Lines and columns are counted from 0 if the client counts so.
func TestDAPClientThatCountsFromZero(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	id := c.create(t, nil)
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse", "linesStartAt1": false,
		"columnsStartAt1": false})
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": steppedProgram})
	e.wantEqual("locations", e.mustRequest("breakpointLocations", map[string]any{"source": map[string]any{}, "line": 0,
		"endLine": 1})["breakpoints"], "[map[line:0] map[line:1]]")
	e.wantEqual("verified", e.setBreakpoints(breakpointAt(2))[0].(map[string]any)["line"], 2)
	e.mustRequest("configurationDone", nil)
	frame := e.wantStop("breakpoint", 2)
	e.wantEqual("in its third line", e.evaluate("twice", frame), 0)
	targets := e.mustRequest("completions", map[string]any{"frameId": frame, "text": "twi + 1", "column": 3})["targets"]
	e.wantEqual("ahead of the column", targets, "[map[label:twice length:3 start:0]]")
	e.mustRequest("disconnect", nil)
}

// A client gets the page and the kind of variables that it asks for.
func TestDAPVariablePages(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	e := dapAttach(
		t,
		c,
		"big = list(range(10**6))\nmany = {n: n * n for n in range(5000)}\nclass P:\n    def __init__(self):\n        self.x, self.y = 3, 4\np = P()\nend = 1",
	).configure(breakpointAt(7))
	frame := e.wantStop("breakpoint", 7)
	ref := e.mustRequest("scopes",
		map[string]any{"frameId": frame})["scopes"].([]any)[0].(map[string]any)["variablesReference"]
	page := func(of any, more map[string]any) (out []string) {
		t.Helper()
		more["variablesReference"] = of
		for _, v := range e.mustRequest("variables", more)["variables"].([]any) {
			v := v.(map[string]any)
			out = append(out, fmt.Sprint(v["name"], "=", v["value"]))
		}
		return out
	}
	refs := map[string]any{}
	for _, v := range e.mustRequest("variables", map[string]any{"variablesReference": ref})["variables"].([]any) {
		v := v.(map[string]any)
		refs[v["name"].(string)] = v["variablesReference"]
		if length := map[string]any{"big": 1e6, "many": 5000.0}[v["name"].(string)]; v["indexedVariables"] != length {
			t.Errorf("got %v, want the number of indexed variables", v)
		}
	}
	e.wantEqual("a list", page(refs["big"], map[string]any{"filter": "indexed", "start": 700_000, "count": 2}),
		"[[700000]=700000 [700001]=700001]")
	e.wantEqual("a dict", page(refs["many"], map[string]any{"filter": "indexed", "start": 4999, "count": 5}),
		"[4999=24990001]")
	e.wantEqual("an object", page(refs["p"], map[string]any{"filter": "named"}), "[x=3 y=4]")
	e.wantEqual("what a list has by name", page(refs["big"], map[string]any{"filter": "named"}), "[]")
	e.wantEqual("what a scope has by number", page(ref, map[string]any{"filter": "indexed"}), "[]")
	e.wantEqual("a part of a scope", page(ref, map[string]any{"filter": "named", "start": 2, "count": 1,
		"format": map[string]any{"hex": true}}), "[p=<P x=3, y=4>]")
	e.mustRequest("disconnect", nil)
}

// One user's editors leave connections to those of others. An editor that leaves gives its connection back, and the
// session of the recording that it has opened.
func TestEditorsOfAUserAreLimited(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	a := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "x = 1", "record": true})
	past := map[string]any{"token": c.secret, "execution": a.get("execution_id")}
	for range 25 {
		e := dapConnect(t)
		e.mustRequest("attach", past)
		e.conn.Close()
		<-e.served
	}
	session := c.ok(t, "POST", "/executions/"+a.get("execution_id").(string)+"/debug/sessions", nil).get("session_id")
	watch := map[string]any{"token": c.secret, "session": session}
	other := newUser(t, sandbox.RoleDeveloper)
	b := other.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "x = 1", "record": true})
	var attached []*dapClient
	for range 20 {
		e := dapConnect(t)
		e.mustRequest("attach", watch)
		attached = append(attached, e)
	}
	e := dapConnect(t)
	if m := e.request("attach", watch); m["success"] != false ||
		!strings.Contains(m["message"].(string), "20 of your editors are attached") {
		t.Errorf("the 21st editor: got %v, want a refusal", m)
	}
	dapConnect(t).mustRequest("attach", map[string]any{"token": other.secret, "execution": b.get("execution_id")})
	attached[0].mustRequest("disconnect", nil)
	<-attached[0].served
	e.mustRequest("attach", watch)
}

// A client has the rights of its token: one of an agent may not debug, and objects of other users do not exist.
func TestEditorHasTheRightsOfItsToken(t *testing.T) {
	t.Parallel()
	c, stranger := newUser(t, sandbox.RoleDeveloper), newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	agent, _ := c.newKey(t, map[string]any{"name": "of the same user", "role": "agent"})
	d, _ := c.openDebugSession(t, map[string]any{"code": steppedProgram, "stop_on_entry": true}, nil)
	past := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "x = 1", "record": true})
	for says, token := range map[string]string{
		"debugging needs a developer's": agent.secret, "no such": stranger.secret, "this key is unknown": "gh_wrong",
	} {
		for _, to := range []map[string]any{
			{"session": d.session}, {"execution": past.get("execution_id")}, {"sandbox": c.create(t, nil), "code": "1"},
		} {
			to["token"] = token
			m := dapConnect(t).request("attach", to)
			if m["success"] != false || !strings.Contains(fmt.Sprint(m["message"]), says) {
				t.Errorf("attach to %v: got %v, want it refused with %q", to, m, says)
			}
		}
	}
}

// One client drives. Another client may only watch, until it takes over or the driver leaves.
func TestTwoDAPClients(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": steppedProgram, "stop_on_entry": true}, nil)
	connect := func(drive bool) *dapClient {
		e := dapConnect(t)
		e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
		e.mustRequest("attach", map[string]any{"token": c.secret, "session": d.session, "drive": drive})
		e.mustRequest("configurationDone", nil)
		e.waitEvent("stopped")
		return e
	}
	refused := func(e *dapClient) {
		t.Helper()
		for _, command := range []string{"next", "setBreakpoints", "terminate"} {
			if m := e.request(command, map[string]any{"threadId": 1}); m["success"] != false ||
				!strings.Contains(m["message"].(string), "another client drives") {
				t.Errorf("a second driver: got %v, want an error that another client drives", m)
			}
		}
	}
	first, second := connect(false), connect(false)
	refused(second)
	first.move("next")
	for _, e := range []*dapClient{first, second} {
		e.wantStop("step", 4)
	}
	second.conn.Close() // an observer that leaves changes nothing, even if it asks for the end of the program
	<-second.served
	connect(false).mustRequest("disconnect", map[string]any{"terminateDebuggee": true})
	third := connect(true)
	refused(first)
	third.move("next")
	first.wantStop("step", 5)
	third.mustRequest("disconnect", map[string]any{})
	fourth := connect(false) // no client drives now
	fourth.move("next")
	fourth.wantStop("step", 6)
	c.do(t, "POST", "/debug/sessions/"+d.session+"/drive", nil)
	refused(fourth)
	d.command(t, "next", nil)
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
}

// A paused program whose client has left stays paused until idle_timeout. The paused time does not count towards
// max_execution_time, which is shorter here.
func TestDisconnectedDebuggerEndsAtTheIdleTimeout(t *testing.T) {
	t.Parallel()
	for _, overDAP := range []bool{false, true} {
		t.Run(fmt.Sprint("DAP ", overDAP), func(t *testing.T) {
			t.Parallel()
			c := newUser(t, sandbox.RoleDeveloper)
			defer c.deleteSandboxes(t)
			d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true},
				map[string]any{"idle_timeout": 6, "max_execution_time": 5})
			if overDAP {
				e := dapConnect(t)
				e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
				e.mustRequest("attach", map[string]any{"token": c.secret, "session": d.session})
				e.mustRequest("configurationDone", nil)
				e.wantStop("entry", 1)
				e.move("next")
				e.wantStop("step", 2)
				e.conn.Close()
				<-e.served
			}
			a := c.finished(t, d.execution)
			if a.get("status") != "cancelled" || a.get("usage.ended_by") != "idle_timeout" ||
				a.get("usage.wall_ms").(float64) > 5000 {
				t.Errorf("got %s, want it cancelled by idle_timeout within 5000 ms of wall time", a.text)
			}
		})
	}
}

// An execution that a limit killed can be inspected up to that point, in its session and later.
func TestSessionKilledByALimitCanBeInspected(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	code := "import time\nfor i in range(5):\n    n = i\ntry:\n    time.sleep(9)\nexcept KeyboardInterrupt:\n    time.sleep(9)"
	d, a := c.openDebugSession(t, map[string]any{"code": code}, map[string]any{"max_execution_time": 3})
	if a.get("where.state") != "ended" || a.get("result.status") != "timeout" || a.get("result.session_reset") != true {
		t.Fatalf("got %s, want a timeout that resets the session", a.text)
	}
	wantStop(t, d.command(t, "stepBack", nil), "step 7")
	wantStop(t, d.command(t, "stepBack", nil), "step 6")
	d.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 3,
		"condition": "i == 3"}}})
	a = d.command(t, "reverseContinue", nil)
	wantStop(t, a, "breakpoint 3")
	if a.get("where.variables.n") != "2" {
		t.Errorf("got %s, want n = 2 before the kill", a.text)
	}
	past := c.ok(t, "POST", "/executions/"+d.execution+"/debug/sessions", nil)
	again := debugClient{c, past.get("session_id").(string), d.execution}
	again.command(t, "setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 7}}})
	wantStop(t, again.command(t, "continue", nil), "breakpoint 7")
}

// A stack of ten thousand calls is read in pages.
func TestDeepStackInPages(t *testing.T) {
	t.Parallel()
	code := "import sys\nsys.setrecursionlimit(20000)\ndef down(n):\n    if n:\n        return down(n - 1)\n    return 0\ndown(9998)"
	d, a := admin.openDebugSession(t, map[string]any{"code": code, "breakpoints": []any{6}},
		map[string]any{"profile": "unrestricted", "max_memory_mb": 512})
	wantStop(t, a, "breakpoint 6")
	frames := map[any]bool{}
	for start := 0; start < 10_000; start += 2500 {
		page := d.command(t, "stackTrace", map[string]any{"threadId": 1, "startFrame": start, "levels": 2500})
		list, _ := page.get("stackFrames").([]any)
		if len(list) != 2500 || page.get("totalFrames") != 10_000.0 {
			t.Fatalf("from frame %d: got %d frames of %v, want 2500 of 10000", start, len(list),
				page.get("totalFrames"))
		}
		for _, f := range list {
			frames[f.(map[string]any)["id"]] = true
		}
	}
	if len(frames) != 10_000 {
		t.Errorf("got %d different frames, want 10000", len(frames))
	}
	if a := d.command(t, "stackTrace", map[string]any{"threadId": 1}); len(a.get("stackFrames").([]any)) >= 10_000 {
		t.Error("without levels: got all frames at once, want fewer")
	}
	wantStop(t, d.command(t, "stepBack", nil), "step 4")
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
}

// The HTTP API refuses an unknown request as unsupported, when the program has stopped and while it runs.
func TestUnknownDebugCommandIsUnsupported(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	defer c.deleteSandboxes(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": "while True:\n    x = 1", "stop_on_entry": true}, nil)
	for _, running := range []bool{false, true} {
		if running {
			d.ok(t, "POST", "/debug/sessions/"+d.session+"/continue?wait=0", nil)
		}
		for _, command := range []string{"readMemory", "attach", "Next"} {
			a := d.do(t, "POST", "/debug/sessions/"+d.session+"/"+command, nil)
			wantProblem(t, a, http.StatusUnprocessableEntity, "invalid-input", "unsupported request", command)
		}
	}
	d.ok(t, "DELETE", "/debug/sessions/"+d.session, nil)
}
