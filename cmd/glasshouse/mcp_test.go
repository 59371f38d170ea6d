package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// mcpClient speaks MCP's JSON-RPC over HTTP, one request for each call, as a client without a session does.
type mcpClient struct {
	*client
	version string
}

// mcpAnswer is a JSON-RPC response.
type mcpAnswer struct {
	status int // of HTTP
	Result struct {
		Content []struct{ Type, Text, Data string } `json:"content"`
		IsError bool                                `json:"isError"`

		StructuredContent any `json:"structuredContent"`

		Tools     []struct{ Name string } `json:"tools"`
		Templates []struct{ Name string } `json:"resourceTemplates"`
		Contents  []struct{ Text string } `json:"contents"`
	}
	Error json.RawMessage
	body  string
}

func (a mcpAnswer) text() string {
	if len(a.Result.Content) == 0 {
		return a.body
	}
	return a.Result.Content[0].Text
}

// field returns session_id, execution_id or status of the last line of an answer about an execution, or "".
func (a mcpAnswer) field(name string) string {
	text := a.text()
	for _, field := range strings.Fields(text[strings.LastIndexByte(text, '\n')+1:]) {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			return value
		}
	}
	return ""
}

// send sends a request. The caller must close the body of the response, which has events.
func (c mcpClient) send(t testing.TB, method string, params map[string]any) *http.Response {
	t.Helper()
	meta := map[string]any{"progressToken": "token"}
	if c.version >= "2026" {
		meta["io.modelcontextprotocol/protocolVersion"] = c.version
		meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "test", "version": "1"}
		meta["io.modelcontextprotocol/clientCapabilities"] = map[string]any{}
	}
	params["_meta"] = meta
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.address+"/mcp", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.key, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": c.version, "Mcp-Method": method,
	} {
		req.Header.Set(name, value)
	}
	if name, ok := params["name"].(string); ok {
		req.Header.Set("Mcp-Name", name)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (c mcpClient) request(t testing.TB, method string, params map[string]any) mcpAnswer {
	t.Helper()
	res := c.send(t, method, params)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := mcpAnswer{status: res.StatusCode, body: string(text)}
	for line := range strings.SplitSeq(string(text), "\n") {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			text = []byte(data) // the last event is the response
		}
	}
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatalf("%s: %v in %s", method, err, answer.body)
		}
	}
	return answer
}

func (c mcpClient) tool(t testing.TB, name string, arguments map[string]any) mcpAnswer {
	t.Helper()
	for tries := 0; ; tries++ { // Python takes longer to warm up while other tests run
		a := c.request(t, "tools/call", map[string]any{"name": name, "arguments": arguments})
		if tries == 5 || !strings.Contains(a.text(), "no sandbox became free") {
			return a
		}
	}
}

// TestMCPProgress reads the notifications of a run that prints its lines in pieces. A client gets whole lines, and also
// the last one before a long computation.
func TestMCPProgress(t *testing.T) {
	t.Parallel()
	_, admin := start(t, binary(t), dataDir(t))
	c := mcpClient{admin.newUser(t, "host"), "2026-07-28"}
	code := `import time
for piece in ("li", "ne 1", "\nli", "ne", " 2\r\n", " \n", "line 3\nli"):
    print(piece, end='', flush=True)
    time.sleep(0.2)
time.sleep(300)`
	res := c.send(t, "tools/call", map[string]any{
		"name": "run_python", "arguments": map[string]any{"code": code, "timeout_seconds": 300},
	})
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for last := ""; last != "line 3"; {
		if !lines.Scan() {
			t.Fatalf("the answer ended after the progress %q, want line 3", last)
		}
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		var event struct {
			Method string
			Params struct{ Message string }
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		if last = event.Params.Message; event.Method != "notifications/progress" || !strings.HasPrefix(last, "line ") {
			t.Fatalf("got %s, want the progress of a whole line", data)
		}
	}
}

// TestMCP calls the tools over HTTP with the newest protocol version and with the one before.
func TestMCP(t *testing.T) {
	t.Parallel()
	_, admin := start(t, binary(t), dataDir(t), withPackages())
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { testMCP(t, mcpClient{admin.newUser(t, "model-"+version), version}) })
	}
	t.Run("revoked key", func(t *testing.T) {
		made := admin.must(t, "POST", "/keys", map[string]any{"name": "revoked", "role": "agent"})
		c := mcpClient{&client{admin.address, fmt.Sprint(made["key"])}, "2025-11-25"}
		if a := c.tool(t, "describe_database", nil); a.status != http.StatusOK {
			t.Errorf("before: got %d %s", a.status, a.body)
		}
		admin.must(t, "DELETE", "/keys/"+fmt.Sprint(made["id"]), nil)
		if a := c.tool(t, "describe_database", nil); a.status != http.StatusUnauthorized {
			t.Errorf("after: got %d %s, want 401", a.status, a.body)
		}
	})
}

func testMCP(t *testing.T, c mcpClient) {
	list := c.request(t, "tools/list", map[string]any{})
	if len(list.Result.Tools) != 11 || len(list.body) > 10_000 {
		t.Errorf("tools/list: got %d tools in %d bytes, want 11 in at most 10000", len(list.Result.Tools),
			len(list.body))
	}
	first := c.tool(t, "run_python", map[string]any{"code": "x = 41\nprint('hi')\nx + 1"})
	session := first.field("session_id")
	if want := "hi\nresult: 42\nsession_id=" + session; first.Result.IsError || !strings.HasPrefix(first.text(), want) {
		t.Fatalf("run_python: got %q, want it to begin with %q", first.text(), want)
	}
	run := func(code string) mcpAnswer {
		t.Helper()
		return c.tool(t, "run_python", map[string]any{"session_id": session, "code": code})
	}
	if a := run("x * 2"); !strings.HasPrefix(a.text(), "result: 82\n") {
		t.Errorf("the session's variables: got %q, want 82", a.text())
	}

	failed := run("rows = {'amount': 1}\nrows['amuont']")
	for _, want := range []string{"error: KeyError", "line 2", "amount", "status=failed"} {
		if !strings.Contains(failed.text(), want) || !failed.Result.IsError {
			t.Errorf("a failure: got %q, want an error with %q", failed.text(), want)
		}
	}
	explained := c.tool(t, "explain_execution", map[string]any{"execution_id": failed.field("execution_id")})
	if !strings.Contains(explained.text(), "KeyError") || explained.Result.IsError {
		t.Errorf("explain_execution: got %q", explained.text())
	}

	recorded := c.tool(t, "run_python", map[string]any{
		"session_id": session, "code": "pairs = zip([1, 2], [3])\nn = len(list(pairs))\nm = len(list(pairs))",
		"record": true,
	})
	why := c.tool(t, "explain_execution", map[string]any{
		"execution_id": recorded.field("execution_id"), "question": "value:m",
	})
	if !strings.Contains(why.text(), "m is 0") || !strings.Contains(why.text(), "line 2 (step 2) had used it up") {
		t.Errorf("explain_execution of a value: got %q, want the used iterator", why.text())
	}

	long := run("for n in range(20_000): print(n)")
	if n := utf8.RuneCountInString(long.text()); n > 8000+300 ||
		strings.Count(long.text(), " left out; get_execution(") != 1 {
		t.Errorf("a long output: got %d characters, want about 8000 and one part cut: %s", n, long.text())
	}
	// A model that follows the hints of the cuts reads everything.
	var whole strings.Builder
	for offset := 0; offset >= 0; {
		a := c.tool(t, "get_execution", map[string]any{
			"execution_id": long.field("execution_id"), "part": "stdout", "offset": offset,
		})
		text, note, more := strings.Cut(a.text(), "\n[characters ")
		whole.WriteString(text)
		offset = -1
		if more {
			_, _ = fmt.Sscanf(note[strings.Index(note, "offset="):], "offset=%d", &offset)
		}
	}
	if lines := strings.Split(strings.TrimSpace(whole.String()), "\n"); len(lines) != 20_000 ||
		lines[19_999] != "19999" {
		t.Errorf("the pages of stdout: got %d lines, want 20000", len(lines))
	}

	plot := run("import matplotlib.pyplot as plt\nplt.figure(figsize=(30, 20))\nplt.plot([1, 3, 2])\nNone")
	if content := plot.Result.Content; len(content) != 2 || content[1].Type != "image" ||
		len(content[1].Data) > 280_000 {
		t.Errorf(
			"a figure: got %d contents, want a text and an image of at most 200 KiB: %s",
			len(content),
			plot.text(),
		)
	}

	slow := c.tool(t, "run_python", map[string]any{
		"session_id": session, "code": "import time\nprint('begun', flush=True)\ntime.sleep(60)", "wait_seconds": 0,
		"timeout_seconds": 60,
	})
	if slow.field("status") != "running" {
		t.Errorf("a run that takes longer: got %q, want status=running", slow.text())
	}
	id := map[string]any{"execution_id": slow.field("execution_id")}
	if a := c.tool(t, "cancel_execution", id); a.Result.IsError {
		t.Errorf("cancel_execution: got %q", a.text())
	}
	if a := c.tool(t, "get_execution", id); !strings.Contains(a.text(), "status=cancelled") || a.Result.IsError {
		t.Errorf("get_execution of a cancelled run: got %q", a.text())
	}

	query := c.tool(t, "query_database", map[string]any{
		"sql":    "SELECT :n::bigint AS n, 1.50::numeric AS price FROM generate_series(1, 5)",
		"params": map[string]any{"n": 9007199254740993}, "limit": 3,
	})
	if want := "columns: [\"n\",\"price\"]\n[9007199254740993,1.50]\n"; !strings.HasPrefix(query.text(), want) ||
		!strings.Contains(query.text(), "3 rows, truncated") {
		t.Errorf("query_database: got %q, want %q, and that there are more rows", query.text(), want)
	}
	if a := c.tool(t, "query_database", map[string]any{"sql": "DROP TABLE users"}); !a.Result.IsError ||
		!strings.Contains(a.text(), "refused") {
		t.Errorf("a write: got %q, want a refusal", a.text())
	}
	if a := c.tool(t, "describe_database", map[string]any{"table": "users"}); !strings.Contains(
		a.text(),
		"id integer, primary key",
	) {
		t.Errorf("describe_database: got %q", a.text())
	}

	file := map[string]any{"session_id": session, "action": "write", "path": "a.csv", "text": "a,b\n1,2\n"}
	c.tool(t, "session_files", file)
	if a := run("print(open('/data/a.csv').read())"); !strings.HasPrefix(a.text(), "a,b\n1,2\n") {
		t.Errorf("a written file: got %q", a.text())
	}
	if a := c.tool(t, "run_python", map[string]any{"cod": "1"}); !a.Result.IsError ||
		!strings.Contains(a.text(), `there is no argument "cod"; the arguments are code,`) {
		t.Errorf("a wrong argument: got %q, want an error that names it", a.text())
	}
	resource := c.request(
		t,
		"resources/read",
		map[string]any{"uri": "glasshouse://schema/users", "name": "glasshouse://schema/users"},
	)
	if len(resource.Result.Contents) != 1 || !strings.Contains(resource.Result.Contents[0].Text, "preferences") {
		t.Errorf("a resource: got %s", resource.body)
	}
}

// TestMCPOverStandardStreams runs `glasshouse mcp` as a host does: next to a service, and with one of its own.
func TestMCPOverStandardStreams(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	_, admin := start(t, binary(t), dir)
	for name, arguments := range map[string][]string{
		"service of the data folder": {"mcp", "--data-dir", dir},
		"service by its address":     {"mcp", "--url", admin.address},
		"standalone":                 {"mcp", "--standalone", "--data-dir", dataDir(t)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(binary(t), arguments...)
			cmd.Env = append(os.Environ(), "GLASSHOUSE_KEY="+admin.newUser(t, "host").key)
			in, inErr := cmd.StdinPipe()
			out, outErr := cmd.StdoutPipe()
			if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
				t.Fatal(err)
			}
			defer sync.OnceFunc(func() { kill(cmd) })()
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, 1<<20)
			ask := func(message string) string {
				fmt.Fprintln(in, message)
				if !strings.Contains(message, `"id"`) {
					return ""
				}
				if !lines.Scan() {
					t.Fatalf("no answer to %s: %v", message, lines.Err())
				}
				return lines.Text()
			}
			ask(
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
					`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			)
			ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			answer := ""
			for tries := 0; tries == 0 || tries < 5 && strings.Contains(answer, "no sandbox became free"); tries++ {
				answer = ask(
					`{"jsonrpc":"2.0","id":2,"method":"tools/call",` +
						`"params":{"name":"run_python","arguments":{"code":"6 * 7"}}}`,
				)
			}
			if !strings.Contains(answer, "result: 42") {
				t.Errorf("got %s, want the result 42", answer)
			}
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("when its input ends: got %v, want exit code 0", err)
			}
		})
	}
}

// TestMCPClientThatGaveUpDiscoverBegins sends what a client sends while a service of its own is still starting:
// server/discover, and initialize when no answer came in time. If initialize is refused, the error names the version
// with which to try again. The library handles both at once, so initialize may also be the first to succeed.
func TestMCPClientThatGaveUpDiscoverBegins(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary(t), "mcp", "--standalone", "--data-dir", dataDir(t))
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer kill(cmd)
	const discover = `{"jsonrpc":"2.0","id":%d,"method":"server/discover","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}` + "\n"
	lines := bufio.NewScanner(out)
	read := func() (answer struct {
		ID     int
		Result json.RawMessage
		Error  struct {
			Code int
			Data struct{ Supported []string }
		}
	}) {
		if !lines.Scan() {
			t.Fatalf("no answer: %v", lines.Err())
		}
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	fmt.Fprintf(in, discover, 1)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	for range 2 {
		a := read()
		refused := a.Error.Code == -32022 && slices.Equal(a.Error.Data.Supported, []string{"2026-07-28"})
		if a.ID == 2 && !refused && !strings.Contains(string(a.Result), `"protocolVersion":"2025-11-25"`) {
			t.Errorf("got %s, %+v; want a session or the error -32022 with the version 2026-07-28", a.Result, a.Error)
		}
	}
	fmt.Fprintf(in, discover, 3)
	if a := read(); a.ID != 3 || len(a.Result) == 0 {
		t.Errorf("got %+v, want the answer to the second server/discover", a)
	}
}
