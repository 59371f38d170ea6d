package isolatetest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// What comes from outside is in data, to be read and no more, and outlives the process;
// what goes out is collected, and nothing that a link leads to.
func TestFilesInAndOut(t *testing.T) {
	s := open(t, raise(t, ""), nil)
	put := func(name, text string) {
		if _, err := s.Uploads().Put(name, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("in/first.txt", "first")
	code := `
import os
data = "/data" if os.environ["HOME"] == "/session" else os.path.join(os.environ["HOME"], "..", "data")
seen = [open(f"{data}/in/{name}.txt").read() for name in NAMES]
assert "python" in " ".join(os.listdir(data + "/programs")), os.listdir(data)
for change in (lambda: open(data + "/new", "w"), lambda: open(data + "/in/first.txt", "a"), lambda: os.unlink(data + "/in/first.txt"), CHMOD,
               lambda: os.rename(data + "/in", data + "/out"), lambda: open(data + "/programs/new", "w"), lambda: os.link(data + "/in/first.txt", "linked")):
    try:
        change()
    except OSError:
        continue
    seen.append("a change was made")
os.symlink("/etc/passwd", "artifacts/passwd"); os.symlink("/", "artifacts/root")
open("artifacts/out.txt", "w").write("out")
seen`
	level, _ := raise(t, "").Level()
	chmod := `lambda: os.chmod(data, 0o777)`
	if own := !private(level) && os.Geteuid() != 0; own { // the child has the service's uid: Landlock knows of no modes
		chmod = `lambda: open("/data/none")`
	}
	code = strings.Replace(code, "CHMOD", chmod, 1)
	if level == isolate.LevelRLimits && os.Geteuid() != 0 { // no wall at all between them
		code = strings.Replace(code, "        change()", "        raise OSError", 1)
	}
	if e := run(t, s, strings.Replace(code, "NAMES", `["first"]`, 1)); string(e.Result) != `["first"]` {
		t.Errorf("%s %v", e.Result, text(e.Error))
	}
	keep := func(name string, body io.Reader) (sandbox.Artifact, error) {
		bytes, err := io.ReadAll(body)
		return sandbox.Artifact{Size: int64(len(bytes)), SHA256: string(bytes)}, err
	}
	found, missed, err := s.CollectArtifacts(keep)
	if err != nil || len(found) != 1 || found[0].Path != "out.txt" || found[0].SHA256 != "out" || missed != 2 {
		t.Errorf("collected %+v, missed %d: %v", found, missed, err)
	}
	if e := run(t, s, "import os\nos._exit(0)"); !e.SessionReset {
		t.Fatal("the process lives")
	}
	put("in/second.txt", "second")
	again := strings.Replace(strings.Replace(code, "NAMES", `["first", "second"]`, 1), "os.symlink", "(lambda *_: None)", 2)
	if e := run(t, s, again); string(e.Result) != `["first", "second"]` && string(e.Result) != `["first","second"]` {
		t.Errorf("after the process: %s %v", e.Result, text(e.Error))
	}
	if found, _, err := s.CollectArtifacts(keep); err != nil || len(found) != 0 {
		t.Errorf("what was the same is collected again: %+v, %v", found, err)
	}
	if err := s.Uploads().Remove("in/first.txt"); err != nil {
		t.Error(err)
	}
	if got := s.Uploads().List(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// programs is a data set of these tests: the folder of the interpreter.
func programs() map[string]string {
	return map[string]string{"programs": filepath.Dir(os.Getenv("GLASSHOUSE_PYTHON"))}
}
