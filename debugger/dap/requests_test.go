package dap

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
	"glasshouse/debugger/recording/recordingtest"
)

func TestRequestsHaveOneHandler(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range table {
		handlers := 0
		for _, set := range []bool{r.session != nil, r.connection != nil, r.beforeAttach != nil} {
			if set {
				handlers++
			}
		}
		if handlers != 1 || seen[r.name] {
			t.Errorf("%s: got %d handlers, in the table before: %v; want one handler and one row", r.name, handlers,
				seen[r.name])
		}
		seen[r.name] = true
		if r.moves && !r.drives {
			t.Errorf("%s moves the session, so it must drive it", r.name)
		}
	}
}

// Each request and capability in the table is in the published schema.
func TestRequestsAndCapabilitiesArePublished(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/debugProtocol.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range Requests() {
		if definition := strings.ToUpper(name[:1]) + name[1:] + "Request"; schema.Definitions[definition] == nil {
			t.Errorf("the published schema has no %s", definition)
		}
	}
	announced, err := json.Marshal(capabilities())
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(announced))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&godap.Capabilities{}); err != nil {
		t.Errorf("capabilities: %v", err)
	}
}

func newSession(t *testing.T, past bool) *debugger.Session {
	t.Helper()
	r, err := debugger.NewRecording("for x in range(10):\n    y[0] = x\n    pass")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(recordingtest.Loop(10)); err != nil {
		t.Fatal(err)
	}
	if past {
		return debugger.NewPastSession(r)
	}
	return debugger.NewSession(r)
}

func TestUnknownRequestIsReportedAsUnsupported(t *testing.T) {
	t.Parallel()
	for _, past := range []bool{true, false} { // stopped, and running
		s := newSession(t, past)
		for _, command := range []string{"nonsense", "", "readMemory", "attach", "Next"} {
			_, err := Do(t.Context(), s, command, nil)
			want := `unsupported request "` + command + `"`
			if err == nil || err.Error() != want || !errors.Is(err, debugger.ErrRequest) {
				t.Errorf("%q: got %v, want %s", command, err, want)
			}
		}
	}
}

func TestRequestsNeedAStoppedProgram(t *testing.T) {
	t.Parallel()
	s := newSession(t, false)
	for _, r := range table {
		if r.session == nil {
			continue
		}
		_, err := Do(t.Context(), s, r.name, nil)
		if errors.Is(err, debugger.ErrRunning) != r.needsStop {
			t.Errorf("%s while the program runs: got %v, needs a stopped program: %v", r.name, err, r.needsStop)
		}
	}
}

func TestInvalidArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSession(t, true)
	for command, arguments := range map[string]string{
		"goto": `{"targetId":"x"}`, "variables": `[]`, "setDataBreakpoints": `{"breakpoints":[{"dataId":"x"}]}`,
		"setExceptionBreakpoints": `{"filters":["never"]}`, "evaluate": `{"expression":" "}`,
		"scopes": `{"frameId":1e99}`,
	} {
		if _, err := Do(t.Context(), s, command, json.RawMessage(arguments)); !errors.Is(err, debugger.ErrRequest) {
			t.Errorf("%s %s: got %v, want %v", command, arguments, err, debugger.ErrRequest)
		}
	}
}

func TestZeroBasedNumbersAreConverted(t *testing.T) {
	t.Parallel()
	var c connection
	c.attached.Path = "/code.py"
	arguments, want := json.RawMessage(`{"line":0,"lines":[0,4],"frameId":0}`), `{"frameId":0,"line":1,"lines":[1,5]}`
	if got := c.fromClient(arguments); string(got) != want {
		t.Errorf("from the client: got %s, want %s", got, want)
	}
	body := godap.StackTraceResponseBody{StackFrames: []godap.StackFrame{{Id: 1, Name: "f", Line: 1, Column: 1,
		Source: &program}}}
	frame := map[string]any{"id": 1.0, "name": "f", "line": 0.0, "column": 0.0,
		"source": map[string]any{"name": "code.py", "path": "/code.py"}}
	wantBody := map[string]any{"stackFrames": []any{frame}}
	if got := c.toClient(body); !reflect.DeepEqual(got, wantBody) {
		t.Errorf("to the client: got %v, want %v", got, wantBody)
	}
}
