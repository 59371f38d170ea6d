package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/service/httpapi"
)

// both is the header Accept that the Model Context Protocol requires.
const both = "application/json, text/event-stream"

// serveMCP starts a server with the route /mcp over the service of all tests, and returns its URL.
func serveMCP(t *testing.T) string {
	t.Helper()
	log := logrus.New()
	api := testServices.api(log)
	api.MCP = testServices.mcp(log)
	server := httptest.NewServer(httpapi.New(api))
	t.Cleanup(server.Close)
	return server.URL
}

// callTool calls a tool with a version of the protocol.
func (c client) callTool(t *testing.T, version, name string, arguments map[string]any) answer {
	t.Helper()
	return c.do(t, "POST", "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": name, "arguments": arguments}},
		"Accept", both, "MCP-Protocol-Version", version)
}

// The service decodes large pictures of code to make them smaller. It leaves out those that would take much memory,
// however small their files are.
func TestToolsDecodeNoHugePictures(t *testing.T) {
	t.Parallel()
	const code = `import base64, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Picture: # black
    def _repr_mimebundle_(self, **_):
        width, height, rest = %s
        row, pixels, left = bytes(1 + rest), zlib.compressobj(1), height
        data = b""
        while left:
            rows = min(left, max(1, 65536 // len(row)))
            data, left = data + pixels.compress(row * rows), left - rows
        header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
        png = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data + pixels.flush()) + chunk(b"IEND", b"")
        return {"image/png": base64.b64encode(png).decode(), "text/plain": "a picture"}
Picture()`
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.server = serveMCP(t)
	for size, isShown := range map[string]bool{
		"4096, 4096, 512": true, "60000, 100, 7500": true, "1, 65536, 1": true,
		"4096, 4097, 512": false, "65537, 1, 8193": false, "1, 65537, 1": false,
	} {
		a := c.callTool(t, "2025-06-18", "run_python",
			map[string]any{"session_id": id, "code": fmt.Sprintf(code, size)})
		text := string(a.text)
		if !strings.Contains(text, "a picture") || strings.Contains(text, `"type":"image"`) != isShown {
			t.Errorf("%s: got %.600s, want the picture shown: %t", size, text, isShown)
		}
	}
}

// The library that serves the Model Context Protocol answers some mistakes with plain text, which becomes a problem. Its
// own errors in JSON stay as they are.
func TestMistakesInMCPMessagesAreProblems(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	const list = `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`
	for _, body := range []string{`{}`, `{"jsonrpc": "2.0", "id": 1, "result": {}}`} {
		wantProblem(t, c.do(t, "POST", "/mcp", body, "Accept", both), http.StatusUnprocessableEntity, "invalid-input",
			"method")
	}
	wantProblem(t, c.do(t, "POST", "/mcp", list, "Accept", "image/png"), http.StatusBadRequest, "malformed", "Accept")
	a := c.do(t, "POST", "/mcp", list, "Accept", both, "Content-Type", "text/plain")
	wantProblem(t, a, http.StatusUnsupportedMediaType, "invalid-input", "application/json")
	for _, batch := range []string{"[" + list + "]", " \n[" + strings.Repeat(list+",", 1000) + list + "]", "[]"} {
		wantProblem(t, c.do(t, "POST", "/mcp", batch, "Accept", both), http.StatusUnprocessableEntity, "invalid-input",
			"batch")
	}
	a = c.do(t, "DELETE", "/mcp", nil)
	wantProblem(t, a, http.StatusMethodNotAllowed, "method-not-allowed", "DELETE")
	if got := a.header.Get("Allow"); got != "POST" {
		t.Errorf("got Allow %q, want POST", got)
	}
	if a = c.do(t, "POST", "/mcp", list, "Accept", both); a.status != http.StatusOK {
		t.Errorf("a message without a mistake: got HTTP %d: %s", a.status, a.text)
	}
}

// An integer may be written in every way that JSON Schema takes for one. If a tool cannot use an argument that agrees
// with its schema, the answer names the argument.
func TestToolsTakeEveryArgumentOfTheirSchema(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	e := c.ok(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "print('x' * 150)\ny = 1", "record": true})
	execution, _ := e.get("execution_id").(string)
	c.server = serveMCP(t)
	for _, call := range []struct {
		tool, arguments string
		isError         bool
		want            string
	}{
		{"query_database", `"sql":"SELECT 1","limit":1.0`, false, "1 row"},
		{"query_database", `"sql":"SELECT 1","limit":1e2`, false, "1 row"},
		{"query_database", `"sql":"SELECT 1","limit":10.0E1`, false, "1 row"},
		{"query_database", `"sql":"SELECT 1","limit":1e300`, true, "limit"},
		{"query_database", `"sql":"SELECT 1","limit":1.5`, true, "limit"},
		{"query_database", `"sql":"SELECT :a::numeric / 2","params":{"a":1e2},"limit":5e0`, false, "[50."},
		{"get_execution", `"part":"stdout","offset":1.4e2`, false, "xxxxxxxxxx\\n"},
		{"get_execution", `"part":"stdout","offset":1000000000000000000`, true, "offset"},
		{"get_execution", `"part":"stdout","offset":1e18`, true, "offset"},
		{"get_execution", `"part":"stdout","offset":9223372036854775807`, true, "offset"},
		{"get_execution", `"part":"stdout","offset":9223372036854775808`, true, "offset"},
		{"get_execution", `"part":"stdout","offset":1e300`, true, "offset"},
		{"get_execution", `"part":"output:99999999999999999999"`, true, "part"},
		{"get_execution", `"wait_seconds":1e-300`, false, "completed"},
		{"explain_execution", `"question":"line:99999999999999999999"`, true, "question"},
		{"explain_execution", `"question":"step:99999999999999999999"`, true, "question"},
		{"run_python", `"session_id":"` + id + `","code":"1+1","timeout_seconds":3e1,"wait_seconds":30.0`, false, "2"},
		{"session_files", `"action":"write","path":"a","base64":"!!"`, true, "base64"},
		{"session_files", `"action":"write","path":"a","base64":"YQ"`, true, "base64"},
		{"session_files", `"action":"write","path":"a","base64":"YQ==","text":"a"`, true, "not both"},
		{"session_files", `"action":"write","path":"a"`, true, "base64"},
		{"session_files", `"action":"write","path":"a","base64":"YQ=="`, false, "wrote 1 bytes"},
		{"session_files", `"action":"write","path":"b","base64":""`, false, "wrote 0 bytes"},
	} {
		switch call.tool {
		case "get_execution", "explain_execution":
			call.arguments += `,"execution_id":"` + execution + `"`
		case "session_files":
			call.arguments += `,"session_id":"` + id + `"`
		}
		a := c.do(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+call.tool+
			`","arguments":{`+call.arguments+`}}}`, "Accept", both)
		text := string(a.text)
		if strings.Contains(text, "internal error") || strings.Contains(text, `"isError":true`) != call.isError ||
			!strings.Contains(text, call.want) {
			t.Errorf("%s with %s: got %.600s, want an error: %t, and %q", call.tool, call.arguments, text, call.isError,
				call.want)
		}
	}
}
