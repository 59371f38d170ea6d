package isolatetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// User code can read uploads and data sets but not change them. They outlive the process.
// Artifacts are collected once, without following links.
func TestDataIsReadOnlyAndArtifactsAreCollected(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	s := NewSession(t, i, nil)
	upload := func(name, text string) {
		t.Helper()
		_, err := s.Uploads().Put(name, strings.NewReader(text))
		Must(t, err)
	}
	upload("in/first.txt", "first")
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
	level, _ := i.Level()
	chmod := `lambda: os.chmod(data, 0o777)`
	if !hasNamespaces(level) &&
		os.Geteuid() != 0 { // the child has the service's uid, and the change succeeds without effect
		chmod = `lambda: open("/data/none")`
	}
	code = strings.Replace(code, "CHMOD", chmod, 1)
	if level == isolate.LevelRLimits && os.Geteuid() != 0 { // no layer protects the service's files
		code = strings.Replace(code, "        change()", "        raise OSError", 1)
	}
	if e := Run(t, s, strings.Replace(code, "NAMES", `["first"]`, 1)); string(e.Result) != `["first"]` {
		t.Errorf(`got %s (%s), want ["first"]`, e.Result, Why(e))
	}
	keep := func(_ string, body io.Reader) (sandbox.Artifact, error) {
		content, err := io.ReadAll(body)
		return sandbox.Artifact{Size: int64(len(content)), SHA256: string(content)}, err
	}
	found, missed, err := s.CollectArtifacts(keep)
	if err != nil || len(found) != 1 || found[0].Path != "out.txt" || found[0].SHA256 != "out" || missed != 2 {
		t.Errorf("artifacts: got %+v, missed %d, %v; want out.txt, and 2 links missed", found, missed, err)
	}
	if e := Run(t, s, "import os\nos._exit(0)"); !e.SessionReset {
		t.Fatal("SessionReset after an exit: got false")
	}
	upload("in/second.txt", "second")
	code = strings.Replace(
		strings.Replace(code, "NAMES", `["first", "second"]`, 1),
		"os.symlink",
		"(lambda *_: None)",
		2,
	)
	if e := Run(t, s, code); strings.ReplaceAll(string(e.Result), " ", "") != `["first","second"]` {
		t.Errorf(`in the next process: got %s (%s), want ["first", "second"]`, e.Result, Why(e))
	}
	if found, _, err := s.CollectArtifacts(keep); err != nil || len(found) != 0 {
		t.Errorf("artifacts that did not change: got %+v, %v, want none", found, err)
	}
	Must(t, s.Uploads().Remove("in/first.txt"))
	if got := s.Uploads().List(); len(got) != 1 {
		t.Errorf("uploads after a removal: got %+v, want one", got)
	}
}

// A folder that was empty is not read again before it changes. Each way to add a file changes it.
func TestFilesInAFolderThatWasEmptyAreCollected(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	s := NewSession(t, i, nil)
	keep := func(_ string, body io.Reader) (sandbox.Artifact, error) {
		content, err := io.ReadAll(body)
		return sandbox.Artifact{Size: int64(len(content)), SHA256: string(content)}, err
	}
	collect := func(after, want string) {
		t.Helper()
		found, missed, err := s.CollectArtifacts(keep)
		var names []string
		for _, f := range found {
			names = append(names, f.Path)
		}
		if got := strings.Join(names, " "); got != want || missed != 0 || err != nil {
			t.Errorf("after %s: got artifacts %q, %d missed, %v; want %q", after, got, missed, err, want)
		}
	}
	// The clock of a file system has steps. The folder counts as unchanged only if its change is older than those.
	const makeEmpty = "import os, shutil, time\n" +
		"shutil.rmtree('artifacts', True); os.makedirs('artifacts', exist_ok=True); time.sleep(0.15)"
	for n, code := range []string{
		"open('artifacts/N', 'w').write('N')",
		"open('N', 'w').write('N'); os.rename('N', 'artifacts/N')",
		"open('N', 'w').write('N'); os.link('N', 'artifacts/N')",
		"os.makedirs('new'); open('new/N', 'w').write('N'); os.rmdir('artifacts'); os.rename('new', 'artifacts')",
		"os.mkdir('artifacts/in'); open('artifacts/in/N', 'w').write('N')",
		"os.mkdir('artifacts/in')",
		"open('artifacts/in/N', 'w').write('N')", // the folder is not empty, but has no file
	} {
		name := fmt.Sprint("f", n)
		want := name
		switch n {
		case 4, 6:
			want = "in/" + name
		case 5:
			want = ""
		}
		if n < 6 {
			Run(t, s, makeEmpty)
			collect("emptying", "")
			collect("nothing", "")
		}
		if e := Run(t, s, strings.ReplaceAll(code, "N", name)); e.Error != nil {
			t.Fatal(Why(e))
		}
		collect(code, want)
	}
}

// Invariant 15: the files of a hostile session are removed, and files outside stay.
func TestHostileFilesAreRemoved(t *testing.T) {
	t.Parallel()
	folder := searchableDir(t)
	outside := filepath.Join(t.TempDir(), "kept")
	Must(t, os.WriteFile(outside, []byte("k"), 0o600))
	i := Open(t, isolate.Config{WorkDir: filepath.Join(folder, "work")})
	s := NewSession(t, i, nil)
	e := Run(t, s, fmt.Sprintf(`
import os
os.symlink(%q, "link"); os.symlink("/", "root")
os.makedirs("locked/in"); open("locked/in/x", "w").close()
fd = os.open("locked", os.O_RDONLY); os.fchmod(fd, 0)
os.mkdir("read"); open("read/y", "w").close()
fd = os.open("read", os.O_RDONLY); os.fchmod(fd, 0o500)
for n in range(1500):
    os.mkdir("deep"); os.chdir("deep")
open("bottom", "w").close()
os.chdir(os.environ["HOME"])
`, outside))
	if e.Status != sandbox.StatusCompleted && e.Usage.EndedBy != "workspace_max_inodes" {
		t.Errorf("got %s %s", e.Status, Why(e))
	}
	s.Close()
	i.Close()
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("files after Close: got %v, want none", left)
	}
	if body, err := os.ReadFile(outside); err != nil || !bytes.Equal(body, []byte("k")) {
		t.Errorf("a file outside: got %q %v, want it unchanged", body, err)
	}
}
