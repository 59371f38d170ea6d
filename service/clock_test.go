package service_test

import (
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service"
)

// A clock that is set forward deletes nothing: old is what has become old while the service ran, or before.
func TestClockThatIsSetForwardDeletesNothing(t *testing.T) {
	t.Parallel()
	f := start(t)
	elapsed := time.Minute
	config := f.Config
	config.HistoryMaxAge, config.ArtifactAge = 24*time.Hour, 24*time.Hour
	config.Elapsed = func() time.Duration { return elapsed }
	s := service.New(config)
	t.Cleanup(func() { s.Drain(t.Context()) })
	request := sandbox.Request{Code: "1", Kind: sandbox.KindQuick}
	if _, err := s.QuickExecute(t.Context(), ada, request, nil); err != nil {
		t.Fatal(err)
	}
	executions := func() int {
		t.Helper()
		if _, err := s.Statistics(t.Context(), ada); err != nil { // the execution is in PostgreSQL
			t.Fatal(err)
		}
		if err := s.ApplyRetention(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		st, err := s.Statistics(t.Context(), ada)
		if err != nil {
			t.Fatal(err)
		}
		return st.TotalExecutions
	}
	f.clock.move(10 * 365 * 24 * time.Hour)
	if n := executions(); n != 1 {
		t.Errorf("after a jump of ten years: got %d executions, want 1", n)
	}
	elapsed = 25 * time.Hour
	if n := executions(); n != 0 {
		t.Errorf("after 25 hours: got %d executions, want none", n)
	}
}

// A clock that is set back ends no sandbox, refuses no key and no request, and loses no execution.
func TestClockThatIsSetBackRefusesNothing(t *testing.T) {
	t.Parallel()
	f := start(t)
	admin := sandbox.Key{ID: "admin", User: "root", Role: sandbox.RoleAdmin}
	expiry := f.clock.Now().Add(time.Hour)
	_, secret, err := f.Access.CreateKey(t.Context(), admin, sandbox.Key{
		Name: "k", User: "ada", Role: sandbox.RoleAgent,
		ExpiresAt: &expiry, Limits: sandbox.KeyLimits{Requests: 100, CPUSeconds: 100, Concurrent: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := f.Create(t.Context(), ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.clock.move(-48 * time.Hour)
	f.Expire()
	const runs = 2
	for range runs {
		ctx, caller, end, err := f.Access.Admit(t.Context(), secret)
		if err != nil {
			t.Fatalf("a request: got %v, want the key to be valid", err)
		}
		defer end()
		e, err := f.Execute(ctx, caller.Key, sb.ID, sandbox.Request{Code: "compute", Kind: sandbox.KindExecute})
		if err != nil || e.Status != sandbox.StatusCompleted || e.ExecutionTime < 0 {
			t.Errorf("a run: got %+v, %v; want it completed", e, err)
		}
	}
	st, err := f.Statistics(t.Context(), ada)
	if err != nil || st.TotalExecutions != runs {
		t.Errorf("statistics: got %+v, %v; want %d executions", st, err, runs)
	}
}
