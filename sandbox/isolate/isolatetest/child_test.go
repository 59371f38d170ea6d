package isolatetest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/layer"
)

// childState is the state that a child reads about itself.
type childState struct {
	Dumpable    int      `json:"dumpable"`
	NoNewPrivs  int      `json:"no_new_privs"`
	Filter      int      `json:"filter"`
	Bounding    int      `json:"bounding"`
	Root        bool     `json:"root"`
	PID         int      `json:"pid"`
	Host        string   `json:"host"`
	Descriptors []int    `json:"descriptors"`
	Environment []string `json:"environment"`
}

const childStateCode = `
import ctypes, os
fds = []
for fd in range(1024):
    try:
        os.fstat(fd)
        fds.append(fd)
    except OSError:
        pass
p = ctypes.CDLL(None).prctl
{"dumpable": p(3, 0, 0, 0, 0), "no_new_privs": p(39, 0, 0, 0, 0), "filter": p(21, 0, 0, 0, 0), "bounding": sum(p(23, c, 0, 0, 0) == 1 for c in range(41)),
 "root": os.getuid() == 0, "pid": os.getpid(), "host": os.uname().nodename, "descriptors": fds, "environment": sorted(os.environ)}`

// Invariants 3 and 4: a child's privileges, descriptors and environment are fixed, and each
// of them differs if its layer is left out.
func TestChildStateIsFixed(t *testing.T) {
	t.Parallel()
	stateWithout := func(t *testing.T, layers ...layer.Layer) (c childState) {
		t.Helper()
		Must(t, json.Unmarshal(Run(t, NewSession(t, OpenWithout(t, layers...), nil), childStateCode).Result, &c))
		return c
	}
	got := stateWithout(t)
	want := childState{
		NoNewPrivs:  1,
		Filter:      2,
		Root:        os.Geteuid() != 0,
		PID:         1,
		Host:        "glasshouse",
		Descriptors: []int{0, 1, 2, 3},
		Environment: strings.Fields(
			"ARROW_DEFAULT_MEMORY_POOL HOME JOBLIB_MULTIPROCESSING LANG LOGNAME MKL_NUM_THREADS MPLBACKEND " +
				"MPLCONFIGDIR NUMEXPR_NUM_THREADS OMP_NUM_THREADS OMP_THREAD_LIMIT OPENBLAS_NUM_THREADS PATH TMPDIR " +
				"TZ USER",
		),
	}
	if !HasNamespaces() {
		want.PID, want.Host, want.Root = got.PID, got.Host, false
		if os.Geteuid() != 0 {
			want.Bounding = got.Bounding // an ordinary user can neither drop nor use it
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, c := range []struct {
		without []layer.Layer
		changes func(childState) bool
	}{
		{[]layer.Layer{layer.Descriptors}, func(c childState) bool { return len(c.Descriptors) > 4 }},
		{[]layer.Layer{layer.Dumpable}, func(c childState) bool { return c.Dumpable == 1 }},
		{[]layer.Layer{layer.Seccomp}, func(c childState) bool { return c.Filter == 0 }},
		{[]layer.Layer{layer.NoNewPrivs, layer.Seccomp, layer.Landlock}, func(c childState) bool { return c.NoNewPrivs == 0 }},
		{[]layer.Layer{layer.Capabilities}, func(c childState) bool { return c.Bounding > 0 }},
		{[]layer.Layer{layer.UID}, func(c childState) bool { return c.Root }},
		{[]layer.Layer{layer.PID}, func(c childState) bool { return c.PID != 1 }},
		{[]layer.Layer{layer.Environment}, func(c childState) bool { return slices.Contains(c.Environment, tokenVariable) }},
	} {
		// The level does not have the layer, or the child cannot see its effect: the zygote is not root either.
		unseen := slices.ContainsFunc([]layer.Layer{layer.PID, layer.Environment, layer.UID},
			func(l layer.Layer) bool { return slices.Contains(c.without, l) })
		if !HasNamespaces() && (unseen || os.Geteuid() != 0) {
			continue
		}
		t.Run(fmt.Sprintf("without %v", c.without), func(t *testing.T) {
			t.Parallel()
			if got := stateWithout(t, c.without...); !c.changes(got) {
				t.Errorf("got the same state as with the layer: %+v", got)
			}
		})
	}
}

// A waiting child rehearses a run, and a zygote runs whole programs before it forks. User
// code must not see names or sources of these runs.
func TestFirstRunFindsNoLeftovers(t *testing.T) {
	t.Parallel()
	e := Run(t, NewSession(t, Shared(t), nil), `
[name for name in ("n", "time") if name in globals()] + [f for f in __import__("linecache").cache if f.startswith("<exec")]`)
	if want := `["<execution 1>"]`; string(e.Result) != want {
		t.Errorf("names and sources of earlier runs: got %s (%s), want %s", e.Result, Why(e), want)
	}
}

//go:embed testdata/syscalls_amd64.txt
var listedCalls string

// Invariant 5: only the listed system calls reach the kernel. The test makes all calls except
// those that end or stop the caller; these are in the list.
func TestOnlyListedSystemCallsPass(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Log("report: not tested, because the list of system calls is for amd64: the sweep of all numbers")
		return
	}
	var listed []int
	for field := range strings.FieldsSeq(listedCalls) {
		n, err := strconv.Atoi(field)
		Must(t, err)
		listed = append(listed, n)
	}
	const sweep = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
passed = []
bad = [ctypes.c_long(-1)] * 6
for n in range(1200):
    # rt_sigreturn, pause, fork, vfork, exit, exit_group; and uretprobe and uprobe,
    # which no filter sees: the kernel ends whoever calls them.
    if n in (15, 34, 57, 58, 60, 231, 335, 336):
        continue
    ctypes.set_errno(0)
    print(n)
    if libc.syscall(ctypes.c_long(n), *bad) >= 0 or ctypes.get_errno() not in (1, 38):
        passed.append(n)
passed`
	unlisted := func(i *isolate.Isolator) (calls []int) {
		e := Run(t, NewSession(t, i, nil), sweep)
		if err := json.Unmarshal(e.Result, &calls); err != nil || len(calls) < 50 {
			t.Fatalf(
				"the sweep: got %s %v; its last call is at the end of %s",
				e.Status,
				e.Error,
				e.Stdout[max(0, len(e.Stdout)-10):],
			)
		}
		return slices.DeleteFunc(calls, func(n int) bool { return slices.Contains(listed, n) })
	}
	if calls := unlisted(Shared(t)); len(calls) > 0 {
		t.Errorf("unlisted calls that reach the kernel: got %v, want none", calls)
	}
	if calls := unlisted(OpenWithout(t, layer.Seccomp)); len(calls) < 50 {
		t.Errorf("unlisted calls without the filter: got %v, want at least 50, or the sweep proves nothing", calls)
	}
}

// Invariant 9: random values differ between siblings, because each seeds its generators.
func TestRandomValuesDifferBetweenSandboxes(t *testing.T) {
	t.Parallel()
	const code = "import random, uuid, secrets\nimport numpy as np\n" +
		"[random.random(), uuid.uuid4().hex, secrets.token_hex(4), float(np.random.rand()), float(np.random.default_rng().random())]"
	countEqual := func(i *isolate.Isolator) (equal int) {
		var a, b []any
		Must(t, json.Unmarshal(Run(t, NewSession(t, i, nil), code).Result, &a))
		Must(t, json.Unmarshal(Run(t, NewSession(t, i, nil), code).Result, &b))
		for n := range a {
			if a[n] == b[n] {
				equal++
			}
		}
		return equal
	}
	if n := countEqual(Shared(t)); n > 0 {
		t.Errorf("equal values in two sandboxes: got %d, want none", n)
	}
	numpy := []isolate.WarmSet{{Name: "numpy", Modules: []string{"numpy"}, Pool: 1}}
	if n := countEqual(Open(t, isolate.Config{WarmSets: numpy, Without: layer.Set{layer.Reseed}})); n == 0 {
		t.Error("equal values without the seeding: got none, so the test shows nothing")
	}
}

func TestSandboxesShareNoFiles(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	const code = "import os\nopen('mine', 'a').write('x')\n[os.listdir(os.environ['TMPDIR']), os.path.getsize('mine')]"
	first, second := Run(t, NewSession(t, i, nil), code), Run(t, NewSession(t, i, nil), code)
	for _, e := range []string{string(first.Result), string(second.Result)} {
		if compact := strings.ReplaceAll(e, " ", ""); compact != "[[],1]" {
			t.Errorf("files of a fresh sandbox: got %s (%s), want [[],1]", e, Why(first))
		}
	}
}

// A thread of an earlier run that never waits is stopped between runs, too. Each thread
// counts the gaps of more than 0.15 s between two readings of its clock.
func TestGuestIsStoppedBetweenRuns(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	Run(t, s, `
import os, signal, threading, time
turns, gaps = [0, 0], [0, 0]
def go_on(k):
    last = time.monotonic()
    while True:
        for go in (lambda: os.kill(os.getpid(), signal.SIGCONT), lambda: signal.pthread_kill(threading.get_ident(), signal.SIGCONT)):
            try:
                go()
            except OSError:
                pass
        now = time.monotonic()
        gaps[k] += now - last > 0.15
        turns[k] += 1
        last = now
def fewest_gaps():
    had = list(turns)
    while any(now < then + 2 for now, then in zip(turns, had)):  # until both have noticed their last gap
        time.sleep(0.001)
    return min(gaps)
for k in range(2):
    threading.Thread(target=go_on, args=(k,), daemon=True).start()
`)
	for range 5 {
		before := Run(t, s, "fewest_gaps()").Result
		time.Sleep(300 * time.Millisecond) // the length of the stop that the threads must notice
		var a, b int
		after := Run(t, s, "fewest_gaps()").Result
		if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil || b <= a {
			t.Errorf("gaps in a thread's clock: got %s before the stop and %s after it, want more", before, after)
		}
	}
}

func TestClosedSessionHasNoProcess(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), nil)
	pid := processOf(t, s)
	s.Close()
	if Lives(pid) || s.Usage()["num_threads"] != 0 {
		t.Errorf(
			"after Close: got the process %d alive (%v), and the usage %v; want neither",
			pid,
			Lives(pid),
			s.Usage(),
		)
	}
}
