package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A service without a free descriptor says that an execution's files are missing, and the next execution has them.
func TestExecutionSaysThatItsFilesAreMissing(t *testing.T) {
	t.Parallel()
	cmd, c := start(t, binary(t), dataDir(t))
	id := c.newSandbox(t, nil)
	execution := c.begin(t, id, "open('artifacts/a.txt', 'w').write('a')\nprint('written', flush=True)\n"+
		"import time\nwhile True: time.sleep(0.01)")
	events, err := c.send(t.Context(), "GET", "/executions/"+execution, nil, "text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	lines := bufio.NewScanner(events)
	for lines.Scan() && !strings.Contains(lines.Text(), "written") {
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	send := func(method, path string) {
		t.Helper()
		const form = "%s %s HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n"
		_, err := fmt.Fprintf(conn, form, method, path, c.key)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: got HTTP %d %s, %v; want 200", method, path, res.StatusCode, text, err)
		}
	}
	send("GET", "/me") // the service has accepted the connection
	var files unix.Rlimit
	setLimit := func(soft uint64) {
		t.Helper()
		limits := &unix.Rlimit{Cur: soft, Max: files.Max}
		if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, limits, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &files); err != nil {
		t.Fatal(err)
	}
	setLimit(1)
	send("POST", "/executions/"+execution+"/cancel")
	last := ""
	for lines.Scan() { // the last event is the execution
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			last = data
		}
	}
	setLimit(files.Cur)
	var e struct {
		Status    string
		Artifacts []any
		Truncated map[string]int
	}
	if err := json.Unmarshal([]byte(last), &e); err != nil || e.Status != "cancelled" || len(e.Artifacts) > 0 ||
		e.Truncated["artifacts"] != 1 {
		t.Errorf("got %s, %v; want a cancelled execution that counts its file as missing", last, err)
	}
	next := c.must(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "1"})
	if list, _ := next["artifacts"].([]any); len(list) != 1 {
		t.Errorf("the next execution: got the artifacts %v, want the file", list)
	}
}
