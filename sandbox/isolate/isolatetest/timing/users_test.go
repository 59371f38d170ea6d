package timing

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/isolatetest"
	"glasshouse/sandbox/supervisor"
)

// Two users share the CPUs equally, however many loops one of them runs.
func TestUsersShareCPUTime(t *testing.T) {
	loops := map[string]int{"many": 12, "few": 2}
	used := loopTimes(t, nil, loops)
	share := used["few"] / (used["few"] + used["many"])
	if share < 0.4 || share > 0.6 { // one seventh without sharing
		t.Errorf("%d loops of a user next to %d of another: got %.2f of the CPU time, want about 0.5",
			loops["few"], loops["many"], share)
	}
}

// A user with the weight 3 gets three times the CPU time of another.
func TestUsersShareCPUTimeByWeight(t *testing.T) {
	users := new(limit.Users)
	users.Seen("heavy", 3)
	used := loopTimes(t, users, map[string]int{"heavy": 4, "light": 8})
	share := used["heavy"] / (used["heavy"] + used["light"])
	if share < 0.65 || share > 0.85 { // one third without sharing, one half without weights
		t.Errorf("loops of a user with three times the weight of another: got %.2f of the CPU time, want about 0.75",
			share)
	}
}

// runOnOneCPU makes what this process starts until the end of the test run on one CPU. There, the kernel divides time
// by priority only. With several CPUs, it also depends on which other processes of the machine run on which CPU.
func runOnOneCPU(t *testing.T) {
	t.Helper()
	var before, one unix.CPUSet
	isolatetest.Must(t, unix.SchedGetaffinity(0, &before))
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	set := func(cpus *unix.CPUSet) {
		threads, _ := os.ReadDir("/proc/self/task")
		for _, thread := range threads {
			if tid, err := strconv.Atoi(thread.Name()); err == nil {
				_ = unix.SchedSetaffinity(tid, cpus) // the thread may have ended
			}
		}
	}
	set(&one)
	t.Cleanup(func() { set(&before) })
}

// startLine answers the query of each run when all runs have sent theirs.
type startLine struct {
	isolatetest.Handler
	missing *atomic.Int64 // runs
	begin   chan struct{}
}

func (l startLine) Query(
	ctx context.Context, database, sql string, params map[string]any, sink sandbox.RowSink,
) (sandbox.QuerySummary, error) {
	if l.missing.Add(-1) == 0 {
		close(l.begin)
	}
	select {
	case <-l.begin:
		return rowHandler{}.Query(ctx, database, sql, params, sink)
	case <-ctx.Done():
		return sandbox.QuerySummary{}, ctx.Err()
	}
}

// loop returns the CPU time of 5 s of a loop. The CPU time to start does not count: on a busy machine, it is as much,
// and it depends on the number of loops.
const loop = `import time
await db_query("begin")
began, end = time.process_time(), time.monotonic() + 5
while time.monotonic() < end:
    pass
time.process_time() - began`

// loopTimes runs a number of loops of each user at the same time, and returns the CPU time of each user in seconds.
func loopTimes(t *testing.T, users *limit.Users, loops map[string]int) map[string]float64 {
	t.Helper()
	runOnOneCPU(t)
	isolator := isolatetest.Open(t, isolate.Config{Users: users})
	const patient = 2 * time.Minute // a busy machine takes long to start Python
	s := supervisor.New(isolator, patient)
	sessions := map[*supervisor.Session]string{} // with their users
	for user, n := range loops {
		for range n {
			p := isolatetest.Policy()
			p.CPUPercent, p.MaxExecutionTime = 100, int(patient.Seconds())
			session, err := s.Open(context.Background(), sandbox.Sandbox{ID: "t", Owner: user, Policy: p}, "")
			isolatetest.Must(t, err)
			defer session.Close()
			sessions[session] = user
		}
	}
	line := startLine{missing: new(atomic.Int64), begin: make(chan struct{})}
	line.missing.Store(int64(len(sessions)))
	used := map[string]float64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for session, user := range sessions {
		all.Go(func() {
			outcome, err := isolatetest.RunWith(context.Background(), session, loop, nil, line)
			var seconds float64
			if err == nil && outcome.Status == sandbox.StatusCompleted {
				err = json.Unmarshal(outcome.Result, &seconds)
			}
			if err != nil || seconds == 0 {
				t.Errorf("a loop of %s: got %s %s, %v", user, outcome.Status, isolatetest.Why(outcome), err)
			}
			mu.Lock()
			defer mu.Unlock()
			used[user] += seconds
		})
	}
	all.Wait()
	t.Logf("CPU time in seconds: %v", used)
	return used
}
