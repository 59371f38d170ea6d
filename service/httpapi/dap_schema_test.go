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

// published compiles definitions of the protocol's published schema.
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

// checkDAPSchema checks a message, of either side, against its definition.
func checkDAPSchema(t testing.TB, text []byte) {
	t.Helper()
	message, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Errorf("%s: %v", text, err)
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
		t.Errorf("%.300s: %v", text, err)
	}
}

func TestDAPSchemaRejectsInvalidMessages(t *testing.T) {
	for _, text := range []string{
		`{"seq":1,"type":"event","event":"stopped","body":{"threadId":1}}`,
		`{"seq":1,"type":"response","request_seq":1,"success":true,"command":"threads","body":{"threads":[{"id":1}]}}`,
		`{"seq":1,"type":"event","event":"nonsense"}`,
	} {
		refused := &failureRecorder{TB: t}
		if checkDAPSchema(refused, []byte(text)); !refused.failed {
			t.Errorf("it takes %s", text)
		}
	}
}

// failureRecorder is a test that may fail.
type failureRecorder struct {
	testing.TB
	failed bool
}

func (q *failureRecorder) Errorf(string, ...any) { q.failed = true }
func (q *failureRecorder) Helper()               {}

// Every request that is answered, in one session, with what it does.
func TestEveryDAPRequest(t *testing.T) {
	c := newUser(t, "developer")
	id := c.create(t, nil)
	e := dapConnect(t)
	announced := e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": steppedProgram, "path": "/home/ada/double.py"})
	e.waitEvent("initialized")
	source := map[string]any{"path": "/home/ada/double.py"}
	if list := e.mustRequest("breakpointLocations", map[string]any{"source": source, "line": 1, "endLine": 4})["breakpoints"].([]any); len(list) != 4 {
		t.Errorf("breakpointLocations: %v", list)
	}
	e.mustRequest("setBreakpoints", map[string]any{"source": source, "breakpoints": []any{map[string]any{"line": 3, "hitCondition": "2"}}})
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"raised"}})
	e.mustRequest("configurationDone", nil)
	stop := func(reason string, line float64) (frame any) {
		t.Helper()
		if body := e.waitEvent("stopped"); body["reason"] != reason {
			t.Errorf("the stop: %v, not %s", body, reason)
		}
		frame, at, _ := e.innermostFrame()
		if at != line {
			t.Errorf("it stands in line %v, not %v", at, line)
		}
		return frame
	}
	frame := stop("breakpoint", 3)
	if list := e.mustRequest("threads", nil)["threads"].([]any); len(list) != 1 {
		t.Errorf("threads: %v", list)
	}
	if list := e.mustRequest("modules", map[string]any{})["modules"].([]any); len(list) != 1 {
		t.Errorf("modules: %v", list)
	}
	if list := e.mustRequest("loadedSources", map[string]any{})["sources"].([]any); list[0].(map[string]any)["path"] != "/home/ada/double.py" {
		t.Errorf("loadedSources: %v", list)
	}
	e.mustRequest("source", map[string]any{"sourceReference": 1})
	if list := e.mustRequest("completions", map[string]any{"frameId": frame, "text": "tw", "column": 3})["targets"].([]any); len(list) != 1 {
		t.Errorf("completions: %v", list)
	}
	e.mustRequest("setExpression", map[string]any{"expression": "twice", "value": "70", "frameId": frame})
	if body := e.mustRequest("evaluate", map[string]any{"expression": "twice + n", "frameId": frame}); body["result"] != "71" {
		t.Errorf("setExpression: %v", body)
	}
	if m := e.request("setExpression", map[string]any{"expression": "n + 1", "value": "2", "frameId": frame}); m["success"] != false {
		t.Errorf("a sum was set: %v", m)
	}

	e.mustRequest("restartFrame", map[string]any{"frameId": frame})
	frame = stop("restart", 2)
	if body := e.mustRequest("evaluate", map[string]any{"expression": "n", "frameId": frame}); body["result"] != "1" {
		t.Errorf("the call from its beginning: %v", body)
	}
	if m := e.request("restartFrame", map[string]any{"frameId": 999}); m["success"] != false {
		t.Errorf("no frame: %v", m)
	}
	targets := e.mustRequest("gotoTargets", map[string]any{"source": source, "line": 3})["targets"].([]any)
	if len(targets) != 2 { // it was reached once before, and where the program stands
		t.Fatalf("gotoTargets: %v", targets)
	}
	e.mustRequest("goto", map[string]any{"threadId": 1, "targetId": targets[0].(map[string]any)["id"]})
	frame = stop("goto", 3)
	if body := e.mustRequest("evaluate", map[string]any{"expression": "n", "frameId": frame}); body["result"] != "0" {
		t.Errorf("the first time: %v", body)
	}
	e.mustRequest("reverseContinue", map[string]any{"threadId": 1})
	stop("entry", 1)
	e.mustRequest("continue", map[string]any{"threadId": 1})
	stop("breakpoint", 3)

	info := e.mustRequest("dataBreakpointInfo", map[string]any{"name": "total"})
	e.mustRequest("setDataBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"dataId": info["dataId"]}}})
	e.mustRequest("continue", map[string]any{"threadId": 1})
	if body := e.waitEvent("stopped"); body["reason"] != "data breakpoint" {
		t.Errorf("a data breakpoint: %v", body)
	}
	if m := e.request("exceptionInfo", map[string]any{"threadId": 1}); m["success"] != false {
		t.Errorf("there is no exception: %v", m)
	}
	if m := e.request("pause", map[string]any{"threadId": 1}); m["success"] != false {
		t.Errorf("it stands already: %v", m)
	}
	e.mustRequest("cancel", map[string]any{})

	e.mustRequest("restart", map[string]any{}) // its breakpoints are still there
	frame = stop("breakpoint", 3)
	if body := e.mustRequest("evaluate", map[string]any{"expression": "(n, twice)", "frameId": frame}); body["result"] != "(1, 2)" {
		t.Errorf("another run, without what was set: %v", body)
	}
	e.mustRequest("setBreakpoints", map[string]any{"source": source, "breakpoints": []any{}})
	e.mustRequest("terminate", map[string]any{})
	e.waitEvent("terminated")
	for _, request := range dap.Requests() {
		if request == "disconnect" || request == "restart" {
			continue
		}
		if message, _ := e.request(request, map[string]any{})["message"].(string); strings.Contains(message, "unsupported request") {
			t.Errorf("%s: %s", request, message)
		}
	}
	e.mustRequest("disconnect", map[string]any{"terminateDebuggee": true})
	if announced["supportsRestartFrame"] != true || announced["supportsGotoTargetsRequest"] != true || announced["supportsRestartRequest"] != true {
		t.Errorf("announced: %v", announced)
	}
	if n := len(dap.Requests()); n < 35 {
		t.Errorf("%d requests are answered", n)
	}
}

func TestDAPPauseAndException(t *testing.T) {
	c := newUser(t, "developer")
	id := c.create(t, nil)
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("launch", map[string]any{"token": c.secret, "sandbox": id, "code": "going = True\nwhile going:\n    pass\n{}['missing']"})
	e.waitEvent("initialized")
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
	e.mustRequest("configurationDone", nil)
	if list := e.mustRequest("threads", nil)["threads"].([]any); len(list) != 1 {
		t.Errorf("threads of a program that runs: %v", list)
	}
	e.mustRequest("pause", map[string]any{"threadId": 1})
	if body := e.waitEvent("stopped"); body["reason"] != "pause" {
		t.Errorf("pause: %v", body)
	}
	e.mustRequest("evaluate", map[string]any{"expression": "going = False", "context": "repl"})
	e.mustRequest("continue", map[string]any{"threadId": 1})
	if body := e.waitEvent("stopped"); body["reason"] != "exception" {
		t.Errorf("the exception: %v", body)
	}
	if body := e.mustRequest("exceptionInfo", map[string]any{"threadId": 1}); body["exceptionId"] != "KeyError" {
		t.Errorf("exceptionInfo: %v", body)
	}
	e.mustRequest("disconnect", map[string]any{})
}
