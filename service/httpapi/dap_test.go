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

	"github.com/coder/websocket"

	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
	"glasshouse/service"
)

// editor is a client of the Debug Adapter Protocol, as an editor is one: it sends
// requests and takes what comes, in order.
type editor struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	seq  int
	over chan error
	kept []map[string]any // events that came while a response was waited for

	answers map[int]map[string]any // that came while another was waited for
}

func edit(t testing.TB) *editor {
	t.Helper()
	return editOf(t, whole)
}

// editOf is edit of one of the services.
func editOf(t testing.TB, of *service.Service) *editor {
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
	e := &editor{t: t, conn: conn, in: bufio.NewReader(conn), over: make(chan error, 1), answers: map[int]map[string]any{}}
	go func() { e.over <- dap.Serve(t.Context(), served, of.AttachDAP) }()
	t.Cleanup(func() { conn.Close() })
	return e
}

// editOverWeb is the same over a WebSocket of a server.
func editOverWeb(t testing.TB, c client, server string) *editor {
	t.Helper()
	address := strings.Replace(server, "http", "ws", 1) + "/debug/dap"
	socket, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + c.secret}}})
	if err != nil {
		t.Fatal(err)
	}
	conn := websocket.NetConn(t.Context(), socket, websocket.MessageBinary)
	t.Cleanup(func() { conn.Close() })
	return &editor{t: t, conn: conn, in: bufio.NewReader(conn), answers: map[int]map[string]any{}}
}

func (e *editor) read() map[string]any {
	e.t.Helper()
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
		e.t.Fatalf("%s: %v", body, err)
	}
	conforms(e.t, body)
	return message
}

// send sends a request, and returns its number.
func (e *editor) send(command string, arguments any) int {
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

// answer returns the response to a request.
func (e *editor) answer(seq int) map[string]any {
	e.t.Helper()
	for e.answers[seq] == nil {
		m := e.read()
		if m["type"] == "event" {
			e.kept = append(e.kept, m)
			continue
		}
		e.answers[int(m["request_seq"].(float64))] = m
	}
	defer delete(e.answers, seq)
	return e.answers[seq]
}

// ask sends a request and returns its response.
func (e *editor) ask(command string, arguments any) map[string]any {
	e.t.Helper()
	m := e.answer(e.send(command, arguments))
	if m["command"] != command {
		e.t.Errorf("%v answers %s", m, command)
	}
	return m
}

// must is ask where the answer is no error; it returns the body.
func (e *editor) must(command string, arguments any) map[string]any {
	e.t.Helper()
	m := e.ask(command, arguments)
	if m["success"] != true {
		e.t.Fatalf("%s: %v", command, m)
	}
	body, _ := m["body"].(map[string]any)
	return body
}

// wait takes events until one of a kind.
func (e *editor) wait(kind string) map[string]any {
	e.t.Helper()
	for {
		var m map[string]any
		if len(e.kept) > 0 {
			m, e.kept = e.kept[0], e.kept[1:]
		} else {
			m = e.read()
		}
		if m["event"] == kind {
			body, _ := m["body"].(map[string]any)
			return body
		}
	}
}

// top returns the innermost frame's id and line.
func (e *editor) top() (id any, line any, source map[string]any) {
	e.t.Helper()
	frame := e.must("stackTrace", map[string]any{"threadId": 1})["stackFrames"].([]any)[0].(map[string]any)
	return frame["id"], frame["line"], frame["source"].(map[string]any)
}

func TestAnEditorAttachesAndSteps(t *testing.T) {
	c := user(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	e := edit(t)
	if m := e.ask("threads", nil); m["success"] != false {
		t.Errorf("ahead of attach: %v", m)
	}
	capabilities := e.must("initialize", map[string]any{"adapterID": "glasshouse", "linesStartAt1": true})
	if capabilities["supportsStepBack"] != true || capabilities["supportsDataBreakpoints"] != true {
		t.Errorf("capabilities: %v", capabilities)
	}
	if m := e.ask("attach", map[string]any{"token": "gh_nonsense", "sandbox": id, "code": stepped}); m["success"] != false {
		t.Errorf("a wrong token: %v", m)
	}
	e.must("attach", map[string]any{"token": c.secret, "sandbox": id, "code": stepped, "path": "/home/ada/double.py"})
	e.wait("initialized")
	views := e.must("setBreakpoints", map[string]any{"source": map[string]any{"path": "/home/ada/double.py"}, "breakpoints": []any{
		map[string]any{"line": 2, "condition": "n == 2"}, map[string]any{"line": 6, "logMessage": "i is {i}"}}})
	if list := views["breakpoints"].([]any); len(list) != 2 || list[0].(map[string]any)["verified"] != true {
		t.Errorf("setBreakpoints: %v", views)
	}
	e.must("setExceptionBreakpoints", map[string]any{"filters": []string{"uncaught"}})
	e.must("configurationDone", nil)
	if body := e.wait("output"); body["output"] != "i is 0\n" {
		t.Errorf("a log point: %v", body)
	}
	if body := e.wait("stopped"); body["reason"] != "breakpoint" || body["threadId"] != 1.0 {
		t.Errorf("the first stop: %v", body)
	}
	frame, line, source := e.top()
	if line != 2.0 || source["path"] != "/home/ada/double.py" || source["sourceReference"] != nil {
		t.Errorf("the stack: %v %v", line, source)
	}
	locals := e.must("scopes", map[string]any{"frameId": frame})["scopes"].([]any)[0].(map[string]any)["variablesReference"]
	if list := e.must("variables", map[string]any{"variablesReference": locals})["variables"].([]any); list[0].(map[string]any)["value"] != "2" {
		t.Errorf("variables: %v", list)
	}
	if body := e.must("evaluate", map[string]any{"expression": "n * total", "frameId": frame, "context": "hover"}); body["result"] != "4" {
		t.Errorf("evaluate: %v", body)
	}
	e.must("setVariable", map[string]any{"variablesReference": locals, "name": "n", "value": "20"})
	for _, move := range []struct {
		command string
		line    any
	}{{"next", 3.0}, {"stepBack", 2.0}, {"stepBack", 6.0}, {"stepIn", 2.0}, {"stepIn", 3.0}, {"stepOut", 5.0}} {
		e.must(move.command, map[string]any{"threadId": 1})
		e.wait("stopped")
		if _, line, _ := e.top(); line != move.line {
			t.Errorf("after %s: line %v, not %v", move.command, line, move.line)
		}
	}
	e.must("continue", map[string]any{"threadId": 1})
	if body := e.wait("exited"); body["exitCode"] != 0.0 {
		t.Errorf("exited: %v", body)
	}
	e.wait("terminated")
	if body := e.must("evaluate", map[string]any{"expression": "total"}); body["result"] != "48" { // 0 + 2 + 40 + 6
		t.Errorf("what was set counts: %v", body)
	}
	e.must("disconnect", map[string]any{})
	if err := <-e.over; err != nil {
		t.Error(err)
	}
	if a := c.run(t, id, "total"); a.get("result") != 48.0 {
		t.Errorf("the sandbox afterwards: %s", a.text)
	}
}

// The same over a WebSocket, which needs a key before it is one.
func TestAnEditorOverAWebSocket(t *testing.T) {
	c := user(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	address := strings.Replace(base, "http", "ws", 1) + "/debug/dap"
	if _, _, err := websocket.Dial(t.Context(), address, nil); err == nil {
		t.Error("it opens without a key")
	}
	key := http.Header{"Authorization": {"Bearer " + c.secret}}
	if _, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": key["Authorization"], "Origin": {"https://elsewhere.example"}}}); err == nil {
		t.Error("it opens for a page of another origin")
	}
	agent := http.Header{"Authorization": {"Bearer " + user(t, sandbox.RoleAgent).secret}}
	if _, resp, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: agent}); err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("with a key that may not debug: %v, %v", resp, err)
	}
	large, _, err := websocket.Dial(t.Context(), address, &websocket.DialOptions{HTTPHeader: key})
	if err != nil {
		t.Fatal(err)
	}
	defer large.CloseNow()
	// A type that is none, so that only the whole message's length can be too much.
	_ = large.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte("Content-Length: 2\r\n\r\n{}"), dap.MaxFrame/20))
	if _, _, err := large.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a message that is too large: %v", err)
	}
	e := editOverWeb(t, c, base)
	e.must("initialize", nil)
	e.must("attach", map[string]any{"token": c.secret, "sandbox": id, "code": stepped, "stopOnEntry": true})
	e.wait("initialized")
	e.must("configurationDone", nil)
	if body := e.wait("stopped"); body["reason"] != "entry" {
		t.Errorf("the first stop: %v", body)
	}
	e.must("disconnect", nil)
}

// An editor opens a past run, and a session that was opened elsewhere; a client that
// vanishes takes its own program with it, and no other.
func TestAnEditorAttachesToWhatIsThere(t *testing.T) {
	c := user(t, sandbox.RoleDeveloper)
	d, _ := c.open(t, map[string]any{"code": stepped, "stop_on_entry": true}, nil)
	e := edit(t)
	e.must("initialize", nil)
	e.must("attach", map[string]any{"token": c.secret, "session": d.session})
	e.must("configurationDone", nil)
	e.wait("stopped")
	e.must("next", map[string]any{"threadId": 1})
	e.wait("stopped")
	if body := e.must("source", map[string]any{"sourceReference": 1}); !strings.HasPrefix(body["content"].(string), "def double") {
		t.Errorf("source: %v", body)
	}
	e.conn.Close()
	<-e.over
	if a := c.ok(t, "GET", "/debug/sessions/"+d.session, nil); a.get("where.line_number") != 4.0 || a.get("where.state") != "stopped" {
		t.Errorf("the session that was there before: %s", a.text)
	}
	c.do(t, "POST", "/debug/sessions/"+d.session+"/drive", nil)
	d.command(t, "continue", nil)

	e = edit(t)
	e.must("initialize", nil)
	e.must("attach", map[string]any{"token": c.secret, "execution": d.execution})
	e.must("setBreakpoints", map[string]any{"breakpoints": []any{map[string]any{"line": 8}}})
	e.must("configurationDone", nil)
	e.wait("stopped")
	e.must("continue", map[string]any{"threadId": 1})
	e.wait("stopped")
	if _, line, _ := e.top(); line != 8.0 {
		t.Errorf("in the past: line %v", line)
	}
	e.must("disconnect", nil)

	id := c.create(t, nil)
	e = edit(t)
	e.must("initialize", nil)
	e.must("attach", map[string]any{"token": c.secret, "sandbox": id, "code": "while True: x = 1"})
	e.conn.Close()
	<-e.over
	if a := c.run(t, id, "1 + 1"); a.get("result") != 2.0 {
		t.Errorf("the sandbox of a client that vanished: %s", a.text)
	}
}
