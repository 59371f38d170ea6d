package timing

import (
	"context"
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
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/isolatetest"
)

// rowHandler answers every query with 1000 rows.
type rowHandler struct{ isolatetest.Handler }

func (rowHandler) Query(
	_ context.Context,
	_, _ string,
	_ map[string]any,
	sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	column := make([]int64, 1000)
	for n := range column {
		column[n] = int64(n)
	}
	err := sink(sandbox.RowBatch{Columns: []sandbox.Column{{Name: "n", Type: "int8", Kind: "int"}},
		Data: []sandbox.ColumnValues{{Ints: column}}, Count: 1000})
	return sandbox.QuerySummary{Rows: 1000, Bytes: 9000}, err
}

// heapGrowth runs work and returns the peak growth of the heap in use during work, and the
// growth that was left afterwards, in bytes.
func heapGrowth(work func()) (peak, left int64) {
	defer debug.SetGCPercent(
		debug.SetGCPercent(20),
	) // with the default GC percentage, garbage would dominate the heap of a slow machine
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before := int64(stats.HeapInuse)
	done, measured := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(measured)
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
			peak = max(peak, int64(s.HeapInuse)-before)
		}
	}()
	work()
	close(done)
	<-measured
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return peak, int64(stats.HeapInuse) - before
}

// Invariant 16: any number of outputs, notes and queries takes a bounded part of the service's
// heap, and the policy sets the bound.
func TestFloodsKeepMemoryFlat(t *testing.T) {
	i := isolatetest.Open(t, isolate.Config{})
	flood := func(code string, change func(*policy.Policy)) (peak int64, e sandbox.Outcome) {
		s := isolatetest.NewSession(t, i, change)
		peak, _ = heapGrowth(func() {
			var err error
			e, err = isolatetest.RunWith(context.Background(), s, code, nil, rowHandler{})
			isolatetest.Must(t, err)
		})
		return peak, e
	}
	const maxGrowth = 24 << 20 // the floods of output, notes and queries send from 27 MB to 200 MB
	floods := map[string]string{
		"output":       "import os\nfor _ in range(%d): os.write(1, b'x' * 65536)",
		"errors":       "import os\nfor _ in range(%d): os.write(2, b'\\xff' * 65536)",
		"notes":        "for n in range(%d): debug('x' * 20000)",
		"inspected":    "for n in range(%d): inspect_var(f'v{n}', 'x' * 20000)",
		"queries":      "for n in range(%d): await db_query('SELECT 1')",
		"empty frames": "import os\nfor n in range(%d * 30): os.write(3, (2).to_bytes(4, 'big') + b'N{}')",
	}
	if testing.Short() {
		maps.DeleteFunc(floods, func(name, _ string) bool { return name != "output" && name != "notes" })
	}
	for name, code := range floods {
		t.Run(name, func(t *testing.T) {
			slow := func(p *policy.Policy) { p.MaxExecutionTime = 120 } // the test is not about time
			peak, e := flood(fmt.Sprintf(code, floodRounds), slow)
			if e.Status != sandbox.StatusCompleted {
				t.Errorf("got %s %s, want %s", e.Status, isolatetest.Why(e), sandbox.StatusCompleted)
			}
			if peak > maxGrowth {
				t.Errorf("growth of the service's heap: got %d MiB, want at most %d", peak>>20, maxGrowth>>20)
			}
		})
	}
	unlimited := func(p *policy.Policy) { p.MaxOutputSize = 64 << 20 }
	if peak, _ := flood("import os\nfor _ in range(1024): os.write(1, b'x' * 65536)", unlimited); peak < maxGrowth {
		t.Errorf(
			"growth without the limit on output: got %d MiB, want more than %d, or the test proves nothing",
			peak>>20,
			maxGrowth>>20,
		)
	}
}

// Invariant 12: a forged frame can only end the child. It leaks no memory, goroutine or
// descriptor in the service.
func TestForgedFramesHarmOnlyTheChild(t *testing.T) {
	i := isolatetest.Open(t, isolate.Config{})
	s := isolatetest.NewSession(t, i, func(p *policy.Policy) { p.MaxExecutionTime = 1 })
	const frame = `import os, socket, array
def frame(kind, body=b'', size=None):
    return (len(body) if size is None else size).to_bytes(4, 'big') + kind + body
`
	var codes []string
	for _, kind := range "ERPXDAJMNSLVQ\x00" {
		for _, body := range []string{`b""`, `b"{"`, `b"[]"`, `b"\xff" * 100`, `b"[" * 100000`,
			`b'{"id": -1, "what": "query", "sql": 5}'`, `b'{"id":1,"what":"nothing"}'`} {
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
	isolatetest.Run(t, s, "1")
	goroutines, fds := runtime.NumGoroutine(), countDescriptors()
	peak, left := heapGrowth(func() {
		for _, code := range codes {
			isolatetest.Run(t, s, frame+code)
		}
	})
	if e := isolatetest.Run(t, s, "6 * 7"); string(e.Result) != "42" {
		t.Errorf("the next run: got %s %s, want 42", e.Status, e.Result)
	}
	if peak > 16<<20 || left > 4<<20 {
		t.Errorf(
			"growth of the service's heap: got %d MiB, of which %d were left; want at most 16 and 4",
			peak>>20,
			left>>20,
		)
	}
	// One more child than before may wait in the pool, and the session may hold more descriptors, as it ran just now.
	// The programs are many more.
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > goroutines+2 || countDescriptors() > fds+24 {
		runtime.Gosched()
		if time.Now().After(deadline) {
			t.Fatalf(
				"got %d goroutines and %d descriptors, had %d and %d",
				runtime.NumGoroutine(),
				countDescriptors(),
				goroutines,
				fds,
			)
		}
	}
}

// countDescriptors counts this process's descriptors, except for the files of control
// groups, which reused groups keep open.
func countDescriptors() (n int) {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil &&
			!strings.HasPrefix(target, "/sys/fs/cgroup/") {
			n++
		}
	}
	return n
}
