package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/httpapi"
)

// artifactsOf returns the artifacts of a response by path.
func artifactsOf(t testing.TB, a answer) map[string]sandbox.Artifact {
	t.Helper()
	var body struct {
		Artifacts []sandbox.Artifact `json:"artifacts"`
	}
	if err := json.Unmarshal(a.text, &body); err != nil || a.status != http.StatusOK {
		t.Fatalf("got HTTP %d %s (%v), want artifacts", a.status, a.text, err)
	}
	out := map[string]sandbox.Artifact{}
	for _, x := range body.Artifacts {
		out[x.Path] = x
	}
	return out
}

func describeArtifacts(m map[string]sandbox.Artifact) string {
	var out []string
	for path, a := range m {
		out = append(out, path+":"+string(a.Change))
	}
	return strings.Join(sorted(out), " ")
}

func sorted(list []string) []string {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

// New and changed files are kept; unchanged files are not listed again. An artifact can be read by its URL and on the
// host, also after the end of the sandbox.
func TestArtifactsAreKeptWithURLAndPath(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `
import pathlib, matplotlib.pyplot as plt
out = pathlib.Path("/session/artifacts")
(out / "a.csv").write_text("x\n1\n")
(out / "deep" / "er").mkdir(parents=True)
(out / "deep" / "er" / "odd\nnäme.json").write_text("{}")
plt.plot([1, 2]); plt.savefig(out / "plot.png"); plt.close("all")
pathlib.Path("/session/mine.txt").write_text("mine")`)
	first := artifactsOf(t, a)
	if got := describeArtifacts(first); got != "a.csv:new deep/er/odd\nnäme.json:new plot.png:new" {
		t.Fatalf("got the artifacts %q, want three new ones: %s", got, a.text)
	}
	csv := first["a.csv"]
	if csv.Size != 4 || csv.SHA256 != sha256Hex("x\n1\n") || csv.MIME != "text/csv; charset=utf-8" ||
		first["plot.png"].MIME != "image/png" {
		t.Errorf("got %+v, want the size, hash and MIME type of the file", csv)
	}
	host, _ := a.get("artifact_map").(map[string]any)["/session/artifacts/a.csv"].(string)
	if want := filepath.Join(dataDir, "sessions", id, "artifacts", "a.csv"); host != want {
		t.Errorf("got the host path %q, want %q", host, want)
	}
	linked, err := os.Stat(host)
	if err != nil {
		t.Fatal(err)
	}
	if bytes, err := os.Stat(filepath.Join(dataDir, "artifacts", csv.SHA256[:2], csv.SHA256)); err != nil ||
		!os.SameFile(linked, bytes) {
		t.Errorf("the path on the host is not a link to the stored bytes: %v", err)
	}
	got := c.do(t, "GET", csv.URL, nil)
	if string(got.text) != "x\n1\n" || got.header.Get("ETag") != `"`+csv.SHA256+`"` ||
		got.header.Get("Content-Disposition") != `attachment; filename=a.csv` {
		t.Errorf("got %q with %v, want the file with ETag and Content-Disposition", got.text, got.header)
	}
	if part := c.do(t, "GET", csv.URL, nil, "Range", "bytes=2-2"); part.status != http.StatusPartialContent ||
		string(part.text) != "1" {
		t.Errorf("range: got HTTP %d %q, want 206 and one byte", part.status, part.text)
	}
	// The same size, immediately afterwards: the file system's clock may not have ticked.
	second := artifactsOf(t, c.run(t, id,
		`open("/session/artifacts/a.csv", "w").write("x\n2\n"); open("/session/artifacts/b.txt", "w").write("b")`))
	if describeArtifacts(second) != "a.csv:changed b.txt:new" {
		t.Errorf("got %q, want a.csv changed and b.txt new", describeArtifacts(second))
	}
	if third := artifactsOf(t, c.run(t, id,
		`open("/session/artifacts/a.csv").read(); open("/session/artifacts/b.txt", "w").write("b")`)); len(third) != 0 {
		t.Errorf("after no change: got the artifacts %q, want none", describeArtifacts(third))
	}
	if old := c.do(t, "GET", csv.URL, nil); string(old.text) != "x\n1\n" {
		t.Errorf("the first version: got %q, want it unchanged", old.text)
	}
	if now, _ := os.ReadFile(host); string(now) != "x\n2\n" {
		t.Errorf("on the host: got %q, want the second version", now)
	}
	c.run(t, id, `
out.joinpath("a.csv").unlink(); out.joinpath("a.csv").mkdir(); out.joinpath("a.csv", "in").write_text("was a file")
(out / "deep" / "er" / "odd\nnäme.json").unlink(); (out / "deep" / "er").rmdir(); (out / "deep").rmdir(); out.joinpath("deep").write_text("was a folder")`)
	for path, want := range map[string]string{"a.csv/in": "was a file", "deep": "was a folder"} {
		if body, err := os.ReadFile(filepath.Join(dataDir, "sessions", id, "artifacts", path)); string(body) != want {
			t.Errorf("%s on the host: got %q (%v), want the new content", path, body, err)
		}
	}

	other := newUser(t, sandbox.RoleDeveloper)
	wantProblem(t, other.do(t, "GET", csv.URL, nil), 404, "not-found")
	wantProblem(t, other.do(t, "GET", "/sandbox/"+id+"/artifacts", nil), 404, "not-found")
	wantProblem(t, (client{}).do(t, "GET", csv.URL, nil), 401, "unauthorized")
	c.ok(t, "DELETE", "/sandbox/"+id, nil)
	list := artifactsOf(t, c.ok(t, "GET", "/sandbox/"+id+"/artifacts", nil))
	if len(list) != 6 || list["a.csv"].SHA256 != sha256Hex("x\n2\n") {
		t.Errorf("of the deleted sandbox: got the artifacts %q, want 6", describeArtifacts(list))
	}
	if got := c.do(t, "GET", list["plot.png"].URL, nil); got.header.Get("Content-Type") != "image/png" ||
		string(got.text[1:4]) != "PNG" {
		t.Errorf("the plot: got HTTP %d %v, want a PNG image", got.status, got.header)
	}
}

func TestQuickExecutionKeepsItsArtifacts(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.do(t, "POST", "/sandbox/agent/quick-execute",
		map[string]any{"code": "open('/work/artifacts/x.txt', 'w').write('quick')"})
	found := artifactsOf(t, a)
	eid, _ := a.get("execution_id").(string)
	want := filepath.Join(dataDir, "outputs", eid, "x.txt")
	if got := a.get("artifact_map").(map[string]any)["/work/artifacts/x.txt"]; got != want {
		t.Errorf("got the host path %v, want %s", got, want)
	}
	if body, err := os.ReadFile(want); string(body) != "quick" {
		t.Errorf("on the host: got %q (%v), want quick", body, err)
	}
	if got := c.do(t, "GET", found["x.txt"].URL, nil); string(got.text) != "quick" {
		t.Errorf("by URL: got HTTP %d %q, want quick", got.status, got.text)
	}
	if again := c.ok(t, "GET", "/executions/"+eid, nil); artifactsOf(t, again)["x.txt"].URL != found["x.txt"].URL {
		t.Errorf("history: got %s, want the same artifact", again.text)
	}
}

// Each artifact is on one page, files before outputs.
func TestArtifactsAreListedInPages(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	a := c.run(t, id, `
for n in range(25): open(f"/session/artifacts/{n:02}", "w").write("old")
for n in range(25): open(f"/session/artifacts/{n:02}", "w").write(str(n))
class Page:
    def _repr_html_(self): return "x" * 300_000
display(Page())`)
	c.run(t, id, `open("/session/artifacts/07", "w").write("new")`)
	var all []string
	path := "/sandbox/" + id + "/artifacts?limit=10"
	for next := ""; ; {
		page := c.ok(t, "GET", path+next, nil)
		list, _ := page.get("artifacts").([]any)
		for _, x := range list {
			all = append(all, fmt.Sprint(x.(map[string]any)["path"]))
		}
		if page.get("next") == nil {
			break
		}
		if len(list) != 10 {
			t.Fatalf("got a page of %d, want 10", len(list))
		}
		next = "&after=" + fmt.Sprint(page.get("next"))
	}
	var want []string
	for n := range 25 {
		want = append(want, fmt.Sprintf("%02d", n))
	}
	if got := strings.Join(all, " "); got != strings.Join(want, " ")+" output-1.htm" {
		t.Errorf("the pages have %s, want each artifact once", got)
	}
	wantProblem(t, c.do(t, "GET", path+"&after=nothing", nil), 422, "invalid-input", "after")
	wantProblem(t, c.do(t, "GET", path+"0000", nil), 422, "invalid-input", "limit")
	if n := len(artifactsOf(t, a)); n != 26 {
		t.Errorf("got %d artifacts of the execution, want 26", n)
	}
}

func TestSignedURLNeedsNoKeyUntilItExpires(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	found := artifactsOf(t, c.run(t, id, "for n in 'ab': open('/session/artifacts/' + n, 'w').write(n)"))
	created := c.ok(t, "POST", found["a"].URL+"/url", map[string]any{"expires_in": 60})
	signed, _ := created.get("url").(string)
	anonymous := client{}
	if a := anonymous.do(t, "GET", signed, nil); string(a.text) != "a" {
		t.Errorf("got HTTP %d %s, want the file", a.status, a.text)
	}
	for name, url := range map[string]string{
		"another artifact": strings.Replace(signed, found["a"].ID, found["b"].ID, 1),
		"a longer time":    strings.Replace(signed, "expires=1", "expires=2", 1),
		"no signature":     signed[:strings.Index(signed, "signature=")] + "signature=0",
		"another route":    "/sandbox/" + id + "/artifacts" + signed[strings.Index(signed, "?"):],
	} {
		if a := anonymous.do(t, "GET", url, nil); a.status != http.StatusForbidden &&
			a.status != http.StatusUnauthorized {
			t.Errorf("%s: got HTTP %d, want 401 or 403: %s", name, a.status, a.text)
		}
	}
	other := newUser(t, sandbox.RoleAgent)
	wantProblem(t, other.do(t, "POST", found["a"].URL+"/url", nil), 404, "not-found")
	// the last two, in nanoseconds, overflow 64 bits to 1 s
	for _, seconds := range []int{1 << 30, 18446744075, -18446744072} {
		wantProblem(t, c.do(t, "POST", found["a"].URL+"/url", map[string]any{"expires_in": seconds}), 422,
			"invalid-input", "expires_in")
	}
	brief, _ := c.ok(t, "POST", found["a"].URL+"/url", map[string]any{"expires_in": 1}).get("url").(string)
	eventually(t, "the URL to expire", func() bool {
		return anonymous.do(t, "GET", brief, nil).status == http.StatusForbidden
	})
}

// eventually polls for a state that has no event.
var eventually = polltest.Eventually

// A large rich output becomes an artifact that the execution refers to; a small one stays in the execution.
func TestLargeOutputsBecomeArtifacts(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": `
import numpy as np
from PIL import Image
class Page:
    def __init__(self, n): self.n = n
    def _repr_html_(self): return "<p>" + "é" * self.n
display(Image.fromarray(np.random.randint(0, 255, (400, 400, 3), np.uint8)))
display(Page(300_000))
display(Page(10))`})
	found := artifactsOf(t, a)
	if got := describeArtifacts(found); got != "output-1.png:new output-2.htm:new" {
		t.Fatalf("got the artifacts %q, want two outputs: %s", got, string(a.text[:min(len(a.text), 2000)]))
	}
	outputs := a.get("outputs").([]any)
	picture := outputs[0].(map[string]any)["data"].(map[string]any)
	reference, _ := picture["application/vnd.glasshouse.artifact+json"].(map[string]any)
	if picture["image/png"] != nil || picture["text/plain"] == nil ||
		reference["image/png"].(map[string]any)["url"] != found["output-1.png"].URL {
		t.Errorf("got %v, want text and a reference to the PNG artifact", picture)
	}
	if got := c.do(t, "GET", found["output-1.png"].URL, nil); got.header.Get("Content-Type") != "image/png" ||
		string(got.text[1:4]) != "PNG" {
		t.Errorf("the PNG artifact: got HTTP %d %v, want a PNG image", got.status, got.header)
	}
	if got := c.do(t, "GET", found["output-2.htm"].URL, nil); string(got.text) != "<p>"+strings.Repeat("é", 300_000) ||
		got.header.Get("Content-Security-Policy") == "" {
		t.Errorf("the HTML artifact: got HTTP %d, %d bytes, %v; want the whole page with a policy", got.status,
			len(got.text), got.header)
	}
	if small := outputs[2].(map[string]any)["data"].(map[string]any); small["text/html"] == nil {
		t.Errorf("got %v, want the small page in the output", small)
	}
}

// A file may have the name that a large output gets; both are kept.
func TestLargeOutputAndFileMayShareAName(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	a := c.do(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": `
class Page:
    def _repr_html_(self): return "shown" * 100_000
open("/work/artifacts/output-1.htm", "w").write("written")
display(Page())`})
	bodies := map[string]bool{}
	for _, x := range a.get("artifacts").([]any) {
		one := x.(map[string]any)
		bodies[fmt.Sprint(one["path"], " ", string(c.do(t, "GET", fmt.Sprint(one["url"]), nil).text[:5]))] = true
	}
	if len(bodies) != 2 || !bodies["output-1.htm shown"] || !bodies["output-1.htm writt"] {
		t.Errorf("got %v, want both files", bodies)
	}
	if host, _ := a.get("artifact_map").(map[string]any)["/work/artifacts/output-1.htm"].(string); host == "" {
		t.Errorf("got the map %v, want the host path of the file", a.get("artifact_map"))
	} else if body, err := os.ReadFile(host); string(body) != "written" {
		t.Errorf("on the host: got %.20q (%v), want the written file", body, err)
	}
}

// A user's oldest artifacts beyond the limit are deleted, also from disk. Newer ones and those of other users are kept.
func TestSweepDeletesOldestArtifactsOverTheLimit(t *testing.T) {
	c, other := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	id, otherID := c.create(t, nil), other.create(t, nil)
	kept := artifactsOf(t, other.run(t, otherID, "open('/session/artifacts/x', 'w').write('old and small')"))["x"]
	var all []sandbox.Artifact
	for n := range 4 {
		all = append(all, artifactsOf(t,
			c.run(t, id, fmt.Sprintf("open('/session/artifacts/%d', 'w').write('%d' * 900_000)", n, n)))[fmt.Sprint(n)])
	}
	if err := testServices.records.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	for n, a := range all {
		bytes := filepath.Join(dataDir, "artifacts", a.SHA256[:2], a.SHA256)
		name := filepath.Join(dataDir, "sessions", id, "artifacts", a.Path)
		answer := c.do(t, "GET", a.URL, nil)
		for _, path := range []string{bytes, name} {
			if _, err := os.Stat(path); (err == nil) != (n >= 2) {
				t.Errorf("artifact %d: %s: got %v, want only the newest two on disk", n, path, err)
			}
		}
		if n < 2 {
			wantProblem(t, answer, 404, "not-found", "artifact")
		} else if answer.status != http.StatusOK {
			t.Errorf("artifact %d: got HTTP %d, want 200", n, answer.status)
		}
	}
	// Empty files count as a page each.
	third := newUser(t, sandbox.RoleAgent)
	many := third.create(t, nil)
	third.run(t, many, "for n in range(600): open(f'/session/artifacts/{n}', 'w').close()")
	if err := testServices.records.Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if list := artifactsOf(t, third.ok(t, "GET", "/sandbox/"+many+"/artifacts", nil)); len(list) != 2<<20/4096 {
		t.Errorf("got %d of 600 empty files, want as many as pages fit in the limit", len(list))
	}
	if a := other.do(t, "GET", kept.URL, nil); string(a.text) != "old and small" {
		t.Errorf("another user's artifact: got HTTP %d %s, want it kept", a.status, a.text)
	}
}

// An execution counts the files that the service could not store. The next one stores them. The test is not parallel,
// because it makes a folder of the store useless.
func TestExecutionCountsFilesThatWereNotStored(t *testing.T) {
	content, folder := "", ""
	for n := 0; folder == ""; n++ {
		content = fmt.Sprint("not stored ", n)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
		if _, err := os.Stat(filepath.Join(dataDir, "artifacts", sum[:2])); err != nil {
			folder = filepath.Join(dataDir, "artifacts", sum[:2])
		}
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unblock := sync.OnceFunc(func() { _ = os.Remove(folder) })
	defer unblock()
	code := fmt.Sprintf("for n in 'ab': open(f'artifacts/{n}.txt', 'w').write(%q)", content)
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	first := c.run(t, id, code)
	quick := c.ok(t, "POST", "/sandbox/agent/quick-execute", map[string]any{"code": code})
	for name, a := range map[string]answer{"execute": first, "quick-execute": quick} {
		if a.get("status") != "completed" || a.get("truncated.artifacts") != 2.0 || a.get("artifacts") != nil {
			t.Errorf("%s: got %s, want 2 missing artifacts", name, a.text)
		}
	}
	unblock()
	a := c.run(t, id, "1")
	if describeArtifacts(artifactsOf(t, a)) != "a.txt:new b.txt:new" || a.get("truncated") != nil {
		t.Errorf("the next execution: got %s, want both files", a.text)
	}
}

// A file that is stored but has no path on the host is counted, too.
func TestExecutionCountsFilesWithoutAPath(t *testing.T) {
	t.Parallel()
	c := newUser(t, sandbox.RoleAgent)
	id := c.create(t, nil)
	folder := filepath.Join(dataDir, "sessions", id)
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := c.run(t, id, "open('artifacts/a.txt', 'w').write('a')")
	if describeArtifacts(artifactsOf(t, a)) != "a.txt:new" || a.get("artifact_map") != nil ||
		a.get("truncated.artifact_map") != 1.0 {
		t.Errorf("got %s, want the file and one path missing", a.text)
	}
}

// Downloads with signed URLs hold connections for the user whose artifact it is.
func TestSignedDownloadsHoldConnectionsOfTheOwner(t *testing.T) {
	t.Parallel()
	const connections, held = 10, 8 // of one user
	keys := newAccess(t, func(c *access.Config) { c.Connections = limit.NewConnections(connections, nil) })
	api := testServices.api(logrus.New())
	api.Access = keys
	server := httptest.NewUnstartedServer(httpapi.New(api))
	const buffer = 4096 // the service must not write the whole file ahead of the client
	server.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		_ = conn.(*net.TCPConn).SetWriteBuffer(buffer)
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close) // when the downloads have ended
	slow := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				err = conn.(*net.TCPConn).SetReadBuffer(buffer)
			}
			return conn, err
		},
	}}
	ada, grace := newUser(t, sandbox.RoleAgent), newUser(t, sandbox.RoleAgent)
	signed := func(c client) string {
		t.Helper()
		a := c.run(t, c.create(t, nil), "open('artifacts/a', 'w').write('a' * (1 << 20))")
		return fmt.Sprint(c.ok(t, "POST", artifactsOf(t, a)["a"].URL+"/url", nil).get("url"))
	}
	get := func(path string) (status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := slow.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() }) // the test does not read it
		return res.StatusCode
	}
	ofAda, ofGrace := signed(ada), signed(grace)
	for n := range held + 2 {
		want := http.StatusOK
		if n >= held {
			want = http.StatusTooManyRequests
		}
		if got := get(ofAda); got != want {
			t.Errorf("download %d: got HTTP %d, want %d", n+1, got, want)
		}
	}
	if got := get(ofGrace); got != http.StatusOK {
		t.Errorf("another user's artifact: got HTTP %d, want 200", got)
	}
}
