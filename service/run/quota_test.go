package run_test

import (
	"context"
	"testing"

	"glasshouse/sandbox"
	"glasshouse/service/servicetest"
)

// A running execution ends when other executions have used the CPU time of its key.
func TestRunsEndWhenTheirKeyHasUsedItsCPUTime(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ctx := context.Background()
	caller := sandbox.Key{ID: "k", Account: "k", User: "ada", Role: sandbox.RoleAgent,
		Limits: sandbox.KeyLimits{CPUSeconds: 1}}
	ended := make(chan *sandbox.Execution, 1)
	go func() {
		e, err := s.Runs.QuickExecute(ctx, caller, sandbox.Request{Code: "wait", Kind: sandbox.KindQuick}, nil)
		if err != nil {
			t.Error(err)
		}
		ended <- e
	}()
	<-s.Code.Started
	for range 2 {
		request := sandbox.Request{Code: "compute", Kind: sandbox.KindQuick}
		if _, err := s.Runs.QuickExecute(ctx, caller, request, nil); err != nil {
			t.Fatal(err)
		}
	}
	e := <-ended
	if e == nil || e.Status != sandbox.StatusKilled || e.Usage.EndedBy != "cpu_seconds_per_day" || e.Error == nil {
		t.Errorf("got %+v, want killed by cpu_seconds_per_day, and an error that says so", e)
	}
}
