package isolatetest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// The service and user code share the files of /session, also under the names that other services have for it.
func TestWorkspaceIsSharedWithCode(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	w := NewSession(t, i, nil)
	files := w.Workspace()
	write := func(name, text string) {
		t.Helper()
		_, err := files.Write(name, strings.NewReader(text))
		Must(t, err)
	}
	write("in/a.txt", "from outside")
	_, made, err := files.MakeFolder("made/inner")
	if Must(t, err); !made {
		t.Error("MakeFolder: got made false for a new folder")
	}
	level, _ := i.Level()
	if hasNamespaces(level) {
		code := `[open(f + "/in/a.txt").read() for f in ("/session", "/mnt/data", "/home/user", "/work", ".")]`
		const five = `["from outside","from outside","from outside","from outside","from outside"]`
		if e := Run(t, w, code); strings.ReplaceAll(string(e.Result), ", ", ",") != five {
			t.Errorf("got %s (%s), want the text by each name", e.Result, Why(e))
		}
	}
	// Code may change and remove what came from outside.
	e := Run(t, w, `
import os
open("in/a.txt", "a").write("!"); open("made/inner/b.bin", "wb").write(bytes(range(256)))
os.rename("in/a.txt", "in/c.txt")
sorted(os.listdir("in"))`)
	if string(e.Result) != `["c.txt"]` {
		t.Errorf("got %s (%s), want c.txt", e.Result, Why(e))
	}
	for name, want := range map[string]string{"in/c.txt": "from outside!", "made/inner/b.bin": string(allBytes())} {
		if got := readAll(t, files, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	moved, err := files.Move("in/c.txt", "new/folder/d.txt")
	if err != nil || moved.Path != "new/folder/d.txt" || moved.Size != 13 || moved.Kind != sandbox.EntryFile {
		t.Errorf("Move: got %+v, %v", moved, err)
	}
	Must(t, files.Remove("made"))
	list, err := files.List(".", 3)
	var names []string
	for _, e := range list {
		names = append(names, e.Path)
	}
	if got := strings.Join(names, " "); err != nil || got != "artifacts in new new/folder new/folder/d.txt" {
		t.Errorf("List: got %q, %v", got, err)
	}
	const exit = "import os\nos.remove('new/folder/d.txt'); os.rmdir('new/folder'); os._exit(0)"
	if e := Run(t, w, exit); !e.SessionReset {
		t.Errorf("got SessionReset false, want true: %s", Why(e))
	}
	write("after.txt", "exit") // the guest has ended, its files are still there
	if e := Run(t, w, "open('after.txt').read()"); string(e.Result) != `"exit"` {
		t.Errorf("got %s (%s), want the text", e.Result, Why(e))
	}
}

// No path, link or file of user code makes the service read or write anything outside of /session, or wait.
func TestWorkspaceRefusesHostileFiles(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), func(p *policy.Policy) { p.FileMaxBytes, p.WorkspaceMaxBytes = 1<<20, 4<<20 })
	files := s.Workspace()
	if e := Run(t, s, `
import os
os.symlink("/etc", "folder"); os.symlink("/etc/passwd", "file"); os.symlink("self", "self")
try: os.mkfifo("fifo")
except OSError: open("fifo", "w")
with open("holes", "wb") as f: f.truncate(1 << 19)
with open(b"\xff.txt", "w") as f: f.write("x")
1`); string(e.Result) != "1" {
		t.Fatalf("got %s (%s), want the files", e.Result, Why(e))
	}
	for _, name := range []string{
		"", "/etc/passwd", "../x", "a/../../x", "folder/passwd", "file", "self", "a\x00b",
		strings.Repeat("d/", 17) + "x",
	} {
		if _, _, err := files.Open(name); sandbox.FaultOf(err) != sandbox.FaultInvalid {
			t.Errorf("Open %q: got %v, want %s", name, err, sandbox.FaultInvalid)
		}
		if _, err := files.Write(name, strings.NewReader("x")); name != "file" && name != "self" &&
			sandbox.FaultOf(err) != sandbox.FaultInvalid {
			t.Errorf("Write %q: got %v, want %s", name, err, sandbox.FaultInvalid)
		}
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{".", "artifacts"} {
		if _, err := files.Write(name, strings.NewReader("x")); sandbox.FaultOf(err) != sandbox.FaultInvalid {
			t.Errorf("Write %q: got %v, want %s", name, err, sandbox.FaultInvalid)
		}
	}
	if err := files.Remove("."); sandbox.FaultOf(err) != sandbox.FaultInvalid {
		t.Errorf("Remove .: got %v, want %s", err, sandbox.FaultInvalid)
	}
	if _, err := files.Stat("none/x"); sandbox.FaultOf(err) != sandbox.FaultNotFound {
		t.Errorf("Stat: got %v, want %s", err, sandbox.FaultNotFound)
	}
	tooLarge := io.LimitReader(zeros{}, 1<<20+1)
	if _, err := files.Write("large", tooLarge); sandbox.FaultOf(err) != sandbox.FaultTooLarge {
		t.Errorf("Write over file_max_bytes: got %v, want %s", err, sandbox.FaultTooLarge)
	}
	failing := io.MultiReader(strings.NewReader("part"), failingReader{})
	if _, err := files.Write("folder2/broken", failing); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Write of a broken body: got %v, want %v", err, io.ErrUnexpectedEOF)
	}
	var full error
	for n := range 5 {
		if _, full = files.Write(string(rune('a'+n)), io.LimitReader(zeros{}, 1<<20)); full != nil {
			break
		}
	}
	if sandbox.FaultOf(full) != sandbox.FaultTooLarge {
		t.Errorf("Write over workspace_max_bytes: got %v, want %s", full, sandbox.FaultTooLarge)
	}
	list, err := files.List(".", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if strings.Contains(e.Path, ".upload-") || strings.Contains(e.Path, "broken") {
			t.Errorf("got %s left over", e.Path)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func allBytes() []byte {
	var b bytes.Buffer
	for n := range 256 {
		b.WriteByte(byte(n))
	}
	return b.Bytes()
}

func readAll(t *testing.T, files *supervisor.Workspace, name string) string {
	t.Helper()
	f, _, err := files.Open(name)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	Must(t, err)
	return string(text)
}
