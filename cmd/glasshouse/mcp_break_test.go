package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// mcpHost is a running `glasshouse mcp`, to which a test speaks as a host does.
type mcpHost struct {
	cmd   *exec.Cmd
	in    io.Writer
	lines *bufio.Scanner
}

func startMCPHost(t *testing.T, c *client) *mcpHost {
	t.Helper()
	cmd := exec.Command(binary(t), "mcp", "--url", c.address)
	cmd.Env = append(os.Environ(), "GLASSHOUSE_KEY="+c.key)
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	h := &mcpHost{cmd, in, bufio.NewScanner(out)}
	h.lines.Buffer(nil, 1<<20)
	h.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	h.answer(t)
	h.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return h
}

func (h *mcpHost) send(message string) { _, _ = fmt.Fprintln(h.in, message) }

func (h *mcpHost) call(id int, tool string, arguments map[string]any) {
	text, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call",
		"params": map[string]any{"name": tool, "arguments": arguments}})
	h.send(string(text))
}

// answer reads the next answer and returns its id and text. A protocol error has the text "".
func (h *mcpHost) answer(t *testing.T) (id int, text string, isError bool) {
	t.Helper()
	if !h.lines.Scan() {
		t.Fatalf("glasshouse mcp ended: %v", h.lines.Err())
	}
	var message struct {
		ID     int
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal(h.lines.Bytes(), &message); err != nil {
		t.Fatalf("%v in %s", err, h.lines.Text())
	}
	if len(message.Result.Content) > 0 {
		text = message.Result.Content[0].Text
	}
	return message.ID, text, message.Result.IsError
}

// running returns the id of the caller's running execution, and waits for it.
func (c *client) running(t *testing.T) (id string) {
	t.Helper()
	eventually(t, func() error {
		var page struct {
			Executions []struct {
				ID string `json:"execution_id"`
			}
		}
		err := c.call(context.Background(), "GET", "/executions?status=running", nil, &page)
		if err == nil && len(page.Executions) != 1 {
			err = fmt.Errorf("got %d running executions, want 1", len(page.Executions))
		}
		if err == nil {
			id = page.Executions[0].ID
		}
		return err
	})
	return id
}

// TestMCPHostOutlivesTheService kills the service in the middle of a call. The model reads what to do, and the next
// call reaches the service that has started again. A revoked key ends at the next call.
func TestMCPHostOutlivesTheService(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	service, admin := start(t, binary(t), dir)
	made := admin.must(t, "POST", "/keys", map[string]any{"name": "host", "role": "agent"})
	user := &client{admin.address, fmt.Sprint(made["key"])}
	host := startMCPHost(t, user)
	host.call(1, "run_python", map[string]any{"code": "import time\ntime.sleep(300)", "timeout_seconds": 300})
	user.running(t)
	kill(service)
	if id, text, isError := host.answer(t); id != 1 || !isError || !strings.Contains(text, "try again") {
		t.Errorf("a call while the service was killed: got %d %v %q, want an error that says what to do", id, isError,
			text)
	}
	host.call(2, "describe_database", nil)
	if _, text, isError := host.answer(t); !isError || !strings.Contains(text, admin.address) {
		t.Errorf("a call without a service: got %v %q, want an error that names %s", isError, text, admin.address)
	}
	_, again := start(t, binary(t), dir, "--listen="+strings.TrimPrefix(admin.address, "http://"))
	if again.address != admin.address {
		t.Fatalf("the service listens on %s, want %s", again.address, admin.address)
	}
	host.call(3, "describe_database", nil)
	if _, text, isError := host.answer(t); isError || !strings.Contains(text, "users") {
		t.Errorf("a call after the restart: got %v %q, want the tables", isError, text)
	}
	again.must(t, "DELETE", "/keys/"+fmt.Sprint(made["id"]), nil)
	host.call(4, "describe_database", nil)
	if _, text, isError := host.answer(t); !isError || !strings.Contains(text, "key") {
		t.Errorf("a call with a revoked key: got %v %q, want an error", isError, text)
	}
}

// TestMCPRunEndsWithItsClient kills a host in the middle of a run, whose code must not go on.
func TestMCPRunEndsWithItsClient(t *testing.T) {
	t.Parallel()
	_, admin := start(t, binary(t), dataDir(t))
	user := admin.newUser(t, "host")
	host := startMCPHost(t, user)
	host.call(1, "run_python", map[string]any{"code": "import time\ntime.sleep(300)", "timeout_seconds": 300})
	id := user.running(t)
	kill(host.cmd)
	eventually(t, func() error {
		var e struct{ Status string }
		if err := user.call(context.Background(), "GET", "/executions/"+id, nil, &e); err != nil {
			return err
		}
		if e.Status != "cancelled" {
			return fmt.Errorf("the run of a killed client: got status %s, want cancelled", e.Status)
		}
		return nil
	})
}

// TestMCPUnderLoad sends 100 calls at the same time, over HTTP and over one pair of streams, and a run that prints
// 50 MB.
func TestMCPUnderLoad(t *testing.T) {
	t.Parallel()
	_, admin := start(t, binary(t), dataDir(t))
	user := admin.newUser(t, "host")
	c := mcpClient{user, "2026-07-28"}
	var group sync.WaitGroup
	for n := range 100 {
		group.Go(func() {
			a := c.tool(t, "query_database", map[string]any{"sql": fmt.Sprintf("SELECT %d AS n", n)})
			if want := fmt.Sprintf("columns: [\"n\"]\n[%d]\n1 row", n); a.text() != want {
				t.Errorf("over HTTP: got %q, want %q", a.text(), want)
			}
		})
	}
	group.Wait()
	host := startMCPHost(t, user)
	for n := range 100 {
		host.call(n+1, "query_database", map[string]any{"sql": fmt.Sprintf("SELECT %d AS n", n)})
	}
	for range 100 {
		id, text, _ := host.answer(t)
		if want := fmt.Sprintf("columns: [\"n\"]\n[%d]\n1 row", id-1); text != want {
			t.Errorf("over streams: got %q, want %q", text, want)
		}
	}
	huge := c.tool(t, "run_python", map[string]any{
		"code": "for n in range(50): print('x' * 1_000_000)", "timeout_seconds": 120,
	})
	if n := utf8.RuneCountInString(huge.text()); huge.Result.IsError || n > 8300 || len(huge.body) > 10_000 ||
		!strings.Contains(huge.text(), "characters left out; get_execution(") {
		t.Errorf("50 MB of output: got %d characters in %d bytes: %.300s", n, len(huge.body), huge.text())
	}
}
