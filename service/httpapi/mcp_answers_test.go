package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"glasshouse/sandbox"
)

// toolText calls a tool and returns its text.
func (c client) toolText(t *testing.T, version, name string, arguments map[string]any) string {
	t.Helper()
	a := c.callTool(t, version, name, arguments)
	_, data, isStream := strings.Cut(string(a.text), "data: ")
	if !isStream {
		data = string(a.text)
	}
	var message struct {
		Result struct{ Content []struct{ Text string } }
		Error  *struct{ Message string }
	}
	if err := json.NewDecoder(strings.NewReader(data)).Decode(&message); err != nil {
		t.Fatalf("%s of %v: got %s: %v", name, arguments, a.text, err)
	}
	if message.Error != nil {
		return message.Error.Message
	}
	return message.Result.Content[0].Text
}

const mcpVersion = "2025-06-18"

// TestQueryDatabaseCutsCells reads rows on both sides of the size of an answer (8000 characters).
func TestQueryDatabaseCutsCells(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	for _, x := range []struct {
		name, sql       string
		wants, wantsNot []string
	}{
		{"rows that fit are whole", `SELECT n, repeat('x', 3000) AS body FROM generate_series(1, 2) n`,
			[]string{strings.Repeat("x", 3000), "2 rows"}, []string{"cut", "more]"}},
		{"one long cell", `SELECT 1 AS id, 'head-' || repeat('x', 20000) AS body`,
			[]string{`[1,"head-xxx`, "[19705 more]", "1 long cells are cut to 300 characters, in: body", "1 row"},
			[]string{"OFFSET"}},
		{"many long cells", `SELECT n, repeat('x', 3000) AS body FROM generate_series(1, 10) n`,
			[]string{"[1,", "[10,", "10 long cells are cut", "10 rows"}, []string{"OFFSET"}},
		{"more rows than fit", `SELECT n, repeat('x', 3000) AS body FROM generate_series(1, 90) n`,
			[]string{"[1,", "the answer is full", "OFFSET 2"}, []string{"OFFSET 0", "[90,"}},
		{"short rows, more than fit", `SELECT n, repeat('x', 200) AS body FROM generate_series(1, 90) n`,
			[]string{"the answer is full", "OFFSET 3"}, []string{"cut to"}},
		{"JSON and arrays", `SELECT jsonb_build_object('k', repeat('x', 9000)) AS j, array_fill(7, ARRAY[5000]) AS a`,
			[]string{`{\"k\": \"xxx`, `[7,7,7,`, "in: a, j", "1 row"}, nil},
		{"many columns", `SELECT ` + strings.Repeat("repeat('x', 400), ", 40) + `1 AS id`,
			[]string{"no row fits into the answer: select fewer columns"}, []string{"OFFSET 0"}},
		{"characters of all kinds", `SELECT '日本 <b> & é' AS "größe"`,
			[]string{`columns: ["größe"]`, `["日本 <b> & é"]`}, []string{`\u`}},
		{"no rows", `SELECT 1 AS a WHERE false`, []string{"0 rows"}, nil},
	} {
		text := c.toolText(t, mcpVersion, "query_database", map[string]any{"sql": x.sql})
		for _, want := range x.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: want %q in %.600s ... %s", x.name, want, text, text[max(0, len(text)-300):])
			}
		}
		for _, not := range x.wantsNot {
			if strings.Contains(text, not) {
				t.Errorf("%s: do not want %q in %.600s ... %s", x.name, not, text, text[max(0, len(text)-300):])
			}
		}
		if n := len([]rune(text)); n > 8500 {
			t.Errorf("%s: got %d characters, want about 8000 at most", x.name, n)
		}
	}
}

// TestModelsReadWhatATerminalShows prints bars of progress and colours, and returns characters that are not ASCII.
func TestModelsReadWhatATerminalShows(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	const code = `for n in range(101): print(f"\r{n}%|{'#' * (n // 10)}", end="")
print("\n\033[31mred\033[0m", "ok")
{"名": ["日本", "é<b>"], "n": 1.50, "surrogate": "\ud800"}`
	text := c.toolText(t, mcpVersion, "run_python", map[string]any{"code": code})
	for _, want := range []string{"100%|##########\n", "red ok\n", `result: {"名":["日本","é<b>"],"n":1.5,`} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in %s", want, text)
		}
	}
	if strings.Contains(text, " 50%") || strings.ContainsAny(text, "\r\x1b") {
		t.Errorf("got %q, want the last state only", text)
	}
	text = c.toolText(t, mcpVersion, "run_python", map[string]any{"code": "import pandas as pd\npd.Series(['日本'])"})
	if !strings.Contains(text, "日本") {
		t.Errorf("a Series: got %s, want its characters", text)
	}
}

// TestCallsThatModelsMakeWrongly writes numbers as texts, and the name of no tool.
func TestCallsThatModelsMakeWrongly(t *testing.T) {
	t.Parallel()
	server := serveMCP(t)
	for _, x := range []struct {
		tool      string
		arguments map[string]any
		want      string
	}{
		{"query_database", map[string]any{"sql": "SELECT generate_series(1, 9)", "limit": "2"}, "2 rows, truncated"},
		{"query_database", map[string]any{"sql": "SELECT :a::int8", "params": map[string]any{"a": "1"}, "limit": "5"},
			"[1]"},
		{"query_database", map[string]any{"sql": "SELECT 1", "limit": "many"}, "limit"},
		{"query_database", map[string]any{"sql": "SELECT 1", "limit": "null"}, "limit"},
		{"run_python", map[string]any{"code": "1", "record": "true", "wait_seconds": "30"}, "status=completed"},
		{"run_python", map[string]any{"code": "'2'"}, "result: 2"},
		{"query_database", map[string]any{"sql": "```sql\nSELECT 41 + 1 AS n\n```\n"}, "[42]"},
		{"query_database", map[string]any{"sql": "```\nSELECT '```' AS n\n```"}, "[\"```\"]"},
		{"query_database", map[string]any{"sql": "SELECT '```sql' AS n"}, "[\"```sql\"]"},
		{"query_database", map[string]any{"sql": "```sql"}, "syntax error"},
		{"run_python", map[string]any{"code": "raise ValueError('\033[31mred\033[0m')"}, "ValueError: red\n"},
		{"run_python", map[string]any{"code": "df.sum()"}, "pass session_id"}, // the model forgot the session
		{"run_python", map[string]any{"code": "a = 'x' * 300\nb = 'y' * 210\n1 / 0"}, "more characters)\n"},
		{"run_python", map[string]any{"code": "a = 'x' * 300\nb = 'y' * 210\n1 / 0"}, "yyy'\n"}, // a note is longer
		{"run_python", map[string]any{"code": "while True: pass", "timeout_seconds": 1},
			"The session's variables stay."},
		{"query_database", map[string]any{"sql": "SELECT duration FROM user_activities"},
			"user_activities has the columns id, user_id, action, duration_ms"},
		{"query_database", map[string]any{"sql": "SELECT * FROM nothing_like_it"},
			"describe_database() lists the tables"},
		{"run_code", map[string]any{"code": "1"}, "the tools are run_python, query_database"},
	} {
		c := newUser(t, sandbox.RoleDeveloper)
		c.server = server
		if text := c.toolText(t, mcpVersion, x.tool, x.arguments); !strings.Contains(text, x.want) {
			t.Errorf("%s of %v: got %s, want %q", x.tool, x.arguments, text, x.want)
		}
	}
}

// What a client names is repeated in answers, so it is bounded.
func TestNamesOfMCPClientsAreBounded(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	c.server = serveMCP(t)
	for size, want := range map[int]string{1024: "status=completed", 1025: "progressToken"} {
		params := map[string]any{
			"name": "run_python", "arguments": map[string]any{"code": "1"},
			"_meta": map[string]any{"progressToken": strings.Repeat("x", size)},
		}
		a := c.do(t, "POST", "/mcp",
			map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
			"Accept", both, "MCP-Protocol-Version", mcpVersion)
		if !strings.Contains(string(a.text), want) {
			t.Errorf("a token of %d bytes: got %.300s, want %q", size, a.text, want)
		}
	}
	if text := c.toolText(t, mcpVersion, strings.Repeat("x", 1<<20), nil); len(text) > 1000 {
		t.Errorf("a tool with a name of 1 MiB: got %d bytes, want a short error", len(text))
	}
}

// TestCallsOfASessionWaitForEachOther sends calls of one session at the same time, as models do.
func TestCallsOfASessionWaitForEachOther(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	c.server = serveMCP(t)
	c.toolText(t, mcpVersion, "run_python", map[string]any{"session_id": id, "code": "n = 0"})
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			text := c.toolText(t, mcpVersion, "run_python", map[string]any{"session_id": id, "code": "n += 1\nn"})
			if !strings.Contains(text, "status=completed") {
				t.Errorf("got %s, want it completed", text)
			}
		})
	}
	group.Wait()
	text := c.toolText(t, mcpVersion, "run_python", map[string]any{"session_id": id, "code": "n"})
	if !strings.HasPrefix(text, "result: 5") {
		t.Errorf("got %s, want 5 calls counted", text)
	}
	c.callTool(t, mcpVersion, "run_python",
		map[string]any{"session_id": id, "code": "import time\ntime.sleep(60)", "wait_seconds": 0})
	text = c.toolText(t, mcpVersion, "run_python", map[string]any{"session_id": id, "code": "1", "wait_seconds": 0.1})
	if !strings.Contains(text, "running something else") {
		t.Errorf("a call that waits 0.1 s: got %s, want it refused", text)
	}
}

// TestCancelledCallsEnd cancels runs as clients of each version do: with a notification, and by leaving.
func TestCancelledCallsEnd(t *testing.T) {
	t.Parallel()
	url := serveMCP(t)
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, how := range []string{"notification", "leaves"} {
			if how == "notification" && version == "2026-07-28" {
				continue // a client of this version leaves
			}
			t.Run(version+" "+how, func(t *testing.T) {
				t.Parallel()
				c := newUser(t, sandbox.RoleAgent)
				id := c.create(t, nil)
				mcp := c
				mcp.server = url
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				answered := make(chan struct{})
				go func() {
					defer close(answered)
					mcp.send(ctx, version, fmt.Sprintf(`{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {
						"name": "run_python", "arguments": {"session_id": %q, "code": "while True: pass"}%s}}`, id,
						metaOf(version)))
				}()
				status := func() string {
					list := c.ok(t, "GET", "/executions?sandbox_id="+id, nil)
					for _, e := range list.body["executions"].([]any) {
						return e.(map[string]any)["status"].(string)
					}
					return "none"
				}
				eventually(t, "the run", func() bool { return status() == "running" })
				const cancelled = `{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": %d}}`
				mcp.send(t.Context(), version, fmt.Sprintf(cancelled, 78))
				other := newUser(t, sandbox.RoleAgent)
				other.server = url
				other.send(t.Context(), version, fmt.Sprintf(cancelled, 77))
				if got := status(); got != "running" {
					t.Fatalf("after notifications for another call, and of another key: got %s, want running", got)
				}
				if how == "leaves" {
					leave()
				} else {
					mcp.send(t.Context(), version, fmt.Sprintf(cancelled, 77))
				}
				eventually(t, "the end of the run", func() bool { return status() == "cancelled" })
				<-answered
			})
		}
	}
}

// metaOf returns what the parameters of a request of a version have in addition.
func metaOf(version string) string {
	if version < "2026" {
		return ""
	}
	return `, "_meta": {"io.modelcontextprotocol/protocolVersion": "` + version + `",
		"io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": {}}`
}

// send sends a message to POST /mcp, and waits for the answer or the end of ctx.
func (c client) send(ctx context.Context, version, message string) {
	r, err := http.NewRequestWithContext(ctx, "POST", c.server+"/mcp", bytes.NewBufferString(message))
	if err != nil {
		return
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + c.secret, "Content-Type": "application/json", "Accept": both,
		"MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "run_python",
	} {
		r.Header.Set(name, value)
	}
	if resp, err := http.DefaultClient.Do(r); err == nil {
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		_ = resp.Body.Close()
	}
}
