package httpapi_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// A body whose framing is wrong is the client's mistake, on every kind of route.
func TestBodiesThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, nil)
	const body = `{"code":"1"}`
	for name, chunks := range map[string]string{
		"a size that is not a number": "0xc\r\n" + body + "\r\n0\r\n\r\n",
		"a chunk without its end":     "c\r\n" + body + "xx0\r\n\r\n",
		"an endless extension":        "c;" + strings.Repeat("a", 10_000) + "\r\n" + body + "\r\n0\r\n\r\n",
		"endless trailers":            "c\r\n" + body + "\r\n0\r\n" + strings.Repeat("X: y\r\n", 10_000) + "\r\n",
	} {
		for _, path := range []string{
			"POST /sandbox/agent/quick-execute", "POST /sandbox/" + id + "/execute", "POST /sandbox/" + id + "/debug",
			"POST /debug/sessions/" + d.session + "/threads", "PUT /sandbox/" + id + "/files/x", "POST /keys",
		} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(serverURL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = io.WriteString(conn, path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+c.secret+
				"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s, %s: %v", path, name, err)
			}
			text, _ := io.ReadAll(resp.Body) // the server may close the connection early
			conn.Close()
			if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "malformed") {
				t.Errorf("%s, %s: got HTTP %d, want 400: %s", path, name, resp.StatusCode, text)
			}
		}
	}
	if a := c.run(t, id, "1"); a.get("status") != "completed" {
		t.Errorf("got %s, want the sandbox usable", a.text)
	}
}
