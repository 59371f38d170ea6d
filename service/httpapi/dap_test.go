package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
)

// dapClient is a client of the Debug Adapter Protocol. It sends requests and reads messages in order.
type dapClient struct {
	t      testing.TB
	conn   net.Conn
	in     *bufio.Reader
	seq    int
	served chan error
	events []map[string]any // events that arrived before the response that was waited for

	responses map[int]map[string]any // responses that arrived before another that was waited for
}

func dapConnect(t testing.TB) *dapClient {
	t.Helper()
	return dapConnectTo(t, testServices)
}

// dapConnectTo connects to one of the services.
func dapConnectTo(t testing.TB, of *services) *dapClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	served, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	e := &dapClient{t: t, conn: conn, in: bufio.NewReader(conn), served: make(chan error, 1),
		responses: map[int]map[string]any{}}
	go func() { e.served <- dap.Serve(t.Context(), served, of.debug.Attach) }()
	t.Cleanup(func() { conn.Close() })
	return e
}

// dapConnectWebSocket connects over a WebSocket.
func dapConnectWebSocket(t testing.TB, c client, server string) *dapClient {
	t.Helper()
	address := strings.Replace(server, "http", "ws", 1) + "/debug/dap"
	socket, _, err := websocket.Dial(t.Context(), address,
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + c.secret}}})
	if err != nil {
		t.Fatal(err)
	}
	conn := websocket.NetConn(t.Context(), socket, websocket.MessageBinary)
	t.Cleanup(func() { conn.Close() })
	return &dapClient{t: t, conn: conn, in: bufio.NewReader(conn), responses: map[int]map[string]any{}}
}

func (e *dapClient) read() map[string]any {
	e.t.Helper()
	if err := e.conn.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil { // fail instead of hanging
		e.t.Fatal(err)
	}
	size := 0
	for {
		line, err := e.in.ReadString('\n')
		if err != nil {
			e.t.Fatal(err)
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		if n, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			size, _ = strconv.Atoi(n)
		}
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(e.in, body); err != nil {
		e.t.Fatal(err)
	}
	var message map[string]any
	if err := json.Unmarshal(body, &message); err != nil {
		e.t.Fatalf("not JSON: %s: %v", body, err)
	}
	checkDAPSchema(e.t, body)
	return message
}

// send sends a request and returns its sequence number.
func (e *dapClient) send(command string, arguments any) int {
	e.t.Helper()
	e.seq++
	message := map[string]any{"seq": e.seq, "type": "request", "command": command}
	if arguments != nil {
		message["arguments"] = arguments
	}
	text := mustJSON(e.t, message)
	if _, err := fmt.Fprintf(e.conn, "Content-Length: %d\r\n\r\n%s", len(text), text); err != nil {
		e.t.Fatal(err)
	}
	return e.seq
}

// response returns the response to a request.
func (e *dapClient) response(seq int) map[string]any {
	e.t.Helper()
	for e.responses[seq] == nil {
		m := e.read()
		if m["type"] == "event" {
			e.events = append(e.events, m)
			continue
		}
		e.responses[int(m["request_seq"].(float64))] = m
	}
	defer delete(e.responses, seq)
	return e.responses[seq]
}

// request sends a request and returns its response.
func (e *dapClient) request(command string, arguments any) map[string]any {
	e.t.Helper()
	m := e.response(e.send(command, arguments))
	if m["command"] != command {
		e.t.Errorf("got the response %v, want one to %s", m, command)
	}
	return m
}

// mustRequest sends a request that must succeed and returns the response's body.
func (e *dapClient) mustRequest(command string, arguments any) map[string]any {
	e.t.Helper()
	m := e.request(command, arguments)
	if m["success"] != true {
		e.t.Fatalf("%s failed: %v", command, m)
	}
	body, _ := m["body"].(map[string]any)
	return body
}

// waitEvent reads events until one of a kind and returns its body.
func (e *dapClient) waitEvent(kind string) map[string]any {
	e.t.Helper()
	for {
		var m map[string]any
		if len(e.events) > 0 {
			m, e.events = e.events[0], e.events[1:]
		} else {
			m = e.read()
		}
		if m["event"] == kind {
			body, _ := m["body"].(map[string]any)
			return body
		}
	}
}

// waitEventOf reads events until one of a kind whose body has a value in a field, and returns the body.
func (e *dapClient) waitEventOf(kind, field string, value any) map[string]any {
	e.t.Helper()
	for {
		if body := e.waitEvent(kind); body[field] == value {
			return body
		}
	}
}

// innermostFrame returns the innermost frame's id, line and source.
func (e *dapClient) innermostFrame() (id any, line any, source map[string]any) {
	e.t.Helper()
	frame := e.mustRequest("stackTrace", map[string]any{"threadId": 1})["stackFrames"].([]any)[0].(map[string]any)
	return frame["id"], frame["line"], frame["source"].(map[string]any)
}

func TestDAPAttachAndStep(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	e := dapConnect(t)
	if m := e.request("threads", nil); m["success"] != false {
		t.Errorf("a request before attach: got %v, want an error", m)
	}
	capabilities := e.mustRequest("initialize", map[string]any{"adapterID": "glasshouse", "linesStartAt1": true})
	if capabilities["supportsStepBack"] != true || capabilities["supportsDataBreakpoints"] != true {
		t.Errorf("got the capabilities %v, want stepBack and dataBreakpoints", capabilities)
	}
	if m := e.request("attach", map[string]any{"token": "gh_nonsense", "sandbox": id,
		"code": steppedProgram}); m["success"] != false {
		t.Errorf("attach with a wrong token: got %v, want an error", m)
	}
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": steppedProgram,
		"path": "/home/ada/double.py"})
	e.waitEvent("initialized")
	views := e.mustRequest("setBreakpoints", map[string]any{"source": map[string]any{"path": "/home/ada/double.py"},
		"breakpoints": []any{
			map[string]any{"line": 2, "condition": "n == 2"}, map[string]any{"line": 6, "logMessage": "i is {i}"}}})
	if list := views["breakpoints"].([]any); len(list) != 2 || list[0].(map[string]any)["verified"] != true {
		t.Errorf("got the breakpoints %v, want two, verified", views)
	}
	e.mustRequest("setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
	e.mustRequest("configurationDone", nil)
	if body := e.waitEvent("output"); body["output"] != "i is 0\n" {
		t.Errorf("got the output %v, want the log point's", body)
	}
	if body := e.waitEvent("stopped"); body["reason"] != "breakpoint" || body["threadId"] != 1.0 {
		t.Errorf("got the stop %v, want a breakpoint in thread 1", body)
	}
	frame, line, source := e.innermostFrame()
	if line != 2.0 || source["path"] != "/home/ada/double.py" || source["sourceReference"] != nil {
		t.Errorf("got line %v of %v, want line 2 of the client's path", line, source)
	}
	locals := e.mustRequest("scopes",
		map[string]any{"frameId": frame})["scopes"].([]any)[0].(map[string]any)["variablesReference"]
	if list := e.mustRequest("variables",
		map[string]any{"variablesReference": locals})["variables"].([]any); list[0].(map[string]any)["value"] != "2" {
		t.Errorf("got the variables %v, want n = 2", list)
	}
	if body := e.mustRequest("evaluate", map[string]any{"expression": "n * total", "frameId": frame,
		"context": "hover"}); body["result"] != "4" {
		t.Errorf("got %v, want 4", body)
	}
	e.mustRequest("setVariable", map[string]any{"variablesReference": locals, "name": "n", "value": "20"})
	for _, move := range []struct {
		command string
		line    any
	}{{"next", 3.0}, {"stepBack", 2.0}, {"stepBack", 6.0}, {"stepIn", 2.0}, {"stepIn", 3.0}, {"stepOut", 5.0}} {
		e.mustRequest(move.command, map[string]any{"threadId": 1})
		e.waitEvent("stopped")
		if _, line, _ := e.innermostFrame(); line != move.line {
			t.Errorf("after %s: got line %v, want %v", move.command, line, move.line)
		}
	}
	e.mustRequest("continue", map[string]any{"threadId": 1})
	if body := e.waitEvent("exited"); body["exitCode"] != 0.0 {
		t.Errorf("got %v, want exit code 0", body)
	}
	e.waitEvent("terminated")
	// 0 + 2 + 40 + 6
	if body := e.mustRequest("evaluate", map[string]any{"expression": "total"}); body["result"] != "48" {
		t.Errorf("got %v, want 48, with the variable that was set", body)
	}
	e.mustRequest("disconnect", map[string]any{})
	if err := <-e.served; err != nil {
		t.Error(err)
	}
	if a := c.run(t, id, "total"); a.get("result") != 48.0 {
		t.Errorf("the sandbox afterwards: got %s, want 48", a.text)
	}
}

// A WebSocket needs a key that may debug, and is closed to pages of other origins.
func TestDAPOverWebSocket(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	address := strings.Replace(serverURL, "http", "ws", 1) + "/debug/dap"
	if _, _, err := websocket.Dial(t.Context(), address, nil); err == nil {
		t.Error("the WebSocket opens without a key")
	}
	key := http.Header{"Authorization": {"Bearer " + c.secret}}
	if _, _, err := websocket.Dial(t.Context(), address,
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": key["Authorization"],
			"Origin": {"https://elsewhere.example"}}}); err == nil {
		t.Error("the WebSocket opens for a page of another origin")
	}
	agent := http.Header{"Authorization": {"Bearer " + newUser(t, sandbox.RoleAgent).secret}}
	if _, resp, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: agent}); err == nil ||
		resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("with a key that may not debug: got %v (%v), want HTTP 403", resp, err)
	}
	large, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: key})
	if err != nil {
		t.Fatal(err)
	}
	defer large.CloseNow()
	// Invalid messages, so that only the message's total length can be the problem.
	_ = large.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte("Content-Length: 2\r\n\r\n{}"),
		dap.MaxFrameBytes/20))
	if _, _, err := large.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a message over the limit: got %v, want StatusMessageTooBig", err)
	}
	e := dapConnectWebSocket(t, c, serverURL)
	e.mustRequest("initialize", nil)
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": steppedProgram,
		"stopOnEntry": true})
	e.waitEvent("initialized")
	e.mustRequest("configurationDone", nil)
	if body := e.waitEvent("stopped"); body["reason"] != "entry" {
		t.Errorf("got the stop %v, want entry", body)
	}
	e.mustRequest("disconnect", nil)
}

// A client attaches to a recording and to a session that another client opened. If the client disconnects, its own
// program ends and the other client's program continues.
func TestDAPAttachToSessionsAndRecordings(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	d, _ := c.openDebugSession(t, map[string]any{"code": steppedProgram, "stop_on_entry": true}, nil)
	e := dapConnect(t)
	e.mustRequest("initialize", nil)
	e.mustRequest("attach", map[string]any{"token": c.secret, "session": d.session})
	e.mustRequest("configurationDone", nil)
	e.waitEvent("stopped")
	e.mustRequest("next", map[string]any{"threadId": 1})
	e.waitEvent("stopped")
	if body := e.mustRequest("source",
		map[string]any{"sourceReference": 1}); !strings.HasPrefix(body["content"].(string), "def double") {
		t.Errorf("got the source %v, want the program", body)
	}
	e.conn.Close()
	<-e.served
	if a := c.ok(t, "GET", "/debug/sessions/"+d.session, nil); a.get("where.line_number") != 4.0 ||
		a.get("where.state") != "stopped" {
		t.Errorf("the other client's session: got %s, want it stopped in line 4", a.text)
	}
	c.do(t, "POST", "/debug/sessions/"+d.session+"/drive", nil)
	d.command(t, "continue", nil)

	e = dapConnect(t)
	e.mustRequest("initialize", nil)
	e.mustRequest("attach", map[string]any{"token": c.secret, "execution": d.execution})
	e.mustRequest("setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 8}}})
	e.mustRequest("configurationDone", nil)
	e.waitEvent("stopped")
	e.mustRequest("continue", map[string]any{"threadId": 1})
	e.waitEvent("stopped")
	if _, line, _ := e.innermostFrame(); line != 8.0 {
		t.Errorf("in the recording: got line %v, want 8", line)
	}
	e.mustRequest("disconnect", nil)

	notRecorded := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": steppedProgram})
	e = dapConnect(t)
	e.mustRequest("initialize", nil)
	e.mustRequest("launch", map[string]any{"token": c.secret, "replay": notRecorded.get("execution_id")})
	e.mustRequest("setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 8}}})
	e.mustRequest("configurationDone", nil)
	e.waitEvent("stopped")
	e.mustRequest("continue", map[string]any{"threadId": 1})
	e.waitEvent("stopped")
	if _, line, _ := e.innermostFrame(); line != 8.0 {
		t.Errorf("in the replay: got line %v, want 8", line)
	}
	e.mustRequest("disconnect", nil)

	id := c.create(t, nil)
	e = dapConnect(t)
	e.mustRequest("initialize", nil)
	e.mustRequest("attach", map[string]any{"token": c.secret, "sandbox": id, "code": "while True: x = 1"})
	e.conn.Close()
	<-e.served
	if a := c.run(t, id, "1 + 1"); a.get("result") != 2.0 {
		t.Errorf("the sandbox of a client that disappeared: got %s, want 2", a.text)
	}
}
