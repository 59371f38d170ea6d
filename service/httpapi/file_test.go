package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
)

// put uploads one file as the body.
func (c client) put(t testing.TB, id, name, body string) answer {
	t.Helper()
	return c.do(t, "PUT", "/sandbox/"+id+"/files/"+url.PathEscape(name), body, "Content-Type",
		"application/octet-stream")
}

func fileNames(a answer) []string {
	list, _ := a.get("files").([]any)
	var out []string
	for _, f := range list {
		m, _ := f.(map[string]any)
		name, _ := m["path"].(string)
		out = append(out, name)
	}
	return out
}

func sha256Hex(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Uploads are in /data byte for byte and read-only; they can be read back whole and in part, and deleted.
func TestUploadsAreReadOnlyInTheSandbox(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	table, picture := "a,b\n1,2\n3,4\n", string([]byte{0x89, 'P', 'N', 'G', 0, 1, 2, 0xff})
	for name, text := range map[string]string{"table.csv": table, "deep/er/picture.png": picture} {
		part,
			err := form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="files"; filename=%q`, name)}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, text)
	}
	_ = form.WriteField("note", "no file")
	form.Close()
	a := c.do(t, "POST", "/sandbox/"+id+"/files", body.String(), "Content-Type", form.FormDataContentType())
	if a.status != http.StatusOK || len(fileNames(a)) != 2 {
		t.Fatalf("got HTTP %d %s, want both files", a.status, a.text)
	}
	if a := c.do(t, "POST", "/sandbox/"+id+"/files?path=raw.json", `{"x": [1]}`); a.status != http.StatusOK {
		t.Fatalf("got HTTP %d %s, want the file", a.status, a.text)
	}
	list := c.ok(t, "GET", "/sandbox/"+id+"/files", nil)
	if got := fmt.Sprint(fileNames(list)); got != "[deep/er/picture.png raw.json table.csv]" {
		t.Errorf("got the list %s", got)
	}
	first := list.get("files").([]any)[0].(map[string]any)
	if first["size"] != float64(len(picture)) || first["sha256"] != sha256Hex(picture) ||
		first["mime_type"] != "image/png" {
		t.Errorf("got %v, want the size, hash and MIME type of the picture", first)
	}
	a = c.run(t, id, `
import pandas as pd, json, pathlib
assert pd.read_csv("/data/table.csv")["b"].sum() == 6
assert json.load(open("/data/raw.json")) == {"x": [1]}
assert open("/data/deep/er/picture.png", "rb").read() == b"\x89PNG\0\1\2\xff"
refused = []
for change in (lambda: open("/data/new", "w"), lambda: open("/data/table.csv", "a"), lambda: pathlib.Path("/data/table.csv").unlink(),
               lambda: pathlib.Path("/data/table.csv").rename("/data/x"), lambda: pathlib.Path("/data/deep").chmod(0o777), lambda: pathlib.Path("/data/folder").mkdir()):
    try:
        change()
    except OSError as error:
        refused.append(type(error).__name__)
refused`)
	if got := a.get("result"); a.get("status") != "completed" || len(got.([]any)) != 6 {
		t.Errorf("got %v, want 6 rejected changes: %v", got, string(a.text))
	}

	file := "/sandbox/" + id + "/files/table.csv"
	a = c.do(t, "GET", file, nil)
	tag := a.header.Get("ETag")
	if string(a.text) != table || tag != `"`+sha256Hex(table)+`"` ||
		a.header.Get("Content-Type") != "text/csv; charset=utf-8" ||
		a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %q with %v", a.text, a.header)
	}
	if a := c.do(t, "GET", file, nil, "Range", "bytes=4-6"); a.status != http.StatusPartialContent ||
		string(a.text) != "1,2" || a.header.Get("Content-Range") != "bytes 4-6/12" {
		t.Errorf("range: got HTTP %d %q with %v", a.status, a.text, a.header)
	}
	if a := c.do(t, "GET", file, nil, "Range", "bytes=99-"); a.status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range outside of the file: got HTTP %d, want 416", a.status)
	}
	if a := c.do(t, "GET", file, nil, "If-None-Match", tag); a.status != http.StatusNotModified {
		t.Errorf("If-None-Match: got HTTP %d, want 304", a.status)
	}
	if a := c.do(t, "HEAD", file, nil); a.status != http.StatusOK || a.header.Get("Content-Length") != "12" ||
		len(a.text) != 0 {
		t.Errorf("HEAD: got HTTP %d with %v", a.status, a.header)
	}
	c.put(t, id, "table.csv", "other")
	if a := c.do(t, "GET", file, nil, "If-None-Match", tag); string(a.text) != "other" {
		t.Errorf("after it was replaced: got HTTP %d %q, want the new file", a.status, a.text)
	}

	c.ok(t, "DELETE", file, nil)
	wantProblem(t, c.do(t, "GET", file, nil), 404, "not-found", "table.csv")
	wantProblem(t, c.do(t, "DELETE", file, nil), 404, "not-found", "table.csv")
	c.ok(t, "DELETE", "/sandbox/"+id+"/files/deep/er/picture.png", nil)
	if a := c.run(t, id,
		`import pathlib; sorted(p.name for p in pathlib.Path("/data").iterdir())`); fmt.Sprint(a.get("result")) != "[prices raw.json units.csv]" {
		t.Errorf("in /data: got %s", a.text)
	}
	other := newUser(t, sandbox.RoleAgent)
	wantProblem(t, other.do(t, "GET", "/sandbox/"+id+"/files/raw.json", nil), 404, "not-found")
	wantProblem(t, other.put(t, id, "x", "x"), 404, "not-found")
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	wantProblem(t, c.do(t, "GET", "/sandbox/"+id+"/files/raw.json", nil), 410, "gone", "deleted")
}

// Uploads survive the process that was started before them, as /session does.
func TestUploadsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	c.put(t, id, "in/before.txt", "before")
	c.run(t, id, "open('/session/mine', 'w').write('mine')")
	if a := c.run(t, id, "import os; os._exit(1)"); a.get("session_reset") != true {
		t.Fatalf("got %s, want the process to end", a.text)
	}
	c.put(t, id, "in/after.txt", "after")
	a := c.run(t, id, `
import pathlib
try:
    open("/data/x", "w")
except OSError:
    pass
else:
    raise AssertionError("it can be written")
[open("/data/in/before.txt").read(), open("/data/in/after.txt").read(), open("/session/mine").read(), open("/data/units.csv").read()]`)
	if fmt.Sprint(a.get("result")) != "[before after mine unit\nkg\n]" {
		t.Errorf("got %s, want all files", a.text)
	}
}

// unusualNames returns n valid names that tools often handle wrongly.
func unusualNames(n int) []string {
	out := []string{
		" ", "  two  ", ".hidden", "...", "..a", "-rf", "--help", "*", "?", "a*b?c[d]", "$(reboot)", "`id`", "$HOME",
		"~", "~root", "a;b", "a|b", "a&b", "a>b", "'", "\"", "a\"b'c",
		"\\", "..\\..\\windows", "C:\\x.txt", "con", "nul.txt", "%2e%2e%2f", "%00", "a%20b", "a+b", "a#b", "a?b=c&d",
		"line\nbreak", "tab\there", "bell\a", "\x1b[31mred", "\r", "\u007f",
		"ünïcödé.csv", "e\u0301.txt", "é.txt", "日本語.xlsx", "العربية.txt", "\u202egnp.exe", "\u200b", "\ufeffbom",
		"🙂.png", "👩‍👩‍👧", "a\u0000b"[:1] + "nul", "{}", "${x}", "{{x}}", "<script>alert(1)</script>.html",
		strings.Repeat("x", 255), strings.Repeat("é", 127), strings.Repeat("d/", 15) +
			"deep", "a.tar.gz", "no.", ".a.", "index.html", "robots.txt", "favicon.ico", "CON.CSV", "prices2",
		"sp ace/in side",
		"/lead"[1:], "x/.y", "x/..z", "x/...", "files", "folder/files", "data/data", "null", "true", "0", "-", "_",
		"=cmd()", "@x", "a,b", "a:b", "a=b", "!x", "^", "(", ")", "[", "]", "è/é/ê",
	}
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab .-_~%$&'\"\\\n\té日🙂\u202e\u0301*?<>|:;")
	seen := map[string]bool{}
	for _, name := range out {
		seen[name] = true
	}
	for len(out) < n {
		var b strings.Builder
		for range 1 + random.IntN(20) {
			b.WriteRune(alphabet[random.IntN(len(alphabet))])
		}
		if name := b.String(); name != "." && name != ".." && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// Each of a thousand unusual names is kept exactly: in the sandbox, in the list and in the URL.
func TestUnusualFileNames(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleDeveloper)
	id := c.create(t, nil)
	names := 1000
	if testing.Short() {
		names = 200
	}
	want := unusualNames(names)
	work := make(chan string)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for name := range work {
				if a := c.put(t, id, name, "I am "+name); a.status != http.StatusOK || fileNames(a)[0] != name {
					t.Errorf("%q: got HTTP %d %s, want the same name", name, a.status, a.text)
				}
				a := c.do(t, "GET", "/sandbox/"+id+"/files/"+url.PathEscape(name), nil)
				if string(a.text) != "I am "+name {
					t.Errorf("%q: got HTTP %d %q, want its content", name, a.status, a.text)
				}
				if strings.ContainsAny(a.header.Get("Content-Disposition"), "\r\n") {
					t.Errorf("%q breaks out of Content-Disposition", name)
				}
			}
		})
	}
	for _, name := range want {
		work <- name
	}
	close(work)
	group.Wait()
	if list := fileNames(c.ok(t, "GET", "/sandbox/"+id+"/files", nil)); len(list) != len(want) {
		t.Errorf("got %d files in the list", len(list))
	}
	a := c.do(t, "POST", "/sandbox/"+id+"/execute", map[string]any{"context": map[string]any{"names": want}, "code": `
import pathlib
wrong = [n for n in names if open("/data/" + n, encoding="utf-8", newline="").read() != "I am " + n]
there = sum(p.is_file() for p in pathlib.Path("/data").rglob("*"))
[wrong, there]`})
	if fmt.Sprint(a.get("result")) != fmt.Sprintf("[[] %d]", names+2) { // with the operator's two data files
		t.Errorf("in the sandbox: got %v (%v), want no wrong file", a.get("result"), a.get("error"))
	}
	for name, word := range map[string]string{
		"..": ". or ..", "../x": ". or ..", "a/../../x": ". or ..", "./a": ". or ..", "": "value", "/": "",
		"a//b": "//", "a/": "/", "/etc/passwd": "/", "a\x00b": "null", "\xff\xfe": "UTF-8",
		strings.Repeat("x", 256): "255", strings.Repeat("d/", 16) + "x": "16", strings.Repeat("long/",
			205): "1024", "prices": "data set", "prices/x": "data set", "units.csv": "data set",
		"index.html/x": "is a file", "data": "is a folder",
	} {
		a := c.do(t, "POST", "/sandbox/"+id+"/files?path="+url.QueryEscape(name), "x", "Content-Type", "text/plain")
		wantProblem(t, a, 422, "invalid-input", "path", word)
	}
	if a := c.run(t, id, `len([p for p in __import__("pathlib").Path("/data").iterdir()])`); a.status != 200 {
		t.Errorf("got %s, want the folder listed", a.text)
	}
}

// The limits in bytes and files are exact, also for concurrent uploads. A rejected upload leaves nothing.
func TestUploadLimitsOfASandbox(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"upload_max_bytes": 100_000, "upload_max_files": 10, "file_max_bytes": 70_000})
	wantProblem(t, c.put(t, id, "b", strings.Repeat("b", 80_000)), 413, "too-large", "file_max_bytes", "70000")
	if a := c.put(t, id, "a", strings.Repeat("a", 60_000)); a.status != http.StatusOK {
		t.Fatalf("got %s, want the file to fit", a.text)
	}
	wantProblem(t, c.put(t, id, "b", strings.Repeat("b", 60_000)), 413, "too-large", "upload_max_bytes", "100000",
		"60000")
	wantProblem(t, c.put(t, id, "big", strings.Repeat("b", 20<<20)), 413, "too-large")
	if a := c.put(t, id, "b", strings.Repeat("b", 40_000)); a.status != http.StatusOK {
		t.Errorf("a file that fits exactly: got %s", a.text)
	}
	c.ok(t, "DELETE", "/sandbox/"+id+"/files/a", nil)

	var group sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for n := range 40 {
		group.Go(func() {
			a := c.put(t, id, fmt.Sprintf("many/%d", n), strings.Repeat("m", 7_000))
			mu.Lock()
			defer mu.Unlock()
			if a.status == http.StatusOK {
				taken++
			} else if a.status != http.StatusRequestEntityTooLarge {
				t.Errorf("got HTTP %d, want 200 or 413: %s", a.status, a.text)
			}
		})
	}
	group.Wait()
	if taken == 0 || taken > 8 { // 60 000 bytes and ten entries, b and many among them
		t.Errorf("got %d stored files, want 1 to 8", taken)
	}
	for n := range 10 {
		c.put(t, id, fmt.Sprintf("many/%d", n), "")
	}
	wantProblem(t, c.put(t, id, "many/more", "x"), 413, "too-large", "upload_max_files", "10")
	a := c.run(t, id, `import pathlib
files = [p for p in pathlib.Path("/data").rglob("*") if p.is_file() and p.parts[2] not in ("prices", "units.csv")]
[len(files), sum(p.stat().st_size for p in files), [str(p) for p in files if p.name[0] == "."]]`)
	list := c.ok(t, "GET", "/sandbox/"+id+"/files", nil)
	if got, want := fmt.Sprint(a.get("result")), fmt.Sprintf("[%d %v []]", len(fileNames(list)),
		list.get("bytes")); got != want || len(fileNames(list)) != 9 {
		t.Errorf("in the sandbox: got %s, want %s", got, want)
	}
	wantProblem(t, c.do(t, "POST", "/sandbox/"+id+"/files", "--x\r\nnonsense", "Content-Type",
		"multipart/form-data; boundary=x"), 400, "malformed")
	off := c.create(t, map[string]any{"enable_file_access": false})
	wantProblem(t, c.put(t, off, "x", "x"), 403, "forbidden", "enable_file_access")
}

// A request to execute code may contain files, also for quick-execute.
func TestExecuteAcceptsFiles(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	body := map[string]any{"code": "[open('/data/in/a.txt').read(), open('/data/b', 'rb').read() == b'\\xff\\0']",
		"files": []map[string]any{{"path": "in/a.txt", "content": "text é"}, {"path": "b", "content_base64": "/wA="}}}
	id := c.create(t, nil)
	for _, path := range []string{"/sandbox/" + id + "/execute", "/sandbox/agent/quick-execute"} {
		if a := c.ok(t, "POST", path, body); fmt.Sprint(a.get("result")) != "[text é true]" {
			t.Errorf("%s: got %s", path, a.text)
		}
	}
	if list := fileNames(c.ok(t, "GET", "/sandbox/"+id+"/files", nil)); len(list) != 2 {
		t.Errorf("got the files %v, want 2", list)
	}
	body["config"] = map[string]any{"upload_max_bytes": 3}
	wantProblem(t, c.do(t, "POST", "/sandbox/agent/quick-execute", body), 413, "too-large", "upload_max_bytes")
}

// The operator's data sets are in every sandbox, read-only, and can be walked like folders.
func TestDataSetsAreReadOnly(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": `
import pathlib
found = sorted(str(p) for p in pathlib.Path("/data").rglob("*"))
try:
    open("/data/prices/2024/may.csv", "a")
except OSError as error:
    found.append(type(error).__name__)
found`})
	if fmt.Sprint(
		a.get("result"),
	) != "[/data/prices /data/prices/2024 /data/prices/2024/may.csv /data/units.csv OSError]" &&
		!strings.Contains(fmt.Sprint(a.get("result")), "PermissionError") {
		t.Errorf("got %s, want the data sets, read-only", a.text)
	}
}

// Every use of a sandbox renews its idle timeout and does not change its lifetime.
func TestUseRenewsTheIdleTimeoutOnly(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	end := func(a answer) time.Time {
		text, _ := a.get("expires_at").(string)
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	created := c.ok(t, "POST", "/sandbox/create", map[string]any{"idle_timeout": 60, "lifetime": 3600})
	idle := created.get("sandbox_id").(string)
	created = c.ok(t, "POST", "/sandbox/create", map[string]any{"idle_timeout": 600, "lifetime": 60})
	brief := created.get("sandbox_id").(string)
	fixed := end(created)
	last := end(c.ok(t, "GET", "/sandbox/"+idle+"/status", nil))
	for what, use := range map[string]func(id string){
		"upload": func(id string) { c.put(t, id, "x", "x") },
		"list":   func(id string) { c.ok(t, "GET", "/sandbox/"+id+"/files", nil) },
		"run":    func(id string) { c.run(t, id, "1") },
		"query": func(id string) {
			c.ok(t, "POST", "/sandbox/"+id+"/database/query", map[string]any{"query": "SELECT 1"})
		},
		"download": func(id string) { c.do(t, "GET", "/sandbox/"+id+"/files/x", nil) },
		"artifact": func(id string) {
			for _, a := range artifactsOf(t, c.ok(t, "GET", "/sandbox/"+id+"/artifacts", nil)) {
				c.do(t, "GET", a.URL, nil)
			}
		},
	} {
		use(idle)
		use(brief)
		now := end(c.ok(t, "GET", "/sandbox/"+idle+"/status", nil))
		if !now.After(last) {
			t.Errorf("%s did not renew the idle timeout", what)
		}
		last = now
	}
	if got := end(c.ok(t, "GET", "/sandbox/"+brief+"/status", nil)); !got.Equal(fixed) {
		t.Errorf("use moved the end of the lifetime from %s to %s", fixed, got)
	}
}
