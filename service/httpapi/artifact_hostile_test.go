package httpapi_test

import (
	"fmt"
	"mime"
	"os"
	"strings"
	"testing"

	"glasshouse/sandbox"
)

// The artifacts folder may have any content. The service follows no link out of the folder and never waits for a file.
// It reports files beyond a limit as truncated.
func TestHostileArtifacts(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	for name, x := range map[string]struct {
		code   string
		paths  string
		missed bool
	}{
		"links": {`
os.symlink("/etc/passwd", out + "/passwd"); os.symlink("/session/secret", out + "/file"); os.symlink("/", out + "/root"); os.symlink(".", out + "/loop")
open("/session/secret", "w").write("s"); os.link("/session/secret", out + "/hard")`, "hard:new", true},
		"the folder a link": {`os.rmdir(out); os.symlink("/", out)`, "", false},
		"the folder a file": {`os.rmdir(out); open(out, "w").write("x")`, "", false},
		"the folder gone":   {`os.rmdir(out)`, "", false},
		"the folder from before": {`os.rename(out, out + "2"); os.mkdir(out); open(out + "/x", "w").close()`, "x:new",
			false},
		"deep": {`d = out` + "\n" + `for n in range(40):` + "\n" +
			`  d += "/d"; os.mkdir(d); open(d + "/f", "w").close()`, deepFiles("d", 15), true},
		"no permissions": {`open(out + "/f", "w").write("x"); os.mkdir(out + "/d"); open(out + "/d/g", "w").write("y"); os.chmod(out + "/f", 0); os.chmod(out + "/d", 0); os.chmod(out, 0)`, "d/g:new f:new", false},
		"not UTF-8":      {`open(out.encode() + b"/\xff\xfe.txt", "w").write("x")`, "%FF%FE.txt:new", false},
		"long names": {`
here = out
for n in range(12):
    here += "/" + "n" * 200; os.mkdir(here); open(here + "/f", "w").close()
open(out.encode() + b"/" + b"\xff" * 100, "w").close()`, deepFiles(strings.Repeat("n", 200), 5), true},
		"sparse": {`
for n in range(3):
    with open(f"{out}/{n}", "w") as f: f.truncate(40 << 20)`, "", true},
		"device and FIFO": {`
for make in (os.mkfifo, lambda p: os.mknod(p, 0o20666, 259), lambda p: os.mknod(p, 0o140666)):
    try: make(out + "/x")
    except OSError: pass`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.do(t, "POST", "/sandbox/agent/quick-execute",
				map[string]any{"code": "import os\nout = '/session/artifacts'\n" + x.code,
					"config": map[string]any{"profile": "unrestricted"}})
			if a.get("status") != "completed" {
				t.Fatalf("got %s, want a completed execution", a.text)
			}
			found := artifactsOf(t, a)
			if got := describeArtifacts(found); got != x.paths {
				t.Errorf("got the artifacts %q, want %q", got, x.paths)
			}
			if missed := a.get("truncated.artifacts") != nil; missed != x.missed {
				t.Errorf("got truncated %v, want it only if artifacts are missing", a.get("truncated"))
			}
			if body, ok := found["passwd"]; ok {
				t.Errorf("a link was followed: got the artifact %v", body)
			}
		})
	}
	counts := map[int]float64{1500: 500, 10_000: 9000}
	if testing.Short() {
		delete(counts, 10_000)
	}
	for made, missed := range counts {
		a := c.do(
			t,
			"POST",
			"/sandbox/agent/quick-execute",
			map[string]any{
				"code": fmt.Sprintf(
					"for n in range(%d): open(f'/session/artifacts/{n}', 'w').write(str(n) * 100)",
					made,
				),
			},
		)
		if n := len(artifactsOf(t, a)); n != 1000 || a.get("truncated.artifacts") != missed {
			t.Errorf("of %d files: got %d artifacts and truncated %v (%v), want 1000 and the rest", made, n,
				a.get("truncated"), a.get("error"))
		}
	}
}

// Names that differ only in bytes that are not UTF-8, or in the text of an escape, are different artifacts everywhere.
func TestArtifactsWithNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAdmin)
	id := c.create(t, map[string]any{"profile": "unrestricted"})
	const write = `
import os
out = b"/session/artifacts/"
for folder in (b"d\xff", b"d\xfe", b"d%FF"):
    os.makedirs(out + folder, exist_ok=True)
names = [b"a\xff.txt", b"a\xfe.txt", b"a%FF.txt", b"a%25FF.txt", b"a%20b.txt", "\ufffd.txt".encode()]
names += [b"d\xff/x", b"d\xfe/x", b"d%FF/x"]
for n, name in enumerate(names):
    with open(out + name, "w") as f:
        f.write(TEXT % n)
`
	paths := []string{"a%FF.txt", "a%FE.txt", "a%25FF.txt", "a%2525FF.txt", "a%20b.txt", "\uFFFD.txt",
		"d%FF/x", "d%FE/x", "d%25FF/x"}
	a := c.run(t, id, strings.Replace(write, "TEXT", `"first %d"`, 1))
	list := c.ok(t, "GET", "/sandbox/"+id+"/artifacts", nil)
	found, listed := artifactsOf(t, a), artifactsOf(t, list)
	hosts, _ := a.get("artifact_map").(map[string]any)
	for n, path := range paths {
		want := fmt.Sprintf("first %d", n)
		if got := c.do(t, "GET", found[path].URL, nil); string(got.text) != want || listed[path].ID != found[path].ID {
			t.Errorf("%q: got %q, and %+v in the list; want %q", path, got.text, listed[path], want)
		}
		host, _ := hosts["/session/artifacts/"+path].(string)
		if text, err := os.ReadFile(host); string(text) != want {
			t.Errorf("%q on the host: got %q at %q (%v), want %q", path, text, host, err, want)
		}
	}
	if len(found) != len(paths) || len(listed) != len(paths) || len(hosts) != len(paths) {
		t.Errorf("got %d artifacts, %d in the list and %d on the host, want %d", len(found), len(listed), len(hosts),
			len(paths))
	}
	again := artifactsOf(t, c.run(t, id, strings.Replace(write, "TEXT", `("first %d" if n else "second %d")`, 1)))
	if got := describeArtifacts(again); got != "a%FF.txt:changed" {
		t.Errorf("after a change of one file: got %q, want that file", got)
	}
	wantStrictJSON(t, "artifacts", a.text, list.text)
}

// A browser treats every artifact as data: it does not run the artifact, guess another type, or show it as a page.
func TestBrowsersRunNoArtifact(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	found := artifactsOf(t, c.run(t, c.create(t, nil), `
page = "<script>alert(document.domain)</script>"
for name in ["a.html", "a.HTM", "a.svg", "a.xml", "a.js", "a.pdf", "a.unknown", "noname", "a.png", "a.jpg.html", "quote\"name.svg", "line\r\nX-Bad: 1.html", "größe.svg"]:
    open("/session/artifacts/" + name, "w").write(page)`))
	if len(found) != 13 {
		t.Fatalf("got the artifacts %q, want 13", describeArtifacts(found))
	}
	for name, a := range found {
		signed, _ := c.ok(t, "POST", a.URL+"/url", nil).get("url").(string)
		for _, got := range []answer{c.do(t, "GET", a.URL, nil), (client{}).do(t, "GET", signed, nil),
			c.do(t, "GET", a.URL, nil, "Range", "bytes=0-7"), c.do(t, "HEAD", a.URL, nil)} {
			h := got.header
			disposition, inline := h.Get("Content-Disposition"), name == "a.png"
			if h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
				strings.HasPrefix(disposition, "attachment; ") == inline || h.Get("X-Bad") != "" {
				t.Errorf("%q: got the headers %v, want nosniff, a sandbox policy and the right disposition", name, h)
			}
			if inline && h.Get("Content-Type") != "image/png" {
				t.Errorf("%q: got Content-Type %s, want image/png", name, h.Get("Content-Type"))
			}
			if _, parameters, err := mime.ParseMediaType(disposition); err != nil || parameters["filename"] != name {
				t.Errorf("%q: got the file name %q in Content-Disposition (%v), want the artifact's name", name,
					disposition, err)
			}
		}
	}
}

// A thread continues to write after the end of its execution. The stored bytes match the recorded size and hash.
func TestArtifactsWrittenDuringCollectionAreConsistent(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, map[string]any{"cpu_percent": 100})
	c.run(t, id, `
import threading, itertools, time
written = 0
def write():
    global written
    for n in itertools.count():
        with open("/session/artifacts/x", "r+b" if n else "wb") as f:
            f.truncate(n % 50_000)
            f.write(bytes([n % 256]) * (n * 7 % 90_000))
        written = n
threading.Thread(target=write, daemon=True).start()`)
	for range 5 {
		a, ok := artifactsOf(t, c.run(t, id, "seen = written\nwhile written < seen + 9: time.sleep(0.01)"))["x"]
		if !ok {
			t.Fatal("the file is not among the artifacts; want a changed one")
		}
		if got := c.do(t, "GET", a.URL, nil); int64(len(got.text)) != a.Size ||
			sha256Hex(string(got.text)) != a.SHA256 {
			t.Errorf("got %d bytes with the hash %s, want those of %+v", len(got.text), sha256Hex(string(got.text)), a)
		}
	}
}

// deepFiles lists the file f in each folder of a tree that is n levels deep.
func deepFiles(folder string, n int) string {
	var out []string
	for i := 1; i <= n; i++ {
		out = append(out, strings.Repeat(folder+"/", i)+"f:new")
	}
	return strings.Join(sorted(out), " ")
}
