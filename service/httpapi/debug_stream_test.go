package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// debugged has the steps of a debug stream, and the execution that the last step carries.
type debugged struct {
	steps     []sandbox.Step
	execution sandbox.Execution
}

func (c client) debugStream(t testing.TB, id string, body map[string]any) debugged {
	t.Helper()
	a := c.do(t, "POST", "/sandbox/"+id+"/debug", body)
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("got HTTP %d %v, want an event stream: %s", a.status, a.header, a.text)
	}
	events := strings.Split(strings.TrimSpace(string(a.text)), "\n\n")
	if events[len(events)-1] != "data: [DONE]" {
		t.Fatalf("got the last event %q, want [DONE]", events[len(events)-1])
	}
	var out debugged
	for _, event := range events[:len(events)-1] {
		var step sandbox.Step
		if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &step); err != nil {
			t.Fatalf("the event %s is not a step: %v", event, err)
		}
		out.steps = append(out.steps, step)
	}
	if err := json.Unmarshal(out.steps[len(out.steps)-1].Result, &out.execution); err != nil || out.execution.ID == "" {
		t.Fatalf("the last step has no whole execution: %s (%v)", events[len(events)-2], err)
	}
	return out
}

// stepMarks writes each step as its line number and a mark: * during a call, ! for an exception, ~ lost, ? unfinished.
func stepMarks(steps []sandbox.Step) string {
	var out []string
	for _, s := range steps {
		var result struct {
			Status string `json:"status"`
			During bool   `json:"during_call"`
		}
		_ = json.Unmarshal(s.Result, &result)
		mark := map[string]string{"exception": "!", "lost": "~", "unfinished": "?"}[result.Status]
		if result.During {
			mark += "*"
		}
		out = append(out, fmt.Sprint(s.LineNumber, mark))
	}
	return strings.Join(out, " ")
}

func TestDebugStreamsTheLinesThatRan(t *testing.T) {
	t.Parallel()
	wantProblem(t, newUser(t, sandbox.RoleAgent).do(t, "POST", "/sandbox/any/debug", `{"code":"1"}`),
		http.StatusForbidden, "forbidden", "developer")
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	for _, program := range []struct{ code, lines, result string }{
		{"def double(n):\n    twice = n * 2\n    return twice\ny = double(21)\ny", "1 4* 2 3 4 5", "42"},
		{"x = 1\nfor i in range(2):\n    x += i\nif x > 9:\n    x = 0\nx", "1 2 3 2 3 2 4 6", "2"},
		{"def f():\n    raise KeyError('k')\ntry:\n    f()\nexcept KeyError:\n    z = 'caught'\nz",
			"1 3 4* 2! 4! 5 6 7", `"caught"`},
		{"import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return n\nsum([await f(1), await f(2)])",
			"1 2 5* 3 4 3 4", "3"},
		{"import threading\nx = 1\nthreading._sys.settrace(None)\ny = 2\ny", "1 2 3? 0~ 0", "2"}, // and the execution
	} {
		d := c.debugStream(t, id, map[string]any{"code": program.code, "breakpoints": []int{2}})
		if stepMarks(d.steps) != program.lines {
			t.Errorf("%s\ngot the steps %s, want %s", program.code, stepMarks(d.steps), program.lines)
		}
		if d.execution.Status != sandbox.StatusCompleted || string(d.execution.Result) != program.result {
			t.Errorf("%s\ngot %+v, want it completed with the result", program.code, d.execution)
		}
	}
}

// A step shows its frame's variables after the line and which of them changed, also through another name.
func TestDebugStepsShowVariablesAfterEachLine(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	c.run(t, id, "old = 7")
	code := "a = [1]\nb = a\nb.append('x')\ndef f(n):\n    twice = n * 2\n    return twice\ny = f(3)\ndel a\nimport pandas as pd\ndf = pd.DataFrame({'v': [1, 2]})\ny"
	d := c.debugStream(t, id, map[string]any{"code": code})
	for i, want := range []struct {
		line    int
		shows   string
		changed []string
	}{
		{1, `{"a":"[1]","old":"7"}`, []string{"a"}},
		{2, `{"a":"[1]","b":"[1]","old":"7"}`, []string{"b"}},
		{3, `{"a":"[1, 'x']","b":"[1, 'x']","old":"7"}`, []string{"a", "b"}},
		{4, `{"a":"[1, 'x']","b":"[1, 'x']","old":"7"}`, []string{}},
		{7, `{"a":"[1, 'x']","b":"[1, 'x']","old":"7"}`, []string{}}, // calls f
		{5, `{"n":"3","twice":"6"}`, []string{"twice"}},
		{6, `{"n":"3","twice":"6"}`, []string{}},
		{8, `{"b":"[1, 'x']","old":"7","y":"6"}`, []string{"a", "y"}},
		{9, `{"b":"[1, 'x']","old":"7","y":"6"}`, []string{}},
		{10, `{"b":"[1, 'x']","df":"\u003cDataFrame 2x1: v int64 | 1 | 2\u003e","old":"7","y":"6"}`, []string{"df"}},
	} {
		s := d.steps[i]
		slices.Sort(s.State.Changed)
		if got := string(mustJSON(t, s.State.Variables)); s.LineNumber != want.line || got != want.shows ||
			!slices.Equal(s.State.Changed, want.changed) {
			t.Errorf("step %d: got line %d, %s, changed %v; want %+v", s.Number, s.LineNumber, got, s.State.Changed,
				want)
		}
	}
}

// Each line is streamed when it runs, not at the end of the execution.
func TestDebugStreamsLinesAsTheyRun(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	body := string(mustJSON(t, map[string]any{"code": "import time\nx = 1\ntime.sleep(500)"}))
	req, err := http.NewRequestWithContext(t.Context(), "POST", serverURL+"/sandbox/"+id+"/debug",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 64<<10)
	if n, err := resp.Body.Read(buf); err != nil || !strings.Contains(string(buf[:n]), `"line_number":1`) {
		t.Errorf("got %s (%v), want the first line", buf[:n], err)
	}
	if n := c.running(t, id); n != 1 {
		t.Errorf("after the first line: got %d running executions, want 1", n)
	}
}

// running returns how many executions run in a sandbox.
func (c client) running(t testing.TB, id string) int {
	t.Helper()
	list, _ := c.ok(t, "GET", "/executions?status=running&sandbox_id="+id, nil).get("executions").([]any)
	return len(list)
}

// The steps up to the moment when a limit ended the execution are kept.
func TestDebugKeepsStepsUpToALimit(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; the whole gate runs it")
	}
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, map[string]any{"max_execution_time": 3, "cpu_percent": 100, "max_memory_mb": 64})
	for _, program := range []struct {
		code   string
		status sandbox.Status
		mark   string
	}{
		{"import time\nn = 3\ntime.sleep(9)", sandbox.StatusTimeout, "3!"},
		{"n = 3\nx = bytearray(1 << 30)", sandbox.StatusFailed, "2!"},
		{"import time\nn = 3\ndef f():\n    try:\n        time.sleep(9)\n    except KeyboardInterrupt:\n        time.sleep(9)\nf()", sandbox.StatusTimeout, "7?"},
	} {
		d := c.debugStream(t, id, map[string]any{"code": program.code})
		list := c.ok(t, "GET", "/executions/"+d.execution.ID+"/steps", nil)
		if d.execution.Status != program.status || list.get("total_steps").(float64) < 2 {
			t.Errorf("%s\ngot the status %s and the steps %s", program.code, d.execution.Status, list.text)
		}
		var page struct{ Steps []sandbox.Step }
		if err := json.Unmarshal(list.text, &page); err != nil ||
			!strings.Contains(" "+stepMarks(page.Steps)+" ", " "+program.mark+" ") {
			t.Errorf("%s\ngot the steps %s, want the last one marked", program.code, stepMarks(page.Steps))
		}
	}
}

// A client that stops reading must not hold its execution or its sandbox.
func TestDebugClientThatStopsReadingBlocksNoSandbox(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, map[string]any{"max_execution_time": 4, "cpu_percent": 100})
	conn, err := net.Dial("tcp", strings.TrimPrefix(serverURL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	wideContext := map[string]string{} // the steps soon fill every buffer on the way
	for n := range 45 {
		wideContext[fmt.Sprint("v", n)] = strings.Repeat("x", 190)
	}
	body := mustJSON(t, map[string]any{"code": "i = 0\nwhile True:\n    i += 1", "context": wideContext})
	if _, err := fmt.Fprintf(conn,
		"POST /sandbox/%s/debug HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", id, c.secret, len(body), body); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the execution to begin", func() bool { return c.running(t, id) > 0 })
	eventually(t, "the execution to end at its time limit", func() bool { return c.running(t, id) == 0 })
	if a := c.run(t, id, "1+1"); a.get("result") != 2.0 {
		t.Errorf("the next execution: got %s, want 2", a.text)
	}
}
