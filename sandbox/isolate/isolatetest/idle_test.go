package isolatetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/procfs"
	"glasshouse/sandbox/supervisor"
)

// idleDescriptors returns how many descriptors an idle session may have in the service: the pidfd, the connection, and
// the mounts of its files or, without private mounts, the two pipes of its output.
func idleDescriptors() int {
	if HasNamespaces() {
		return 3
	}
	return 4
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	Must(t, err)
	return len(entries)
}

// An idle session gives back every descriptor that can be opened again, and its next run works as if it had not.
func TestIdleSessionsHoldFewDescriptors(t *testing.T) {
	const sessions, kept = 30, 2
	i := Open(t, isolate.Config{MaxOpenIdle: kept})
	warm := NewSession(t, i, nil) // from now on the pool is full except for short times
	Run(t, warm, "1")
	before := countDescriptors(t)
	var all []*supervisor.Session
	for n := range sessions {
		s := NewSession(t, i, nil)
		if o := Run(t, s, fmt.Sprintf("print('first %d')", n)); o.Stdout != fmt.Sprintf("first %d\n", n) {
			t.Fatalf("session %d: got %q, %s", n, o.Stdout, Why(o))
		}
		all = append(all, s)
	}
	const open = 20 // at most, of a session that keeps all
	want := before + idleDescriptors()*sessions + open*kept
	Eventually(t, fmt.Sprintf("%d sessions have at most %d descriptors", sessions, want-before), func() bool {
		return countDescriptors(t) <= want
	})
	for n, s := range all {
		s.Usage() // must not keep files open
		o := Run(t, s, "import sys\nprint('out', x := 6 * 7)\nprint('err', file=sys.stderr)\nx")
		unmeasured := o.Usage.PeakMemoryMB == 0 &&
			i.Isolation().Level == isolate.LevelFull // elsewhere it is an estimate
		if string(o.Result) != "42" || o.Stdout != "out 42\n" || o.Stderr != "err\n" || unmeasured {
			t.Errorf("second run of session %d: got %+v", n, o)
		}
	}
	if got := countDescriptors(t); got > want+open {
		t.Errorf("after the second runs: got %d descriptors, want at most %d", got, want+open)
	}
}

// User code may have moved or closed its output between two runs.
func TestIdleSessionsKeepTheirOutput(t *testing.T) {
	i := Open(t, isolate.Config{MaxOpenIdle: 1})
	idle := func() { // closes the spare descriptors of all other sessions
		Run(t, NewSession(t, i, nil), "1")
	}
	moved := NewSession(t, i, nil)
	Run(t, moved, "import os\nkept = os.dup(1)\nos.dup2(os.open('file', os.O_CREAT | os.O_RDWR), 1)")
	idle()
	o := Run(t, moved, "_ = os.write(kept, b'to the pipe')\n_ = os.write(1, b'to the file')")
	if o.Stdout != "to the pipe" {
		t.Errorf("output that was moved: got %q, %s; want %q", o.Stdout, Why(o), "to the pipe")
	}
	idle()
	if o := Run(t, moved, "_ = os.dup2(kept, 1)\nprint('back')"); o.Stdout != "back\n" {
		t.Errorf("output that was moved back: got %q, %s; want %q", o.Stdout, Why(o), "back\n")
	}

	closed := NewSession(t, i, nil)
	Run(t, closed, "import os\nos.close(1)")
	idle()
	o = Run(t, closed, "import sys\nsys.stderr.write('still here')\n7")
	if string(o.Result) != "7" || o.Stdout != "" || o.Stderr != "still here" {
		t.Errorf("output that was closed: got %+v", o)
	}

	// A device or another pipe in place of the output must not be read.
	hostile := NewSession(t, i, nil)
	Run(t, hostile, "import os\nr, w = os.pipe()\n_ = os.write(w, b'x' * 100)\nos.dup2(w, 1)\n"+
		"os.dup2(os.open('/dev/zero', os.O_RDONLY), 2)")
	idle()
	if o := Run(t, hostile, "8"); string(o.Result) != "8" || o.Stdout != "" || o.Stderr != "" {
		t.Errorf("other files in place of the output: got %d bytes and %d bytes, %s; want none",
			len(o.Stdout), len(o.Stderr), Why(o))
	}

	// Threads that print while the session is idle must find their pipe when it runs again.
	threads := NewSession(t, i, nil)
	Run(t, threads, `
import threading, time
failed, ticks = [], 0
def work():
    global ticks
    while True:
        try:
            print('tick', flush=True)
            ticks += 1
        except Exception as error:
            failed.append(repr(error))
        time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()`)
	for range 20 {
		idle()
		o := Run(t, threads, "end = ticks + 2\nwhile ticks < end and not failed:\n    time.sleep(0.001)\nfailed")
		if string(o.Result) != "[]" || !strings.Contains(o.Stdout, "tick") {
			t.Fatalf("a thread that prints: got %q and errors %s", o.Stdout, o.Result)
		}
	}
}

// A session with a network has its listener, too. It cannot be opened again.
func TestIdleSessionWithANetworkIsUsedAgain(t *testing.T) {
	if !HasNamespaces() {
		return // this level has no network
	}
	i := Open(t, isolate.Config{MaxOpenIdle: 1})
	s := NewSession(t, i, func(p *policy.Policy) { p.EnableNetworkAccess = true })
	Run(t, s, "1")
	Run(t, NewSession(t, i, nil), "1")
	if o := Run(t, s, "print('again')"); o.Stdout != "again\n" {
		t.Errorf("got %q, %s", o.Stdout, Why(o))
	}
}

// canGiveBack reports whether a process can give back copies on this machine: not without the extension, on a kernel
// before 6.7, or where the service may not read the memory map of a guest. Then it notes the reason.
func canGiveBack(t *testing.T, pid int) bool {
	t.Helper()
	reason := ""
	_, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	switch {
	case errors.Is(err, os.ErrPermission) && os.Geteuid() != 0:
		reason = "this user may not read the memory map of a guest"
	case err != nil:
		t.Fatal(err)
	case !isKernelSince(t, 6, 7):
		reason = "the kernel is older than 6.7"
	case !hasExtension(t):
		reason = "the extension syscall_batch is not built"
	}
	if reason != "" {
		t.Logf("report: not tested, because %s: idle sessions give back copies", reason)
	}
	return reason == ""
}

// giveBackTimeout is how long a session may take to give back copies. It typically takes some milliseconds. The time
// only ends a test that fails: a busy machine needs a while.
const giveBackTimeout = 2 * time.Minute

// within polls until problem returns "", and fails with what it returns last after a time.
func within(t *testing.T, limit time.Duration, problem func() string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		last := problem()
		if last == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, last)
		}
	}
}

func isKernelSince(t *testing.T, major, minor int) bool {
	t.Helper()
	var name unix.Utsname
	Must(t, unix.Uname(&name))
	var version [2]int
	if n, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &version[0], &version[1]); n < 2 {
		t.Fatalf("read the version of the kernel: %v", err)
	}
	return slices.Compare(version[:], []int{major, minor}) >= 0
}

// hasExtension reports whether the packages of the interpreter have syscall_batch.
func hasExtension(t *testing.T) bool {
	t.Helper()
	out, err := exec.Command(Python(t), "-c", "import syscall_batch").CombinedOutput()
	if err != nil && !strings.Contains(string(out), "ModuleNotFoundError") {
		t.Fatalf("import the extension: %v\n%s", err, out)
	}
	return err == nil
}

// A session that is idle for long gives back the pages that it has copied from its zygote and that are unchanged.
func TestIdleSessionsGiveBackUnchangedCopies(t *testing.T) {
	i := Open(t, isolate.Config{MaxOpenIdle: 1})
	idle := func() { Run(t, NewSession(t, i, nil), "1") }
	s := NewSession(t, i, nil)
	Run(t, s, "kept = [str(n) for n in range(1000)]\nclass A: pass\nimport json, datetime\n[type(x) for x in kept]")
	pid := processOf(t, s)
	if !canGiveBack(t, pid) {
		return
	}
	ownKB := func() int64 { return procfs.HeldBy(pid).OwnKB }
	before := ownKB()
	within(t, giveBackTimeout, func() string {
		idle() // a process whose threads have not stopped yet is passed over until the next one is idle
		if own := ownKB(); own > before-500 {
			return fmt.Sprintf("got %d KB of its own, want at least 500 less than %d", own, before)
		}
		return ""
	})
	cpu := Run(t, s, "1").Usage.CPUMS
	for round := range 30 { // each begins while copies are given back, or shortly before or after
		idle()
		time.Sleep(time.Duration(round) * 200 * time.Microsecond)
		o := Run(t, s, "kept.append(str(len(kept)))\nkept == [str(n) for n in range(len(kept))] and len(kept)")
		if want := fmt.Sprint(1001 + round); string(o.Result) != want {
			t.Fatalf("round %d: got %s, %s; want %s", round, o.Result, Why(o), want)
		}
	}
	if cpu > 100 {
		t.Errorf("CPU time of a run after copies were given back: got %v ms, want only that of the run", cpu)
	}
}

// Threads could write to a page while it is given back, so sessions with threads keep their copies.
func TestIdleSessionsWithThreadsKeepTheirCopies(t *testing.T) {
	i := Open(t, isolate.Config{MaxOpenIdle: 1})
	s := NewSession(t, i, nil)
	Run(t, s, "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")
	pid := processOf(t, s)
	other := NewSession(t, i, nil)
	Run(t, other, "1")
	otherPID := processOf(t, other)
	before, otherBefore := procfs.HeldBy(pid).OwnKB, procfs.HeldBy(otherPID).OwnKB
	if !canGiveBack(t, pid) {
		return
	}
	Run(t, NewSession(t, i, nil), "1")
	within(t, giveBackTimeout, func() string {
		if own := procfs.HeldBy(otherPID).OwnKB; own > otherBefore-300 {
			return fmt.Sprintf("the session without a thread, which comes second: got %d KB of its own, "+
				"want at least 300 less than %d", own, otherBefore)
		}
		return ""
	})
	// The thread may still begin and take some pages, but nothing is given back.
	if got := procfs.HeldBy(pid).OwnKB; got <= before-300 {
		t.Errorf("the memory of a session with a thread: got %d KB, want no less than %d, as before", got, before)
	}
}
