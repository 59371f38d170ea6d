// Package isolatetest tries to get through the wall, under the profile that has no
// import rules, so that the kernel alone is tested.
package isolatetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
)

func TestMain(m *testing.M) {
	isolate.RunLauncher()
	contain()
	here()
	code := m.Run()
	closeShared()
	os.Exit(code)
}

// deaf is a desk with nobody at it.
type deaf struct{}

func (deaf) Query(context.Context, string, map[string]any, sandbox.RowSink) (sandbox.QuerySummary, error) {
	return sandbox.QuerySummary{}, &sandbox.Refusal{Reason: "none"}
}
func (deaf) Schema(context.Context, string) (sandbox.Table, error) { return sandbox.Table{}, nil }
func (deaf) Tables(context.Context) ([]string, error)              { return nil, nil }
func (deaf) History(context.Context) ([]sandbox.Execution, error)  { return nil, nil }

func raise(t *testing.T, level string) *isolate.Isolator {
	t.Helper()
	python := os.Getenv("GLASSHOUSE_PYTHON")
	if python == "" {
		t.Fatal("GLASSHOUSE_PYTHON must name the sandboxes' Python; scripts/test sets it")
	}
	if level == "" {
		if shared != nil {
			return shared
		}
		level = os.Getenv(levelKey) // TestEveryLevel names it
	}
	i, err := isolate.Open(isolate.Config{Python: python, WarmSets: []isolate.WarmSet{{Name: "numpy", Modules: []string{"numpy"}, Pool: 2}}, DefaultPolicy: policy.Default(), DataSets: programs(), Level: level, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	shared = i
	return i
}

// shared is the wall of the tests that need no other.
var shared *isolate.Isolator

func closeShared() {
	if shared != nil {
		shared.Close()
		shared = nil
	}
}

func open(t *testing.T, i *isolate.Isolator, change func(*policy.Policy)) *supervisor.Session {
	t.Helper()
	p := policy.Default()
	p.Profile, p.CPUPercent, p.MaxExecutionTime = policy.ProfileUnrestricted, 200, 20
	if change != nil {
		change(&p)
	}
	s, err := supervisor.New(i, 10*time.Second).Open(context.Background(), sandbox.Sandbox{ID: "t", Policy: p}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func run(t *testing.T, s *supervisor.Session, code string) sandbox.Outcome {
	t.Helper()
	request := supervisor.Request{ExecutionID: "e", Code: code, Context: json.RawMessage("{}")}
	e, err := s.Run(context.Background(), request, supervisor.Callbacks{Requests: deaf{}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// refused says that the code must fail, and with what.
const try = `
def attempt():
%s
try:
    got = attempt()
except BaseException as error:
    got = f"refused: {type(error).__name__}"
__result__ = got if isinstance(got, str) else repr(got)
`

// What a hostile program wants is not to be had. Each of these succeeds in a plain Python outside (as root).
func TestTheWallHolds(t *testing.T) {
	secret := fmt.Sprintf("%s/gh-secret-%d", os.TempDir(), os.Getpid())
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(secret)
	escapes := map[string]string{
		"read /etc/shadow":        `return open("/etc/shadow").read()`,
		"read the host's /etc":    `return open("/etc/hostname").read()`,
		"read a file of the host": `return open("` + secret + `").read()`,
		"read /proc":              `return open("/proc/self/environ").read()`,
		"list /root":              `import os; return os.listdir("/root")`,
		"write to the root":       `return open("/x", "w")`,
		"write to the library":    `import json; return open(json.__file__, "a")`,
		"write to our code":       `import sys; return open(sys.modules["processor_pipeline"].__file__, "a")`,
		"fork":                    `import os; return os.fork()`,
		"spawn":                   `import subprocess, sys; return subprocess.run([sys.executable, "-c", "1"])`,
		"exec":                    `import os; os.execv("/usr/bin/python3", ["x"])`,
		"inet socket":             `import socket; return socket.socket()`,
		"unix socket":             `import socket; return socket.socket(socket.AF_UNIX)`,
		"netlink socket":          `import socket; return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)`,
		"become root":             `import os; return os.setuid(0)`,
		"chroot":                  `import os; return os.chroot("/tmp")`,
		"raise limits":            `import resource; return resource.setrlimit(resource.RLIMIT_NOFILE, (5000, 5000))`,
		"make a device":           `import os; return os.mknod("/tmp/d", 0o020666, os.makedev(1, 1))`,
		"signal another":          `import os; return os.kill(2, 9)`,
		"mount":                   `return call(165, b"x", b"/tmp", b"tmpfs", 0, None)`,
		"unshare":                 `return call(272, 0x10000000)`,
		"ptrace":                  `return call(101, 0, 0, 0, 0)`,
		"bpf":                     `return call(321, 0, None, 0)`,
		"io_uring":                `return call(425, 8, None)`,
		"keyctl":                  `return call(250, 0, -3, 0)`,
		"userfaultfd":             `return call(323, 0)`,
		"memfd":                   `return call(319, b"x", 0)`,
		"personality":             `return call(135, 0x0040000)`,
		"open_by_handle":          `return call(304, 0, None, 0)`,
		"clone a namespace":       `return call(56, 0x10000000, 0, 0, 0, 0)`,
		"clone3":                  `return call(435, None, 0)`,
		"quotactl":                `return call(179, 0, None, 0, None)`,
	}
	helper := "import ctypes\ndef call(*a):\n    l = ctypes.CDLL(None, use_errno=True)\n    r = l.syscall(*a)\n    if r < 0: raise OSError(ctypes.get_errno())\n    return r\n"
	i := raise(t, "")
	level, _ := i.Level()
	s := open(t, i, nil)
	for name, body := range escapes {
		if level == isolate.LevelRLimits && opened[name] {
			continue
		}
		e := run(t, s, helper+fmt.Sprintf(try, "    "+strings.ReplaceAll(body, "; ", "\n    ")))
		if !strings.HasPrefix(string(e.Result), `"refused: `) {
			t.Errorf("%s: %s %s %s", name, e.Status, e.Result, e.Stderr)
		}
		if e.Isolation.Level != level {
			t.Fatalf("level reported: %q", e.Isolation.Level)
		}
	}
}

// opened are those that the level rlimits, which has no wall around files, lets pass
// where the machine's own permissions do.
var opened = map[string]bool{"read the host's /etc": true, "read a file of the host": true, "read /proc": true, "write to our code": true}

// What the process is, as it sees itself.
func TestTheChildIsBare(t *testing.T) {
	i := raise(t, "")
	level, _ := i.Level()
	s := open(t, i, nil)
	// Of the runs that were rehearsed nothing is seen: neither names nor sources.
	if e := run(t, s, `[name for name in ("n", "time") if name in globals()] + [f for f in __import__("linecache").cache if f.startswith("<exec")]`); string(e.Result) != `["<execution 1>"]` {
		t.Errorf("what a first run finds: %s %v", e.Result, e.Error)
	}
	e := run(t, s, `
import ctypes, os, socket
libc = ctypes.CDLL(None)
fds = []
for fd in range(100):
    try:
        os.fstat(fd); fds.append(fd)
    except OSError:
        pass
secrets = [k for k in os.environ if "KEY" in k or "TOKEN" in k or "GLASSHOUSE" in k]
{"fds": fds, "secrets": secrets, "dumpable": libc.prctl(3, 0, 0, 0, 0), "no_new_privs": libc.prctl(39, 0, 0, 0, 0), "seccomp": libc.prctl(21, 0, 0, 0, 0),
 "capabilities": [c for c in range(41) if libc.prctl(23, c, 0, 0, 0) == 1], "pid": os.getpid(), "host": socket.gethostname()}`)
	want := `{"fds": [0, 1, 2, 3], "secrets": [], "dumpable": 0, "no_new_privs": 1, "seccomp": 2, "capabilities": [], "pid": 1, "host": "glasshouse"}`
	var got, wanted map[string]any
	if json.Unmarshal(e.Result, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil {
		t.Fatalf("%s (%v)", e.Result, e.Exception)
	}
	if !private(level) { // no namespaces: and what has never had a capability can't give it up
		for _, key := range []string{"pid", "host", "capabilities"} {
			delete(got, key)
			delete(wanted, key)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("got %s\nwant %s (%v)", e.Result, want, e.Exception)
	}
}

func TestSiblingsShareNothing(t *testing.T) {
	i := raise(t, "")
	a, b := open(t, i, nil), open(t, i, nil)
	code := "import random, uuid, numpy as np, os\nopen('mine', 'a').write('x')\n(random.random(), str(uuid.uuid4()), float(np.random.rand()), os.listdir(os.environ['TMPDIR']), os.path.getsize('mine'))"
	first, second := run(t, a, code), run(t, b, code)
	if string(first.Result) == string(second.Result) || first.Exception != nil || !strings.Contains(string(second.Result), ", 1]") && !strings.Contains(string(second.Result), ",1]") {
		t.Errorf("%s and %s, %v", first.Result, second.Result, first.Exception)
	}
}

// Each limit ends a run by its own name, and the session goes on.
func TestLimitsAreNamed(t *testing.T) {
	i := raise(t, "")
	level, _ := i.Level()
	type limit struct {
		name, code, status, endedBy, says string
		change                            func(*policy.Policy)
	}
	inodes := limit{"inodes", "for n in range(100000): open(f'{n}', 'w').close()", "failed", "", "No space left", nil}
	if !private(level) {
		inodes.status, inodes.endedBy, inodes.says = "killed", "workspace_max_inodes", ""
	}
	for _, c := range []limit{
		{"time", "while True: pass", "timeout", "max_execution_time", "", func(p *policy.Policy) { p.MaxExecutionTime = 1 }},
		{"time, deaf to interrupts", "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "timeout", "max_execution_time", "", func(p *policy.Policy) { p.MaxExecutionTime = 1 }},
		{"one huge array", "import numpy as np\nnp.ones(10**9)", "failed", "", "MemoryError", nil},
		{"files", "held = [open('/dev/null') for _ in range(1000)]", "failed", "", "Too many open files", nil},
		{"workspace", "open('big', 'wb').write(b'x' * (80 << 20))", "failed", "", "OSError", nil},
		inodes,
		{"exit", "import os\nsum(range(10**6))\nos._exit(3)", "killed", "exit", "", nil},
		{"crash", "import ctypes\nctypes.string_at(0)", "killed", "SIGSEGV", "", nil},
		{"forged frame", "import os\nos.write(3, b'\\xff' * 4096)\nwhile True: pass", "killed", "protocol", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, i, c.change)
			began := time.Now()
			e := run(t, s, c.code)
			if string(e.Status) != c.status || e.Usage.EndedBy != c.endedBy || c.says != "" && (e.Error == nil || !strings.Contains(*e.Error, c.says)) {
				t.Errorf("%s, ended by %q, %v (%s)", e.Status, e.Usage.EndedBy, e.Error, e.Stderr)
			}
			if e.Usage.CPUMS <= 0 || level == isolate.LevelFull && e.Usage.PeakMemoryMB <= 0 {
				t.Errorf("it used %+v", e.Usage)
			}
			if took := time.Since(began); c.status == "timeout" && took > 10*time.Second { // a busy machine may take its time
				t.Errorf("a limit of 1 s ended after %s", took)
			}
			if again := run(t, s, "6 * 7"); string(again.Result) != "42" {
				t.Errorf("the next run: %s %s", again.Status, again.Result)
			}
		})
	}
	if level == isolate.LevelFull {
		e := run(t, open(t, i, nil), "x = []\nwhile True: x.append(bytearray(10**6))")
		if e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "max_memory_mb" || !e.SessionReset {
			t.Errorf("memory: %s, ended by %q", e.Status, e.Usage.EndedBy)
		}
	}
}

// After a kill the variables are gone and /session stays; after an interrupt both
// are there.
func TestWhatALimitLeaves(t *testing.T) {
	s := open(t, raise(t, ""), func(p *policy.Policy) { p.MaxExecutionTime = 1 })
	reset := true
	for try := 0; reset && try < 3; try++ { // a machine that is busy may take longer than the grace of an interrupt
		run(t, s, "x = 1\nopen('kept', 'w').write('k')")
		reset = run(t, s, "while True: pass").SessionReset
	}
	if reset {
		t.Error("an interrupted run reset the session")
	}
	if e := run(t, s, "x"); string(e.Result) != "1" {
		t.Errorf("x after an interrupt: %s", e.Result)
	}
	if e := run(t, s, "import os\nos._exit(0)"); !e.SessionReset {
		t.Error("a run that left did not reset the session")
	}
	if e := run(t, s, "open('kept').read() + str('x' in globals())"); string(e.Result) != `"kFalse"` {
		t.Errorf("after a kill: %s %v", e.Result, e.Error)
	}
}

// Nothing of a run goes on after its answer.
func TestNothingRunsAfterTheAnswer(t *testing.T) {
	s := open(t, raise(t, ""), nil)
	run(t, s, "import threading, time\nn = 0\ndef count():\n    global n\n    while True: n += 1\nthreading.Thread(target=count, daemon=True).start()")
	before := run(t, s, "n").Result
	time.Sleep(300 * time.Millisecond) // the time in which a thread would count
	after := run(t, s, "n").Result
	var a, b float64
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil || b-a > 3_000_000 {
		t.Errorf("a thread counted from %s to %s between runs", before, after)
	}
}

// What a run leaves behind can't undo the stop that comes after it.
func TestTheStopIsNotUndone(t *testing.T) {
	s := open(t, raise(t, ""), nil)
	run(t, s, `
import os, signal, threading, time
turns, halts = [0, 0], [0, 0]
def go_on(k):
    last = time.monotonic()
    while True:
        for go in (lambda: os.kill(os.getpid(), signal.SIGCONT), lambda: signal.pthread_kill(threading.get_ident(), signal.SIGCONT)):
            try:
                go()
            except OSError:
                pass
        now = time.monotonic()
        halts[k] += now - last > 0.15
        turns[k] += 1
        last = now
def stood():
    had = list(turns)
    while any(now < then + 2 for now, then in zip(turns, had)): # each has seen how long it stood
        time.sleep(0.001)
    return min(halts)
for k in range(2):
    threading.Thread(target=go_on, args=(k,), daemon=True).start()
`)
	for range 5 {
		before := run(t, s, "stood()").Result
		time.Sleep(300 * time.Millisecond) // in which they would go on
		var a, b int
		if after := run(t, s, "stood()").Result; json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil || b <= a {
			t.Errorf("between runs they went on: they have stood still %s times before, and %s after", before, after)
		}
	}
}

// The zygote's death ends its children, and another takes its place.
func TestCloseLeavesNothing(t *testing.T) {
	i := raise(t, "")
	s := open(t, i, nil)
	run(t, s, "1")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u["num_threads"] != 0 {
		t.Errorf("after Close: %v", u)
	}
}
