package isolatetest

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// pageTables reads one page in each 2 MiB of a huge mapping. Each is the same page of zeros, but the kernel needs a
// page of page table for it. The memory stays in use while the process is stopped.
const pageTables = `
import mmap
held = mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)  # MAP_NORESERVE
held.madvise(15)  # MADV_NOHUGEPAGE
for address in range(0, len(held), 2 << 20): held[address]
`

// Invariant 10: a run that exceeds a limit ends with that limit's name, and the session can
// run the next code.
func TestExceededLimitIsNamed(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	level, _ := i.Level()
	small := func(p *policy.Policy) { p.MaxMemoryMB = 64 }
	oneSecond := func(p *policy.Policy) { p.MaxExecutionTime = 1 }
	type limit struct {
		name, code, status, endedBy, message string
		change                               func(*policy.Policy)
	}
	limits := []limit{
		{"time", "while True: pass", "timeout", "max_execution_time", "", oneSecond},
		{"time, interrupts ignored", "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
			"timeout", "max_execution_time", "", oneSecond},
		{"one huge array", "import numpy as np\nnp.ones(10**9)", "failed", "", "MemoryError", nil},
		{"page tables", pageTables, "killed", "max_memory_mb", "", small},
		{"files", "held = [open('/dev/null') for _ in range(1000)]", "failed", "", "Too many open files", nil},
		{"workspace", "open('big', 'wb').write(b'x' * (80 << 20))", "failed", "", "OSError", nil},
		{"exit", "import os\nsum(range(10**6))\nos._exit(3)", "killed", "exit", "", nil},
		{"crash", "import ctypes\nctypes.string_at(0)", "killed", "SIGSEGV", "", nil},
		{"forged frame", "import os\nos.write(3, b'\\xff' * 4096)\nwhile True: pass", "killed", "protocol", "", nil},
	}
	inodes := limit{"inodes", "for n in range(100000): open(f'{n}', 'w').close()", "failed", "", "No space left", nil}
	if !hasNamespaces(level) {
		inodes.status, inodes.endedBy, inodes.message = "killed", "workspace_max_inodes", ""
		inodes.change = func(p *policy.Policy) { p.MaxExecutionTime = 120 } // on a busy machine measuring takes long
	}
	limits = append(limits, inodes)
	if level == isolate.LevelFull {
		limits = append(
			limits,
			limit{"memory", "x = []\nwhile True: x.append(bytearray(10**6))", "killed", "max_memory_mb", "", nil},
		)
	}
	for _, c := range limits {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := NewSession(t, i, c.change)
			e := Run(t, s, c.code)
			if string(e.Status) != c.status || e.Usage.EndedBy != c.endedBy || !strings.Contains(Why(e), c.message) {
				t.Errorf("got %s, ended by %q, %q (%s); want %s, %q, %q",
					e.Status, e.Usage.EndedBy, Why(e), e.Stderr, c.status, c.endedBy, c.message)
			}
			if c.status == "killed" && !e.SessionReset {
				t.Error("SessionReset after a kill: got false, want true")
			}
			if e.Usage.CPUMS <= 0 || level == isolate.LevelFull && e.Usage.PeakMemoryMB <= 0 {
				t.Errorf("usage: got %+v, want CPU time and memory", e.Usage)
			}
			if again := Run(t, s, "6 * 7"); string(again.Result) != "42" {
				t.Errorf("the next run: got %s %s, want 42", again.Status, again.Result)
			}
		})
	}
}

// Variables and files survive an interrupt. Only files survive a kill.
func TestSessionSurvivesInterruptAndKill(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), func(p *policy.Policy) { p.MaxExecutionTime = 1 })
	reset := true
	for try := 0; reset && try < 3; try++ { // on a busy machine the interrupt may come too late
		Run(t, s, "x = 1\nopen('kept', 'w').write('k')")
		reset = Run(t, s, "while True: pass").SessionReset
	}
	if reset {
		t.Error("SessionReset after an interrupt: got true, want false")
	}
	if e := Run(t, s, "x"); string(e.Result) != "1" {
		t.Errorf("x after an interrupt: got %s, want 1", e.Result)
	}
	if e := Run(t, s, "import os\nos._exit(0)"); !e.SessionReset {
		t.Error("SessionReset after an exit: got false, want true")
	}
	if e := Run(t, s, "open('kept').read() + str('x' in globals())"); string(e.Result) != `"kFalse"` {
		t.Errorf(`files and variables after an exit: got %s (%s), want "kFalse"`, e.Result, Why(e))
	}
}

// Limits that the kernel enforces on one level and the service on another hold on all.
// The package timing has the test of cpu_percent.
func TestLimitsHoldOnEveryLevel(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	by := i.Isolation().EnforcedBy
	for key := range strings.FieldsSeq("max_execution_time cpu_percent max_memory_mb max_open_files max_threads max_processes " +
		"max_output_size workspace_max_bytes workspace_max_inodes file_max_bytes lifetime idle_timeout") {
		if by[key] == "" || by[key] == "none" {
			t.Errorf("%s is enforced by: got %q", key, by[key])
		}
	}
	t.Run("threads", func(t *testing.T) {
		t.Parallel()
		s := NewSession(t, i, func(p *policy.Policy) { p.MaxThreads = 4 })
		e := Run(t, s, `
import threading, time
threading.stack_size(64 << 10)
for _ in range(50):
    threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
    time.sleep(0.01)`)
		if e.Usage.EndedBy != "max_threads" &&
			(e.Exception == nil || !strings.Contains(e.Exception.Message, "thread")) {
			t.Errorf("50 threads, at most 4: got %s, ended by %q, %s", e.Status, e.Usage.EndedBy, Why(e))
		}
	})
	t.Run("workspace", func(t *testing.T) {
		t.Parallel()
		s := NewSession(t, i, func(p *policy.Policy) { p.WorkspaceMaxBytes = 48 << 20 })
		e := Run(t, s, "open('kept', 'w').write('k')")
		if e.Status != sandbox.StatusCompleted {
			t.Fatalf("writing a small file: got %s %s", e.Status, Why(e))
		}
		e = Run(
			t,
			s,
			// Slowly: where the service measures the workspace, it empties one that has grown to twice its limit.
			"import time\nfor n in range(200):\n    open(f'{n}', 'wb').write(b'x' * (1 << 20))\n    time.sleep(0.05)",
		)
		if e.Usage.EndedBy != "workspace_max_bytes" && !strings.Contains(Why(e), "No space left") {
			t.Errorf("200 MB, at most 48: got %s, ended by %q, %s", e.Status, e.Usage.EndedBy, Why(e))
		}
		e = Run(t, s, "import os\n[os.remove(f) for f in os.listdir('.') if f.isdigit()]\nopen('kept').read()")
		if e.Status != sandbox.StatusCompleted {
			t.Errorf("removing files from a full workspace: got %s %s", e.Status, Why(e))
		}
	})
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := NewSession(t, i, func(p *policy.Policy) { p.MaxMemoryMB = 64 })
		e := Run(t, s, "held = []\nfor _ in range(1000): held.append(bytearray(1 << 20))")
		if e.Usage.EndedBy != "max_memory_mb" && (e.Exception == nil || e.Exception.Type != "MemoryError") {
			t.Errorf("1000 MB, at most 64: got %s, ended by %q, %s", e.Status, e.Usage.EndedBy, Why(e))
		}
	})
}

// A child sends a forged Done frame and then reads nothing, so the socket fills up. Its next
// run ends at its time limit, and so does a request for a check.
func TestChildThatReadsNothingTimesOut(t *testing.T) {
	t.Parallel()
	s := NewSession(t, Shared(t), func(p *policy.Policy) { p.MaxExecutionTime = 1 })
	inTime := func(do func() error) error {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- do() }()
		select {
		case err := <-done:
			return err
		case <-time.After(2 * time.Minute):
			t.Fatal("got no end within two minutes, want one at the limit of 1 s")
			return nil
		}
	}
	run := func(code string) (e sandbox.Outcome) {
		t.Helper()
		Must(t, inTime(func() (err error) {
			e, err = RunWith(context.Background(), s, code, json.RawMessage("{}"), Handler{})
			return err
		}))
		return e
	}
	largerThanTheSocket := "'" + strings.Repeat("x", 4<<20) + "'"
	for _, next := range []func(){
		func() {
			if e := run(largerThanTheSocket); e.Status != sandbox.StatusTimeout || !e.SessionReset {
				t.Errorf("a run: got %s %s, want %s and a reset", e.Status, Why(e), sandbox.StatusTimeout)
			}
		},
		func() {
			err := inTime(func() error { _, err := s.Check(context.Background(), largerThanTheSocket); return err })
			if err == nil {
				t.Error("a check: got an answer from a process that reads nothing")
			}
		},
	} {
		e := run(`import os, time
os.write(3, (23).to_bytes(4, "big") + b'D{"result": "I am done"}')
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass`)
		if string(e.Result) != `"I am done"` {
			t.Fatalf("a forged answer: got %s %s %s", e.Status, e.Result, Why(e))
		}
		next()
	}
	if e := run("1 + 1"); string(e.Result) != "2" {
		t.Errorf("the next run: got %s %s, want 2", e.Status, Why(e))
	}
}

// forgedFrames defines frame(kind, body) in Python, which sends a frame of the protocol.
const forgedFrames = `import os, struct, time
def frame(kind, body):
    rest = memoryview(struct.pack('>IB', len(body), ord(kind)) + body)
    while rest: rest = rest[os.write(3, rest):]
`

// Invariant 12: forged frames do not change the counts of the service, and history stores no
// more forged frames than genuine ones.
func TestForgedCountsAreBounded(t *testing.T) {
	t.Parallel()
	i := Shared(t)
	run := func(code string) sandbox.Outcome { return Run(t, NewSession(t, i, nil), forgedFrames+code) }

	e := run(`for _ in range(40): frame("N", b'{"message": "' + b"x" * 1_000_000 + b'"}')`)
	if e.Status != sandbox.StatusCompleted || len(e.DebugInfo.Logs) != 16 || e.Truncated["notes"] != 24 {
		t.Errorf(
			"40 notes of 1 MB: got %s, %d notes, truncated %v; want 16 notes and 24 truncated",
			e.Status,
			len(e.DebugInfo.Logs),
			e.Truncated,
		)
	}
	e = run(`frame("D", b'{"result": 1, "truncated": {"outputs": 2, "result": -3, "queries": -4, "nonsense": 5}}')`)
	if want := map[string]int64{"outputs": 2}; !maps.Equal(e.Truncated, want) {
		t.Errorf("forged counts: got %v, want %v", e.Truncated, want)
	}
	e = run(`
for _ in range(70): frame("O", b'{"role": "display", "data": {"text/plain": "x"}}')
frame("D", b'{"truncated": {"outputs": 9223372036854775807}}')`)
	if len(e.Outputs) != 61 || e.Truncated["outputs"] < 1<<50 {
		t.Errorf(
			"70 outputs and a huge count: got %d outputs, truncated %v; want 61 and no overflow",
			len(e.Outputs),
			e.Truncated,
		)
	}
	e = run(`
for n in (50, 51, 1_000_000):
    frame("O", b'{"role": "display", "data": {' + b",".join(b'"%x": 0' % i for i in range(n)) + b'}}')
frame("O", b'{"role": "display", "data": {"application/json": ' + b"[" * 600 + b"]" * 600 + b'}}')`)
	if e.Status != sandbox.StatusCompleted || len(e.Outputs) != 1 || len(e.Outputs[0].Data) != 50 ||
		e.Truncated["outputs"] != 3 {
		t.Errorf(
			"outputs that are too large: got %s, %d outputs, truncated %v; want one output and 3 truncated",
			e.Status,
			len(e.Outputs),
			e.Truncated,
		)
	}
	for name, forged := range map[string]string{
		"a deep result":     `b'{"result": ' + b"[" * 600 + b"]" * 600 + b'}'`,
		"a thousand counts": `b'{"truncated": {' + b",".join(b'"%x": 1' % i for i in range(1000)) + b'}}'`,
		"a million frames":  `b'{"exception": {"type": "X", "traceback": [' + b"{}," * 1_000_000 + b"{}]}}"`,
	} {
		if e = run(`frame("D", ` + forged + `); time.sleep(10)`); e.Status != sandbox.StatusKilled ||
			e.Usage.EndedBy != "protocol" {
			t.Errorf("%s: got %s, ended by %q; want killed by protocol", name, e.Status, e.Usage.EndedBy)
		}
	}
}
