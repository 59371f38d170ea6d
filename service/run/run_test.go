package run_test

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
	"glasshouse/service/run"
	"glasshouse/service/servicetest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

var ada, grace = servicetest.Ada, servicetest.Grace

func TestDrainCancelsRunsAndRecordsThem(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ctx := context.Background()
	sb := s.Create(t, ada, "")
	ended := make(chan *sandbox.Execution, 1)
	go func() {
		e, _ := s.Execute(sb.ID, "wait")
		ended <- e
	}()
	id := <-s.Code.Started
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	s.Runs.Drain(cancelled)
	if e := <-ended; e == nil || e.Status != sandbox.StatusCancelled || e.Usage.EndedBy != "shutdown" {
		t.Errorf("got execution %+v, want it cancelled by the shutdown", e)
	}
	e, err := s.Records.Execution(ctx, ada, id)
	if err != nil || e.Status != sandbox.StatusCancelled || e.CompletedAt == nil {
		t.Errorf("got record %+v, error %v; want it cancelled and completed", e, err)
	}
	if got := s.Code.Closed.Load(); got != 1 {
		t.Errorf("got %d closed sessions, want 1", got)
	}
	_, err = s.Execute(sb.ID, "1")
	servicetest.WantFault(t, err, sandbox.FaultGone)
	_, err = s.Live.Create(ctx, ada, nil)
	servicetest.WantFault(t, err, sandbox.FaultFull)
	_, err = s.Runs.QuickExecute(ctx, ada, sandbox.Request{Code: "1", Kind: sandbox.KindQuick}, nil)
	servicetest.WantFault(t, err, sandbox.FaultFull)
	s.Runs.Drain(ctx) // a second time does nothing
}

func TestRunsAreRejectedSoonWithoutHistory(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t, func(c *servicetest.Config) { c.Postgres = dbtest.StartPrivate(t) })
	ctx := context.Background()
	sb := s.Create(t, ada, "")
	admin := sandbox.Key{User: "root", Role: sandbox.RoleAdmin}
	_, secret, err := s.Access.CreateKey(ctx, admin, sandbox.Key{Name: "k", User: "ada", Role: sandbox.RoleAgent})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Access.Authenticate(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if err := s.Postgres.Close(); err != nil {
		t.Fatal(err)
	}
	s.Clock.Move(4 * time.Second)
	if caller, err := s.Access.Authenticate(ctx, secret); err != nil || caller.User != "ada" {
		t.Errorf("cached key after 4 s: got %+v, error %v; want the key", caller, err)
	}
	s.Clock.Move(2 * time.Second)
	_, err = s.Access.Authenticate(ctx, secret)
	servicetest.WantFault(t, err, sandbox.FaultUnavailable)

	const limit = 2 * time.Minute
	began, attempts := time.Now(), 0
	err = nil
	for attempts = 0; err == nil && time.Since(began) < limit; attempts++ {
		_, err = s.Execute(sb.ID, "1")
		_, _ = s.Records.Statistics(ctx, ada) // takes some time
	}
	servicetest.WantFault(t, err, sandbox.FaultUnavailable)
	if int(s.Code.Runs.Load()) != attempts-1 || time.Since(began) > limit {
		t.Errorf("got %d runs in %d attempts after %s; want all but the last, within %s",
			s.Code.Runs.Load(), attempts, time.Since(began), limit)
	}
	_, err = s.Runs.Query(ctx, ada, run.Statement{SandboxID: sb.ID, SQL: "SELECT 1"}, nil)
	servicetest.WantFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Live.Create(ctx, ada, nil)
	servicetest.WantFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Access.Authenticate(ctx, "gh_unknown")
	servicetest.WantFault(t, err, sandbox.FaultUnavailable)
}

// leavingHistory cancels the caller's context as soon as the opening of an execution is on record.
type leavingHistory struct {
	*history.Store
	cancel context.CancelFunc
}

func (h *leavingHistory) Begin(ctx context.Context, e *sandbox.Execution) error {
	if err := h.Store.Begin(context.WithoutCancel(ctx), e); err != nil {
		return err
	}
	h.cancel()
	return ctx.Err()
}

func TestExecutionIsClosedIfItsCallerLeavesAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	s := servicetest.Start(t, servicetest.WithHistory(func(store *history.Store) servicetest.History {
		return &leavingHistory{store, cancel}
	}))
	sb := s.Create(t, ada, "")
	e, err := s.Runs.Execute(ctx, ada, sb.ID, sandbox.Request{Code: "1", Kind: sandbox.KindExecute})
	if err != nil {
		t.Fatal(err)
	}
	s.Runs.Drain(context.Background())
	list, _, err := s.Records.Executions(context.Background(), ada, sandbox.ExecutionFilter{Limit: 10})
	if err != nil || len(list) != 1 || list[0].ID != e.ID || list[0].CompletedAt == nil {
		t.Errorf("got records %+v, error %v; want one that is completed", list, err)
	}
}

// fullHistory has no free space for progress.
type fullHistory struct {
	*history.Store
	starts []bool // for each progress record: whether it is the start of a statement or connection
}

func (h *fullHistory) Progress(_ context.Context, p sandbox.Progress) error {
	h.starts = append(h.starts, p.IsStart())
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "no room"}
}

// If history could not store the beginning of a statement, its end is recorded with the execution's record only.
func TestStatementDoesNotRunIfHistoryIsFull(t *testing.T) {
	t.Parallel()
	var full *fullHistory
	s := servicetest.Start(t, servicetest.WithHistory(func(store *history.Store) servicetest.History {
		full = &fullHistory{Store: store}
		return full
	}))
	sb := s.Create(t, ada, "")
	e, err := s.Execute(sb.ID, "query")
	if len(full.starts) != 1 || !full.starts[0] {
		t.Errorf("got progress %v, error %v; want the start of the statement alone", full.starts, err)
	}
	record, err := s.Records.Execution(context.Background(), ada, e.ID)
	if err != nil || len(record.Queries) != 1 || record.Queries[0].Status != "failed" || record.Queries[0].Rows != 0 {
		t.Errorf("got statements %+v, error %v; want one that failed, without rows", record.Queries, err)
	}
}

func TestRunThatIsCancelledBeforeItBeginsIsAFault(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	for n := range 4 { // as many as there are slots
		caller := sandbox.Key{User: strconv.Itoa(n), Role: sandbox.RoleAgent}
		sb := s.Create(t, caller, "")
		wait := sandbox.Request{Code: "wait", Kind: sandbox.KindExecute}
		runs.Go(func() { _, _ = s.Runs.Execute(ctx, caller, sb.ID, wait) })
		<-s.Code.Started
	}
	sb := s.Create(t, ada, "")
	short, cancelShort := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancelShort()
	_, err := s.Runs.Execute(short, ada, sb.ID, sandbox.Request{Code: "1", Kind: sandbox.KindExecute})
	servicetest.WantFault(t, err, sandbox.FaultGone)
	cancel()
	runs.Wait()
	s.Runs.Drain(t.Context())
}
