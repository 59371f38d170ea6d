package zygote_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"glasshouse/sandbox/environment"
	"glasshouse/sandbox/isolate/zygote"
)

// The loader of arm64 lies in no folder of libraries. Here a program names one in another such place.
func TestMinimalRootHasTheLoader(t *testing.T) {
	program, err := os.ReadFile("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "ld") // its path must not be longer than the one that it replaces
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	loader, executable := filepath.Join(dir, "ld"), filepath.Join(dir, "program")
	begin := bytes.Index(program, []byte("/lib"))
	length := bytes.IndexByte(program[begin:], 0)
	copy(program[begin:begin+length], loader+string(make([]byte, length)))
	for path, content := range map[string][]byte{loader: nil, executable: program} {
		if err := os.WriteFile(path, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	binds, _, _ := zygote.MinimalRoot(environment.Interpreter{Executable: executable, Prefix: "/usr"})
	if binds[loader] != loader {
		t.Errorf("got the mounts %v, want %s, the loader of %s", binds, loader, executable)
	}
}
