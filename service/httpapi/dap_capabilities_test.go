package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// attached is an editor that stands at the beginning of code, to be configured.
func attached(t testing.TB, c client, code string) *editor {
	t.Helper()
	e := edit(t)
	e.must("initialize", map[string]any{"adapterID": "glasshouse", "supportsProgressReporting": true})
	e.must("attach", map[string]any{"token": c.secret, "sandbox": c.create(t, nil), "code": code, "path": "/home/ada/double.py"})
	e.wait("initialized")
	return e
}

// breaks sets breakpoints, of the program, and has it run.
func (e *editor) breaks(breakpoints ...map[string]any) *editor {
	e.t.Helper()
	e.lines(breakpoints...)
	e.must("configurationDone", nil)
	return e
}

func (e *editor) lines(breakpoints ...map[string]any) []any {
	e.t.Helper()
	return e.must("setBreakpoints", map[string]any{"source": map[string]any{"path": "/home/ada/double.py"}, "breakpoints": append([]map[string]any{}, breakpoints...)})["breakpoints"].([]any)
}

// stands waits for a stop, checks it, and returns the innermost frame.
func (e *editor) stands(reason string, line float64) (frame any) {
	e.t.Helper()
	if body := e.wait("stopped"); body["reason"] != reason {
		e.t.Errorf("the stop: %v, not %s", body, reason)
	}
	frame, at, _ := e.top()
	if at != line {
		e.t.Errorf("it stands in line %v, not %v", at, line)
	}
	return frame
}

func (e *editor) moves(verb string) { e.t.Helper(); e.must(verb, map[string]any{"threadId": 1}) }

// value is what an expression comes to in a frame.
func (e *editor) value(expression string, frame any, more ...string) any {
	e.t.Helper()
	arguments := map[string]any{"expression": expression, "frameId": frame}
	if len(more) > 0 {
		arguments["context"] = more[0]
	}
	return e.must("evaluate", arguments)["result"]
}

// locals are the innermost frame's variables, and the number that opens them.
func (e *editor) locals(frame any) (ref any, values map[string]any) {
	e.t.Helper()
	ref = e.must("scopes", map[string]any{"frameId": frame})["scopes"].([]any)[0].(map[string]any)["variablesReference"]
	values = map[string]any{}
	for _, v := range e.must("variables", map[string]any{"variablesReference": ref})["variables"].([]any) {
		values[v.(map[string]any)["name"].(string)] = v.(map[string]any)["value"]
	}
	return ref, values
}

// same reports a difference.
func (e *editor) same(what string, got, want any) {
	e.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		e.t.Errorf("%s: %v, not %v", what, got, want)
	}
}

func at(line int, more ...string) map[string]any {
	b := map[string]any{"line": line}
	for i := 0; i+1 < len(more); i += 2 {
		b[more[i]] = more[i+1]
	}
	return b
}

const failing = "x = 1\ntry:\n    int('a')\nexcept ValueError:\n    x = 2\n{}['k']"

// effects are what each announced capability does, as a client sees it.
var effects = map[string]func(*testing.T, client){
	"supportsConfigurationDoneRequest": func(t *testing.T, c client) {
		e := attached(t, c, "print('ran')\nx = 1")
		e.same("ahead of its configuration it stands at", e.must("stackTrace", map[string]any{"threadId": 1})["stackFrames"].([]any)[0].(map[string]any)["line"], 1)
		for _, m := range e.kept {
			t.Errorf("ahead of its configuration: %v", m)
		}
		e.must("configurationDone", nil)
		e.wait("terminated")
	},
	"supportsConditionalBreakpoints": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(2, "condition", "n == 2"))
		e.same("n", e.value("n", e.stands("breakpoint", 2)), 2)
	},
	"supportsHitConditionalBreakpoints": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(2, "hitCondition", ">= 3"))
		e.same("n", e.value("n", e.stands("breakpoint", 2)), 2)
		e.moves("continue")
		e.same("n", e.value("n", e.stands("breakpoint", 2)), 3)
		e.same("a hit condition that is none", e.lines(at(2, "hitCondition", "often"))[0].(map[string]any)["verified"], false)
	},
	"supportsLogPoints": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(2, "logMessage", "n is {n}, {n * 2}"), at(8))
		for i := range 4 {
			e.same("said", e.wait("output")["output"], fmt.Sprintf("n is %d, %d\n", i, 2*i))
		}
		e.stands("breakpoint", 8)
	},
	"supportsEvaluateForHovers": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3))
		frame := e.stands("breakpoint", 3)
		e.same("a hover", e.value("n + twice", frame, "hover"), 0)
		if m := e.ask("evaluate", map[string]any{"expression": "n = 5", "frameId": frame, "context": "hover"}); m["success"] != false {
			t.Errorf("a hover changes the program: %v", m)
		}
		e.same("n", e.value("n", frame), 0)
	},
	"supportsStepBack": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3, "condition", "n == 2"))
		e.stands("breakpoint", 3)
		e.moves("stepBack")
		e.same("n", e.value("n", e.stands("step", 2)), 2)
		e.lines(at(3))
		e.moves("reverseContinue")
		e.same("n", e.value("n", e.stands("breakpoint", 3)), 1)
		e.moves("continue")
		e.same("n", e.value("n", e.stands("breakpoint", 3)), 2)
	},
	"supportsSetVariable": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(2))
		frame := e.stands("breakpoint", 2)
		ref, _ := e.locals(frame)
		e.same("set to", e.must("setVariable", map[string]any{"variablesReference": ref, "name": "n", "value": "20 + 1"})["value"], 21)
		_, values := e.locals(frame)
		e.same("shown as", values["n"], 21)
		e.moves("next")
		e.same("the program goes on with it", e.value("twice", e.stands("step", 3)), 42)
	},
	"supportsSetExpression": func(t *testing.T, c client) {
		e := attached(t, c, "d = {'k': [1]}\ndone = d['k'][0]\nend = 1").breaks(at(2))
		frame := e.stands("breakpoint", 2)
		e.same("set to", e.must("setExpression", map[string]any{"expression": "d['k'][0]", "value": "5", "frameId": frame})["value"], 5)
		e.moves("next")
		e.same("the program goes on with it", e.value("done", e.stands("step", 3)), 5)
	},
	"supportsCompletionsRequest": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3))
		frame := e.stands("breakpoint", 3)
		e.same("completed", e.must("completions", map[string]any{"frameId": frame, "text": "x + twi", "column": 8})["targets"], "[map[label:twice length:3 start:4]]")
	},
	"completionTriggerCharacters": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3))
		frame := e.stands("breakpoint", 3)
		if targets := fmt.Sprint(e.must("completions", map[string]any{"frameId": frame, "text": "twice.", "column": 7})["targets"]); !strings.Contains(targets, "label:bit_length") {
			t.Errorf("behind the dot: %s", targets)
		}
	},
	"supportsExceptionInfoRequest": func(t *testing.T, c client) {
		e := attached(t, c, failing)
		e.must("setExceptionBreakpoints", map[string]any{"filters": []string{"raised"}})
		e.must("configurationDone", nil)
		e.stands("exception", 3)
		info := e.must("exceptionInfo", map[string]any{"threadId": 1})
		e.same("the exception", fmt.Sprint(info["exceptionId"], " ", info["breakMode"]), "ValueError always")
	},
	"supportsExceptionFilterOptions": func(t *testing.T, c client) {
		e := attached(t, c, failing)
		e.must("setExceptionBreakpoints", map[string]any{"filters": []string{}, "filterOptions": []any{map[string]any{"filterId": "raised"}}})
		e.must("configurationDone", nil)
		e.stands("exception", 3)
		if m := e.ask("setExceptionBreakpoints", map[string]any{"filters": []string{}, "filterOptions": []any{map[string]any{"filterId": "raised", "condition": "x"}}}); m["success"] != false {
			t.Errorf("a condition, which is not announced: %v", m)
		}
	},
	"exceptionBreakpointFilters": func(t *testing.T, c client) {
		e := edit(t)
		filters := e.must("initialize", map[string]any{"adapterID": "glasshouse"})["exceptionBreakpointFilters"].([]any)
		stops := map[string]string{"raised": "3 6", "uncaught": "6"}
		if len(filters) != len(stops) {
			t.Errorf("the filters: %v", filters)
		}
		for _, f := range filters {
			name := f.(map[string]any)["filter"].(string)
			e := attached(t, c, failing)
			e.must("setExceptionBreakpoints", map[string]any{"filters": []string{name}})
			e.must("configurationDone", nil)
			for _, line := range strings.Fields(stops[name]) {
				e.wait("stopped")
				_, at, _ := e.top()
				e.same(name, at, line)
				mode := map[string]string{"raised": "always", "uncaught": "unhandled"}[name]
				e.same("its mode", e.must("exceptionInfo", map[string]any{"threadId": 1})["breakMode"], mode)
				e.moves("continue")
			}
			e.same("it ended with", e.wait("exited")["exitCode"], 1)
		}
	},
	"supportsDataBreakpoints": func(t *testing.T, c client) {
		e := attached(t, c, "x = [1]\ny = x\nz = 1\ny.append(2)\nend = 1").breaks(at(2))
		frame := e.stands("breakpoint", 2)
		info := e.must("dataBreakpointInfo", map[string]any{"name": "x", "frameId": frame})
		watch := map[string]any{"dataId": info["dataId"]}
		e.must("setDataBreakpoints", map[string]any{"breakpoints": []any{watch}})
		e.moves("continue")
		e.stands("data breakpoint", 5) // changed under its other name, by the line before
		watch["condition"] = "z > 1"
		if m := e.ask("setDataBreakpoints", map[string]any{"breakpoints": []any{watch}}); m["success"] != false {
			t.Errorf("a condition on a variable's change: %v", m)
		}
	},
	"supportsTerminateRequest": func(t *testing.T, c client) {
		e := attached(t, c, "while True:\n    x = 1").breaks()
		e.must("terminate", nil)
		e.same("cancelled", e.wait("exited")["status"], "cancelled")
		e.wait("terminated")
	},
	"supportTerminateDebuggee": func(t *testing.T, c client) {
		for _, terminate := range []bool{false, true} {
			d, _ := c.open(t, map[string]any{"code": stepped, "stop_on_entry": true}, nil)
			e := edit(t)
			e.must("initialize", map[string]any{"adapterID": "glasshouse"})
			e.must("attach", map[string]any{"token": c.secret, "session": d.session})
			e.must("disconnect", map[string]any{"terminateDebuggee": terminate})
			if a := c.ok(t, "GET", "/executions/"+d.execution, nil); (a.get("status") == "cancelled") != terminate {
				t.Errorf("after a disconnect with terminateDebuggee %v: %v", terminate, a.get("status"))
			}
			c.do(t, "DELETE", "/debug/sessions/"+d.session, nil)
		}
	},
	"supportsLoadedSourcesRequest": func(t *testing.T, c client) {
		e := attached(t, c, stepped)
		e.same("the sources", e.must("loadedSources", nil)["sources"], "[map[name:code path:/home/ada/double.py]]")
		e.same("its text", e.must("source", map[string]any{"sourceReference": 1})["content"], stepped)
	},
	"supportsModulesRequest": func(t *testing.T, c client) {
		e := attached(t, c, stepped)
		e.same("the modules", e.must("modules", nil)["modules"], "[map[id:1 isUserCode:true name:__main__]]")
	},
	"supportsGotoTargetsRequest": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(8))
		e.stands("breakpoint", 8)
		targets := e.must("gotoTargets", map[string]any{"source": map[string]any{}, "line": 2})["targets"].([]any)
		for i, n := range []int{0, 3} { // the first time, and the last before
			e.must("goto", map[string]any{"threadId": 1, "targetId": targets[i].(map[string]any)["id"]})
			e.same("n", e.value("n", e.stands("goto", 2)), n)
		}
	},
	"supportsBreakpointLocationsRequest": func(t *testing.T, c client) {
		e := attached(t, c, "x = 1\n\n# nothing\ny = 2")
		e.same("where", e.must("breakpointLocations", map[string]any{"source": map[string]any{}, "line": 1, "endLine": 9})["breakpoints"], "[map[line:1] map[line:4]]")
		for i, verified := range []bool{true, false, false, true} {
			e.same("verified", e.lines(at(i + 1))[0].(map[string]any)["verified"], verified)
		}
	},
	"supportsRestartFrame": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3, "condition", "n == 2"))
		frame := e.stands("breakpoint", 3)
		e.must("restartFrame", map[string]any{"frameId": frame})
		frame = e.stands("restart", 2)
		_, values := e.locals(frame)
		e.same("the call's variables", values, "map[n:2]")
	},
	"supportsRestartRequest": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3))
		ref, _ := e.locals(e.stands("breakpoint", 3))
		e.must("setVariable", map[string]any{"variablesReference": ref, "name": "twice", "value": "7"})
		e.must("restart", nil)
		e.same("anew", e.value("twice", e.stands("breakpoint", 3)), 0)
		e.must("restart", map[string]any{"arguments": map[string]any{"code": "a = 1\nb = 2\nlatest = 3"}})
		e.same("the code that the client has by now", e.value("b", e.stands("breakpoint", 3)), 2)
	},
	"supportsDelayedStackTraceLoading": func(t *testing.T, c client) {
		e := attached(t, c, "def down(n):\n    if n:\n        return down(n - 1)\n    return 0\ndown(30)").breaks(at(4))
		e.stands("breakpoint", 4)
		var all []string
		for start := 0; start < 32; start += 10 {
			body := e.must("stackTrace", map[string]any{"threadId": 1, "startFrame": start, "levels": 10})
			e.same("in all", body["totalFrames"], 32)
			for _, f := range body["stackFrames"].([]any) {
				all = append(all, fmt.Sprint(f.(map[string]any)["name"], f.(map[string]any)["line"]))
			}
		}
		want := append(append([]string{"down4"}, slices.Repeat([]string{"down3"}, 30)...), "<module>5")
		e.same("the pages together", all, want)
	},
	"supportsValueFormattingOptions": func(t *testing.T, c client) {
		e := attached(t, c, stepped).breaks(at(3, "condition", "n == 3"))
		frame := e.stands("breakpoint", 3)
		hex := map[string]any{"hex": true}
		e.same("evaluate", e.must("evaluate", map[string]any{"expression": "-twice * 100", "frameId": frame, "format": hex})["result"], "-0x258")
		ref, _ := e.locals(frame)
		e.same("variables", e.must("variables", map[string]any{"variablesReference": ref, "format": hex})["variables"].([]any)[1].(map[string]any)["value"], "0x6")
		e.same("setVariable", e.must("setVariable", map[string]any{"variablesReference": ref, "name": "n", "value": "255", "format": hex})["value"], "0xff")
		e.same("setExpression", e.must("setExpression", map[string]any{"expression": "n", "value": "254", "frameId": frame, "format": hex})["value"], "0xfe")
		name := e.must("stackTrace", map[string]any{"threadId": 1, "format": map[string]any{"module": true, "line": true}})["stackFrames"].([]any)[0].(map[string]any)["name"]
		e.same("stackTrace", name, "__main__.double, line 3")
	},
	"supportsCancelRequest": func(t *testing.T, c client) {
		e := attached(t, c, "n = 0\nfor i in range(30000):\n    n += i\nend = 1").breaks(at(4))
		frame := e.stands("breakpoint", 4)
		cancelled := func(what string, seq int) {
			t.Helper()
			if m := e.answer(seq); m["success"] != false || m["message"] != "cancelled" {
				t.Errorf("%s: %v", what, m)
			}
		}
		endless := map[string]any{"expression": "[0 for _ in iter(int, 1) if 0]", "frameId": frame}
		seq := e.send("evaluate", endless)
		next := e.send("threads", nil)
		e.must("cancel", map[string]any{"requestId": seq})
		cancelled("an expression that does not end", seq)
		if m := e.answer(next); m["success"] != true {
			t.Errorf("what waited behind it: %v", m)
		}
		waiting := e.send("evaluate", endless)
		second := e.send("evaluate", endless)
		e.must("cancel", map[string]any{"requestId": second})
		e.must("cancel", map[string]any{"requestId": waiting})
		cancelled("the one whose turn had come", waiting)
		cancelled("the one that waited", second)

		seq = e.send("evaluate", endless)
		begun := e.wait("progressStart")
		e.must("cancel", map[string]any{"progressId": begun["progressId"]})
		cancelled("by its progress", seq)
		e.same("its progress", e.wait("progressEnd")["progressId"], begun["progressId"])

		e.lines(at(3, "condition", "n < 0 and n > 0"))
		seq = e.send("reverseContinue", map[string]any{"threadId": 1})
		e.must("cancel", map[string]any{"requestId": seq})
		cancelled("a search through the recording", seq)
		frame, line, _ := e.top()
		e.same("it stands where it did", line, 4)
		e.same("and goes on", e.value("n", frame), 449985000)
		e.must("cancel", map[string]any{"requestId": seq}) // too late, and no error
		e.moves("continue")
		e.wait("terminated")
	},
}

// What is announced has an effect, and what has none is not announced.
func TestEachAnnouncedCapabilityHasItsEffect(t *testing.T) {
	announced := edit(t).must("initialize", map[string]any{"adapterID": "glasshouse"})
	for _, name := range slices.Sorted(maps.Keys(announced)) {
		t.Run(name, func(t *testing.T) {
			effect := effects[name]
			if effect == nil {
				t.Fatalf("%s is announced as %v, and nothing shows what it does", name, announced[name])
			}
			if announced[name] == false {
				t.Fatalf("%s is announced as false: leave it out", name)
			}
			effect(t, user(t, sandbox.RoleDeveloper))
		})
	}
	for name := range effects {
		if announced[name] == nil {
			t.Errorf("%s has an effect, and is not announced", name)
		}
	}
}
