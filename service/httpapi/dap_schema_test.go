package httpapi_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
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

// Every request in dap.Requests is supported. A request that is invalid in the current state gets an error.
func TestEveryDAPRequestIsSupported(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	e := dapAttach(t, c, steppedProgram).configure(breakpointAt(3, "hitCondition", "2"))
	frame := e.wantStop("breakpoint", 3)
	for command, arguments := range map[string]map[string]any{
		"setExpression": {"expression": "n + 1", "value": "2", "frameId": frame}, // not assignable
		"restartFrame":  {"frameId": 999},
		"exceptionInfo": {"threadId": 1},
		"pause":         {"threadId": 1},
	} {
		if m := e.request(command, arguments); m["success"] != false {
			t.Errorf("%s %v: got %v, want an error", command, arguments, m)
		}
	}
	e.mustRequest("terminate", map[string]any{})
	e.waitEvent("terminated")
	for _, request := range dap.Requests() {
		if request == "disconnect" || request == "restart" {
			continue
		}
		message, _ := e.request(request, map[string]any{})["message"].(string)
		if strings.Contains(message, "unsupported request") {
			t.Errorf("%s: got %s, want a supported request", request, message)
		}
	}
	e.mustRequest("disconnect", map[string]any{"terminateDebuggee": true})
	if n := len(dap.Requests()); n < 35 {
		t.Errorf("got %d supported requests, want at least 35", n)
	}
}

func TestDAPPauseAndException(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	e := dapConnect(t)
	e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse"})
	e.mustRequest("launch", map[string]any{"token": c.secret, "sandbox": id,
		"code": "going = True\nprint('begins\\n', end='')\nwhile going:\n    pass\n{}['missing']"})
	e.waitEvent("initialized")
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
	e.mustRequest("configurationDone", nil)
	if list := e.mustRequest("threads", nil)["threads"].([]any); len(list) != 1 {
		t.Errorf("a running program: got the threads %v, want 1", list)
	}
	unsupported := `unsupported request "readMemory"`
	if m := e.request("readMemory", map[string]any{"frameId": 1}); m["message"] != unsupported {
		t.Errorf("an unknown request while the program runs: got %v, want %s", m, unsupported)
	}
	if m := e.request("next", map[string]any{"threadId": 1}); m["success"] != false {
		t.Errorf("next while the program runs: got %v, want an error", m)
	}
	e.waitEventOf("output", "output", "begins\n") // a program that is paused before it begins would set going again
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
