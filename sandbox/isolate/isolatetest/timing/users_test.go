package timing

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate/isolatetest"
	"glasshouse/sandbox/supervisor"
)

// Two users share the CPUs equally, however many loops one of them runs.
func TestUsersShareCPUTime(t *testing.T) {
	s := supervisor.New(isolatetest.Shared(t), 20*time.Second)
	loops := map[string]int{"many": 6 * runtime.NumCPU(), "few": runtime.NumCPU()}
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
	share := used["few"] / (used["few"] + used["many"])
	t.Logf("CPU time in ms: %v", used)
	if share < 0.35 { // one seventh without sharing
		t.Errorf("%d loops of a user beside %d of another: got %.2f of the CPU time, want at least 0.35",
			loops["few"], loops["many"], share)
	}
}
