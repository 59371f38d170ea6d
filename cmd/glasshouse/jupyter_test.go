package main

import (
	"bytes"
	"context"
	endian "encoding/binary" // binary is the path of the program
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"glasshouse/sandbox"
)

// jupyterClient is a client of Jupyter's API, with the secret of a key.
type jupyterClient struct{ address, key string }

// startJupyter starts the service with Jupyter's API below its main listener. It returns an admin's client of the API
// and one of the service.
func startJupyter(t *testing.T, arguments ...string) (jupyterClient, *client) {
	t.Helper()
	_, admin := start(t, binary(t), dataDir(t), append(arguments, "--compat", "jupyter")...)
	return jupyterClient{admin.address + "/jupyter", admin.key}, admin
}

// do sends a request and returns the status and the body.
func (c jupyterClient) do(t *testing.T, method, path, body string) (status int, text []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, c.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+c.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, text
}

// kernelAnswer is a kernel as clients see it.
type kernelAnswer struct {
	ID          string
	Name        string
	LastUsed    string `json:"last_activity"`
	State       string `json:"execution_state"`
	Connections int
}

// must sends a request that must be answered with a status, and decodes the body into out unless out is nil.
func (c jupyterClient) must(t *testing.T, status int, method, path, body string, out any) {
	t.Helper()
	got, text := c.do(t, method, path, body)
	if got != status {
		t.Fatalf("%s %s: got HTTP %d %.1000s, want %d", method, path, got, text, status)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("%s %s: got %.1000s, %v, want JSON", method, path, text, err)
		}
	}
}

func (c jupyterClient) newKernel(t *testing.T) string {
	t.Helper()
	var k kernelAnswer
	c.must(t, http.StatusCreated, "POST", "/api/kernels", "", &k)
	return k.ID
}

// awaitConnections waits until a kernel has this number of clients.
func (c jupyterClient) awaitConnections(t *testing.T, kernel string, want int) {
	t.Helper()
	eventually(t, func() error {
		var k kernelAnswer
		if c.must(t, http.StatusOK, "GET", "/api/kernels/"+kernel, "", &k); k.Connections != want {
			return fmt.Errorf("got %d connections, want %d", k.Connections, want)
		}
		return nil
	})
}

// kernelMessage is a message of a kernel.
type kernelMessage struct {
	Kind    string         `json:"msg_type"`
	Channel string         `json:"channel"`
	Content map[string]any `json:"content"`
	Parent  struct {
		ID   string `json:"msg_id"`
		Mark string `json:"mark"` // an unknown key, which must come back
	} `json:"parent_header"`
}

// kernelSocket is a WebSocket to a kernel.
type kernelSocket struct {
	t    *testing.T
	conn *websocket.Conn
	isV1 bool
	sent int
}

const v1Protocol = "v1.kernel.websocket.jupyter.org"

func (c jupyterClient) connect(t *testing.T, kernel string, protocols ...string) *kernelSocket {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), c.address+"/api/kernels/"+kernel+"/channels?token="+c.key,
		&websocket.DialOptions{Subprotocols: protocols})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &kernelSocket{t: t, conn: conn, isV1: conn.Subprotocol() == v1Protocol}
}

// send sends a request and returns its id.
func (s *kernelSocket) send(channel, kind string, content any) string {
	s.t.Helper()
	s.sent++
	id := fmt.Sprintf("%p-%d", s, s.sent)
	header := map[string]any{"msg_id": id, "msg_type": kind, "session": "test", "username": "ada", "mark": "kept",
		"version": "5.3"}
	var frame []byte
	if s.isV1 {
		parts := [][]byte{[]byte(channel)}
		for _, part := range []any{header, struct{}{}, struct{}{}, content} {
			text, _ := json.Marshal(part)
			parts = append(parts, text)
		}
		at := uint64(8 * (len(parts) + 2))
		frame = endian.LittleEndian.AppendUint64(nil, uint64(len(parts)+1))
		frame = endian.LittleEndian.AppendUint64(frame, at)
		for _, part := range parts {
			at += uint64(len(part))
			frame = endian.LittleEndian.AppendUint64(frame, at)
		}
		frame = append(frame, bytes.Join(parts, nil)...)
	} else {
		message := map[string]any{"header": header, "parent_header": struct{}{}, "content": content}
		if channel != "" {
			message["channel"] = channel
		}
		frame, _ = json.Marshal(message)
	}
	kindOfFrame := websocket.MessageText
	if s.isV1 {
		kindOfFrame = websocket.MessageBinary
	}
	if err := s.conn.Write(s.t.Context(), kindOfFrame, frame); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// read returns the next message.
func (s *kernelSocket) read() (m kernelMessage, err error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	_, frame, err := s.conn.Read(ctx)
	if err != nil {
		return m, err
	}
	if !s.isV1 {
		return m, json.Unmarshal(frame, &m)
	}
	offset := func(n int) uint64 { return endian.LittleEndian.Uint64(frame[8*n:]) }
	part := func(n int) []byte { return frame[offset(n+1):offset(n+2)] }
	m.Channel = string(part(0))
	return m, errors.Join(json.Unmarshal(part(1), &m), json.Unmarshal(part(2), &m.Parent),
		json.Unmarshal(part(4), &m.Content))
}

// until reads messages up to the one that done accepts.
func (s *kernelSocket) until(done func(kernelMessage) bool) []kernelMessage {
	s.t.Helper()
	var list []kernelMessage
	for {
		m, err := s.read()
		if err != nil {
			s.t.Fatalf("after %v: %v", brief(list), err)
		}
		if list = append(list, m); done(m) {
			return list
		}
	}
}

// answers returns the messages about a request of this client, up to its reply and the state idle.
func (s *kernelSocket) answers(id string) []kernelMessage {
	s.t.Helper()
	isIdle, isReplied := false, false
	list := s.until(func(m kernelMessage) bool {
		if m.Parent.ID == id {
			isIdle = isIdle || m.Kind == "status" && m.Content["execution_state"] == "idle"
			isReplied = isReplied || strings.HasSuffix(m.Kind, "_reply") && m.Channel != "iopub"
		}
		return isIdle && isReplied
	})
	return joinStreams(slices.DeleteFunc(list, func(m kernelMessage) bool { return m.Parent.ID != id }))
}

// joinStreams makes one message of printed text that came in several.
func joinStreams(list []kernelMessage) (joined []kernelMessage) {
	for _, m := range list {
		last := len(joined) - 1
		if last >= 0 && m.Kind == "stream" && joined[last].Kind == "stream" &&
			joined[last].Content["name"] == m.Content["name"] {
			text := fmt.Sprint(joined[last].Content["text"], m.Content["text"])
			joined[last].Content = map[string]any{"name": m.Content["name"], "text": text}
			continue
		}
		joined = append(joined, m)
	}
	return joined
}

func (s *kernelSocket) request(channel, kind string, content any) []kernelMessage {
	s.t.Helper()
	return s.answers(s.send(channel, kind, content))
}

// run runs code and returns the messages about it.
func (s *kernelSocket) run(code string) []kernelMessage {
	s.t.Helper()
	return s.request("shell", "execute_request", map[string]any{"code": code})
}

// text returns the text of a value, what was printed, or the error's name and message, of the messages about a run.
func textOf(list []kernelMessage) string {
	var b strings.Builder
	for _, m := range list {
		switch m.Kind {
		case "stream":
			fmt.Fprintf(&b, "%s: %s", m.Content["name"], m.Content["text"])
		case "execute_result", "display_data", "update_display_data":
			fmt.Fprintf(&b, "%s: %s\n", m.Kind, m.Content["data"].(map[string]any)["text/plain"])
		case "error":
			fmt.Fprintf(&b, "%s: %s\n", m.Content["ename"], m.Content["evalue"])
		}
	}
	return b.String()
}

// brief returns the kinds of messages, with the states.
func brief(list []kernelMessage) []string {
	var kinds []string
	for _, m := range list {
		kind := m.Kind
		if state := m.Content["execution_state"]; state != nil {
			kind = fmt.Sprint(state)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func TestJupyterKernelsOverREST(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t)
	stranger := jupyterClient{c.address, admin.newUser(t, "stranger").key}
	ada := jupyterClient{c.address, admin.newUser(t, "ada").key}
	for _, path := range []string{"/api/kernels", "/api/status", "/api/kernelspecs", "/api/contents"} {
		nobody := jupyterClient{c.address, ""}
		nobody.must(t, http.StatusUnauthorized, "GET", path, "", nil)
		wrong := jupyterClient{c.address, "gh_wrong"}
		wrong.must(t, http.StatusUnauthorized, "GET", path, "", nil)
	}
	var specs struct {
		Default     string
		Kernelspecs map[string]struct{ Spec struct{ Language string } }
	}
	ada.must(t, http.StatusOK, "GET", "/api/kernelspecs", "", &specs)
	if specs.Default != "python3" || specs.Kernelspecs["python3"].Spec.Language != "python" {
		t.Errorf("got the kernelspecs %+v, want python3", specs)
	}
	ada.must(t, http.StatusOK, "GET", "/api/kernelspecs/python3", "", nil)
	ada.must(t, http.StatusNotFound, "GET", "/api/kernelspecs/ruby", "", nil)
	ada.must(t, http.StatusNotFound, "GET", "/api/contents", "", nil)

	var k kernelAnswer
	for _, body := range []string{"", "{}", `{"name": "python3", "path": "a/b.ipynb", "env": {"KERNEL_X": "1"}}`} {
		ada.must(t, http.StatusCreated, "POST", "/api/kernels", body, &k)
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z", k.LastUsed); err != nil || k.Name != "python3" ||
			k.State != "idle" || len(strings.Split(k.ID, "-")) != 5 {
			t.Errorf("POST %q: got %+v, want an idle kernel with a UUID and a time with a fraction", body, k)
		}
	}
	ada.must(t, http.StatusUnprocessableEntity, "POST", "/api/kernels", `{"name": "ruby"}`, nil)
	ada.must(t, http.StatusBadRequest, "POST", "/api/kernels", `{`, nil)
	for _, request := range []string{"GET ", "DELETE ", "POST /interrupt", "POST /restart", "GET /channels"} {
		method, path, _ := strings.Cut(request, " ")
		stranger.must(t, http.StatusNotFound, method, "/api/kernels/"+k.ID+path, "", nil)
		ada.must(t, http.StatusNotFound, method, "/api/kernels/none"+path, "", nil)
	}
	var list []kernelAnswer
	if ada.must(t, http.StatusOK, "GET", "/api/kernels", "", &list); len(list) != 3 {
		t.Errorf("got %d kernels, want 3", len(list))
	}
	if stranger.must(t, http.StatusOK, "GET", "/api/kernels", "", &list); len(list) != 0 {
		t.Errorf("got %d kernels of a stranger, want none", len(list))
	}
	for _, key := range []string{"", "gh_wrong"} { // of a WebSocket
		jupyterClient{c.address, key}.must(t, http.StatusUnauthorized, "GET", "/api/kernels/"+k.ID+"/channels", "", nil)
	}
	ada.must(t, http.StatusNoContent, "DELETE", "/api/kernels/"+k.ID, "", nil)
	ada.must(t, http.StatusNotFound, "GET", "/api/kernels/"+k.ID, "", nil)
	if ada.must(t, http.StatusOK, "GET", "/api/kernels", "", &list); len(list) != 2 {
		t.Errorf("after DELETE: got %d kernels, want 2", len(list))
	}
	// The sandbox of a kernel is deleted like any other.
	admin.must(t, "DELETE", "/sandbox/"+strings.ReplaceAll(list[0].ID, "-", ""), nil)
	ada.must(t, http.StatusNotFound, "GET", "/api/kernels/"+list[0].ID, "", nil)
}

func TestJupyterSessions(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t)
	ada, stranger := jupyterClient{c.address, admin.newUser(t, "ada").key}, c
	type answer struct {
		ID, Path, Name, Type string
		Kernel               kernelAnswer
	}
	var first, again, attached answer
	const body = `{"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}`
	ada.must(t, http.StatusCreated, "POST", "/api/sessions", body, &first)
	ada.must(t, http.StatusCreated, "POST", "/api/sessions", body, &again)
	if first.Kernel.ID == "" || again.Kernel.ID != first.Kernel.ID || first.Path != "a.ipynb" {
		t.Errorf("got %+v, then %+v, want one session of the path", first, again)
	}
	kernel := ada.newKernel(t)
	ada.must(t, http.StatusCreated, "POST", "/api/sessions",
		`{"path": "b.ipynb", "kernel": {"id": "`+kernel+`"}}`, &attached)
	if attached.Kernel.ID != kernel || attached.Type != "notebook" {
		t.Errorf("got %+v, want a session of the kernel %s", attached, kernel)
	}
	ada.must(t, http.StatusOK, "PATCH", "/api/sessions/"+attached.ID, `{"path": "c.ipynb"}`, &attached)
	if attached.Path != "c.ipynb" {
		t.Errorf("after PATCH: got the path %s, want c.ipynb", attached.Path)
	}
	ada.must(t, http.StatusUnprocessableEntity, "PATCH", "/api/sessions/"+attached.ID,
		`{"kernel": {"id": "`+first.Kernel.ID+`"}}`, nil)
	var list []answer
	if ada.must(t, http.StatusOK, "GET", "/api/sessions", "", &list); len(list) != 2 {
		t.Errorf("got %d sessions, want 2", len(list))
	}
	if stranger.must(t, http.StatusOK, "GET", "/api/sessions", "", &list); len(list) != 0 {
		t.Errorf("got %d sessions of another user, want none", len(list))
	}
	ada.must(t, http.StatusNoContent, "DELETE", "/api/sessions/"+first.ID, "", nil)
	ada.must(t, http.StatusNotFound, "GET", "/api/sessions/"+first.ID, "", nil)
	ada.must(t, http.StatusNotFound, "GET", "/api/kernels/"+first.Kernel.ID, "", nil)
	ada.must(t, http.StatusNotFound, "POST", "/api/sessions", `{"kernel": {"id": "`+first.Kernel.ID+`"}}`, nil)
}

// TestJupyterMessages covers the messages about a run in both forms.
func TestJupyterMessages(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t, withPackages())
	for name, protocols := range map[string][]string{"JSON": nil, "v1": {v1Protocol}} {
		t.Run(name, func(t *testing.T) {
			s := c.connect(t, c.newKernel(t), protocols...)
			if s.isV1 != (name == "v1") {
				t.Fatalf("got the subprotocol %q", s.conn.Subprotocol())
			}
			for _, x := range []struct {
				code, text string
				kinds      []string
			}{
				{"1 + 1", "execute_result: 2\n",
					[]string{"busy", "execute_input", "execute_result", "execute_reply", "idle"}},
				{"x = 'kept'; None", "", []string{"busy", "execute_input", "execute_reply", "idle"}},
				{"x", "execute_result: 'kept'\n", nil},
				{"print('é\\u20ac\\U0001f600')", "stdout: é€😀\n",
					[]string{"busy", "execute_input", "stream", "execute_reply", "idle"}},
				{"import sys; print('e', file=sys.stderr)", "stderr: e\n", nil},
				{"import os; os.getcwd()", "execute_result: '/session'\n", nil},
				{"1 / 0", "ZeroDivisionError: division by zero\n",
					[]string{"busy", "execute_input", "error", "execute_reply", "idle"}},
				{"print(", "SyntaxError: '(' was never closed\n", nil},
				{"raise SystemExit(2)", "SystemExit: 2\n", nil},
				{"input('?')", "RuntimeError: input() is not available: nobody can answer while the code runs; " +
					"write the value into the code\n", nil},
				{"(await db_query('SELECT 1 AS n'))[0]", "execute_result: {'n': 1}\n", nil},
				{"display('a'); 'b'", "display_data: 'a'\nexecute_result: 'b'\n", nil},
				{"class Rich:\n  def _repr_html_(self): return '<b>' + 'x' * 400_000\n" +
					"  def __repr__(self): return 'rich'\nRich()", "execute_result: rich\n", nil},
				{"h = display('a', display_id=True); h.update('b'); h.update('c')",
					"display_data: 'a'\nupdate_display_data: 'c'\n",
					[]string{"busy", "execute_input", "display_data", "update_display_data", "execute_reply", "idle"}},
				{"h.update('late')", "update_display_data: 'late'\n", nil},
				{"", "", []string{"busy", "execute_input", "execute_reply", "idle"}},
			} {
				list := s.run(x.code)
				if got := textOf(list); got != x.text || x.kinds != nil && !slices.Equal(brief(list), x.kinds) {
					t.Errorf("%q: got %v %.300q, want %v %q", x.code, brief(list), got, x.kinds, x.text)
				}
				for _, m := range list {
					if m.Parent.Mark != "kept" {
						t.Errorf("%q: got %s with the parent %+v, want the whole header", x.code, m.Kind, m.Parent)
					}
					if data, ok := m.Content["data"].(map[string]any); ok && strings.HasPrefix(x.code, "class Rich") &&
						len(fmt.Sprint(data["text/html"])) != 400_003 {
						t.Errorf("a large part: got %.200v, want it whole", data)
					}
				}
			}
			failed := s.run("def f():\n    raise ValueError('no')\nf()")
			lines, _ := failed[2].Content["traceback"].([]any)
			const want = `[Traceback (most recent call last):   File "<string>", line 3, in <module>     f()` +
				`   File "<string>", line 2, in f     raise ValueError('no') ValueError: no]`
			if fmt.Sprint(lines) != want {
				t.Errorf("got the traceback %v, want %s", lines, want)
			}
		})
	}
	list := admin.must(t, "GET", "/executions?kind=jupyter&limit=1", nil)
	if rows, _ := list["executions"].([]any); len(rows) != 1 {
		t.Errorf("got %v, want an execution of the kind jupyter in history", list)
	}
}

func TestJupyterRequests(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	s := c.connect(t, c.newKernel(t))
	s.run("number = 42\nnumbers = [1]")
	many := map[string]any{}
	for n := range 101 {
		many[fmt.Sprint(n)] = "1"
	}
	long := strings.Repeat("x", sandbox.MaxNameBytes+1)
	for _, x := range []struct {
		kind    string
		content map[string]any
		want    map[string]string // the text of these keys
	}{
		{"kernel_info_request", nil, map[string]string{"status": "ok", "protocol_version": "5.3"}},
		{"complete_request", map[string]any{"code": "é = numb", "cursor_pos": json.Number("8.0")},
			map[string]string{"status": "ok", "matches": "[number numbers]", "cursor_start": "4", "cursor_end": "8"}},
		{"complete_request", map[string]any{"code": "n", "cursor_pos": 9}, map[string]string{"status": "error"}},
		{"inspect_request", map[string]any{"code": "é = number", "cursor_pos": 6},
			map[string]string{"status": "ok", "found": "true", "data": "map[text/plain:Type: int\nValue: 42]"}},
		{"inspect_request", map[string]any{"code": "nothing"}, map[string]string{"status": "ok", "found": "false"}},
		{"is_complete_request", map[string]any{"code": "x = 42"}, map[string]string{"status": "complete"}},
		{"is_complete_request", map[string]any{"code": "import os"}, map[string]string{"status": "complete"}},
		{"is_complete_request", map[string]any{"code": "for i in range(3):"},
			map[string]string{"status": "incomplete", "indent": "    "}},
		{"is_complete_request", map[string]any{"code": "def f():\n    if 1:\n        pass"},
			map[string]string{"status": "incomplete", "indent": "        "}},
		{"is_complete_request", map[string]any{"code": "def f(:"}, map[string]string{"status": "invalid"}},
		{"history_request", map[string]any{"hist_access_type": "tail", "n": 1},
			map[string]string{"history": "[[1 1 number = 42\nnumbers = [1]]]"}},
		{"comm_info_request", map[string]any{}, map[string]string{"status": "ok", "comms": "map[]"}},
		{"execute_request", map[string]any{"code": "1", "silent": true, "user_expressions": map[string]any{"a": "1"}},
			map[string]string{"status": "ok", "execution_count": "1"}},
		{"execute_request", map[string]any{"code": 7}, map[string]string{"status": "error"}},
		{"execute_request", map[string]any{"code": "1", "user_expressions": many}, map[string]string{
			"evalue": "user_expressions: it has 101 expressions, and may have 100; send them as code"}},
		{"execute_request", map[string]any{"code": "1", "user_expressions": map[string]any{long: "1"}},
			map[string]string{"evalue": "user_expressions: it has 1025 bytes, and may have 1024; send a shorter one"}},
	} {
		for _, channel := range []string{"shell", ""} {
			content := x.content
			if content == nil {
				content = map[string]any{}
			}
			list := s.request(channel, x.kind, content)
			at := slices.IndexFunc(list, func(m kernelMessage) bool { return strings.HasSuffix(m.Kind, "_reply") })
			if got := list[at].Kind; got != strings.Replace(x.kind, "_request", "_reply", 1) {
				t.Errorf("%s: got %s", x.kind, got)
			}
			for key, want := range x.want {
				if got := fmt.Sprint(list[at].Content[key]); got != want {
					t.Errorf("%s %v: got %s %q, want %q", x.kind, x.content, key, got, want)
				}
			}
		}
	}
	for comm, want := range map[string][]string{"c1": {"busy", "comm_close", "idle"}, long: {"busy", "idle"}} {
		id := s.send("shell", "comm_open", map[string]any{"comm_id": comm, "target_name": "jupyter.widget"})
		list := s.until(func(m kernelMessage) bool {
			return m.Content["execution_state"] == "idle" && m.Parent.ID == id
		})
		if got := brief(list); !slices.Equal(got, want) {
			t.Errorf("comm_open with an id of %d bytes: got %v, want %v", len(comm), got, want)
		}
	}
	id := s.send("shell", "no_such_request", map[string]any{})
	s.until(func(m kernelMessage) bool { return m.Content["execution_state"] == "idle" && m.Parent.ID == id })
}

// TestJupyterQueue covers what requests that wait get when one fails, or is interrupted.
func TestJupyterQueue(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	kernel := c.newKernel(t)
	s := c.connect(t, kernel)
	s.run("kept = 1")
	var ids []string
	for _, code := range []string{"import time\nprint('began')\ntime.sleep(60)", "kept = 2", "kept = 3"} {
		ids = append(ids, s.send("shell", "execute_request", map[string]any{"code": code}))
	}
	ids = append(ids, s.send("shell", "kernel_info_request", struct{}{}))
	s.until(func(m kernelMessage) bool { return m.Kind == "stream" })
	c.must(t, http.StatusNoContent, "POST", "/api/kernels/"+kernel+"/interrupt", "", nil)
	for n, want := range []string{"error KeyboardInterrupt", "aborted <nil>", "aborted <nil>", "ok <nil>"} {
		list := s.answers(ids[n])
		reply := list[slices.IndexFunc(list, func(m kernelMessage) bool { return strings.HasSuffix(m.Kind, "_reply") })]
		if got := fmt.Sprint(reply.Content["status"], " ", reply.Content["ename"]); got != want {
			t.Errorf("request %d: got %s, want %s", n, got, want)
		}
	}
	if got := textOf(s.run("kept")); got != "execute_result: 1\n" {
		t.Errorf("after the interrupt: got %q, want the variable of before", got)
	}
	// Code that needs a moment to end after an interrupt keeps its variables.
	slow := s.send("shell", "execute_request", map[string]any{"code": "import time\ntry:\n  print('began')\n" +
		"  time.sleep(60)\nfinally:\n  time.sleep(0.5)\n  kept = 4"})
	s.until(func(m kernelMessage) bool { return m.Kind == "stream" })
	interrupt := s.send("control", "interrupt_request", struct{}{})
	s.until(func(m kernelMessage) bool { return m.Kind == "interrupt_reply" && m.Parent.ID == interrupt })
	s.answers(slow)
	if got := textOf(s.run("kept")); got != "execute_result: 4\n" {
		t.Errorf("after an interrupt that took a moment: got %q, want the variable", got)
	}
	// Code that catches an interrupt gets the next one, as with ipykernel (microsoft/vscode-jupyter#2158). It has
	// interruptTimeout after the last: this code takes longer in all.
	stubborn := s.send("shell", "execute_request", map[string]any{"code": `import time
for n in range(4):
    try:
        print(f'try {n}\n', end='')
        time.sleep(60)
    except KeyboardInterrupt:
        kept = n
        end = time.monotonic() + 1.5
        while time.monotonic() < end: pass`})
	for n := range 4 {
		s.until(func(m kernelMessage) bool {
			return m.Kind == "stream" && strings.Contains(fmt.Sprint(m.Content["text"]), fmt.Sprint("try ", n))
		})
		c.must(t, http.StatusNoContent, "POST", "/api/kernels/"+kernel+"/interrupt", "", nil)
	}
	s.answers(stubborn)
	if got := textOf(s.run("kept")); got != "execute_result: 3\n" {
		t.Errorf("after an interrupt for each time that the code caught one: got %q, want the variable", got)
	}
	// An error aborts the requests that wait, unless its own request says otherwise.
	for stop, want := range map[bool]string{true: "", false: "execute_result: 'on'\n"} {
		first := s.send("shell", "execute_request",
			map[string]any{"code": "import time; time.sleep(0.5); 1/0", "stop_on_error": stop})
		second := s.send("shell", "execute_request", map[string]any{"code": "'on'"})
		s.answers(first)
		if got := textOf(s.answers(second)); got != want {
			t.Errorf("after an error with stop_on_error %v: got %q, want %q", stop, got, want)
		}
	}
}

func TestJupyterRestart(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	kernel := c.newKernel(t)
	s := c.connect(t, kernel)
	for name, restart := range map[string]func(){
		"REST": func() { c.must(t, http.StatusOK, "POST", "/api/kernels/"+kernel+"/restart", "", nil) },
		"message": func() {
			id := s.send("control", "shutdown_request", map[string]any{"restart": true})
			s.until(func(m kernelMessage) bool { return m.Kind == "shutdown_reply" && m.Parent.ID == id })
		},
		"exit of the process": func() {
			if got := textOf(s.run("import os; os._exit(1)")); !strings.HasPrefix(got, "KernelDied: ") {
				t.Errorf("got %q, want KernelDied", got)
			}
			s.until(func(m kernelMessage) bool { return m.Content["execution_state"] == "restarting" })
		},
	} {
		s.run("lost = 1; open('kept.txt', 'w').write('kept')")
		if name != "exit of the process" { // even while something runs
			s.send("shell", "execute_request", map[string]any{"code": "print('began')\nwhile True: pass"})
			s.until(func(m kernelMessage) bool { return m.Kind == "stream" })
		}
		restart()
		got := textOf(s.run("print('lost' in globals(), open('kept.txt').read())"))
		if got != "stdout: False kept\n" {
			t.Errorf("after a restart by %s: got %q, want the file and no variable", name, got)
		}
		list := s.run("1")
		if got := list[1].Content["execution_count"]; got != 2.0 {
			t.Errorf("after a restart by %s: got the count %v, want 2", name, got)
		}
	}
	s.send("control", "shutdown_request", map[string]any{"restart": false})
	s.until(func(m kernelMessage) bool { return m.Kind == "shutdown_reply" && m.Channel == "control" })
	wantClose(t, s, websocket.StatusGoingAway)
	c.must(t, http.StatusNotFound, "GET", "/api/kernels/"+kernel, "", nil)
}

// wantClose reads until the service closes a WebSocket with a code.
func wantClose(t *testing.T, s *kernelSocket, code websocket.StatusCode) {
	t.Helper()
	for {
		if _, err := s.read(); err != nil {
			if got := websocket.CloseStatus(err); got != code {
				t.Errorf("got the close code %d (%v), want %d", got, err, code)
			}
			return
		}
	}
}

// TestJupyterClientsShareAKernel covers that both see what is published, that only one gets the reply, and that the
// code of a client which has left goes on.
func TestJupyterClientsShareAKernel(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	kernel := c.newKernel(t)
	one, two := c.connect(t, kernel), c.connect(t, kernel, v1Protocol)
	c.awaitConnections(t, kernel, 2)
	id := one.send("shell", "execute_request", map[string]any{"code": "print('seen')\n'value'"})
	mine := one.answers(id)
	theirs := two.until(func(m kernelMessage) bool { return m.Content["execution_state"] == "idle" })
	isReply := func(m kernelMessage) bool { return m.Kind == "execute_reply" }
	if !slices.Equal(brief(slices.DeleteFunc(mine, isReply)), brief(joinStreams(theirs))) {
		t.Errorf("got %v and %v, want the same without the reply", brief(mine), brief(theirs))
	}
	var k kernelAnswer
	one.send("shell", "execute_request", map[string]any{"code": "print('began')\nopen('go', 'w')\n" +
		"import os, time\nwhile not os.path.exists('stop'): time.sleep(0.01)\ndone = 'yes'"})
	two.until(func(m kernelMessage) bool { return m.Kind == "stream" })
	one.conn.CloseNow()
	eventually(t, func() error {
		if c.must(t, http.StatusOK, "GET", "/api/kernels/"+kernel, "", &k); k.Connections != 1 || k.State != "busy" {
			return fmt.Errorf("got %+v, want one connection to a busy kernel", k)
		}
		return nil
	})
	c.must(t, http.StatusNoContent, "POST", "/api/kernels/"+kernel+"/interrupt", "", nil)
	two.until(func(m kernelMessage) bool { return m.Kind == "error" })
	if got := textOf(two.run("1")); got != "execute_result: 1\n" {
		t.Errorf("the other client: got %q, want the value", got)
	}
	// A client too many is told so.
	for range 31 {
		c.connect(t, kernel)
	}
	c.awaitConnections(t, kernel, 32)
	conn, res, err := websocket.Dial(t.Context(), c.address+"/api/kernels/"+kernel+"/channels?token="+c.key, nil)
	if err == nil {
		conn.CloseNow()
		t.Fatal("a client too many is connected; want HTTP 429")
	}
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(text), "32 clients, the maximum") {
		t.Errorf("a client too many: got HTTP %d %s, want 429 with the reason", res.StatusCode, text)
	}
}

func TestJupyterConnectionEndsWithTheKernelAndTheKey(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t)
	kernel := c.newKernel(t)
	s := c.connect(t, kernel)
	s.send("shell", "execute_request", map[string]any{"code": "print('began')\nwhile True: pass"})
	s.until(func(m kernelMessage) bool { return m.Kind == "stream" })
	admin.must(t, "DELETE", "/sandbox/"+strings.ReplaceAll(kernel, "-", ""), nil)
	s.until(func(m kernelMessage) bool { return m.Content["execution_state"] == "dead" })
	wantClose(t, s, websocket.StatusGoingAway)

	made := admin.must(t, "POST", "/keys", map[string]any{"name": "revoked", "user_id": "ada", "role": "agent"})
	ada := jupyterClient{c.address, fmt.Sprint(made["key"])}
	kernel = ada.newKernel(t)
	s = ada.connect(t, kernel)
	s.send("shell", "execute_request", map[string]any{"code": "print('began')\nwhile True: pass"})
	s.until(func(m kernelMessage) bool { return m.Kind == "stream" })
	admin.must(t, "DELETE", "/keys/"+fmt.Sprint(made["id"]), nil)
	wantClose(t, s, websocket.StatusPolicyViolation)
	ada.must(t, http.StatusUnauthorized, "GET", "/api/kernels", "", nil)
	eventually(t, func() error { // what it ran has ended; an admin sees the kernel
		var k kernelAnswer
		if c.must(t, http.StatusOK, "GET", "/api/kernels/"+kernel, "", &k); k.State != "idle" || k.Connections != 0 {
			return fmt.Errorf("got %+v, want an idle kernel without connections", k)
		}
		return nil
	})
}

func TestJupyterRefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	kernel := c.newKernel(t)
	for name, frame := range map[string][]byte{
		"text":             []byte("x"),
		"no object":        []byte("[]"),
		"no header":        []byte(`{"content": {}}`),
		"no type":          []byte(`{"header": {"msg_id": "1"}}`),
		"a large header":   []byte(`{"header": {"msg_type": "x", "y": "` + strings.Repeat("x", 17<<10) + `"}}`),
		"a lone surrogate": []byte(`{"header": {"msg_type": "x", "y": "\ud800"}}`),
	} {
		s := c.connect(t, kernel)
		if err := s.conn.Write(t.Context(), websocket.MessageText, frame); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { wantClose(t, s, websocket.StatusInvalidFramePayloadData) })
	}
	large := c.connect(t, kernel)
	_ = large.conn.Write(t.Context(), websocket.MessageText, make([]byte, 5<<20))
	wantClose(t, large, websocket.StatusMessageTooBig)
	s := c.connect(t, kernel, v1Protocol)
	for _, frame := range [][]byte{nil, {1}, make([]byte, 64), bytes.Repeat([]byte{0xff}, 64),
		endian.LittleEndian.AppendUint64(nil, 6),
		append(endian.LittleEndian.AppendUint64(nil, 6), make([]byte, 48)...)} {
		if err := s.conn.Write(t.Context(), websocket.MessageBinary, frame); err != nil {
			t.Fatal(err)
		}
		wantClose(t, s, websocket.StatusInvalidFramePayloadData)
		s = c.connect(t, kernel, v1Protocol)
	}
	if got := textOf(s.run("'alive'")); got != "execute_result: 'alive'\n" {
		t.Errorf("got %q, want the kernel alive", got)
	}
	// A binary frame without a subprotocol has JSON and buffers.
	text := []byte(`{"header": {"msg_type": "kernel_info_request", "msg_id": "b"}, "content": {}}`)
	frame := endian.BigEndian.AppendUint32(nil, 2)
	frame = endian.BigEndian.AppendUint32(frame, 12)
	frame = endian.BigEndian.AppendUint32(frame, uint32(12+len(text)))
	plain := c.connect(t, kernel)
	frame = append(append(frame, text...), 1, 2, 3)
	if err := plain.conn.Write(t.Context(), websocket.MessageBinary, frame); err != nil {
		t.Fatal(err)
	}
	plain.until(func(m kernelMessage) bool { return m.Kind == "kernel_info_reply" && m.Parent.ID == "b" })
}

// Messages that do not end take the memory of a few large messages, however many clients send them.
func TestJupyterLimitsLargeMessages(t *testing.T) {
	t.Parallel()
	const most = 8 // large messages of a user at the same time
	c, _ := startJupyter(t)
	kernel := c.newKernel(t)
	closed := make(chan error, most+1)
	for range most + 1 {
		s := c.connect(t, kernel)
		w, err := s.conn.Writer(t.Context(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 256<<10)); err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				if _, _, err := s.conn.Read(t.Context()); err != nil {
					closed <- err
					return
				}
			}
		}()
	}
	if got := textOf(c.connect(t, kernel).run("'on'")); got != "execute_result: 'on'\n" {
		t.Errorf("got %q for a small message, want the value", got)
	}
	if err := <-closed; websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("got %v for one large message too many, want the close code %d", err, websocket.StatusTryAgainLater)
	}
	if err := <-closed; websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("got %v for a message that does not end, want the close code %d", err,
			websocket.StatusPolicyViolation)
	}
}

// TestJupyterFloodOfOutput covers that a flood is cut, that the cut is visible, and that the kernel goes on.
func TestJupyterFloodOfOutput(t *testing.T) {
	t.Parallel()
	c, _ := startJupyter(t)
	s := c.connect(t, c.newKernel(t))
	idle := c.connect(t, c.newKernel(t)) // of another kernel
	size := 100 << 20
	if testing.Short() {
		size = 10 << 20
	}
	got := textOf(s.run(fmt.Sprintf("print('x' * %d)", size)))
	if len(got) < 1<<20 || len(got) > 2<<20 || !strings.Contains(got, "more bytes exceed max_output_size") {
		t.Errorf("got %d bytes that end in %q, want 1 MiB and a note", len(got), got[max(0, len(got)-200):])
	}
	bytes := textOf(s.run("import os, sys\nos.write(1, bytes([0, 255, 254]))\n" +
		"sys.stdout.buffer.write(bytes(range(128, 256)))\nprint('\\ud800', 'end')"))
	if !strings.HasSuffix(bytes, " end\n") {
		t.Errorf("binary output: got %q, want text", bytes)
	}
	many := textOf(s.run("for n in range(100): display(n)\n'last'"))
	if !strings.Contains(many, "more outputs were left out") {
		t.Errorf("got %.300q, want a note that outputs are missing", many)
	}
	for _, each := range []*kernelSocket{s, idle} {
		if got := textOf(each.run("'on'")); got != "execute_result: 'on'\n" {
			t.Errorf("got %q, want the value", got)
		}
	}
}

// Code cannot make the service read a file for its clients: a reference to an artifact that it wrote itself is dropped.
// The file here is JSON that is too deep for a message.
func TestJupyterReadsNoArtifactThatCodeNames(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t)
	s := c.connect(t, c.newKernel(t))
	s.run("open('artifacts/deep.json', 'w').write('[' * 9999 + ']' * 9999)")
	var list struct {
		Artifacts []map[string]any `json:"artifacts"`
	}
	if err := admin.call(t.Context(), "GET", "/artifacts", nil, &list); err != nil || len(list.Artifacts) != 1 {
		t.Fatalf("got the artifacts %v and %v, want one", list.Artifacts, err)
	}
	artifact := list.Artifacts[0]["artifact_id"]
	reference, _ := json.Marshal(fmt.Sprintf(`{"application/json":{"artifact_id":%q}}`, artifact))
	messages := s.run(fmt.Sprintf(`import json
display({"text/plain": "shown", %q: json.loads(%s)}, raw=True)`, sandbox.ArtifactMIME, reference))
	want := map[string]any{"text/plain": "shown"}
	for _, m := range messages {
		if m.Kind == "display_data" && !reflect.DeepEqual(m.Content["data"], want) {
			t.Errorf("got the data %.300v, want %v", m.Content["data"], want)
		}
	}
	if got := textOf(messages); got != "display_data: shown\n" {
		t.Errorf("got %.300q, want the display", got)
	}
	if got := textOf(s.run("'on'")); got != "execute_result: 'on'\n" {
		t.Errorf("got %q, want the value", got)
	}
}

// TestJupyterFormOfAPassword signs in as Open WebUI does.
func TestJupyterFormOfAPassword(t *testing.T) {
	t.Parallel()
	c, admin := startJupyter(t)
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	send := func(method, path string, form url.Values, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, c.address+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if form != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	token := func(resp *http.Response) string {
		for _, cookie := range resp.Cookies() {
			if cookie.Name == "_xsrf" {
				return cookie.Value
			}
		}
		return ""
	}
	form := send("GET", "/login", nil)
	if policy := form.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("the form: got the policy %q, want that no page shows it in a frame", policy)
	}
	if kept := form.Header.Get("Cache-Control"); kept != "no-store" {
		t.Errorf("the form: got Cache-Control %q, want that no cache keeps its token", kept)
	}
	xsrf := token(form)
	for name, x := range map[string]struct {
		form url.Values
		want int
	}{
		"without _xsrf": {url.Values{"password": {c.key}}, http.StatusForbidden},
		"wrong _xsrf":   {url.Values{"password": {c.key}, "_xsrf": {"x"}}, http.StatusForbidden},
		"wrong key":     {url.Values{"password": {"gh_wrong"}, "_xsrf": {xsrf}}, http.StatusUnauthorized},
	} {
		if resp := send("POST", "/login", x.form); resp.StatusCode != x.want {
			t.Errorf("%s: got HTTP %d, want %d", name, resp.StatusCode, x.want)
		}
	}
	if resp := send("POST", "/api/kernels", nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("before the sign-in: got HTTP %d, want 401", resp.StatusCode)
	}
	right := url.Values{"password": {c.key}, "_xsrf": {xsrf}}
	if resp := send("POST", "/login", right, "Sec-Fetch-Site", "cross-site"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a form of another site: got HTTP %d, want 403", resp.StatusCode)
	}
	empty := url.Values{"password": {c.key}, "_xsrf": {""}}
	if resp := send("POST", "/login", empty, "Cookie", "_xsrf="); resp.StatusCode != http.StatusForbidden {
		t.Errorf("an empty _xsrf in the form and the cookie: got HTTP %d, want 403", resp.StatusCode)
	}
	resp := send("POST", "/login", right)
	if resp.StatusCode != 200 || len(resp.Cookies()) != 1 {
		t.Fatalf("the right key: got HTTP %d and %s, want 200 and a cookie", resp.StatusCode, resp.Cookies())
	}
	if cookie := resp.Cookies()[0]; !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
		t.Errorf("got the cookie %s, want one that no script and no other site can use", cookie)
	}
	session, _ := url.QueryUnescape(resp.Cookies()[0].Value)
	me := (&client{admin.address, session}).must(t, "GET", "/me", nil)
	id, _ := me["key_id"].(string)
	if session == c.key || !strings.HasPrefix(id, "session-") || me["expires_at"] == nil {
		t.Errorf("the cookie for the admin key of the service: got the key %v, want that of a sign-in that ends", me)
	}
	if resp := send("POST", "/api/kernels", nil); resp.StatusCode != http.StatusCreated {
		t.Errorf("with the cookie: got HTTP %d, want 201", resp.StatusCode)
	}
	for _, header := range []string{"Origin", "Sec-Fetch-Site"} {
		value := map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}[header]
		if resp := send("GET", "/api/kernels", nil, header, value); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a page of another origin: got HTTP %d, want 401", resp.StatusCode)
		}
	}
}

// TestJupyterCookiesAreForHTTPS shows that a browser which reaches the service by HTTPS, through a proxy, sends the
// cookies of the form by HTTPS only. A listener of the API's own is not behind that proxy.
func TestJupyterCookiesAreForHTTPS(t *testing.T) {
	t.Parallel()
	const proxy = "--public-url=https://glasshouse.example"
	below, _ := startJupyter(t, proxy)
	own := reserveAddress(t)
	start(t, binary(t), dataDir(t), proxy, "--compat", "jupyter="+own)
	for address, want := range map[string]bool{below.address: true, "http://" + own: false} {
		resp, err := http.Get(address + "/login")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if cookies := resp.Cookies(); len(cookies) != 1 || cookies[0].Secure != want {
			t.Errorf("%s: got the cookies %s, want one with Secure %v", address, cookies, want)
		}
	}
}
