package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServiceEndsWhateverRuns sends SIGTERM to a service with long runs, statements that ignore a cancel request, busy
// parsers, open streams and half of some requests. It ends without an error, soon after its second to drain.
func TestServiceEndsWhateverRuns(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	cmd, c := start(t, binary(t), dir, "--compat", "jupyter", "--max-queries-per-user", "9")
	address := strings.TrimPrefix(c.address, "http://")

	// send sends a request whose answer nobody reads.
	send := func(path string, body map[string]any) {
		go func() { _ = c.call(context.Background(), "POST", path, body, &map[string]any{}) }()
	}
	const endless = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
	send("/database/query", map[string]any{"query": endless})
	send("/database/query", map[string]any{
		"query": "SELECT length(translate(repeat('x', 50000000), repeat('abcdefghij', 1000), 'b'))"})
	for _, code := range []string{
		"while True: pass",
		"import time\nwhile True:\n    try:\n        time.sleep(1000)\n    except BaseException: pass",
		fmt.Sprintf("await db_query(%q)", endless),
	} {
		c.begin(t, c.newSandbox(t, nil), code)
	}

	eventually(t, func() error {
		if n := readerStatements(dir); n < 3 {
			return fmt.Errorf("got %d statements that run, want at least 3", n)
		}
		return nil
	})

	// hold sends the beginning of a request and keeps the connection open. If isAnswered, it returns when the answer has
	// begun.
	hold := func(method, path, headers, body string, isAnswered bool) {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\n%s",
			method, path, address, c.key, headers, body)
		if !isAnswered {
			return
		}
		status := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, status); err != nil || status[9] != '1' && status[9] != '2' {
			t.Fatalf("%s %s: got %q, %v, want an answer that begins", method, path, status, err)
		}
	}
	const longBody = "Content-Type: application/json\r\nContent-Length: 3000000\r\n"
	hold("POST", "/database/query", longBody, `{"query": "SELECT`, false)
	hold("POST", "/sandbox/"+c.newSandbox(t, nil)+"/execute", longBody, `{"code": "`, false)
	hold("GET", "/executions/events", "Accept: text/event-stream\r\n", "", true)
	streamed := `{"code": "import time\nwhile True:\n    print(1)\n    time.sleep(0.01)"}`
	hold("POST", "/sandbox/"+c.newSandbox(t, nil)+"/execute", "Accept: text/event-stream\r\n"+
		fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(streamed)), streamed, true)
	kernel := fmt.Sprint(c.must(t, "POST", "/jupyter/api/kernels", map[string]any{"name": "python3"})["id"])
	hold("GET", "/jupyter/api/kernels/"+kernel+"/channels", "Connection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n", "", true)

	busy, endBusy := context.WithCancel(context.Background())
	defer endBusy()
	for worker := range 4 {
		go func() {
			for n := 0; busy.Err() == nil; n++ { // each text is new, so it is parsed
				query := fmt.Sprintf("SELECT %s 1 AS a%d_%d", strings.Repeat("1, ", 50_000), worker, n)
				err := c.call(busy, "POST", "/database/query", map[string]any{"query": query}, &map[string]any{})
				if errors.Is(err, syscall.ECONNREFUSED) {
					return
				}
			}
		}()
	}
	began := time.Now()
	stop(t, cmd)
	if took := time.Since(began); took > 5*time.Second { // 1 s to drain, 2 s to end, and a busy machine
		t.Errorf("the service ended after %s, want at most 3 s", took)
	}
	http.DefaultClient.CloseIdleConnections()
}

// readerStatements returns how many statements of users the PostgreSQL of a data folder runs.
func readerStatements(dir string) (n int) {
	folders, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, folder := range folders {
		if cwd, err := os.Readlink(folder); err != nil || !strings.HasPrefix(cwd, dir) {
			continue
		}
		title, _ := os.ReadFile(filepath.Join(filepath.Dir(folder), "cmdline"))
		if text := string(title); strings.Contains(text, "glasshouse_reader") && !strings.Contains(text, "idle") {
			n++
		}
	}
	return n
}
