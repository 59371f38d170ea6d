package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// losingUser makes two keys of one user. lose revokes the first.
func losingUser(t *testing.T) (losing, staying client, lose func()) {
	t.Helper()
	name := fmt.Sprintf("%s-%d", t.Name(), users.Add(1))
	body := map[string]any{"name": name, "user_id": name, "role": "developer"}
	losing, id := admin.newKey(t, body)
	staying, _ = admin.newKey(t, body)
	return losing, staying, func() { admin.ok(t, "DELETE", "/keys/"+id, nil) }
}

const waitForever = "import time\nprint('begun', flush=True)\nwhile True:\n    time.sleep(0.1)"

// asyncRun starts code that runs until it is cancelled, and returns the path of its execution.
func (c client) asyncRun(t *testing.T) string {
	t.Helper()
	id := c.create(t, map[string]any{"max_execution_time": 60})
	a := c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": waitForever}, "Prefer", "respond-async")
	location := a.header.Get("Location")
	if location == "" {
		t.Fatalf("got HTTP %d without a Location: %s", a.status, a.text)
	}
	t.Cleanup(func() { admin.afterTest(t, "POST", location+"/cancel") })
	return location
}

// wantLostStream reads a stream to its end, which must be an event with the problem.
func wantLostStream(t *testing.T, s *eventReader, says string) {
	t.Helper()
	list := s.all()
	if len(list) == 0 || list[len(list)-1].name != "error" || list[len(list)-1].data["status"] != 401.0 ||
		!strings.Contains(fmt.Sprint(list[len(list)-1].data["detail"]), says) {
		t.Errorf("got the events %.500v, want an error of status 401 that says %q", list, says)
	}
}

func TestStreamsEndWhenTheirKeyIsRevoked(t *testing.T) {
	t.Parallel()
	c, staying, lose := losingUser(t)
	location := c.asyncRun(t)
	d, _ := c.openDebugSession(t, map[string]any{"code": "x = 1\ny = 2", "stop_on_entry": true}, nil)
	events := c.stream(t, "GET", location, nil)
	debugEvents := c.stream(t, "GET", "/debug/sessions/"+d.session+"/events", nil)
	stays := staying.stream(t, "GET", location, nil)
	for _, s := range []*eventReader{events, debugEvents, stays} {
		if e, ok := s.next(); !ok {
			t.Fatalf("got %v, want a first event", e)
		}
	}
	lose()
	wantLostStream(t, events, "revoked")
	wantLostStream(t, debugEvents, "revoked")
	staying.ok(t, "POST", location+"/cancel", nil)
	if list := stays.all(); list[len(list)-1].name != "done" {
		t.Errorf("the other key: got the last event %v, want done", list[len(list)-1])
	}
}

// A client that reads a file slowly gets no more of it after its key is revoked.
func TestDownloadsEndWhenTheirKeyIsRevoked(t *testing.T) {
	t.Parallel()
	c, staying, lose := losingUser(t)
	const size = 12 << 20
	id := c.create(t, map[string]any{"upload_max_bytes": 14 << 20})
	if a := c.put(t, id, "large", strings.Repeat("x", size)); a.status >= 300 {
		t.Fatalf("got HTTP %d: %s", a.status, a.text)
	}
	path := "/sandbox/" + id + "/files/large"
	// The service can write a few MiB ahead of the client, into the buffers of the connection.
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var optionErr error
		err := c.Control(func(fd uintptr) {
			optionErr = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 64<<10)
		})
		return errors.Join(err, optionErr)
	}}
	slow := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	// get reads the file in pieces. It returns how much it has got, and the error of the connection.
	get := func(c client, onPiece func(n int)) (got int, err error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", serverURL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.secret)
		response, err := slow.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		piece := make([]byte, 1<<20)
		for n := 0; ; n++ {
			read, err := io.ReadFull(response.Body, piece)
			got += read
			if err != nil {
				return got, err
			}
			onPiece(n)
		}
	}
	slowly := time.NewTicker(600 * time.Millisecond) // for a MiB: a revocation is seen within two seconds
	defer slowly.Stop()
	got, err := get(c, func(n int) {
		if n == 0 {
			lose()
		}
		<-slowly.C
	})
	if got >= size-(1<<20) || errors.Is(err, io.EOF) {
		t.Errorf("got %d bytes and %v after the key was revoked, want a broken connection before %d", got, err, size)
	}
	if got, err := get(staying, func(int) {}); got != size || !errors.Is(err, io.EOF) {
		t.Errorf("the other key: got %d bytes and %v, want all %d", got, err, size)
	}
}

func TestRequestsEndWhenTheirKeyIsRevoked(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, c client) (method, path string, body any){
		"long poll": func(t *testing.T, c client) (string, string, any) {
			return "GET", c.asyncRun(t) + "?wait=300", nil
		},
		"execute": func(t *testing.T, c client) (string, string, any) {
			return "POST", "/sandbox/" + c.create(t, nil) + "/execute", map[string]any{"code": waitForever}
		},
		"quick-execute": func(_ *testing.T, c client) (string, string, any) {
			return "POST", "/sandbox/agent/quick-execute", map[string]any{"code": waitForever}
		},
		"debug command": func(t *testing.T, c client) (string, string, any) {
			d, _ := c.openDebugSession(t, map[string]any{"code": waitForever, "stop_on_entry": true}, nil)
			t.Cleanup(func() { admin.afterTest(t, "DELETE", "/debug/sessions/"+d.session) })
			return "POST", "/debug/sessions/" + d.session + "/continue?wait=60", nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, staying, lose := losingUser(t)
			method, path, body := prepare(t, c)
			began := make(chan struct{})
			go func() {
				defer close(began)
				staying.awaitRunning(t)
				lose()
			}()
			wantProblem(t, c.do(t, method, path, body), http.StatusUnauthorized, "unauthorized", "revoked")
			<-began
			if strings.Contains(name, "execute") {
				list, _ := staying.ok(t, "GET", "/executions", nil).get("executions").([]any)
				if len(list) != 1 || list[0].(map[string]any)["status"] != "cancelled" {
					t.Errorf("got the executions %s, want one that was cancelled", compactJSON(list))
				}
			}
		})
	}
}

// A call of a tool ends with its key in each version of the protocol, also in those in which it goes on if its client
// leaves.
func TestToolCallsEndWhenTheirKeyIsRevoked(t *testing.T) {
	t.Parallel()
	server := serveMCP(t)
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			c, staying, lose := losingUser(t)
			c.server = server
			began := make(chan struct{})
			go func() {
				defer close(began)
				staying.awaitRunning(t)
				lose()
			}()
			a := c.callTool(t, version, "run_python", map[string]any{"code": waitForever})
			if a.status != http.StatusOK {
				t.Fatalf("got HTTP %d %s", a.status, a.text)
			}
			<-began
			ids := textsOf(staying.ok(t, "GET", "/executions", nil), "executions", "execution_id")
			if len(ids) != 1 {
				t.Fatalf("got %s and the executions %s, want one", a.text, ids)
			}
			if e := staying.ok(t, "GET", "/executions/"+ids[0]+"?wait=30", nil); e.get("status") != "cancelled" {
				t.Errorf("got %s and %s, want the execution cancelled", a.text, e.text)
			}
		})
	}
}

// awaitRunning returns when the user has a running execution.
func (c client) awaitRunning(t *testing.T) {
	for tick := time.Tick(20 * time.Millisecond); t.Context().Err() == nil; <-tick {
		if list, _ := c.do(t, "GET", "/executions?status=running", nil).get("executions").([]any); len(list) > 0 {
			return
		}
	}
}

func TestDebugStreamEndsWhenItsKeyIsRevoked(t *testing.T) {
	t.Parallel()
	c, staying, lose := losingUser(t)
	id := c.create(t, nil)
	s := c.stream(t, "POST", "/sandbox/"+id+"/debug", map[string]any{"code": waitForever})
	staying.awaitRunning(t)
	lose()
	last := ""
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok && data != "[DONE]" {
			last = data
		}
	}
	if !strings.Contains(last, `"status":401`) || !strings.Contains(last, "revoked") {
		t.Errorf("got the last event %.300s, want a problem of status 401", last)
	}
	staying.ok(t, "GET", "/sandbox/"+id+"/status", nil) // the code does not run any more
}

func TestStreamEndsWhenItsKeyExpires(t *testing.T) {
	t.Parallel()
	s, advance := newCompanyWithClock(t)
	c, _ := client{server: s.server, secret: admin.secret}.newKey(t, map[string]any{"name": "n", "user_id": t.Name(),
		"expires_at": time.Now().Add(5 * time.Minute)})
	stream := c.stream(t, "GET", c.asyncRun(t), nil)
	advance(5 * time.Minute)
	wantLostStream(t, stream, "expired")
	wantProblem(t, c.do(t, "GET", "/executions", nil), http.StatusUnauthorized, "unauthorized", "expired")
}

// An editor is told why its session ends, and is disconnected; the program that it started ends.
func TestEditorLosesItsSessionWithItsKey(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T, client) *dapClient{
		"TCP":       func(t *testing.T, _ client) *dapClient { return dapConnect(t) },
		"WebSocket": func(t *testing.T, c client) *dapClient { return dapConnectWebSocket(t, c, serverURL) },
	} {
		for _, isIdle := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, idle %t", name, isIdle), func(t *testing.T) {
				t.Parallel()
				c, staying, lose := losingUser(t)
				id := c.create(t, nil)
				e := connect(t, c)
				e.mustRequest("initialize", map[string]any{"adapterID": "test"})
				e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": "x = 1\ny = 2",
					"stopOnEntry": true})
				e.mustRequest("configurationDone", nil)
				e.mustRequest("threads", nil)
				lose()
				if !isIdle {
					m := e.request("threads", nil)
					if m["success"] != false || !strings.Contains(fmt.Sprint(m["message"]), "revoked") {
						t.Errorf("a command after the revocation: got %v, want it refused", m)
					}
				}
				said := e.readToEnd()
				if !strings.Contains(said, "this key was revoked") || !strings.Contains(said, `"event":"terminated"`) {
					t.Errorf("got %s, want output that says why, and terminated", said)
				}
				// The session is closed, so the sandbox is idle again.
				for tick := time.Tick(20 * time.Millisecond); ; <-tick {
					a := staying.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"code": "1"})
					if a.status == http.StatusOK {
						break
					}
					if a.status != http.StatusConflict {
						t.Fatalf("got HTTP %d, want the sandbox idle: %s", a.status, a.text)
					}
				}
			})
		}
	}
}

// readToEnd returns all messages until the connection is closed, and the events before them.
func (e *dapClient) readToEnd() string {
	e.t.Helper()
	text, _ := json.Marshal(e.events)
	said := string(text)
	for in := textproto.NewReader(e.in); ; {
		header, err := in.ReadMIMEHeader()
		if err != nil {
			return said // a WebSocket reports its own end
		}
		size, _ := strconv.Atoi(header.Get("Content-Length"))
		body := make([]byte, size)
		if _, err := io.ReadFull(e.in, body); err != nil {
			return said
		}
		said += string(body)
	}
}
