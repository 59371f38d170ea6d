package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// peakMemory returns the largest resident size of a process so far, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if err != nil || found == nil {
		t.Fatalf("got %v, want VmHWM in the status of the process", err)
	}
	kilobytes, _ := strconv.Atoi(string(found[1])) // digits
	return kilobytes << 10
}

// askUnread sends requests for lists and reads only the first bytes of each answer. When each request has an answer, it
// closes the connections and returns.
func (c textClient) askUnread(t *testing.T, clients int, path string, headers ...string) {
	t.Helper()
	lines := append([]string{"GET " + path + " HTTP/1.1", "Host: x", "Authorization: Bearer " + c.key}, headers...)
	request := []byte(strings.Join(append(lines, "", ""), "\r\n"))
	connections := make([]net.Conn, clients)
	for n := range connections {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(c.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		connections[n] = conn
	}
	for _, conn := range connections {
		first := make([]byte, len("HTTP/1.1 200"))
		_, err := io.ReadFull(conn, first)
		if status := string(first[len("HTTP/1.1 "):]); err != nil || status != "200" && status != "429" {
			t.Errorf("GET %s: got %q, %v, want an answer", path, first, err)
		}
	}
}

// TestUnreadListsTakeBoundedMemory fills the lists of a user with the longest texts that the APIs take, and lists them
// by 20 clients that do not read.
func TestUnreadListsTakeBoundedMemory(t *testing.T) {
	t.Parallel()
	const (
		clients   = 20
		sandboxes = 12                                 // whose metadata is longer than a page of E2B
		page      = 1<<20 + 6*sandbox.MaxMetadataBytes // bytes; a page of E2B ends with the sandbox that fills it
		files     = 4_000
		fileBytes = 600 // of a file with a name of 100 characters in a list of LibreChat
		copies    = 4   // of a list: its entries, their JSON, a buffer that doubles
		garbage   = 2   // Go's heap is twice what is in use before it is collected
	)
	c, pid := startTextClient(t)
	long := func(bytes int) string { return strings.Repeat("\x01", bytes) } // JSON has six bytes for each
	before := peakMemory(t, pid)
	var id string
	for n := range sandboxes {
		if n%2 == 0 {
			c.must(t, "POST", "/jupyter/api/sessions", map[string]any{"path": fmt.Sprint(n) + long(1000),
				"name": long(sandbox.MaxNameBytes), "type": long(sandbox.MaxNameBytes)}, "id")
		}
		id = c.must(t, "POST", "/e2b/sandboxes", map[string]any{
			"metadata": map[string]string{"k": long(sandbox.MaxMetadataBytes - 1)},
			"envVars":  map[string]string{"k": long(sandbox.MaxVariablesBytes - 1)},
		}, "sandboxID")
	}
	modules := make([]string, 1000)
	for n := range modules {
		modules[n] = fmt.Sprintf("m%0254d", n)
	}
	c.must(t, "POST", "/sandbox/create", map[string]any{"blocked_modules": modules}, "sandbox_id")
	session := c.must(t, "POST", "/librechat/v1/exec", map[string]any{"lang": "py",
		"code": fmt.Sprintf("for n in range(%d): open('%%0100d' %% n, 'w').close()", files)}, "session_id")
	for _, path := range []string{
		"/e2b/sandboxes", "/e2b/v2/sandboxes", "/e2b/contexts", "/jupyter/api/kernels", "/jupyter/api/sessions",
		"/sandboxes?limit=1000", "/executions?limit=1000", "/keys", "/artifacts", "/connections",
		"/statements?limit=1000", "/librechat/v1/files/" + session,
	} {
		var headers []string
		if path == "/e2b/contexts" {
			headers = []string{"E2b-Sandbox-Id: " + id, "E2b-Sandbox-Port: 49999"}
		}
		c.askUnread(t, clients, path, headers...)
	}
	kept := (sandboxes + 1) * (sandbox.MaxMetadataBytes + sandbox.MaxVariablesBytes)
	lists := max(clients*page, limit.MaxLargeResponses*files*fileBytes) // unread at the same time
	bound := garbage * (copies*lists + kept)
	grown := peakMemory(t, pid) - before
	if t.Logf("the service grew by %d MiB, and may grow by %d MiB", grown>>20, bound>>20); grown > bound {
		t.Error("the lists take too much memory")
	}
	if status, answer := c.ask(t, "GET", "/me", nil); status != http.StatusOK {
		t.Errorf("after all lists: got HTTP %d %s, want 200", status, answer)
	}
}
