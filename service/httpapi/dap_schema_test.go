package httpapi_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"glasshouse/debugger/dap"
)

// dapSchema compiles definitions of the protocol's published schema.
var dapSchema = sync.OnceValues(func() (func(string) (*jsonschema.Schema, error), error) {
	text, err := os.ReadFile("../../debugger/dap/testdata/debugProtocol.json")
	if err != nil {
		return nil, err
	}
	all, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("dap.json", all); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func(definition string) (*jsonschema.Schema, error) {
		mu.Lock()
		defer mu.Unlock()
		return compiler.Compile("dap.json#/definitions/" + definition)
	}, nil
})

// checkDAPSchema checks a message of either side against its definition.
func checkDAPSchema(t testing.TB, text []byte) {
	t.Helper()
	message, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Errorf("not JSON: %s: %v", text, err)
		return
	}
	fields, _ := message.(map[string]any)
	kind, _ := fields["type"].(string)
	name, _ := fields["command"].(string)
	if kind == "event" {
		name, _ = fields["event"].(string)
	}
	if name == "" {
		t.Errorf("a message without a name: %s", text)
		return
	}
	definition := strings.ToUpper(name[:1]) + name[1:] + strings.ToUpper(kind[:1]) + kind[1:]
	if fields["success"] == false {
		definition = "ErrorResponse"
	}
	definitions, err := dapSchema()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := definitions(definition)
	if err == nil {
		err = schema.Validate(message)
	}
	if err != nil {
		t.Errorf("%.300s does not fit the schema: %v", text, err)
	}
}

func TestDAPSchemaRejectsInvalidMessages(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"seq":1,"type":"event","event":"stopped","body":{"threadId":1}}`,
		`{"seq":1,"type":"response","request_seq":1,"success":true,"command":"threads","body":{"threads":[{"id":1}]}}`,
		`{"seq":1,"type":"event","event":"nonsense"}`,
	} {
		refused := &failureRecorder{TB: t}
		if checkDAPSchema(refused, []byte(text)); !refused.failed {
			t.Errorf("the schema accepts %s, want an error", text)
		}
	}
}

// failureRecorder records a failure instead of reporting it.
type failureRecorder struct {
	testing.TB
	failed bool
}

func (q *failureRecorder) Errorf(string, ...any) { q.failed = true }
func (q *failureRecorder) Helper()               {}

// Every supported request in one session, with its effect.
func TestEveryDAPRequest(t *testing.T) {
	t.Parallel()
	c := newUser(t, "developer")
	id := c.create(t, nil)
	e := dapConnect(t)
	announced := e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": steppedProgram,
		"path": "/home/ada/double.py"})
	e.waitEvent("initialized")
	source := map[string]any{"path": "/home/ada/double.py"}
	if list := e.mustRequest("breakpointLocations", map[string]any{"source": source, "line": 1,
		"endLine": 4})["breakpoints"].([]any); len(list) != 4 {
		t.Errorf("got the breakpoint locations %v, want 4", list)
	}
	e.mustRequest("setBreakpoints", map[string]any{"source": source,
		"breakpoints": []any{map[string]any{"line": 3, "hitCondition": "2"}}})
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"raised"}})
	e.mustRequest("configurationDone", nil)
	stop := func(reason string, line float64) (frame any) {
		t.Helper()
		if body := e.waitEvent("stopped"); body["reason"] != reason {
			t.Errorf("got the stop %v, want the reason %s", body, reason)
		}
		frame, at, _ := e.innermostFrame()
		if at != line {
			t.Errorf("got a stop in line %v, want %v", at, line)
		}
		return frame
	}
	frame := stop("breakpoint", 3)
	if list := e.mustRequest("threads", nil)["threads"].([]any); len(list) != 1 {
		t.Errorf("got the threads %v, want 1", list)
	}
	if list := e.mustRequest("modules", map[string]any{})["modules"].([]any); len(list) != 1 {
		t.Errorf("got the modules %v, want 1", list)
	}
	if list := e.mustRequest("loadedSources",
		map[string]any{})["sources"].([]any); list[0].(map[string]any)["path"] != "/home/ada/double.py" {
		t.Errorf("got the sources %v, want the client's path", list)
	}
	e.mustRequest("source", map[string]any{"sourceReference": 1})
	if list := e.mustRequest("completions", map[string]any{"frameId": frame, "text": "tw",
		"column": 3})["targets"].([]any); len(list) != 1 {
		t.Errorf("got the completions %v, want 1", list)
	}
	e.mustRequest("setExpression", map[string]any{"expression": "twice", "value": "70", "frameId": frame})
	if body := e.mustRequest("evaluate", map[string]any{"expression": "twice + n",
		"frameId": frame}); body["result"] != "71" {
		t.Errorf("after setExpression: got %v, want 71", body)
	}
	if m := e.request("setExpression", map[string]any{"expression": "n + 1", "value": "2",
		"frameId": frame}); m["success"] != false {
		t.Errorf("setExpression of a sum: got %v, want an error", m)
	}

	e.mustRequest("restartFrame", map[string]any{"frameId": frame})
	frame = stop("restart", 2)
	if body := e.mustRequest("evaluate", map[string]any{"expression": "n", "frameId": frame}); body["result"] != "1" {
		t.Errorf("after restartFrame: got %v, want n = 1", body)
	}
	if m := e.request("restartFrame", map[string]any{"frameId": 999}); m["success"] != false {
		t.Errorf("restartFrame without a frame: got %v, want an error", m)
	}
	targets := e.mustRequest("gotoTargets", map[string]any{"source": source, "line": 3})["targets"].([]any)
	if len(targets) != 2 { // once before, and where the program is paused
		t.Fatalf("got the goto targets %v, want 2", targets)
	}
	e.mustRequest("goto", map[string]any{"threadId": 1, "targetId": targets[0].(map[string]any)["id"]})
	frame = stop("goto", 3)
	if body := e.mustRequest("evaluate", map[string]any{"expression": "n", "frameId": frame}); body["result"] != "0" {
		t.Errorf("after goto: got %v, want n = 0", body)
	}
	e.mustRequest("reverseContinue", map[string]any{"threadId": 1})
	stop("entry", 1)
	e.mustRequest("continue", map[string]any{"threadId": 1})
	stop("breakpoint", 3)

	info := e.mustRequest("dataBreakpointInfo", map[string]any{"name": "total"})
	e.mustRequest("setDataBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"dataId": info["dataId"]}}})
	e.mustRequest("continue", map[string]any{"threadId": 1})
	if body := e.waitEvent("stopped"); body["reason"] != "data breakpoint" {
		t.Errorf("got the stop %v, want a data breakpoint", body)
	}
	if m := e.request("exceptionInfo", map[string]any{"threadId": 1}); m["success"] != false {
		t.Errorf("exceptionInfo without an exception: got %v, want an error", m)
	}
	if m := e.request("pause", map[string]any{"threadId": 1}); m["success"] != false {
		t.Errorf("pause of a paused program: got %v, want an error", m)
	}
	e.mustRequest("cancel", map[string]any{})

	e.mustRequest("restart", map[string]any{}) // the breakpoints stay
	frame = stop("breakpoint", 3)
	if body := e.mustRequest("evaluate", map[string]any{"expression": "(n, twice)",
		"frameId": frame}); body["result"] != "(1, 2)" {
		t.Errorf("after restart: got %v, want the values of a new execution", body)
	}
	e.mustRequest("setBreakpoints", map[string]any{"source": source, "breakpoints": []any{}})
	e.mustRequest("terminate", map[string]any{})
	e.waitEvent("terminated")
	for _, request := range dap.Requests() {
		if request == "disconnect" || request == "restart" {
			continue
		}
		if message, _ := e.request(request, map[string]any{})["message"].(string); strings.Contains(message,
			"unsupported request") {
			t.Errorf("%s: got %s, want a supported request", request, message)
		}
	}
	e.mustRequest("disconnect", map[string]any{"terminateDebuggee": true})
	if announced["supportsRestartFrame"] != true || announced["supportsGotoTargetsRequest"] != true ||
		announced["supportsRestartRequest"] != true {
		t.Errorf("got the capabilities %v, want restartFrame, gotoTargets and restart", announced)
	}
	if n := len(dap.Requests()); n < 35 {
		t.Errorf("got %d supported requests, want at least 35", n)
	}
}

func TestDAPPauseAndException(t *testing.T) {
	t.Parallel()
	c := newUser(t, "developer")
	id := c.create(t, nil)
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("launch", map[string]any{"token": c.secret, "sandbox": id,
		"code": "going = True\nwhile going:\n    pass\n{}['missing']"})
	e.waitEvent("initialized")
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
	e.mustRequest("configurationDone", nil)
	if list := e.mustRequest("threads", nil)["threads"].([]any); len(list) != 1 {
		t.Errorf("a running program: got the threads %v, want 1", list)
	}
	unsupported := `unsupported request "stepInTargets"`
	if m := e.request("stepInTargets", map[string]any{"frameId": 1}); m["message"] != unsupported {
		t.Errorf("an unknown request while the program runs: got %v, want %s", m, unsupported)
	}
	if m := e.request("next", map[string]any{"threadId": 1}); m["success"] != false {
		t.Errorf("next while the program runs: got %v, want an error", m)
	}
	e.mustRequest("pause", map[string]any{"threadId": 1})
	if body := e.waitEvent("stopped"); body["reason"] != "pause" {
		t.Errorf("got the stop %v, want pause", body)
	}
	e.mustRequest("evaluate", map[string]any{"expression": "going = False", "context": "repl"})
	e.mustRequest("continue", map[string]any{"threadId": 1})
	if body := e.waitEvent("stopped"); body["reason"] != "exception" {
		t.Errorf("got the stop %v, want an exception", body)
	}
	if body := e.mustRequest("exceptionInfo", map[string]any{"threadId": 1}); body["exceptionId"] != "KeyError" {
		t.Errorf("got %v, want a KeyError", body)
	}
	e.mustRequest("disconnect", map[string]any{})
}
