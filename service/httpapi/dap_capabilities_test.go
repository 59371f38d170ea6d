package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// dapAttach returns a client that is attached to new code and not configured yet.
func dapAttach(t testing.TB, c client, code string) *dapClient {
	t.Helper()
	id := c.create(t, nil) // first: a connection must attach within 10 s
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse", "supportsProgressReporting": true})
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": code,
		"path": "/home/ada/double.py"})
	e.waitEvent("initialized")
	return e
}

// configure sets breakpoints and lets the program run.
func (e *dapClient) configure(breakpoints ...map[string]any) *dapClient {
	e.t.Helper()
	e.setBreakpoints(breakpoints...)
	e.mustRequest("configurationDone", nil)
	return e
}

func (e *dapClient) setBreakpoints(breakpoints ...map[string]any) []any {
	e.t.Helper()
	return e.mustRequest("setBreakpoints", map[string]any{"source": map[string]any{"path": "/home/ada/double.py"},
		"breakpoints": append([]map[string]any{}, breakpoints...)})["breakpoints"].([]any)
}

// wantStop waits for a stop, checks its reason and line, and returns the innermost frame.
func (e *dapClient) wantStop(reason string, line float64) (frame any) {
	e.t.Helper()
	if body := e.waitEvent("stopped"); body["reason"] != reason {
		e.t.Errorf("got the stop %v, want the reason %s", body, reason)
	}
	frame, at, _ := e.innermostFrame()
	if at != line {
		e.t.Errorf("got a stop in line %v, want %v", at, line)
	}
	return frame
}

func (e *dapClient) move(verb string) {
	e.t.Helper()
	e.mustRequest(verb, map[string]any{"threadId": 1})
}

// evaluate returns the value of an expression in a frame.
func (e *dapClient) evaluate(expression string, frame any, more ...string) any {
	e.t.Helper()
	arguments := map[string]any{"expression": expression, "frameId": frame}
	if len(more) > 0 {
		arguments["context"] = more[0]
	}
	return e.mustRequest("evaluate", arguments)["result"]
}

// locals returns the variables of a frame and the reference to them.
func (e *dapClient) locals(frame any) (ref any, values map[string]any) {
	e.t.Helper()
	ref = e.mustRequest("scopes",
		map[string]any{"frameId": frame})["scopes"].([]any)[0].(map[string]any)["variablesReference"]
	values = map[string]any{}
	for _, v := range e.mustRequest("variables", map[string]any{"variablesReference": ref})["variables"].([]any) {
		values[v.(map[string]any)["name"].(string)] = v.(map[string]any)["value"]
	}
	return ref, values
}

// wantEqual compares the printed forms of two values.
func (e *dapClient) wantEqual(what string, got, want any) {
	e.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		e.t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func breakpointAt(line int, more ...string) map[string]any {
	b := map[string]any{"line": line}
	for i := 0; i+1 < len(more); i += 2 {
		b[more[i]] = more[i+1]
	}
	return b
}

const failingProgram = "x = 1\ntry:\n    int('a')\nexcept ValueError:\n    x = 2\n{}['k']"

// capabilityTests has a test for each announced capability.
var capabilityTests = map[string]func(*testing.T, client){
	"supportsConfigurationDoneRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, "print('ran')\nx = 1")
		e.wantEqual("ahead of its configuration it stands at", e.mustRequest("stackTrace",
			map[string]any{"threadId": 1})["stackFrames"].([]any)[0].(map[string]any)["line"], 1)
		for _, m := range e.events {
			t.Errorf("before configurationDone: got the event %v, want none", m)
		}
		e.mustRequest("configurationDone", nil)
		e.waitEvent("terminated")
	},
	"supportsConditionalBreakpoints": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(2, "condition", "n == 2"))
		e.wantEqual("n", e.evaluate("n", e.wantStop("breakpoint", 2)), 2)
	},
	"supportsHitConditionalBreakpoints": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(2, "hitCondition", ">= 3"))
		e.wantEqual("n", e.evaluate("n", e.wantStop("breakpoint", 2)), 2)
		e.move("continue")
		e.wantEqual("n", e.evaluate("n", e.wantStop("breakpoint", 2)), 3)
		e.wantEqual("a hit condition that is none",
			e.setBreakpoints(breakpointAt(2, "hitCondition", "often"))[0].(map[string]any)["verified"], false)
	},
	"supportsLogPoints": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(2, "logMessage", "n is {n}, {n * 2}"),
			breakpointAt(8))
		for i := range 4 {
			e.wantEqual("said", e.waitEvent("output")["output"], fmt.Sprintf("n is %d, %d\n", i, 2*i))
		}
		e.wantStop("breakpoint", 8)
	},
	"supportsEvaluateForHovers": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3))
		frame := e.wantStop("breakpoint", 3)
		e.wantEqual("a hover", e.evaluate("n + twice", frame, "hover"), 0)
		if m := e.request("evaluate", map[string]any{"expression": "n = 5", "frameId": frame,
			"context": "hover"}); m["success"] != false {
			t.Errorf("a hover that assigns: got %v, want an error", m)
		}
		e.wantEqual("n", e.evaluate("n", frame), 0)
	},
	"supportsClipboardContext": func(t *testing.T, c client) {
		e := dapAttach(t, c, "long = ['x' * 3000]\ndone = 1").configure(breakpointAt(2))
		frame := e.wantStop("breakpoint", 2)
		e.wantEqual("a copied value", e.evaluate("long", frame, "clipboard"), "['"+strings.Repeat("x", 3000)+"']")
	},
	"supportsStepInTargetsRequest": func(t *testing.T, c client) {
		code := "def f(n):\n    return n\ndef g(n):\n    return n\nx = 0\nx = g(f(1)) + f(2)\ny = x"
		e := dapAttach(t, c, code).configure(breakpointAt(6))
		frame := e.wantStop("breakpoint", 6)
		targets, _ := e.mustRequest("stepInTargets", map[string]any{"frameId": frame})["targets"].([]any)
		var labels []any
		for _, target := range targets {
			labels = append(labels, target.(map[string]any)["label"])
		}
		e.wantEqual("the targets", labels, "[f(1) g(f(1)) f(2)]")
		if m := e.request("stepIn", map[string]any{"threadId": 1, "targetId": 9}); m["success"] != false {
			t.Errorf("an unknown target: got %v, want an error", m)
		}
		e.mustRequest("stepIn", map[string]any{"threadId": 1, "targetId": targets[1].(map[string]any)["id"]})
		e.wantStop("step", 4)
		e.mustRequest("stepBack", map[string]any{"threadId": 1})
		frame = e.wantStop("breakpoint", 6)
		past, _ := e.mustRequest("stepInTargets", map[string]any{"frameId": frame})["targets"].([]any)
		e.wantEqual("the targets at a past step", len(past), 0)
	},
	"supportsStepBack": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3, "condition", "n == 2"))
		e.wantStop("breakpoint", 3)
		e.move("stepBack")
		e.wantEqual("n", e.evaluate("n", e.wantStop("step", 2)), 2)
		e.setBreakpoints(breakpointAt(3))
		e.move("reverseContinue")
		e.wantEqual("n", e.evaluate("n", e.wantStop("breakpoint", 3)), 1)
		e.move("continue")
		e.wantEqual("n", e.evaluate("n", e.wantStop("breakpoint", 3)), 2)
	},
	"supportsSetVariable": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(2))
		frame := e.wantStop("breakpoint", 2)
		ref, _ := e.locals(frame)
		e.wantEqual("set to", e.mustRequest("setVariable", map[string]any{"variablesReference": ref, "name": "n",
			"value": "20 + 1"})["value"], 21)
		_, values := e.locals(frame)
		e.wantEqual("shown as", values["n"], 21)
		e.move("next")
		e.wantEqual("the program goes on with it", e.evaluate("twice", e.wantStop("step", 3)), 42)
	},
	"supportsSetExpression": func(t *testing.T, c client) {
		e := dapAttach(t, c, "d = {'k': [1]}\ndone = d['k'][0]\nend = 1").configure(breakpointAt(2))
		frame := e.wantStop("breakpoint", 2)
		e.wantEqual("set to", e.mustRequest("setExpression", map[string]any{"expression": "d['k'][0]", "value": "5",
			"frameId": frame})["value"], 5)
		e.move("next")
		e.wantEqual("the program goes on with it", e.evaluate("done", e.wantStop("step", 3)), 5)
	},
	"supportsCompletionsRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3))
		frame := e.wantStop("breakpoint", 3)
		e.wantEqual("completed", e.mustRequest("completions", map[string]any{"frameId": frame, "text": "x + twi",
			"column": 8})["targets"], "[map[label:twice length:3 start:4]]")
		for _, at := range []struct {
			line, column int
			want         string
		}{{1, 3, "[map[label:twice length:2 start:0]]"}, {2, 7, "[map[label:twice length:3 start:10]]"},
			{9, 7, "[map[label:twice length:3 start:10]]"}} {
			got := e.mustRequest("completions", map[string]any{
				"frameId": frame, "text": "tw = 1\nx +twi", "line": at.line, "column": at.column})["targets"]
			e.wantEqual(fmt.Sprint("completed in line ", at.line), got, at.want)
		}
	},
	"completionTriggerCharacters": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3))
		frame := e.wantStop("breakpoint", 3)
		if targets := fmt.Sprint(e.mustRequest("completions", map[string]any{"frameId": frame, "text": "twice.",
			"column": 7})["targets"]); !strings.Contains(targets, "label:bit_length") {
			t.Errorf("completions behind a dot: got %s, want bit_length", targets)
		}
	},
	"supportsExceptionInfoRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, failingProgram)
		e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"raised"}})
		e.mustRequest("configurationDone", nil)
		stop := e.waitEvent("stopped")
		e.wantEqual("the stop", fmt.Sprint(stop["reason"], " ", stop["text"]),
			"exception ValueError: invalid literal for int() with base 10: 'a'")
		info := e.mustRequest("exceptionInfo", map[string]any{"threadId": 1})
		e.wantEqual("the exception", fmt.Sprint(info["exceptionId"], " ", info["breakMode"]), "ValueError always")
	},
	"supportsExceptionFilterOptions": func(t *testing.T, c client) {
		e := dapAttach(t, c, failingProgram)
		e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{},
			"filterOptions": []any{map[string]any{"filterId": "raised"}}})
		e.mustRequest("configurationDone", nil)
		e.wantStop("exception", 3)
		if m := e.request("setExceptionBreakpoints", map[string]any{"filters": []string{},
			"filterOptions": []any{map[string]any{"filterId": "raised", "condition": "x"}}}); m["success"] != false {
			t.Errorf("a condition, which is not announced: got %v, want an error", m)
		}
	},
	"exceptionBreakpointFilters": func(t *testing.T, c client) {
		e := dapConnect(t)
		filters := e.mustRequest("initialize",
			map[string]any{"adapterID": "glasshouse"})["exceptionBreakpointFilters"].([]any)
		stops := map[string]string{"raised": "3 6", "uncaught": "6"}
		if len(filters) != len(stops) {
			t.Errorf("got the filters %v, want raised and uncaught", filters)
		}
		for _, f := range filters {
			name := f.(map[string]any)["filter"].(string)
			e := dapAttach(t, c, failingProgram)
			e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{name}})
			e.mustRequest("configurationDone", nil)
			for _, line := range strings.Fields(stops[name]) {
				e.waitEvent("stopped")
				_, at, _ := e.innermostFrame()
				e.wantEqual(name, at, line)
				mode := map[string]string{"raised": "always", "uncaught": "unhandled"}[name]
				e.wantEqual("its mode", e.mustRequest("exceptionInfo", map[string]any{"threadId": 1})["breakMode"],
					mode)
				e.move("continue")
			}
			e.wantEqual("it ended with", e.waitEvent("exited")["exitCode"], 1)
		}
	},
	"supportsDataBreakpoints": func(t *testing.T, c client) {
		e := dapAttach(t, c, "x = [1]\ny = x\nz = 1\ny.append(2)\nend = 1").configure(breakpointAt(2))
		frame := e.wantStop("breakpoint", 2)
		info := e.mustRequest("dataBreakpointInfo", map[string]any{"name": "x", "frameId": frame})
		watch := map[string]any{"dataId": info["dataId"]}
		e.mustRequest("setDataBreakpoints", map[string]any{"breakpoints": []any{watch}})
		e.move("continue")
		e.wantStop("data breakpoint", 5) // changed through the other name, by the line before
		watch["condition"] = "z > 1"
		if m := e.request("setDataBreakpoints", map[string]any{"breakpoints": []any{watch}}); m["success"] != false {
			t.Errorf("a condition on a data breakpoint: got %v, want an error", m)
		}
	},
	"supportsTerminateRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, "while True:\n    x = 1").configure()
		e.mustRequest("terminate", nil)
		e.wantEqual("cancelled", e.waitEvent("exited")["status"], "cancelled")
		e.waitEvent("terminated")
	},
	"supportTerminateDebuggee": func(t *testing.T, c client) {
		for _, terminate := range []bool{false, true} {
			d, _ := c.openDebugSession(t, map[string]any{"code": steppedProgram, "stop_on_entry": true}, nil)
			e := dapConnect(t)
			e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
			e.mustRequest("attach", map[string]any{"token": c.secret, "session": d.session})
			e.mustRequest("disconnect", map[string]any{"terminateDebuggee": terminate})
			if a := c.ok(t, "GET", "/executions/"+d.execution, nil); (a.get("status") == "cancelled") != terminate {
				t.Errorf("disconnect with terminateDebuggee %v: got the status %v", terminate, a.get("status"))
			}
			c.do(t, "DELETE", "/debug/sessions/"+d.session, nil)
		}
	},
	"supportsLoadedSourcesRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram)
		e.wantEqual("the sources", e.mustRequest("loadedSources", nil)["sources"],
			"[map[name:double.py path:/home/ada/double.py]]")
		e.wantEqual("its text", e.mustRequest("source", map[string]any{"sourceReference": 1})["content"],
			steppedProgram)
	},
	"supportsModulesRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram)
		e.wantEqual("the modules", e.mustRequest("modules", nil)["modules"],
			"[map[id:1 isUserCode:true name:__main__]]")
	},
	"supportsGotoTargetsRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(8))
		e.wantStop("breakpoint", 8)
		targets := e.mustRequest("gotoTargets", map[string]any{"source": map[string]any{},
			"line": 2})["targets"].([]any)
		for i, n := range []int{0, 3} { // the first and the last time
			e.mustRequest("goto", map[string]any{"threadId": 1, "targetId": targets[i].(map[string]any)["id"]})
			e.wantEqual("n", e.evaluate("n", e.wantStop("goto", 2)), n)
		}
	},
	"supportsBreakpointLocationsRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, "x = 1\n\n# nothing\ny = 2")
		e.wantEqual("where", e.mustRequest("breakpointLocations", map[string]any{"source": map[string]any{}, "line": 1,
			"endLine": 9})["breakpoints"], "[map[line:1] map[line:4]]")
		for i, verified := range []bool{true, false, false, true} {
			e.wantEqual("verified", e.setBreakpoints(breakpointAt(i + 1))[0].(map[string]any)["verified"], verified)
		}
	},
	"supportsRestartFrame": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3, "condition", "n == 2"))
		frame := e.wantStop("breakpoint", 3)
		e.mustRequest("restartFrame", map[string]any{"frameId": frame})
		frame = e.wantStop("restart", 2)
		_, values := e.locals(frame)
		e.wantEqual("the call's variables", values, "map[n:2]")
	},
	"supportsRestartRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3))
		ref, _ := e.locals(e.wantStop("breakpoint", 3))
		e.mustRequest("setVariable", map[string]any{"variablesReference": ref, "name": "twice", "value": "7"})
		e.mustRequest("restart", nil)
		e.wantEqual("anew", e.evaluate("twice", e.wantStop("breakpoint", 3)), 0)
		e.mustRequest("restart", map[string]any{"arguments": map[string]any{"code": "a = 1\nb = 2\nlatest = 3"}})
		e.wantEqual("the code that the client has by now", e.evaluate("b", e.wantStop("breakpoint", 3)), 2)
	},
	"supportsDelayedStackTraceLoading": func(t *testing.T, c client) {
		e := dapAttach(t, c,
			"def down(n):\n    if n:\n        return down(n - 1)\n    return 0\ndown(30)").configure(breakpointAt(4))
		e.wantStop("breakpoint", 4)
		var all []string
		for start := 0; start < 32; start += 10 {
			body := e.mustRequest("stackTrace", map[string]any{"threadId": 1, "startFrame": start, "levels": 10})
			e.wantEqual("in all", body["totalFrames"], 32)
			for _, f := range body["stackFrames"].([]any) {
				all = append(all, fmt.Sprint(f.(map[string]any)["name"], f.(map[string]any)["line"]))
			}
		}
		want := append(append([]string{"down4"}, slices.Repeat([]string{"down3"}, 30)...), "<module>5")
		e.wantEqual("the pages together", all, want)
	},
	"supportsValueFormattingOptions": func(t *testing.T, c client) {
		e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3, "condition", "n == 3"))
		frame := e.wantStop("breakpoint", 3)
		hex := map[string]any{"hex": true}
		e.wantEqual("evaluate", e.mustRequest("evaluate", map[string]any{"expression": "-twice * 100", "frameId": frame,
			"format": hex})["result"], "-0x258")
		ref, _ := e.locals(frame)
		e.wantEqual("variables", e.mustRequest("variables", map[string]any{"variablesReference": ref,
			"format": hex})["variables"].([]any)[1].(map[string]any)["value"], "0x6")
		e.wantEqual("setVariable", e.mustRequest("setVariable", map[string]any{"variablesReference": ref, "name": "n",
			"value": "255", "format": hex})["value"], "0xff")
		e.wantEqual("setExpression", e.mustRequest("setExpression", map[string]any{"expression": "n", "value": "254",
			"frameId": frame, "format": hex})["value"], "0xfe")
		name := e.mustRequest("stackTrace", map[string]any{"threadId": 1, "format": map[string]any{"module": true,
			"line": true}})["stackFrames"].([]any)[0].(map[string]any)["name"]
		e.wantEqual("stackTrace", name, "__main__.double, line 3")
	},
	"supportsCancelRequest": func(t *testing.T, c client) {
		e := dapAttach(t, c, "n = 0\nfor i in range(30000):\n    n += i\nend = 1").configure(breakpointAt(4))
		frame := e.wantStop("breakpoint", 4)
		cancelled := func(what string, seq int) {
			t.Helper()
			if m := e.response(seq); m["success"] != false || m["message"] != "cancelled" {
				t.Errorf("%s: got %v, want it cancelled", what, m)
			}
		}
		endless := map[string]any{"expression": "[0 for _ in iter(int, 1) if 0]", "frameId": frame}
		seq := e.send("evaluate", endless)
		next := e.send("threads", nil)
		e.mustRequest("cancel", map[string]any{"requestId": seq})
		cancelled("an expression that does not end", seq)
		if m := e.response(next); m["success"] != true {
			t.Errorf("the request behind it: got %v, want success", m)
		}
		waiting := e.send("evaluate", endless)
		second := e.send("evaluate", endless)
		e.mustRequest("cancel", map[string]any{"requestId": second})
		e.mustRequest("cancel", map[string]any{"requestId": waiting})
		cancelled("the one whose turn had come", waiting)
		cancelled("the one that waited", second)

		seq = e.send("evaluate", endless)
		begun := e.waitEventOf("progressStart", "requestId", float64(seq)) // the others were slow if they have events
		e.mustRequest("cancel", map[string]any{"progressId": begun["progressId"]})
		cancelled("by its progress", seq)
		e.waitEventOf("progressEnd", "progressId", begun["progressId"])

		e.setBreakpoints(breakpointAt(3, "condition", "n < 0 and n > 0"))
		seq = e.send("reverseContinue", map[string]any{"threadId": 1})
		e.mustRequest("cancel", map[string]any{"requestId": seq})
		cancelled("a search through the recording", seq)
		frame, line, _ := e.innermostFrame()
		e.wantEqual("it stands where it did", line, 4)
		e.wantEqual("and goes on", e.evaluate("n", frame), 449985000)
		e.mustRequest("cancel", map[string]any{"requestId": seq}) // cancelling too late is not an error
		e.move("continue")
		e.waitEvent("terminated")
	},
}

// deleteSandboxes deletes the client's sandboxes; the service has a limit on all of them.
func (c client) deleteSandboxes(t testing.TB) { c.ok(t, "POST", "/sandbox/cleanup-all", nil) }

// Every announced capability has a test, and every capability with a test is announced.
func TestAnnouncedDAPCapabilitiesWork(t *testing.T) {
	t.Parallel()
	announced := dapConnect(t).mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	for _, name := range slices.Sorted(maps.Keys(announced)) {
		t.Run(name, func(t *testing.T) {
			effect := capabilityTests[name]
			if effect == nil {
				t.Fatalf("%s is announced as %v and has no test", name, announced[name])
			}
			if announced[name] == false {
				t.Fatalf("%s is announced as false; leave it out", name)
			}
			c := newUser(t, sandbox.RoleDeveloper)
			defer c.deleteSandboxes(t)
			effect(t, c)
		})
	}
	for name := range capabilityTests {
		if announced[name] == nil {
			t.Errorf("%s has a test and is not announced", name)
		}
	}
}
