package timing

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/isolate/isolatetest"
	"glasshouse/sandbox/supervisor"
)

// Two users share the CPUs equally, however many loops one of them runs.
func TestUsersShareCPUTime(t *testing.T) {
	loops := map[string]int{"many": 6 * runtime.NumCPU(), "few": runtime.NumCPU()}
	used := loopTimes(t, isolatetest.Shared(t), loops)
	share := used["few"] / (used["few"] + used["many"])
	if share < 0.35 { // one seventh without sharing
		t.Errorf("%d loops of a user next to %d of another: got %.2f of the CPU time, want at least 0.35",
			loops["few"], loops["many"], share)
	}
}

// A user with the weight 3 gets three times the CPU time of another.
func TestUsersShareCPUTimeByWeight(t *testing.T) {
	users := new(limit.Users)
	users.Seen("heavy", 3)
	loops := map[string]int{"heavy": 2 * runtime.NumCPU(), "light": 4 * runtime.NumCPU()}
	used := loopTimes(t, isolatetest.Open(t, isolate.Config{Users: users}), loops)
	share := used["heavy"] / (used["heavy"] + used["light"])
	if share < 0.57 || share > 0.9 { // one third without sharing, one half without weights
		t.Errorf("loops of a user with three times the weight of another: got %.2f of the CPU time, want about 0.75",
			share)
	}
}

// loopTimes runs a number of endless loops of each user for 5 s, and returns the CPU time of each user in ms.
func loopTimes(t *testing.T, isolator *isolate.Isolator, loops map[string]int) map[string]float64 {
	t.Helper()
	s := supervisor.New(isolator, 20*time.Second)
	used := map[string]float64{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for user, n := range loops {
		for range n {
			p := isolatetest.Policy()
			p.CPUPercent, p.MaxExecutionTime = 100, 5
			session, err := s.Open(context.Background(), sandbox.Sandbox{ID: "t", Owner: user, Policy: p}, "")
			isolatetest.Must(t, err)
			defer session.Close()
			all.Go(func() {
				outcome, err := isolatetest.RunWith(
					context.Background(),
					session,
					"while True: pass",
					nil,
					isolatetest.Handler{},
				)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				used[user] += outcome.Usage.CPUMS
			})
		}
	}
	all.Wait()
	t.Logf("CPU time in ms: %v", used)
	return used
}
