package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// e2bClient sends the requests of E2B's clients. clients/e2b and clients/e2b-js run the clients themselves.
type e2bClient struct{ url, key string }

// e2bLine is a line of the answer to a run.
type e2bLine struct {
	Type      string
	Text      string
	Main      bool `json:"is_main_result"`
	Name      string
	Value     string
	Traceback string
	Count     int `json:"execution_count"`
	PNG       string
}

// request sends a request; for the sandbox id, if that is not empty. The caller closes the answer's body.
func (c e2bClient) request(
	ctx context.Context,
	method, id, port, path, kind string,
	body io.Reader, headers ...string,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	for n := 0; n+1 < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	if id == "" {
		req.Header.Set("X-API-Key", c.key)
	} else {
		req.Header.Set("E2b-Sandbox-Id", id)
		req.Header.Set("E2b-Sandbox-Port", port)
		req.Header.Set("X-Access-Token", c.key)
	}
	return http.DefaultClient.Do(req)
}

// send sends a request with JSON and returns the status and the text of the answer.
func (c e2bClient) send(t *testing.T, method, id, port, path string, in any) (int, string) {
	t.Helper()
	text, _ := json.Marshal(in)
	resp, err := c.request(t.Context(), method, id, port, path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(out)
}

// create creates a sandbox and returns its id.
func (c e2bClient) create(t *testing.T, timeout int) string {
	t.Helper()
	status, text := c.send(
		t,
		"POST",
		"",
		"",
		"/v2/sandboxes",
		map[string]any{"templateID": "code-interpreter-v1", "timeout": timeout},
	)
	var sandbox struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	if err := json.Unmarshal([]byte(text), &sandbox); err != nil || status != 201 || sandbox.ID == "" ||
		sandbox.Token != c.key {
		t.Fatalf("create: got HTTP %d %s, want 201 with an id and the key as token", status, text)
	}
	return sandbox.ID
}

// run runs code and returns the lines of the answer. each is called with each line, if it is not nil.
func (c e2bClient) run(ctx context.Context, id, code string, each func(e2bLine)) (lines []e2bLine, err error) {
	body, _ := json.Marshal(map[string]string{"code": code})
	resp, err := c.request(ctx, "POST", id, "49999", "/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		text, _ := io.ReadAll(resp.Body)
		return nil, fmt.Errorf("HTTP %d: %s", resp.StatusCode, text)
	}
	reader := bufio.NewReader(resp.Body)
	for {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			return lines, nil
		}
		var line e2bLine
		if err == nil {
			err = json.Unmarshal(text, &line)
		}
		if err != nil {
			return lines, fmt.Errorf("line %.200q: %w", text, err)
		}
		if lines = append(lines, line); each != nil {
			each(line)
		}
	}
}

// find returns the first line of a type.
func find(lines []e2bLine, kind string) e2bLine {
	for _, l := range lines {
		if l.Type == kind {
			return l
		}
	}
	return e2bLine{}
}

// startE2B starts the service with E2B's API, and returns a client with a user's key.
func startE2B(t *testing.T, arguments ...string) (e2bClient, *client) {
	t.Helper()
	address := reserveAddress(t)
	_, admin := start(t, binary(t), dataDir(t), append(arguments, "--compat", "e2b="+address)...)
	return e2bClient{"http://" + address, admin.newUser(t, "ada").key}, admin
}

// executions returns the caller's executions of a kind.
func (c *client) executions(t *testing.T, kind string) (list []map[string]any) {
	t.Helper()
	for _, e := range c.must(t, "GET", "/executions?kind="+kind, nil)["executions"].([]any) {
		list = append(list, e.(map[string]any))
	}
	return list
}

// TestE2BClientThatLeavesCancelsItsRun covers that the sandbox keeps its variables, and that the next run waits for the
// end of the earlier one.
func TestE2BClientThatLeavesCancelsItsRun(t *testing.T) {
	t.Parallel()
	c, admin := startE2B(t)
	id := c.create(t, 300)
	ctx, leave := context.WithCancel(t.Context())
	_, err := c.run(ctx, id, "x = 1\nprint('begun')\nimport time\nwhile True: time.sleep(0.01)", func(l e2bLine) {
		if l.Text == "begun\n" {
			leave()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want a cancelled request", err)
	}
	lines, err := c.run(t.Context(), id, "x", nil)
	if err != nil || find(lines, "result").Text != "1" || !find(lines, "result").Main ||
		find(lines, "number_of_executions").Count != 2 {
		t.Errorf("the next run: got %+v, %v, want the variable", lines, err)
	}
	list := (&client{admin.address, c.key}).executions(t, "e2b")
	if len(list) != 2 || list[1]["status"] != "cancelled" || list[0]["status"] != "completed" ||
		list[1]["sandbox_id"] != id {
		t.Errorf("history: got %v, want a cancelled and a completed run", list)
	}
	var both sync.WaitGroup // two clients at one sandbox
	for n := range 2 {
		both.Go(func() {
			lines, err := c.run(t.Context(), id, fmt.Sprintf("import time\ntime.sleep(0.2)\n%d", n), nil)
			if got := find(lines, "result").Text; err != nil || got != fmt.Sprint(n) {
				t.Errorf("run %d of two: got %q, %v", n, got, err)
			}
		})
	}
	both.Wait()
}

// TestE2BSandboxThatEnded covers expiry, deletion and a restart of the service: clients recognise them by status and
// text.
func TestE2BSandboxThatEnded(t *testing.T) {
	t.Parallel()
	address, dir := reserveAddress(t), dataDir(t)
	cmd, admin := start(t, binary(t), dir, "--compat", "e2b="+address)
	c := e2bClient{"http://" + address, admin.newUser(t, "ada").key}
	wantEnded := func(what, id, reason string) {
		t.Helper()
		for _, r := range []struct{ method, port, path string }{
			{"GET", "49983", "/health"}, {"GET", "49983", "/files?path=x"}, {"POST", "49999", "/execute"},
			{"GET", "49999", "/contexts"},
			{"POST", "49983", "/filesystem.Filesystem/ListDir"},
		} {
			status, text := c.send(
				t,
				r.method,
				id,
				r.port,
				r.path,
				map[string]string{"code": "1", "path": "/home/user"},
			)
			if status != 502 || !strings.Contains(text, "was not found") || !strings.Contains(text, reason) {
				t.Errorf("%s, %s %s: got HTTP %d %s, want 502 with %q", what, r.method, r.path, status, text, reason)
			}
		}
		if status, text := c.send(t, "GET", "", "", "/sandboxes/"+id, nil); status != 404 ||
			!strings.Contains(text, reason) {
			t.Errorf("%s, GET: got HTTP %d %s, want 404 with %q", what, status, text, reason)
		}
	}
	short := c.create(t, 1)
	eventually(t, func() error {
		if status, text := c.send(t, "GET", short, "49983", "/health", nil); status != 502 ||
			!strings.Contains(text, "its lifetime or idle time ended") { // history learns it a moment later
			return fmt.Errorf("an expired sandbox: got HTTP %d %s, want 502", status, text)
		}
		return nil
	})
	wantEnded("expired", short, "its lifetime or idle time ended")
	killed, kept := c.create(t, 300), c.create(t, 300)
	begun, done := make(chan struct{}), make(chan []e2bLine)
	go func() {
		lines, _ := c.run(t.Context(), killed, "print('begun')\nwhile True: pass", func(l e2bLine) {
			if l.Text == "begun\n" {
				close(begun)
			}
		})
		done <- lines
	}()
	<-begun
	if status, text := c.send(t, "DELETE", "", "", "/sandboxes/"+killed, nil); status != 204 {
		t.Errorf("DELETE: got HTTP %d %s, want 204", status, text)
	}
	if lines := <-done; find(lines, "error").Name == "" || lines[len(lines)-1].Type != "end_of_execution" {
		t.Errorf("the run of a deleted sandbox: got %+v, want an error and an end", lines)
	}
	wantEnded("deleted", killed, "it was deleted")
	status, _ := c.send(t, "POST", "", "", "/sandboxes/"+kept+"/timeout", map[string]json.Number{"timeout": "1.0"})
	if status != 204 {
		t.Errorf("timeout: got HTTP %d, want 204", status)
	}
	eventually(t, func() error {
		if status, _ := c.send(t, "GET", kept, "49983", "/health", nil); status != 502 {
			return fmt.Errorf("after a timeout of 1 s: got HTTP %d, want 502", status)
		}
		return nil
	})
	lost := c.create(t, 300)
	stop(t, cmd)
	start(t, binary(t), dir, "--compat", "e2b="+address)
	wantEnded("after a restart", lost, "the service was restarted")
}

// TestE2BContextRestarts covers that a context that is restarted loses its variables, and that no other does.
func TestE2BContextRestarts(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t)
	id := c.create(t, 300)
	const code = "print('x' in globals())\nx = 1\nopen('kept.txt', 'w').close()"
	for n, want := range []string{"False\n", "True\n", "False\n"} {
		if n == 2 {
			if status, text := c.send(t, "POST", id, "49999", "/contexts/"+id+"/restart", nil); status != 200 {
				t.Fatalf("restart: got HTTP %d %s, want 200", status, text)
			}
		}
		lines, err := c.run(t.Context(), id, code, nil)
		count := map[int]int{0: 1, 1: 2, 2: 1}[n]
		if got := find(lines, "number_of_executions").Count; err != nil || got != count ||
			find(lines, "stdout").Text != want {
			t.Errorf("run %d: got %+v, %v, want %q and the count %d", n, lines, err, want, count)
		}
	}
	if status, text := c.send(t, "GET", id, "49983", "/files?path=kept.txt", nil); status != 200 {
		t.Errorf("the file of before: got HTTP %d %s, want 200", status, text)
	}
}

// TestE2BOutputs covers output that is large, binary, or not valid in JSON.
func TestE2BOutputs(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t)
	id := c.create(t, 300)
	bytesOfStdout := 0
	var last string
	lines, err := c.run(t.Context(), id, "for _ in range(100): print('x' * (1 << 20))\nprint('end')", func(l e2bLine) {
		if l.Type == "stdout" {
			bytesOfStdout += len(l.Text)
			last = l.Text
		}
	})
	if err != nil || find(lines, "error").Name != "" || bytesOfStdout < 1<<20 || bytesOfStdout > 2<<20 ||
		!strings.Contains(last, "left out") {
		t.Errorf(
			"100 MB of output: got %d bytes that end in %.100q, %v, want 1 MiB and a mark",
			bytesOfStdout,
			last,
			err,
		)
	}
	lines, err = c.run(
		t.Context(),
		id,
		"import sys\nsys.stdout.buffer.write(bytes(range(256))) if hasattr(sys.stdout, 'buffer') else None\n"+
			"import os\nos.write(1, bytes([0, 255, 254]))\nprint('\\ud800')\n'<a>&\\u2028'",
		nil,
	)
	if err != nil || find(lines, "error").Name != "" || find(lines, "result").Text == "" {
		t.Errorf("binary output: got %+v, %v, want lines of JSON", lines, err)
	}
	for code, want := range map[string]e2bLine{
		"1 / 0":                      {Name: "ZeroDivisionError", Value: "division by zero"},
		"print('x'":                  {Name: "SyntaxError", Value: "'(' was never closed"},
		"import os\nos._exit(1)":     {Name: "UnexpectedEndOfExecution"},
		"raise ValueError('\\x00é')": {Name: "ValueError", Value: "\x00é"},
	} {
		lines, err := c.run(t.Context(), id, code, nil)
		got := find(lines, "error")
		if err != nil || got.Name != want.Name || want.Value != "" && got.Value != want.Value || got.Traceback == "" {
			t.Errorf("%q: got %+v, %v, want %+v", code, got, err, want)
		}
	}
}

// TestE2BKeys covers wrong keys, keys of other users, and a key that is revoked while its code runs.
func TestE2BKeys(t *testing.T) {
	t.Parallel()
	c, admin := startE2B(t)
	id := c.create(t, 300)
	for _, key := range []string{"", "e2b_0000000000000000000000000000000000000000"} {
		wrong := e2bClient{c.url, key}
		if status, text := wrong.send(t, "POST", "", "", "/v2/sandboxes", map[string]any{}); status != 401 ||
			!strings.Contains(text, `"code":401`) {
			t.Errorf("key %q: got HTTP %d %s, want 401", key, status, text)
		}
		for _, path := range []string{"/files?path=x", "/filesystem.Filesystem/Stat", "/process.Process/Start"} {
			if status, text := wrong.send(t, "POST", id, "49983", path, map[string]any{}); status != 401 {
				t.Errorf("key %q, %s: got HTTP %d %s, want 401", key, path, status, text)
			}
		}
	}
	other := e2bClient{c.url, admin.newUser(t, "eve").key}
	if _, err := other.run(t.Context(), id, "1", nil); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("another user's sandbox: got %v, want 502", err)
	}
	if status, text := other.send(t, "GET", "", "", "/v2/sandboxes", nil); status != 200 ||
		strings.TrimSpace(text) != "[]" {
		t.Errorf("another user's list: got HTTP %d %s, want none", status, text)
	}
	body := map[string]any{"name": "bob", "user_id": "bob", "role": "agent"}
	made := admin.must(t, "POST", "/keys", body)
	bob := e2bClient{c.url, fmt.Sprint(made["key"])}
	his := bob.create(t, 300)
	lines, err := bob.run(t.Context(), his, "print('begun')\nwhile True: pass", func(l e2bLine) {
		if l.Text == "begun\n" {
			admin.must(t, "DELETE", "/keys/"+fmt.Sprint(made["id"]), nil)
		}
	})
	if got := find(lines, "error"); err != nil || got.Name != "AuthenticationException" ||
		!strings.Contains(got.Value, "revoked") {
		t.Errorf("a revoked key: got %+v, %v, want an error that says so", lines, err)
	}
	eventually(t, func() error {
		if list := admin.executions(t, "e2b&user_id=bob"); len(list) != 1 || list[0]["status"] != "cancelled" {
			return fmt.Errorf("history of a revoked key: got %v, want a cancelled run", list)
		}
		return nil
	})
}

// TestE2BRequests covers what clients get for requests that Glasshouse does not serve, and for wrong ones.
func TestE2BRequests(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t)
	id := c.create(t, 300)
	const rpc = "/filesystem.Filesystem/"
	type object = map[string]any
	for _, r := range []struct {
		method, id, port, path string
		body                   any
		status                 int
		words                  string
	}{
		{"POST", "", "", "/v2/sandboxes", object{"timeout": 100_000_000}, 400, "timeout: it must be from 1 to 604800"},
		{"POST", "", "", "/v2/sandboxes", object{"templateID": "mine"}, 400, "environment"},
		{"POST", "", "", "/v2/sandboxes", object{"autoPause": true}, 400, "pause"},
		{"POST", "", "", "/v2/sandboxes", object{"envVars": object{"A=B": "1"}}, 400, "environment variable"},
		{"POST", "", "", "/v2/sandboxes", []int{1}, 400, "JSON"},
		{"POST", "", "", "/sandboxes/" + id + "/pause", nil, 501, "no pause"},
		{"POST", "", "", "/sandboxes/" + id + "/fork", object{"count": 21}, 400, "from 1 to 20"},
		{"POST", "", "", "/sandboxes/none/fork", object{}, 404, "there is no such sandbox"},
		{"GET", "", "", "/sandboxes/" + id + "/metrics", nil, 200, "[]"},
		{"GET", "", "", "/templates", nil, 404, "Glasshouse has no GET /templates"},
		{"GET", "", "", "/sandboxes/none", nil, 404, "there is no such sandbox"},
		{"GET", id, "8080", "/", nil, 502, "port is not open"},
		{"POST", id, "49983", "/process.Process/List", object{}, 501, "unimplemented"},
		{"POST", id, "49983", rpc + "CreateWatcher", object{"path": "x"}, 501, "unimplemented"},
		{"POST", id, "49983", rpc + "ListDir", object{"path": "/etc"}, 400, "invalid_argument"},
		{"POST", id, "49983", rpc + "Stat", object{"path": "/etc/passwd"}, 404, "not_found"},
		{"POST", id, "49983", rpc + "MakeDir", object{"path": "artifacts"}, 409, "already_exists"},
		{"POST", id, "49983", rpc + "Move", object{"source": "none", "destination": "a"}, 404, "not_found"},
		{"POST", id, "49983", rpc + "Remove", object{"path": "/home/user"}, 400, "invalid_argument"},
		{"GET", id, "49983", "/files?path=../../etc/passwd", nil, 400, "outside of /home/user"},
		{"GET", id, "49983", "/files?path=artifacts", nil, 400, "folder"},
		{"POST", id, "49999", "/execute", object{"code": "1", "language": "javascript"}, 400, "Glasshouse runs Python"},
		{"POST", id, "49999", "/execute", object{"code": "1", "context_id": "none"}, 404, "Context none not found"},
		{"POST", id, "49999", "/execute", "code", 400, "JSON"},
		{"POST", id, "49999", "/contexts", object{"cwd": "/home/user/none"}, 404, "does not exist"},
		{"DELETE", id, "49999", "/contexts/" + id, nil, 400, "default context"},
	} {
		if status, text := c.send(t, r.method, r.id, r.port, r.path, r.body); status != r.status ||
			!strings.Contains(text, r.words) {
			t.Errorf(
				"%s %s %v: got HTTP %d %s, want %d with %q",
				r.method,
				r.path,
				r.body,
				status,
				text,
				r.status,
				r.words,
			)
		}
	}
	// The error of a stream is in its last message.
	resp, err := c.request(
		t.Context(),
		"POST",
		id,
		"49983",
		"/process.Process/Start",
		"application/connect+json",
		strings.NewReader("\x00\x00\x00\x00\x02{}"),
	)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || len(text) < 5 || text[0] != 2 ||
		int(text[4]) != len(text)-5 && text[3] == 0 ||
		!bytes.Contains(text, []byte("not a shell")) {
		t.Errorf(
			"a process: got HTTP %d %q, %v, want the end of a stream with unimplemented",
			resp.StatusCode,
			text,
			err,
		)
	}
	// A form with several files, whose names are paths.
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, name := range []string{"/home/user/a/one.bin", "two.txt"} {
		part, err := w.CreatePart(
			map[string][]string{"Content-Disposition": {fmt.Sprintf(`form-data; name="file"; filename="%s"`, name)}},
		)
		if err == nil {
			_, err = part.Write([]byte{0, 255})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	resp, err = c.request(t.Context(), "POST", id, "49983", "/files", w.FormDataContentType(), &form)
	if err != nil {
		t.Fatal(err)
	}
	text, _ = io.ReadAll(resp.Body)
	resp.Body.Close()
	const want = `[{"path":"/home/user/a/one.bin","name":"one.bin","type":"file"},` +
		`{"path":"/home/user/two.txt","name":"two.txt","type":"file"}]`
	if strings.TrimSpace(string(text)) != want {
		t.Errorf("a form: got HTTP %d %s, want %s", resp.StatusCode, text, want)
	}
	if status, text := c.send(t, "GET", id, "49983", "/files?path=~/a/one.bin", nil); status != 200 ||
		text != "\x00\xff" {
		t.Errorf("GET: got HTTP %d %q, want the bytes", status, text)
	}
}

// TestE2BUploadsAreBounded shows that the bytes of an upload count where they are unpacked, also those that belong to
// no file, and that a compressed upload gets the same error as another one.
func TestE2BUploadsAreBounded(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t)
	id := c.create(t, 300)
	const form, mebibytes = "multipart/form-data; boundary=B", 80 // a sandbox has 64 MiB for files
	plain := bytes.Repeat(append(bytes.Repeat([]byte{0}, 1023), '\n'), 1<<10)
	encode := map[string]func([]byte) []byte{
		"identity": func(text []byte) []byte { return text },
		"gzip": func(text []byte) []byte { // a member; a body may have several
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			_, _ = w.Write(text)
			_ = w.Close()
			return out.Bytes()
		},
	}
	for name, upload := range map[string]struct{ kind, head string }{
		"a file":                     {"application/octet-stream", ""},
		"a part that is a file":      {form, "--B\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n"},
		"a part that is not a file":  {form, "--B\r\nContent-Disposition: form-data; name=f\r\n\r\n"},
		"text before the first part": {form, ""},
	} {
		for encoding, encode := range encode {
			head, block := encode([]byte(upload.head)), encode(plain)
			body := io.MultiReader(bytes.NewReader(head), bytes.NewReader(bytes.Repeat(block, mebibytes)))
			resp, err := c.request(t.Context(), "POST", id, "49983", "/files?path=x", upload.kind, body,
				"Content-Encoding", encoding)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != http.StatusInsufficientStorage || !bytes.Contains(text, []byte("all files of the")) {
				t.Errorf("%s, %s: got HTTP %d %s, want 507 with the limits", name, encoding, resp.StatusCode, text)
			}
		}
	}
	if status, text := c.send(t, "GET", id, "49983", "/files?path=x", nil); status != http.StatusNotFound {
		t.Errorf("the file after refused uploads: got HTTP %d %.100s, want none", status, text)
	}
}

// TestE2BListHasPages covers order, pages and metadata of the list of sandboxes.
func TestE2BListHasPages(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t)
	var ids []string
	for n := range 3 {
		_, text := c.send(
			t,
			"POST",
			"",
			"",
			"/sandboxes",
			map[string]any{"metadata": map[string]string{"n": fmt.Sprint(n % 2)}},
		)
		var sandbox struct {
			ID string `json:"sandboxID"`
		}
		if err := json.Unmarshal([]byte(text), &sandbox); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, sandbox.ID)
	}
	list := func(query string) (got []string, next string) {
		resp, err := c.request(t.Context(), "GET", "", "", "/v2/sandboxes?"+query, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var all []struct {
			ID    string    `json:"sandboxID"`
			EndAt time.Time `json:"endAt"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			got = append(got, s.ID)
		}
		return got, resp.Header.Get("X-Next-Token")
	}
	for query, want := range map[string][]string{
		"": ids, "order=desc": {ids[2], ids[1], ids[0]}, "metadata=n%3D0": {ids[0], ids[2]}, "state=paused": nil,
	} {
		if got, _ := list(query); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for _, order := range []string{"asc", "desc"} {
		var got []string
		for token := ""; ; {
			page, next := list("limit=2&order=" + order + "&nextToken=" + token)
			if got = append(got, page...); next == "" {
				break
			}
			token = next
		}
		if len(got) != 3 || got[1] != ids[1] || (got[0] == ids[0]) != (order == "asc") {
			t.Errorf("pages, %s: got %v, want %v in order", order, got, ids)
		}
	}
}
