package service_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
)

// However many runs one user begins, another user's run begins at once.
func TestOneUserDoesNotTakeAllSlots(t *testing.T) {
	t.Parallel()
	f := start(t)
	config := f.Config
	config.Parallel = 5
	s := service.New(config)
	run := func(ctx context.Context, caller sandbox.Key, code string) error {
		_, err := s.QuickExecute(ctx, caller, service.Job{Code: code, Kind: sandbox.KindQuick}, nil)
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	for range 4 { // as many as one user gets
		runs.Go(func() { _ = run(ctx, ada, "wait") })
		<-f.runs.started
	}
	short, cancelShort := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancelShort()
	isFault(t, run(short, ada, "1"), sandbox.FaultGone) // it waits for a slot until its context ends
	if err := run(t.Context(), grace, "1"); err != nil {
		t.Errorf("another user: got %v, want the code to run", err)
	}
	cancel()
	runs.Wait()
	s.Drain(t.Context())
	f.Drain(t.Context())
}
