package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/compat"
	"glasshouse/service/compat/nemo"
	"glasshouse/service/httpapi"
)

// testStallTimeout is the timeout of shortStallServer.
const testStallTimeout = 900 * time.Millisecond

// shortStallServer serves the service with a short stall timeout.
func shortStallServer(t *testing.T) string { return stallServer(t, testStallTimeout) }

func stallServer(t *testing.T, timeout time.Duration) string {
	t.Helper()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	api := testServices.api(log)
	api.StallTimeout = timeout
	server := httptest.NewServer(httpapi.New(api))
	t.Cleanup(server.Close)
	return server.URL
}

func dial(t *testing.T, url, head string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil { // fail instead of hanging
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// A stalled body is answered and its connection closed, with and without a key.
func TestStalledBodyIsAnsweredAndClosed(t *testing.T) {
	t.Parallel()
	url, c := shortStallServer(t), newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	server := &nemo.Server{Config: compat.Config{Access: testServices.access, Log: logrus.New()}}
	local := httptest.NewServer(limit.StallTimeout(server, testStallTimeout))
	t.Cleanup(local.Close)
	key := "Authorization: Bearer " + c.secret + "\n"
	for name, each := range map[string]struct {
		url, head, status string
	}{
		"no key":   {url, "POST /sandbox/agent/quick-execute HTTP/1.1\nHost: x\nContent-Length: 200000\n\n", "401"},
		"chunks":   {url, "POST /sandbox/agent/quick-execute HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n", "401"},
		"open":     {url, "GET /healthz HTTP/1.1\nHost: x\nContent-Length: 200000\n\n", "200"},
		"no route": {url, "POST /nothing HTTP/1.1\nHost: x\nContent-Length: 10\n" + key + "\n", "404"},
		"code": {url,
			"POST /sandbox/agent/quick-execute HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: 200000\n" + key + "\n{", "408"},
		"upload": {url, "PUT /sandbox/" + id + "/files/x HTTP/1.1\nHost: x\nContent-Length: 200000\n" + key + "\nx",
			"400"},
		"nemo": {local.URL,
			"POST /execute HTTP/1.1\nHost: localhost\nContent-Type: application/json\nContent-Length: 200000\n\n{",
			"400"},
		"no page": {local.URL, "POST /execute HTTP/1.1\nHost: elsewhere\nContent-Length: 200000\n\n", "403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := io.ReadAll(dial(t, each.url, each.head))
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+each.status) ||
				!strings.Contains(string(got), "Connection: close") {
				t.Errorf("got %.300s and %v, want HTTP %s and Connection: close", got, err, each.status)
			}
		})
	}
}

// An execution may take longer than the stall timeout, with and without a body, and the connection is used again.
func TestExecutionMayOutlastTheStallTimeout(t *testing.T) {
	t.Parallel()
	url, c := shortStallServer(t), newUser(t, sandbox.RoleAgent)
	c.server = url
	long := `{"code": "import time\ntime.sleep(1.5)\nprint('whole')"}`
	for range 2 {
		if a := c.do(t, "POST", "/sandbox/agent/quick-execute", long); a.status != 200 || a.get("stdout") != "whole\n" {
			t.Errorf("got HTTP %d %s, want the output", a.status, a.text)
		}
	}
	if a := c.do(t, "POST", "/sandbox/agent/quick-execute", long, "Accept",
		"text/event-stream"); !strings.Contains(string(a.text), "event: done") {
		t.Errorf("got %s, want the stream up to done", a.text)
	}
}

// A slow but steady upload succeeds, although it takes longer than the stall timeout.
func TestSlowUploadSucceeds(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	url, c := stallServer(t, timeout), newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	conn := dial(t, url,
		fmt.Sprintf("PUT /sandbox/%s/files/slow HTTP/1.1\nHost: x\nContent-Length: 12\nAuthorization: Bearer %s\n\n",
			id, c.secret))
	for tick, n := time.Tick(timeout/10), 0; n < 12; n++ {
		<-tick
		if _, err := conn.Write([]byte{'x'}); err != nil {
			t.Fatal(err)
		}
	}
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("got %v (%v), want HTTP 200", resp, err)
	}
}

// A request whose client has left is neither logged nor counted as a failure.
func TestDisconnectedClientIsNotLoggedAsFailure(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	log := logrus.New()
	log.SetOutput(&logged)
	handler := httpapi.New(testServices.api(log))
	get := func(ctx context.Context, secret, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	unseen, seen := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	get(gone, unseen.secret, "/executions")
	get(t.Context(), seen.secret, "/executions")
	for _, path := range []string{"/executions", "/sandbox/statistics", "/executions/none", "/keys"} {
		get(gone, seen.secret, path)
	}
	if w := get(t.Context(), seen.secret, "/metrics"); logged.Len() > 0 ||
		!strings.Contains(w.Body.String(), "glasshouse_http_errors_total 0\n") {
		t.Errorf("got the log %q and the metrics\n%s\nwant neither a line nor an error", logged.String(), w.Body)
	}
}
