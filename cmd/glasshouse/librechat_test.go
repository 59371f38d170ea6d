package main

import (
	"bytes"
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
)

// libreChat sends the requests of LibreChat. clients/librechat runs its tool itself.
type libreChat struct{ url, key string }

// libreChatAnswer is an answer to a run.
type libreChatAnswer struct {
	status         int
	Session        string `json:"session_id"`
	Stdout, Stderr string
	Files          []libreChatFile
	Error          string
	RetryAfter     float64 `json:"retry_after_seconds"`
	Run            struct {
		Code   int
		Status *string
	}
}

type libreChatFile struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Storage string `json:"storage_session_id"`
}

// send sends a request and returns the status and the body of the answer.
func (c libreChat) send(ctx context.Context, method, path, kind string, body io.Reader) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+"/v1"+path, body)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("X-API-Key", c.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, text, err
}

func (c libreChat) get(t *testing.T, path string) (int, string) {
	t.Helper()
	status, text, err := c.send(t.Context(), "GET", path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return status, string(text)
}

// exec runs a request with these fields.
func (c libreChat) exec(ctx context.Context, in map[string]any) (a libreChatAnswer, err error) {
	body, _ := json.Marshal(in)
	status, text, err := c.send(ctx, "POST", "/exec", "application/json", bytes.NewReader(body))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if a.status = status; err != nil {
		err = fmt.Errorf("answer %s: %w", text, err)
	}
	return a, err
}

// python runs code in a session, which may be "".
func (c libreChat) python(t *testing.T, session, code string, files ...libreChatFile) libreChatAnswer {
	t.Helper()
	a, err := c.exec(t.Context(), map[string]any{"lang": "py", "code": code, "session_id": session, "files": files})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (c libreChat) upload(t *testing.T, name, text string) libreChatFile {
	t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = part.Write([]byte(text))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	status, body, err := c.send(t.Context(), "POST", "/upload", w.FormDataContentType(), &form)
	var answer struct {
		Message string
		Session string `json:"session_id"`
		Files   []struct{ FileID, Filename string }
	}
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	if err != nil || status != 200 || answer.Message != "success" || len(answer.Files) != 1 ||
		answer.Files[0].Filename != name {
		t.Fatalf("upload: got HTTP %d %s, %v", status, body, err)
	}
	return libreChatFile{answer.Files[0].FileID, name, answer.Session}
}

func startLibreChat(t *testing.T, arguments ...string) (libreChat, *client) {
	t.Helper()
	address := reserveAddress(t)
	_, admin := start(t, binary(t), dataDir(t), append(arguments, "--compat", "librechat="+address)...)
	return libreChat{"http://" + address, admin.newUser(t, "ada").key}, admin
}

func TestLibreChatRunsCode(t *testing.T) {
	t.Parallel()
	c, admin := startLibreChat(t)
	first := c.python(
		t,
		"",
		"x = 1\nopen('a.txt', 'w').write('a')\nprint(x)",
	)
	if first.Stdout != "1\n" || first.Stderr != "" || len(first.Session) != 21 || len(first.Files) != 1 ||
		first.Files[0].Name != "a.txt" ||
		len(first.Files[0].ID) != 21 ||
		first.Run.Code != 0 {
		t.Fatalf("got %+v, want the output, a file, and ids of 21 characters", first)
	}
	again := c.python(t, first.Session, "print(open('a.txt').read(), 'x' in globals())")
	if again.Stdout != "a False\n" || again.Session != first.Session || len(again.Files) != 0 {
		t.Errorf("the next run: got %+v, want the file and no variable", again)
	}
	for code, want := range map[string]string{
		"print('on')\n1 / 0":     "ZeroDivisionError: division by zero\n",
		"print('x'":              "SyntaxError",
		"import os\nos._exit(1)": "without an answer",
		"display(1)":             "Save figures",
	} {
		if a := c.python(t, first.Session, code); a.status != 200 || !strings.Contains(a.Stderr, want) {
			t.Errorf("%q: got %+v, want %q in stderr", code, a, want)
		}
	}
	for _, lang := range []string{"js", "bash", ""} {
		a, err := c.exec(t.Context(), map[string]any{"lang": lang, "code": "ls"})
		if err != nil || a.status != 200 || !strings.Contains(a.Stderr, "Python only") || a.Run.Code != 1 {
			t.Errorf("lang %q: got %+v, %v, want an explanation", lang, a, err)
		}
	}
	// LibreChat's own shell commands.
	for code, want := range map[string]string{
		"cat 'a.txt'": "a", "python3 - <<'PY'\nopen('b.txt', 'w').write('b')\nprint(1)\nPY": "1\n",
	} {
		a, err := c.exec(t.Context(), map[string]any{"lang": "bash", "code": code, "session_id": first.Session})
		if err != nil || a.Stdout != want {
			t.Errorf("%s: got %+v, %v, want %q", code, a, err, want)
		}
	}
	withArgs := map[string]any{"lang": "py", "code": "import sys\nprint(sys.argv)", "args": []string{"-n", "é\""}}
	if a, err := c.exec(t.Context(), withArgs); err != nil ||
		a.Stdout != "['main.py', '-n', 'é\"']\n" {
		t.Errorf("args: got %+v, %v", a, err)
	}
	large := c.python(t, "", "for _ in range(100): print('x' * (1 << 20))")
	if len(large.Stdout) < 1<<20 || len(large.Stdout) > 2<<20 || !strings.Contains(large.Stdout, "[... cut ...]") {
		t.Errorf("100 MB of output: got %d bytes, want 1 MiB and a mark", len(large.Stdout))
	}
	bytes := c.python(t, "", "import os\nos.write(1, bytes([0, 255, 254]))\nprint('\\ud800', 'end')")
	if !strings.HasSuffix(bytes.Stdout, " end\n") || bytes.Stderr != "" {
		t.Errorf("binary output: got %+v, want text", bytes)
	}
	list := (&client{admin.address, c.key}).executions(t, "librechat")
	if len(list) < 5 {
		t.Errorf("history: got %d runs of the kind librechat, want all", len(list))
	}
}

func TestLibreChatFiles(t *testing.T) {
	t.Parallel()
	c, admin := startLibreChat(t)
	binaryText := "\x00\xff\r\n"
	one, two := c.upload(t, "data.bin", binaryText), c.upload(t, "data.bin", "other")
	if one.Storage != two.Storage || one.ID == two.ID {
		t.Errorf("uploads: got %+v and %+v, want one store and two ids", one, two)
	}
	if status, text := c.get(t, "/download/"+one.Storage+"/"+one.ID); status != 200 || text != binaryText {
		t.Errorf("download: got HTTP %d %q, want the bytes", status, text)
	}
	a := c.python(
		t,
		"",
		"print(open('data.bin').read())\nopen('data.bin', 'a').write('!')\n"+
			"import os\nos.makedirs('d')\nopen('d/é.txt', 'w').write('x')",
		two,
	)
	if a.Stdout != "other\n" || len(a.Files) != 2 || a.Session == two.Storage {
		t.Fatalf("got %+v, want the upload in a new session, and two files", a)
	}
	again := c.python(t, "", "print(open('data.bin').read())", append(a.Files, two)...)
	if again.Stdout != "other!\n" ||
		again.Session != a.Session {
		t.Errorf("the session's version: got %+v, want it kept", again)
	}
	elsewhere := c.python(
		t,
		"",
		"import os\nprint(sorted(os.listdir('d')))",
		libreChatFile{a.Files[1].ID, "d/é.txt", a.Session},
		one,
	)
	if elsewhere.Session != a.Session || elsewhere.Stdout != "['é.txt']\n" {
		t.Errorf("got %+v, want the session of the files", elsewhere)
	}
	status, text := c.get(t, "/files/"+a.Session)
	if status != 200 || !strings.Contains(text, `"name":"d/é.txt"`) ||
		!strings.Contains(text, `"original-filename":"data.bin"`) {
		t.Errorf("list: got HTTP %d %s", status, text)
	}
	if status, text := c.get(t, "/sessions/"+one.Storage+"/objects/"+one.ID+"?kind=user&id=u"); status != 200 ||
		!strings.Contains(text, "lastModified") {
		t.Errorf("an object: got HTTP %d %s", status, text)
	}
	if status, _, err := c.send(t.Context(), "DELETE", "/files/"+a.Session+"/"+a.Files[0].ID, "", nil); status != 200 ||
		err != nil {
		t.Errorf("DELETE: got HTTP %d, %v", status, err)
	}
	for _, path := range []string{"/download/" + a.Session + "/" + a.Files[0].ID, "/download/" + a.Session + "/none",
		"/download/AAAAAAAAAAAAAAAAAAAAA/x", "/download/none/x", "/files/none",
		"/download/" + a.Session + "/%2e%2e/%2e%2e/etc/passwd"} {
		if status, text := c.get(t, path); status != 404 {
			t.Errorf("GET %s: got HTTP %d %s, want 404", path, status, text)
		}
	}
	for _, name := range []string{"../../x", "d/../x", ".", ".."} {
		form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + name + "\"\r\n\r\nx\r\n--b--\r\n"
		status, body, err := c.send(t.Context(), "POST", "/upload", "multipart/form-data; boundary=b",
			strings.NewReader(form))
		if status != 422 || err != nil {
			t.Errorf("upload of %q: got HTTP %d %s, %v, want 422", name, status, body, err)
		}
	}
	eve := libreChat{c.url, admin.newUser(t, "eve").key}
	if status, text := eve.get(t, "/files/"+a.Session); status != 404 {
		t.Errorf("another user's session: got HTTP %d %s, want 404", status, text)
	}
	if got := eve.python(t, a.Session, "print(1)", one); got.Session == a.Session ||
		!strings.Contains(got.Stderr, "data.bin is not available") {
		t.Errorf("another user's files: got %+v, want a new session without them", got)
	}
	if status, text := c.get(t, "/health"); status != 200 {
		t.Errorf("health: got HTTP %d %s", status, text)
	}
	status, body, err := c.send(t.Context(), "POST", "/exec/programmatic", "application/json", strings.NewReader("{}"))
	if status != 501 {
		t.Errorf("programmatic: got HTTP %d %s, %v, want 501", status, body, err)
	}
	for _, key := range []string{"", "wrong"} {
		a, err := libreChat{c.url, key}.exec(t.Context(), map[string]any{"lang": "py", "code": "1"})
		if a.status != 401 ||
			err != nil {
			t.Errorf("key %q: got %+v, %v, want 401", key, a, err)
		}
	}
}

// TestLibreChatSessionsEnd covers a restart, a full service, a client that leaves, concurrent runs, and a revoked key.
func TestLibreChatSessionsEnd(t *testing.T) {
	t.Parallel()
	address, dir := reserveAddress(t), dataDir(t)
	cmd, admin := start(t, binary(t), dir, "--compat", "librechat="+address, "--max-sandboxes-per-user", "2")
	c := libreChat{"http://" + address, admin.newUser(t, "ada").key}
	first := c.python(t, "", "open('a.txt', 'w').write('a')")
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			a := c.python(t, first.Session, fmt.Sprintf("import time\ntime.sleep(0.1)\nprint(%d)", n))
			if a.Stdout != fmt.Sprintf("%d\n", n) {
				t.Errorf("run %d of three in a session: got %+v", n, a)
			}
		})
	}
	all.Wait()
	ctx, leave := context.WithCancel(t.Context())
	ada := &client{admin.address, c.key}
	left := make(chan error)
	go func() {
		_, err := c.exec(ctx, map[string]any{"lang": "py", "code": "while True: pass", "session_id": first.Session})
		left <- err
	}()
	running := ada.running(t)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want a cancelled request", err)
	}
	eventually(t, func() error {
		if e := ada.must(t, "GET", "/executions/"+running, nil); e["status"] != "cancelled" {
			return fmt.Errorf("the run of a client that left: got %v, want it cancelled", e["status"])
		}
		return nil
	})
	// With two sandboxes at most, the session that was used longest ago gives way.
	second, third := c.python(t, "", "open('b.txt', 'w').write('b')"), c.python(t, "", "print(3)")
	if third.Stdout != "3\n" {
		t.Errorf("a third session: got %+v, want it to run", third)
	}
	if status, _ := c.get(t, "/files/"+first.Session); status != 410 {
		t.Errorf("the oldest session: got HTTP %d, want 410", status)
	}
	if status, text := c.get(t, "/download/"+second.Session+"/"+second.Files[0].ID); status != 200 || text != "b" {
		t.Errorf("the newer session: got HTTP %d %q, want its file", status, text)
	}
	stop(t, cmd)
	_, admin = start(t, binary(t), dir, "--compat", "librechat="+address)
	if a := c.python(t, second.Session, "print(1)", second.Files...); a.Stdout != "1\n" ||
		a.Session == second.Session ||
		!strings.Contains(a.Stderr, "b.txt is not available any more; upload it again") {
		t.Errorf("after a restart: got %+v, want a new session, and the missing file named", a)
	}
	made := admin.must(t, "POST", "/keys", map[string]any{"name": "bob", "user_id": "bob", "role": "agent"})
	bob := libreChat{c.url, fmt.Sprint(made["key"])}
	answer := make(chan libreChatAnswer)
	go func() {
		a, _ := bob.exec(t.Context(), map[string]any{"lang": "py", "code": "while True: pass"})
		answer <- a
	}()
	(&client{admin.address, bob.key}).running(t)
	admin.must(t, "DELETE", "/keys/"+fmt.Sprint(made["id"]), nil)
	if a := <-answer; a.status != 401 || !strings.Contains(a.Error, "revoked") {
		t.Errorf("a revoked key: got %+v, want 401", a)
	}
}

// TestLibreChatUsesTheNewestUpload uploads files of one name and names them in any order. A change by code is newer
// than the uploads before it, and older than those after it.
func TestLibreChatUsesTheNewestUpload(t *testing.T) {
	t.Parallel()
	c, _ := startLibreChat(t)
	const show = "print(open('/mnt/data/t.csv').read())"
	want := func(text string, a libreChatAnswer) {
		t.Helper()
		if a.Stdout != text+"\n" {
			t.Errorf("got %+v, want %s", a, text)
		}
	}
	old, newer := c.upload(t, "t.csv", "OLD"), c.upload(t, "t.csv", "NEWER")
	want("NEWER", c.python(t, "", show, old, newer))
	want("OLD", c.python(t, "", show, old))
	want("NEWER", c.python(t, "", show, newer, old))
	first := c.python(t, "", show, old)
	want("NEWER", c.python(t, first.Session, show, old, newer)) // the copy of old was written after newer
	want("CHANGED", c.python(t, first.Session, "open('t.csv', 'w').write('CHANGED')\n"+show, old, newer))
	want("CHANGED", c.python(t, first.Session, show, newer, old))
	latest := c.upload(t, "t.csv", "NEWEST")
	want("NEWEST", c.python(t, first.Session, show, latest, old, newer))
}

// TestLibreChatKeepsTheUploadThatARunNeeds fills the sandboxes of a key after an upload, and runs code with the upload.
func TestLibreChatKeepsTheUploadThatARunNeeds(t *testing.T) {
	t.Parallel()
	for limit, want := range map[string]int{"2": 200, "1": 429} {
		address, dir := reserveAddress(t), dataDir(t)
		_, admin := start(t, binary(t), dir, "--compat", "librechat="+address, "--max-sandboxes-per-user", limit)
		c := libreChat{"http://" + address, admin.newUser(t, "ada").key}
		if limit == "2" {
			used := c.upload(t, "t.csv", "DATA")
			c.python(t, "", "print(1)")
			if a := c.python(t, "", "print(open('t.csv').read())", used); a.Stdout != "DATA\n" {
				t.Errorf("got %+v, want the upload, which was used longest ago", a)
			}
			// A look at a file is a use: LibreChat looks whether it must upload the file again.
			for range 3 {
				if status, _ := c.get(t, "/sessions/"+used.Storage+"/objects/"+used.ID); status != 200 {
					t.Errorf("got HTTP %d for the upload, want it to be there", status)
				}
				c.python(t, "", "print(1)")
			}
			continue
		}
		used := c.upload(t, "t.csv", "DATA")
		if a := c.python(t, "", "print(1)", used); a.status != want {
			t.Errorf("with one sandbox: got %+v, want HTTP %d, because the upload takes it", a, want)
		}
		if status, text := c.get(t, "/download/"+used.Storage+"/"+used.ID); status != 200 || text != "DATA" {
			t.Errorf("got HTTP %d %s, want that the refused run has kept the upload", status, text)
		}
	}
}
