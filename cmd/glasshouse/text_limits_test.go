package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// textField is a field of a request in which a client sends a text.
type textField struct {
	name     string // of the API and the field
	maxBytes int
	text     func(bytes int) string // nil: of one letter
	send     func(t *testing.T, text string) (status int, answer string)
}

// check sends the longest text that the field may have, which the API takes or refuses for another reason than this
// limit, and one that is a byte longer.
func (f textField) check(t *testing.T) {
	t.Helper()
	text := f.text
	if text == nil {
		text = func(bytes int) string { return strings.Repeat("x", bytes) }
	}
	names := regexp.MustCompile(fmt.Sprintf("(<= |may have |longer than )%d|one of the forms that GET", f.maxBytes))
	if status, answer := f.send(t, text(f.maxBytes)); status >= 500 || names.MatchString(answer) {
		t.Errorf("%s, a text of %d bytes: got HTTP %d %.300s, want no refusal of its length", f.name, f.maxBytes,
			status, answer)
	}
	status, answer := f.send(t, text(f.maxBytes+1))
	isRefused := status == 413 || (status == 400 || status == 422) && names.MatchString(answer)
	if !isRefused || len(answer) > 2000 {
		t.Errorf("%s, a text of %d bytes: got HTTP %d %.300s, want a short refusal that names the limit", f.name,
			f.maxBytes+1, status, answer)
	}
}

// textClient sends requests of one user to all APIs of a service.
type textClient struct {
	url, key string
	nemoURL  string
}

// startTextClient starts the service with every API, and returns a client with the key of a user.
func startTextClient(t *testing.T) (c textClient, pid int) {
	t.Helper()
	nemoURL, nemo := reserveCompat(t)
	cmd, admin := start(t, binary(t), dataDir(t), nemo+",e2b,jupyter,librechat")
	body := map[string]any{"name": "ada", "user_id": "ada", "role": "developer"} // who may debug
	return textClient{admin.address, fmt.Sprint(admin.must(t, "POST", "/keys", body)["key"]), nemoURL}, cmd.Process.Pid
}

// ask sends a request and returns the status and the text of the answer. A body that is not a string is sent as JSON;
// nil is none. Pairs of a header's name and value follow.
func (c textClient) ask(t *testing.T, method, path string, body any, headers ...string) (int, string) {
	t.Helper()
	var in io.Reader
	if raw, ok := body.(string); ok {
		in = strings.NewReader(raw)
	} else if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	if !strings.HasPrefix(path, "http://") {
		path = c.url + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" { // it may have no end
		return resp.StatusCode, ""
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// must is ask for a request that succeeds, and returns a field of the answer.
func (c textClient) must(t *testing.T, method, path string, body any, field string) string {
	t.Helper()
	status, text := c.ask(t, method, path, body)
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status >= 300 || answer[field] == nil {
		t.Fatalf("%s %s: got HTTP %d %.300s, %v, want an answer with %s", method, path, status, text, err, field)
	}
	return fmt.Sprint(answer[field])
}

// bodyField returns a field whose request has a JSON body with a text.
func (c textClient) bodyField(
	name string, maxBytes int, method, path string, body func(text string) any, headers ...string,
) textField {
	return textField{name: name, maxBytes: maxBytes, send: func(t *testing.T, text string) (int, string) {
		return c.ask(t, method, path, body(text), headers...)
	}}
}

// nameFields returns fields of a request whose JSON body has one name each.
func (c textClient) nameFields(
	api, method, path string, names []string, rest map[string]any, headers ...string,
) (list []textField) {
	for _, name := range names {
		body := func(text string) any {
			all := maps.Clone(rest)
			if all == nil {
				all = map[string]any{}
			}
			all[name] = text
			return all
		}
		list = append(list, c.bodyField(api+" "+method+" "+path+" "+name, sandbox.MaxNameBytes, method, path, body,
			headers...))
	}
	return list
}

// pathOf returns a path of a number of bytes, whose names are short.
func pathOf(bytes int) string {
	text := []byte(strings.Repeat("x", bytes))
	for at := 200; at < bytes-1; at += 200 {
		text[at] = '/'
	}
	return string(text)
}

// e2bFields returns the text fields of E2B's API, for a sandbox of it.
func (c textClient) e2bFields(id string) []textField {
	const sandboxes = "/e2b/sandboxes"
	code := []string{"E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "49999"}
	files := []string{"E2b-Sandbox-Id", id, "E2b-Sandbox-Port", "49983"}
	type object = map[string]any
	list := slices.Concat(
		c.nameFields("e2b", "POST", sandboxes, []string{"templateID"}, nil),
		c.nameFields("e2b", "POST", "/e2b/execute", []string{"context_id", "language"}, object{"code": "1"}, code...),
		c.nameFields("e2b", "POST", "/e2b/contexts", []string{"cwd", "language"}, nil, code...),
		[]textField{
			c.bodyField("e2b metadata", sandbox.MaxMetadataBytes, "POST", sandboxes, func(text string) any {
				return object{"metadata": object{text[:9]: text[9:]}}
			}),
			c.bodyField("e2b envVars", sandbox.MaxVariablesBytes, "POST", sandboxes, func(text string) any {
				return object{"envVars": object{text[:9]: text[9:]}}
			}),
			c.bodyField("e2b env_vars", sandbox.MaxVariablesBytes, "POST", "/e2b/execute", func(text string) any {
				return object{"code": "1", "env_vars": object{text[:9]: text[9:]}}
			}, code...),
		})
	for method, fields := range map[string][]string{
		"Stat": {"path"}, "MakeDir": {"path"}, "Remove": {"path"}, "ListDir": {"path"},
		"Move": {"source", "destination"},
	} {
		rest := object{"path": "a", "source": "a", "destination": "b"}
		for _, f := range c.nameFields("e2b", "POST", "/e2b/filesystem.Filesystem/"+method, fields, rest, files...) {
			f.text = pathOf
			list = append(list, f)
		}
	}
	return list
}

// jupyterFields returns the text fields of Jupyter's requests over REST, for a session.
func (c textClient) jupyterFields(id string) []textField {
	const sessions = "/jupyter/api/sessions"
	type object = map[string]any
	names := []string{"path", "name", "type"}
	list := slices.Concat(
		c.nameFields("jupyter", "POST", "/jupyter/api/kernels", []string{"name"}, nil),
		c.nameFields("jupyter", "POST", sessions, names, object{"kernel": object{"id": id}}),
		c.nameFields("jupyter", "PATCH", sessions+"/"+id, names, nil),
	)
	for _, field := range []string{"id", "name"} {
		list = append(list, c.bodyField("jupyter kernel."+field, sandbox.MaxNameBytes, "POST", sessions,
			func(text string) any { return object{"path": "other", "kernel": object{field: text}} }))
	}
	return list
}

// libreChatFields returns the text fields of LibreChat's API.
func (c textClient) libreChatFields() []textField {
	const exec = "/librechat/v1/exec"
	type object = map[string]any
	list := c.nameFields("librechat", "POST", exec, []string{"lang", "session_id"}, object{"code": "1", "lang": "py"})
	for _, field := range []string{"id", "name", "session_id", "storage_session_id"} {
		list = append(list, c.bodyField("librechat files."+field, sandbox.MaxNameBytes, "POST", exec,
			func(text string) any { return object{"lang": "py", "code": "1", "files": []object{{field: text}}} }))
	}
	form := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"
	return append(list, textField{name: "librechat User-Id", maxBytes: sandbox.MaxNameBytes,
		send: func(t *testing.T, text string) (int, string) {
			t.Helper()
			return c.ask(t, "POST", "/librechat/v1/upload", form, "Content-Type", "multipart/form-data; boundary=x",
				"User-Id", text)
		}})
}

// TestTextsAreLimited sends the longest text to each field in which a client names something, and a longer one.
func TestTextsAreLimited(t *testing.T) {
	t.Parallel()
	c, _ := startTextClient(t)
	box := c.must(t, "POST", "/e2b/sandboxes", map[string]any{}, "sandboxID")
	session := c.must(t, "POST", "/jupyter/api/sessions", map[string]any{"path": "a"}, "id")
	for _, f := range slices.Concat(c.e2bFields(box), c.jupyterFields(session), c.libreChatFields()) {
		f.check(t)
	}
}

// TestListOfFilesHasALimitOfBytes covers a folder whose paths have more bytes than a list may have.
func TestListOfFilesHasALimitOfBytes(t *testing.T) {
	t.Parallel()
	c, _ := startE2B(t)
	id := c.create(t, 300)
	_, err := c.run(t.Context(), id, `import os
folder = "/".join(["f" * 250] * 3)
os.makedirs(folder)
os.chdir(folder)
for n in range(5000): open(f"{n:0250}", "w").close()`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]int{1: 200, 9: http.StatusTooManyRequests} {
		status, text := c.send(t, "POST", id, "49983", "/filesystem.Filesystem/ListDir",
			map[string]any{"path": "/home/user", "depth": depth})
		if status != want || want != 200 && !strings.Contains(text, "4 MiB") {
			t.Errorf("depth %d: got HTTP %d %.300s, want %d", depth, status, text, want)
		}
	}
}
