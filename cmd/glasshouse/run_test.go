package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunPrintsOutputAndResult(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), emptyDataDir(t)
	file := filepath.Join(dir, "x.py")
	if err := os.WriteFile(file, []byte("print('out')\n6 * 7"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "run", "--data-dir", dir, file).Output(); err != nil ||
		string(out) != "out\n42\n" {
		t.Errorf("got %q, %v, want out and 42", out, err)
	}
	if err := os.WriteFile(file, []byte("x = 1\ndef ("), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, "run", "--data-dir", dir, file).CombinedOutput()
	if want := fmt.Sprintf("  File %q, line 2\n    def (\n        ^\nSyntaxError: ", file); err == nil ||
		!strings.Contains(string(out), want) {
		t.Errorf("got %q, %v, want the line of the syntax error with a caret", out, err)
	}
}

// TestRunPrintsWhatComesAndWritesFiles runs a file on a running service. Its first line is on stdout while the code
// still runs, and --out has its pictures and files.
func TestRunPrintsWhatComesAndWritesFiles(t *testing.T) {
	t.Parallel()
	path, dir := binary(t), dataDir(t)
	_, c := start(t, path, dir, withPackages())
	write := func(name, code string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Run("progress", func(t *testing.T) {
		slow := write("slow.py", "print('first')\nimport time\ntime.sleep(25)")
		cmd := exec.Command(path, "run", "--data-dir", dir, slow)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "first\n" {
			t.Errorf("got %q, %v, want the first line", line, err)
		}
		running := c.must(t, "GET", "/executions?status=running", nil)
		if list, _ := running["executions"].([]any); len(list) != 1 {
			t.Errorf("got %v after the first line, want one running execution", running)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("after an interrupt: got exit code 0, want another")
		}
		eventually(t, func() error {
			cancelled := c.must(t, "GET", "/executions?status=cancelled", nil)
			if list, _ := cancelled["executions"].([]any); len(list) != 1 {
				return fmt.Errorf("after an interrupt: got %v, want the execution cancelled", cancelled)
			}
			return nil
		})
	})
	t.Run("files", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "new", "folder")
		file := write("report.py", `import pandas as pd, matplotlib.pyplot as plt
from IPython.display import display
from pathlib import Path
print('before')
display(pd.DataFrame({'city': ['Bern', 'Rome'], 'n': [1, 2]}))
print('after')
plt.plot([1, 2])
Path('/session/artifacts/sub').mkdir(parents=True)
Path('/session/artifacts/sub/t.csv').write_text('a,b\n')
pd.Series([1, 2], name='total')`)
		cmd := exec.Command(path, "run", file, "--data-dir", dir, "--out", out)
		var problems bytes.Buffer
		cmd.Stderr = &problems
		printed, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, problems.String())
		}
		want := []string{"before", "city  n", "0  Bern  1", "after", "total"}
		rest := string(printed)
		for _, text := range want {
			var ok bool
			if _, rest, ok = strings.Cut(rest, text); !ok {
				t.Fatalf("got %q, want %q in this order", printed, want)
			}
		}
		picture, err := os.ReadFile(filepath.Join(out, "figure-1.png"))
		if err != nil || !bytes.HasPrefix(picture, []byte("\x89PNG")) {
			t.Errorf("figure-1.png: got %.8q, %v, want a PNG", picture, err)
		}
		if text, err := os.ReadFile(filepath.Join(out, "sub", "t.csv")); string(text) != "a,b\n" {
			t.Errorf("sub/t.csv: got %q, %v, want the file of the run", text, err)
		}
		if got := problems.String(); !strings.Contains(got, "wrote "+filepath.Join(out, "figure-1.png")) {
			t.Errorf("got stderr %q, want the path of the picture", got)
		}
	})
	t.Run("a link that leads out of the folder", func(t *testing.T) {
		out, other := t.TempDir(), t.TempDir()
		if err := os.Symlink(other, filepath.Join(out, "sub")); err != nil {
			t.Fatal(err)
		}
		file := write("x.py", "from pathlib import Path\nPath('/session/artifacts/sub').mkdir(parents=True)\n"+
			"Path('/session/artifacts/sub/x').write_text('1');")
		text, err := exec.Command(path, "run", file, "--data-dir", dir, "--out", out).CombinedOutput()
		if err == nil || !strings.Contains(string(text), "sub/x is not written") {
			t.Errorf("got %s, %v, want an error that names the file", text, err)
		}
		if entries, _ := os.ReadDir(other); len(entries) > 0 {
			t.Errorf("got %v next to the folder, want nothing", entries)
		}
	})
}
