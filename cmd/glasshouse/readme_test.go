package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fencedBlocks returns the blocks of code of a language in a part of a page, without their fences.
func fencedBlocks(page, language string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// TestFirstMinute runs the commands of the README and of the first session in docs/api.md as they stand there, but for
// the place of the program and the address of the service.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, api := read(t, filepath.Join(root, "README.md")), read(t, filepath.Join(root, "docs", "api.md"))
	dir := dataDir(t)
	_, admin := start(t, binary(t), dir, withPackages())
	bash := func(script string) (stdout, stderr string) {
		t.Helper()
		var out, problems bytes.Buffer
		cmd := exec.Command("bash", "-c", script)
		cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &problems
		cmd.Env = append(os.Environ(), "GLASSHOUSE_DATA_DIR="+dir)
		for _, name := range []string{"bin", "examples"} {
			target := map[string]string{"bin": filepath.Dir(binary(t)), "examples": filepath.Join(root, name)}[name]
			if err := os.Symlink(target, filepath.Join(cmd.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Run(); err != nil {
			t.Errorf("%s\n%v: %s%s", script, err, out.String(), problems.String())
		}
		if figure, err := os.ReadFile(filepath.Join(cmd.Dir, "figure-1.png")); err == nil &&
			!bytes.HasPrefix(figure, []byte("\x89PNG")) || err != nil && strings.Contains(script, "--out") {
			t.Errorf("got the figure %.8q, %v, want a PNG", figure, err)
		}
		return out.String(), problems.String()
	}

	commands := strings.Split(fencedBlocks(readme, "sh")[0], "\n")
	if !strings.HasPrefix(commands[0], "./scripts/run ") || !strings.HasPrefix(commands[1], "bin/glasshouse run ") {
		t.Fatalf("got the commands %q, want one that starts the service and one that runs a file", commands)
	}
	if out, _ := bash(commands[1]); out != fencedBlocks(readme, "text")[0] {
		t.Errorf("got %q, want what the README says: %q", out, fencedBlocks(readme, "text")[0])
	}
	example := read(t, filepath.Join(root, "examples", "actions.py"))
	if code := fencedBlocks(readme, "python")[0]; !strings.HasSuffix(example, "\n"+code) ||
		strings.Count(example, "\n") != 8 {
		t.Errorf("got the example\n%s\nwant eight lines, as in the README", example)
	}

	_, session, _ := strings.Cut(api, "\n## A first session\n")
	session, _, _ = strings.Cut(session, "\n## ")
	script := strings.Join(fencedBlocks(session, "sh"), "\n")
	out, problems := bash(strings.Replace(script, "http://127.0.0.1:8080", admin.address, 1))
	for _, want := range []string{"actions by", `"busiest"`, "total", `"exception"`, "only reads"} {
		if !strings.Contains(out, want) {
			t.Errorf("first session: got %s%s, want %q", out, problems, want)
		}
	}
}
