package timing

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/isolatetest"
)

// holdings counts the resources of this process that a sandbox could leak.
type holdings struct{ Processes, Descriptors, Mounts, Groups int }

func countHoldings() (h holdings) {
	h.Processes = len(isolatetest.Children(os.Getpid()))
	fds, _ := os.ReadDir("/proc/self/fd")
	h.Descriptors = len(fds)
	mountinfo, _ := os.ReadFile("/proc/self/mountinfo")
	h.Mounts = strings.Count(string(mountinfo), "\n")
	cgroups, _ := os.ReadFile("/proc/self/cgroup")
	groups := map[string]bool{}
	for line := range strings.SplitSeq(string(cgroups), "\n") {
		part := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(part) != 3 {
			continue
		}
		for _, root := range []string{part[1] + part[2], part[1], part[2], ""} {
			found, _ := filepath.Glob(
				filepath.Join("/sys/fs/cgroup", root, fmt.Sprintf("glasshouse-%d-*", os.Getpid()), "*"),
			)
			for _, dir := range found {
				if info, err := os.Stat(dir); err == nil && info.IsDir() {
					groups[dir] = true
				}
			}
		}
	}
	h.Groups = len(groups)
	return h
}

// Invariant 1: a run leaves no thread, open file, memory, deep folder or file with an
// unusual name.
func TestRunLeavesNoResources(t *testing.T) {
	before := countHoldings()
	t.Run("runs", func(t *testing.T) {
		i := isolatetest.Open(t, isolate.Config{})
		depth := 300
		if !isolatetest.HasNamespaces() {
			depth = 50 // the service does not measure folders deeper than 64
		}
		for range 3 {
			s := isolatetest.NewSession(t, i, nil)
			e := isolatetest.Run(t, s, fmt.Sprintf(`
import os, threading, time
held = [open("/dev/null") for _ in range(50)] + [bytearray(10 << 20)]
for n in range(8):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
for name in (b"new\nline", b"\xff\xfe", b"x" * 255, b"-rf", b" "):
    open(name, "w").close()
os.mkdir("closed", 0)
os.chdir(os.environ["TMPDIR"])
for _ in range(%d):
    os.mkdir("d")
    os.chdir("d")
"made"`, depth))
			if string(e.Result) != `"made"` {
				t.Fatalf("got %s %s", e.Status, isolatetest.Why(e))
			}
			s.Close()
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; { // the Go runtime closes some files later
		after := countHoldings()
		if after.Processes == before.Processes && after.Descriptors <= before.Descriptors &&
			after.Mounts == before.Mounts &&
			after.Groups == before.Groups {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after the runs: got %+v, want %+v as before", after, before)
		}
		runtime.GC()
		runtime.Gosched()
	}
}
