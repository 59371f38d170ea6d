package cgroup

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// The kernel's files differ in name and scale. Files of a folder stand for those of the kernel.
func TestDivideWritesTheWeight(t *testing.T) {
	for _, c := range []struct {
		version, n int
		file, want string
	}{
		{1, 1, "cpu.shares", ""}, {1, 3, "cpu.shares", "341"}, {1, 2000, "cpu.shares", "2"},
		{2, 1, "cpu.weight", ""}, {2, 3, "cpu.weight", "33"}, {2, 2000, "cpu.weight", "1"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "1", c.file)
		if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		g := &Group{tree: &Tree{version: c.version, dirs: map[string]string{"cpu": dir}}, name: "1"}
		if err := g.Divide(c.n); err != nil {
			t.Error(err)
		}
		if text, _ := os.ReadFile(path); string(text) != c.want {
			t.Errorf("version %d, %s for 1/%d: got %q, want %q", c.version, c.file, c.n, text, c.want)
		}
		if c.n == 1 {
			continue
		}
		if err := g.Divide(1); err != nil { // a spare group is one part again
			t.Error(err)
		}
		want := map[int]string{1: "1024", 2: "100"}[c.version]
		if text, _ := os.ReadFile(path); !strings.HasPrefix(string(text), want) {
			t.Errorf("version %d, %s for the whole weight: got %q, want %q", c.version, c.file, text, want)
		}
	}
}

// All guests together have the weight of one thread on each CPU.
func TestTreeHasTheWeightOfAThreadOnEachCPU(t *testing.T) {
	for _, c := range []struct {
		version, cpus int
		want          string
	}{{1, 1, "1024"}, {1, 2, "2048"}, {1, 1000, "262144"}, {2, 2, ""}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "cpu.shares")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := (&Tree{version: c.version, dirs: map[string]string{"cpu": dir}}).weigh(c.cpus); err != nil {
			t.Error(err)
		}
		if text, _ := os.ReadFile(path); string(text) != c.want {
			t.Errorf("version %d, %d CPUs: got %q, want %q", c.version, c.cpus, text, c.want)
		}
	}
	tree := openTree(t)
	if tree == nil {
		return
	}
	text, err := os.ReadFile(filepath.Join(tree.dirs["cpu"], "cpu.shares"))
	if want := strconv.Itoa(min(1024*runtime.NumCPU(), maxShares)); tree.Version() == 1 && (err != nil ||
		strings.TrimSpace(string(text)) != want) {
		t.Errorf("a tree of the kernel: got %q, %v; want %s", text, err, want)
	}
}

func TestKernelTakesTheWeight(t *testing.T) {
	tree := openTree(t)
	if tree == nil {
		return
	}
	g, err := tree.Make()
	if err != nil {
		t.Fatal(err)
	}
	defer g.Remove()
	path := filepath.Join(g.dir("cpu"), tree.file("cpu.shares", "cpu.weight"))
	for _, c := range []struct {
		n    int
		want map[int]string // by version
	}{{3, map[int]string{1: "341", 2: "33"}}, {1, map[int]string{1: "1024", 2: "100"}}} {
		if err := g.Divide(c.n); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(text)) != c.want[tree.Version()] {
			t.Errorf("weight of 1/%d: got %q, %v; want %s", c.n, text, err, c.want[tree.Version()])
		}
	}
}
