package run_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/servicetest"
)

// However many runs one user begins, another user's run begins at once.
func TestOneUserDoesNotTakeAllSlots(t *testing.T) {
	t.Parallel()
	f := servicetest.Start(t, func(c *servicetest.Config) { c.Runs.Parallel = 5 })
	run := func(ctx context.Context, caller sandbox.Key, code string) error {
		_, err := f.Runs.QuickExecute(ctx, caller, sandbox.Request{Code: code, Kind: sandbox.KindQuick}, nil)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	for range 4 { // as many as one user gets
		runs.Go(func() { _ = run(ctx, ada, "wait") })
		<-f.Code.Started
	}
	short, cancelShort := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancelShort()
	servicetest.WantFault(t, run(short, ada, "1"), sandbox.FaultGone) // it waits for a slot until its context ends
	if err := run(t.Context(), grace, "1"); err != nil {
		t.Errorf("another user: got %v, want the code to run", err)
	}
	cancel()
	runs.Wait()
	f.Runs.Drain(t.Context())
}

// While another user sends requests, a user's short runs wait for each other, beyond what they may take at once.
func TestShortRunsOfAUserTakeAShare(t *testing.T) {
	t.Parallel()
	users := new(limit.Users)
	f := servicetest.Start(t, func(c *servicetest.Config) {
		c.Runs.Parallel = 10_000 // no run waits for a slot
		c.Runs.Share = limit.NewShare(users, runtime.NumCPU())
	})
	users.Seen(grace.User, 1)
	var all sync.WaitGroup
	var mu sync.Mutex
	longest := 0.0
	for range 60 * runtime.NumCPU() { // a user may begin 18 for each CPU at once
		all.Go(func() {
			e, err := f.Runs.QuickExecute(t.Context(), ada, sandbox.Request{Code: "1", Kind: sandbox.KindQuick}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, e.Usage.QueueMS)
		})
	}
	all.Wait()
	if longest < 100 {
		t.Errorf("got a longest wait of %v ms, want more than 100", longest)
	}
	f.Runs.Drain(t.Context())
}

// The usage of a run has the time for which it waited for a slot.
func TestUsageHasTheWaitForASlot(t *testing.T) {
	t.Parallel()
	f := servicetest.Start(t, func(c *servicetest.Config) { c.Runs.Parallel = 1 })
	ctx, free := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() {
		_, _ = f.Runs.QuickExecute(ctx, ada, sandbox.Request{Code: "wait", Kind: sandbox.KindQuick}, nil)
	})
	<-f.Code.Started
	const wait = 500 * time.Millisecond
	time.AfterFunc(wait, free)
	began := time.Now()
	e, err := f.Runs.QuickExecute(t.Context(), ada, sandbox.Request{Code: "1", Kind: sandbox.KindQuick}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if most := float64(time.Since(began).Milliseconds() + 1); e.Usage.QueueMS <= 0.5*float64(wait.Milliseconds()) ||
		e.Usage.QueueMS > most {
		t.Errorf("got a wait of %v ms for a slot, want about %v and at most %v", e.Usage.QueueMS, wait, most)
	}
	runs.Wait()
	f.Runs.Drain(t.Context())
}
