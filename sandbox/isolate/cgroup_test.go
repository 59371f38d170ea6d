package isolate

import (
	"os"
	"path/filepath"
	"testing"
)

// A child that is no more has no pid, and 0 would move the service itself into the
// child's group, under its limits.
func TestNobodyJoinsForTheDead(t *testing.T) {
	dir := t.TempDir()
	procs := filepath.Join(dir, "1", "cgroup.procs")
	if err := os.Mkdir(filepath.Dir(procs), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(procs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := &cgroup{in: &cgroups{version: 2, dirs: map[string]string{"memory": dir, "pids": dir, "cpu": dir}}, name: "1"}
	for _, pid := range []int{0, -1} {
		if err := g.join(pid); err == nil {
			t.Errorf("%d joined", pid)
		}
	}
	if text, _ := os.ReadFile(procs); len(text) > 0 {
		t.Errorf("%q was written", text)
	}
	if err := g.join(42); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile(procs); string(text) != "42" {
		t.Errorf("%q was written for 42", text)
	}
}
