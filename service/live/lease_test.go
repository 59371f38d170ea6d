package live_test

import (
	"context"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/live"
	"glasshouse/service/servicetest"
)

func acquire(t *testing.T, f *servicetest.Fixture, id string) (context.Context, *live.Lease) {
	t.Helper()
	ctx, lease, err := f.Live.Acquire(t.Context(), ada, id)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, lease
}

// One run has a sandbox at a time. The next one gets it after the code has ended, and waits until the first is on
// record.
func TestSandboxIsLentToOneRunAtATime(t *testing.T) {
	t.Parallel()
	f := servicetest.Start(t)
	sb := f.Create(t, ada, "")
	_, first := acquire(t, f, sb.ID)
	_, _, err := f.Live.Acquire(t.Context(), ada, sb.ID)
	servicetest.WantFault(t, err, sandbox.FaultBusy)
	_, _, err = f.Live.Acquire(t.Context(), grace, sb.ID)
	servicetest.WantFault(t, err, sandbox.FaultNotFound)
	first.MarkIdle()
	released, acquired := false, make(chan struct{})
	go func() {
		defer close(acquired)
		_, second := acquire(t, f, sb.ID)
		if !released {
			t.Error("got the sandbox before the first run has released it")
		}
		second.Release()
	}()
	for tick := time.Tick(time.Millisecond); f.Live.SandboxStates()["busy"] == 0; <-tick { // until the second run waits
	}
	released = true
	first.Release()
	<-acquired
	if !f.Live.AwaitIdle(t.Context(), sb.ID) {
		t.Error("got a busy sandbox after both runs, want it idle")
	}
	f.Live.Close()
}

// The context of a run ends with its sandbox, and when somebody restarts Python there.
func TestRunEndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*servicetest.Fixture, string) error{
		"delete":  func(f *servicetest.Fixture, id string) error { return f.Live.Delete(t.Context(), ada, id) },
		"restart": func(f *servicetest.Fixture, id string) error { return f.Live.Restart(t.Context(), ada, id) },
	} {
		f := servicetest.Start(t)
		sb := f.Create(t, ada, "")
		ctx, lease := acquire(t, f, sb.ID)
		ended := make(chan error, 1)
		go func() { ended <- end(f, sb.ID) }()
		<-ctx.Done() // or the test times out
		lease.Release()
		if err := <-ended; err != nil {
			t.Errorf("%s: got %v, want the sandbox to be ended", name, err)
		}
		f.Live.Close()
	}
}

// A sandbox of a single run is closed after it, and nobody else finds it. Close waits for it, and there is none after
// Stop.
func TestSandboxOfOneRunIsClosed(t *testing.T) {
	t.Parallel()
	f := servicetest.Start(t)
	lease, err := f.Live.AcquireNew(ada, nil, "1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, isLive := f.Live.CurrentSandbox(lease.Sandbox.ID); isLive || !lease.Sandbox.Ephemeral {
		t.Errorf("got %+v, live: %v; want a sandbox that only the run has", lease.Sandbox, isLive)
	}
	f.Live.Stop()
	_, err = f.Live.AcquireNew(ada, nil, "1")
	servicetest.WantFault(t, err, sandbox.FaultFull)
	servicetest.WantFault(t, f.Live.Ready(), sandbox.FaultFull)
	if n := f.Code.Closed.Load(); n != 0 {
		t.Errorf("got %d closed sessions while the run has its own, want none", n)
	}
	lease.Release()
	f.Live.Close()
	if n := f.Code.Closed.Load(); n != 1 {
		t.Errorf("got %d closed sessions after Close, want 1", n)
	}
}
