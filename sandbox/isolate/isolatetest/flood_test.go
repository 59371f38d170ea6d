package isolatetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// busy is a desk that answers every query with some rows.
type busy struct{ deaf }

func (busy) Query(_ context.Context, _ string, _ map[string]any, sink sandbox.RowSink) (sandbox.QuerySummary, error) {
	column := make([]int64, 1000)
	for n := range column {
		column[n] = int64(n)
	}
	err := sink(sandbox.RowBatch{Columns: []sandbox.Column{{Name: "n", Type: "int8", Kind: "int"}}, Data: []sandbox.ColumnValues{{Ints: column}}, Count: 1000})
	return sandbox.QuerySummary{Rows: 1000, Bytes: 9000}, err
}

// peak runs work and returns the most heap that was in use meanwhile, beyond what
// was before, and what stayed of it.
func peak(work func()) (most, stayed int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(20)) // else a slow machine's garbage is most of it
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := int64(stats.HeapInuse)
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			most = max(most, int64(s.HeapInuse)-before)
		}
	}()
	work()
	close(done)
	<-over
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return most, int64(stats.HeapInuse) - before
}

// A child that says it is done and reads nothing has no room for more: its next run ends
// when its time is over, as any other, and so does a question.
func TestAChildThatReadsNothing(t *testing.T) {
	s := open(t, raiseWithout(t, []string{}), func(p *policy.Policy) { p.Profile, p.MaxExecutionTime = "unrestricted", 1 })
	ends := func(do func() error) error {
		t.Helper()
		over := make(chan error, 1)
		go func() { over <- do() }()
		select {
		case err := <-over:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("it goes on and on")
			return nil
		}
	}
	ask := func(code string) sandbox.Outcome {
		t.Helper()
		request := supervisor.Request{ExecutionID: "e", Code: code, Context: json.RawMessage("{}")}
		var e sandbox.Outcome
		must(t, ends(func() (err error) {
			e, err = s.Run(context.Background(), request, supervisor.Callbacks{Requests: busy{}})
			return err
		}))
		return e
	}
	large := "'" + strings.Repeat("x", 4<<20) + "'"
	for _, next := range []func(){
		func() {
			if e := ask(large); e.Status != sandbox.StatusTimeout || !e.SessionReset {
				t.Errorf("%s %v", e.Status, text(e.Error))
			}
		},
		func() {
			if err := ends(func() error { _, err := s.Check(context.Background(), large); return err }); err == nil {
				t.Error("it has an answer")
			}
		},
	} {
		e := ask(`import os, time
os.write(3, (23).to_bytes(4, "big") + b'D{"result": "I am done"}')
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass`)
		if string(e.Result) != `"I am done"` {
			t.Fatalf("%s %s %v", e.Status, e.Result, text(e.Error))
		}
		next()
	}
	if e := ask("1 + 1"); string(e.Result) != "2" {
		t.Errorf("the next one: %s %v", e.Status, text(e.Error))
	}
}

// Invariant 16: what code prints, notes and asks, however much, costs the service
// a bounded heap; and the bound is that of the policy.
func TestFloodsKeepMemoryFlat(t *testing.T) {
	i := raiseWithout(t, []string{})
	flood := func(code string, change func(*policy.Policy)) (most, stayed int64, e sandbox.Outcome) {
		s := open(t, i, change)
		request := supervisor.Request{ExecutionID: "e", Code: code, Context: json.RawMessage("{}")}
		most, stayed = peak(func() {
			var err error
			e, err = s.Run(context.Background(), request, supervisor.Callbacks{Requests: busy{}})
			must(t, err)
		})
		return most, stayed, e
	}
	const enough = 24 << 20 // of each of them, unbounded, a multiple would come
	for name, code := range map[string]string{
		"output":       "import os\nfor _ in range(2000): os.write(1, b'x' * 65536)",
		"errors":       "import os\nfor _ in range(2000): os.write(2, b'\\xff' * 65536)",
		"notes":        "for n in range(3000): debug('x' * 20000)",
		"inspected":    "for n in range(3000): inspect_var(f'v{n}', 'x' * 20000)",
		"queries":      "for n in range(3000): await db_query('SELECT 1')",
		"empty frames": "import os\nfor n in range(100000): os.write(3, (2).to_bytes(4, 'big') + b'N{}')",
	} {
		t.Run(name, func(t *testing.T) {
			most, _, e := flood(code, func(p *policy.Policy) { p.MaxExecutionTime = 120 }) // a slow machine is not what this is about
			if e.Status != sandbox.StatusCompleted {
				t.Errorf("%s %v", e.Status, *e.Error)
			}
			if most > enough {
				t.Errorf("the service's heap grew by %d MiB", most>>20)
			}
		})
	}
	most, _, _ := flood("import os\nfor _ in range(1024): os.write(1, b'x' * 65536)", func(p *policy.Policy) { p.MaxOutputSize = 64 << 20 })
	if most < enough {
		t.Errorf("without the limit on output the heap grew by %d MiB only: the test sees nothing", most>>20)
	}
}

// Invariant 12: no frame that a child can forge harms the service: it ends the child
// at most, and leaves no memory, goroutine or descriptor.
func TestForgedFramesEndTheChildAtMost(t *testing.T) {
	i := raiseWithout(t, []string{})
	s := open(t, i, func(p *policy.Policy) { p.MaxExecutionTime = 1 })
	const frame = "import os, socket, array\ndef frame(kind, body=b'', size=None):\n    return (len(body) if size is None else size).to_bytes(4, 'big') + kind + body\n"
	var codes []string
	for _, kind := range "ERPXDAJMNSLVQ\x00" {
		for _, body := range []string{`b""`, `b"{"`, `b"[]"`, `b"\xff" * 100`, `b"[" * 100000`, `b'{"id": -1, "what": "query", "sql": 5}'`, `b'{"id":1,"what":"nothing"}'`} {
			codes = append(codes, fmt.Sprintf("os.write(3, frame(bytes([%d]), %s))", kind, body))
		}
	}
	codes = append(codes,
		`os.write(3, frame(b"D", b"", 0xFFFFFFFF))`,
		`os.write(3, frame(b"D", b"x", 32 << 20))`,
		`os.write(3, b"\0\0")`+"\nos._exit(0)",
		`os.write(3, frame(b"N", b"{", 100))`+"\nos._exit(0)",
		`os.close(3)`,
		`socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_WR)`,
		`socket.socket(fileno=os.dup(3)).shutdown(socket.SHUT_RDWR)`,
		`socket.send_fds(socket.socket(fileno=os.dup(3)), [frame(b"N", b'{"message": "x"}')], [0, 1, 2] * 30)`,
		`[os.write(3, os.urandom(512)) for _ in range(100)]`,
	)
	run(t, s, "1")
	goroutines, fds := runtime.NumGoroutine(), descriptors()
	most, stayed := peak(func() {
		for _, code := range codes {
			run(t, s, frame+code)
		}
	})
	if e := run(t, s, "6 * 7"); string(e.Result) != "42" {
		t.Errorf("afterwards: %s %s", e.Status, e.Result)
	}
	if most > 16<<20 || stayed > 4<<20 {
		t.Errorf("the service's heap grew by %d MiB, of which %d stayed", most>>20, stayed>>20)
	}
	// One child more may wait in the pool than then, with its descriptors; each program that left one would be seen.
	// Control groups that are used again keep their files open, and are counted for themselves.
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines+2 || descriptors() > fds+8; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("goroutines %d, were %d; descriptors %d, were %d", runtime.NumGoroutine(), goroutines, descriptors(), fds)
		}
	}
}

// descriptors are those of this process, but for the files of control groups.
func descriptors() (n int) {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && !strings.HasPrefix(to, "/sys/fs/cgroup/") {
			n++
		}
	}
	return n
}

// What is forged does not change what the service has counted itself, and takes no more of
// history than what is honest.
func TestForgedNotesAndCounts(t *testing.T) {
	const frame = "import os, struct, time\ndef frame(kind, body):\n    rest = memoryview(struct.pack('>IB', len(body), ord(kind)) + body)\n    while rest: rest = rest[os.write(3, rest):]\n"
	s := open(t, raiseWithout(t, []string{}), nil)
	e := run(t, s, frame+`for _ in range(40): frame("N", b'{"message": "' + b"x" * 1_000_000 + b'"}')`)
	if e.Status != sandbox.StatusCompleted || len(e.DebugInfo.Logs) != 16 || e.Truncated["notes"] != 24 {
		t.Errorf("%s, %d notes, %v", e.Status, len(e.DebugInfo.Logs), e.Truncated)
	}
	e = run(t, s, frame+`frame("D", b'{"result": 1, "truncated": {"outputs": 2, "result": -3, "queries": -4, "nonsense": 5}}')`)
	if want := map[string]int64{"outputs": 2}; !maps.Equal(e.Truncated, want) {
		t.Errorf("truncated %v, not %v", e.Truncated, want)
	}
	e = run(t, open(t, raiseWithout(t, []string{}), nil), frame+`
for _ in range(60): frame("O", b'{"data": {"text/plain": "x"}}')
frame("D", b'{"truncated": {"outputs": 9223372036854775807}}')`)
	if len(e.Outputs) != 50 || e.Truncated["outputs"] < 1<<50 {
		t.Errorf("%d outputs, truncated %v", len(e.Outputs), e.Truncated)
	}
	e = run(t, open(t, raiseWithout(t, []string{}), nil), frame+`
for n in (50, 51, 1_000_000): frame("O", b'{"data": {' + b",".join(b'"%x": 0' % i for i in range(n)) + b'}}')
frame("O", b'{"data": {"application/json": ' + b"[" * 600 + b"]" * 600 + b'}}')`)
	if e.Status != sandbox.StatusCompleted || len(e.Outputs) != 1 || len(e.Outputs[0].Data) != 50 || e.Truncated["outputs"] != 3 {
		t.Errorf("%s, %d outputs, truncated %v", e.Status, len(e.Outputs), e.Truncated)
	}
	for name, forged := range map[string]string{
		"a deep result": `b'{"result": ' + b"[" * 600 + b"]" * 600 + b'}'`, "much that is missing": `b'{"truncated": {' + b",".join(b'"%x": 1' % i for i in range(1000)) + b'}}'`,
	} {
		e = run(t, open(t, raiseWithout(t, []string{}), nil), frame+`frame("D", `+forged+`); time.sleep(10)`)
		if e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "protocol" {
			t.Errorf("%s: %s, %s", name, e.Status, e.Usage.EndedBy)
		}
	}
	e = run(t, open(t, raiseWithout(t, []string{}), nil), frame+`frame("D", b'{"exception": {"type": "X", "traceback": [' + b"{}," * 1_000_000 + b"{}]}}"); time.sleep(10)`)
	if e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "protocol" {
		t.Errorf("a million frames: %s, %s", e.Status, e.Usage.EndedBy)
	}
}
