package timing

import (
	"context"
	"testing"
	"time"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate/isolatetest"
)

func TestCPUShareHolds(t *testing.T) {
	s := isolatetest.NewSession(t, isolatetest.Shared(t), func(p *policy.Policy) { p.CPUPercent = 20 })
	e := isolatetest.Run(t, s, "import time\nend = time.time() + 3\nwhile time.time() < end: pass")
	if e.Status != sandbox.StatusCompleted || e.Usage.CPUMS > 1200 { // 20 % of 3 s, plus a period's share at both ends
		t.Errorf(
			"a share of 20%%: got %.0f ms of CPU in %.0f ms (%s), want at most 1200",
			e.Usage.CPUMS,
			e.Usage.WallMS,
			e.Status,
		)
	}
}

// Invariant 11: a run that blocks every signal ends within half a second of its time
// limit, and within 50 ms of a cancel. The fastest of several runs counts, because a busy
// machine may delay single runs.
func TestTimeLimitAndCancelAreExact(t *testing.T) {
	i := isolatetest.Shared(t)
	const code = "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: time.sleep(1)"
	const maxWall = 1500 * time.Millisecond
	fastest := time.Hour
	for try := 0; try < 3 && fastest > maxWall; try++ {
		e := isolatetest.Run(t, isolatetest.NewSession(t, i, func(p *policy.Policy) { p.MaxExecutionTime = 1 }), code)
		if e.Status != sandbox.StatusTimeout {
			t.Errorf("a run beyond its time: got %s, want %s", e.Status, sandbox.StatusTimeout)
		}
		fastest = min(fastest, time.Duration(e.Usage.WallMS*float64(time.Millisecond)))
	}
	if fastest > maxWall {
		t.Errorf("the fastest of three runs with a limit of 1 s: got %s, want at most %s", fastest, maxWall)
	}
	const maxCancel = 50 * time.Millisecond
	fastest = time.Hour
	for try := 0; try < 5 && fastest > maxCancel; try++ {
		s := isolatetest.NewSession(t, i, nil)
		ctx, cancel := context.WithCancel(context.Background())
		var cancelled time.Time
		time.AfterFunc(50*time.Millisecond, func() { cancelled = time.Now(); cancel() })
		e, err := isolatetest.RunWith(ctx, s, code, nil, isolatetest.Handler{})
		isolatetest.Must(t, err)
		fastest = min(fastest, time.Since(cancelled))
		if e.Status != sandbox.StatusCancelled {
			t.Errorf("a cancelled run: got %s, want %s", e.Status, sandbox.StatusCancelled)
		}
	}
	if fastest > maxCancel {
		t.Errorf("the fastest of five cancels: got %s, want at most %s", fastest, maxCancel)
	}
}
