package run_test

import (
	"testing"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/servicetest"
)

// A clock that is set back ends no sandbox, refuses no key and no request, and loses no execution.
func TestClockThatIsSetBackRefusesNothing(t *testing.T) {
	t.Parallel()
	f := servicetest.Start(t)
	admin := sandbox.Key{ID: "admin", User: "root", Role: sandbox.RoleAdmin}
	expiry := f.Clock.Now().Add(time.Hour)
	_, secret, err := f.Access.CreateKey(t.Context(), admin, sandbox.Key{
		Name: "k", User: "ada", Role: sandbox.RoleAgent,
		ExpiresAt: &expiry, Limits: sandbox.KeyLimits{Requests: 100, CPUSeconds: 100, Concurrent: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := f.Live.Create(t.Context(), ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Clock.Move(-48 * time.Hour)
	f.Live.Expire()
	const runs = 2
	for range runs {
		ctx, caller, end, err := f.Access.Admit(t.Context(), secret)
		if err != nil {
			t.Fatalf("a request: got %v, want the key to be valid", err)
		}
		defer end()
		e, err := f.Runs.Execute(ctx, caller.Key, sb.ID, sandbox.Request{Code: "compute", Kind: sandbox.KindExecute})
		if err != nil || e.Status != sandbox.StatusCompleted || e.ExecutionTime < 0 {
			t.Errorf("a run: got %+v, %v; want it completed", e, err)
		}
	}
	st, err := f.Records.Statistics(t.Context(), ada)
	if err != nil || st.TotalExecutions != runs {
		t.Errorf("statistics: got %+v, %v; want %d executions", st, err, runs)
	}
}
