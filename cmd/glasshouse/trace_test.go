package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"glasshouse/service/tracing/otlptest"
)

// postTraced sends a request with a header traceparent, which may be "", and returns the answer's body.
func (c *client) postTraced(t *testing.T, path, traceparent string, in any) []byte {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.address+path, strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	if path == "/mcp" {
		req.Header.Set("Accept", "application/json, text/event-stream") // it requires both
	}
	if traceparent != "" {
		req.Header.Set("traceparent", traceparent)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: got HTTP %d %s %v, want 200", path, resp.StatusCode, body, err)
	}
	return body
}

// runTraced is postTraced for a request that runs code. It returns the execution.
func (c *client) runTraced(t *testing.T, path, traceparent string, in any) (execution map[string]any) {
	t.Helper()
	if err := json.Unmarshal(c.postTraced(t, path, traceparent, in), &execution); err != nil {
		t.Fatal(err)
	}
	return execution
}

// spansOf waits until the trace has an execution, whose span arrives last, and returns its spans by name.
func spansOf(t *testing.T, receiver *otlptest.Receiver, trace string) (
	execution otlptest.Span, others map[string]otlptest.Span,
) {
	t.Helper()
	eventually(t, func() error {
		others = map[string]otlptest.Span{}
		for _, s := range receiver.Spans(trace) {
			if strings.HasPrefix(s.Name, "execution ") {
				execution = s
			} else {
				others[s.Name] = s
			}
		}
		if execution.Name == "" {
			return fmt.Errorf("got the spans %v of trace %s, want an execution", others, trace)
		}
		return nil
	})
	for name, s := range others {
		if s.Parent != execution.ID {
			t.Errorf("%s: got the parent %s, want the execution %s", name, s.Parent, execution.ID)
		}
		if s.Start.Before(execution.Start) || s.End.After(execution.End) || s.End.Before(s.Start) {
			t.Errorf("%s: got %s to %s, want it within the execution, %s to %s", name, s.Start, s.End, execution.Start,
				execution.End)
		}
	}
	return execution, others
}

func TestExecutionsHaveTraces(t *testing.T) {
	t.Parallel()
	receiver := otlptest.New(t)
	_, c := start(t, binary(t), dataDir(t), "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL,
		"OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=tests")
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

	e := c.runTraced(t, "/sandbox/agent/quick-execute", "00-"+trace+"-"+span+"-01", map[string]any{
		"code":    "await db_query('SELECT 1 AS n')\n[traceparent, context['traceparent'], context['a']]",
		"context": map[string]any{"a": 1}})
	if e["trace_id"] != trace {
		t.Errorf("got the trace_id %v, want %s", e["trace_id"], trace)
	}
	if record := c.must(t, "GET", fmt.Sprint("/executions/", e["execution_id"]), nil); record["trace_id"] != trace {
		t.Errorf("the record: got the trace_id %v, want %s", record["trace_id"], trace)
	}
	execution, others := spansOf(t, receiver, trace)
	if execution.Name != "execution quick-execute" || execution.Parent != span || execution.IsError ||
		execution.Attributes["glasshouse.execution.id"] != e["execution_id"] ||
		execution.Attributes["glasshouse.status"] != "completed" {
		t.Errorf("got %+v, want the execution below the span of the request", execution)
	}
	if got := execution.Resource; got["service.name"] != "glasshouse" || got["deployment.environment.name"] != "tests" {
		t.Errorf("got the resource %v, want the service and the attributes of the environment", got)
	}
	want := []string{"compile", "fork", "history begin", "history finish", "query", "queue", "run"}
	if got := slices.Sorted(maps.Keys(others)); !slices.Equal(got, want) {
		t.Errorf("got the spans %v, want %v", got, want)
	}
	if got := others["query"].Attributes; got["db.system.name"] != "postgresql" || got["db.namespace"] != "knowledge" ||
		got["db.query.text"] != "" || got["db.response.returned_rows"] != "1" {
		t.Errorf("query: got the attributes %v", got)
	}
	if got := others["fork"].Attributes["glasshouse.pool"]; got != "hit" && got != "miss" {
		t.Errorf("fork: got glasshouse.pool = %q, want hit or miss", got)
	}
	traceparent := "00-" + trace + "-" + execution.ID + "-01"
	if got := fmt.Sprint(e["result"]); got != fmt.Sprintf("[%s %s 1]", traceparent, traceparent) {
		t.Errorf("the code saw %s, want %s twice and the caller's value", got, traceparent)
	}

	// A run in a sandbox that exists forks nothing. Its caller has no trace.
	id := c.newSandbox(t, map[string]any{"enable_network_access": true, "allowed_hosts": []string{"one.example"},
		"profile": "unrestricted"})
	e = c.runTraced(t, "/sandbox/"+id+"/execute", "", map[string]any{
		"code": "import urllib.request\nurllib.request.urlopen('http://elsewhere.example/')"})
	execution, others = spansOf(t, receiver, fmt.Sprint(e["trace_id"]))
	if execution.Parent != "" || !execution.IsError || execution.Attributes["error.type"] != "HTTPError" {
		t.Errorf("got %+v, want an execution with an error and no parent", execution)
	}
	if got := others["connection"]; got.Attributes["server.address"] != "elsewhere.example" || !got.IsError ||
		got.Attributes["server.port"] != "80" || got.Attributes["glasshouse.status"] != "refused" {
		t.Errorf("connection: got %+v, want a refused one", got)
	}
	if _, ok := others["fork"]; ok {
		t.Error("got a span of a fork, want none in a sandbox that exists")
	}

	// A tool call of an agent continues the agent's trace.
	const agent = "4bf92f3577b34da6a3ce929d0e0e4736"
	c.postTraced(t, "/mcp", "00-"+agent+"-"+span+"-01", map[string]any{"jsonrpc": "2.0", "id": 1,
		"method": "tools/call",
		"params": map[string]any{"name": "run_python", "arguments": map[string]any{"code": "1"}}})
	if execution, _ = spansOf(t, receiver, agent); execution.Parent != span {
		t.Errorf("MCP: got the parent %s, want %s", execution.Parent, span)
	}
}

// TestTracesThatCannotBeExported also covers a service that ends while its collector is away.
func TestTracesThatCannotBeExported(t *testing.T) {
	t.Parallel()
	cmd, c := start(t, binary(t), dataDir(t), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TIMEOUT=500")
	e := c.must(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": "1"})
	if e["status"] != "completed" {
		t.Errorf("got %v, want a completed execution", e)
	}
	stop(t, cmd)

	for setting, want := range map[string]string{
		"OTEL_TRACES_EXPORTER=zipkin":      "set it to otlp or none",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc": "set it to http/protobuf",
	} {
		cmd := exec.Command(binary(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", emptyDataDir(t))
		cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", setting)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: got %v and %s, want an error that says %q", setting, err, out, want)
		}
	}
}
