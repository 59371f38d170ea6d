package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service"
	"glasshouse/service/access"
	"glasshouse/service/records"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// fakeRuns runs code without Python, for tests of the service's work before and after a run. The code is the name of
// an action; any other code completes immediately.
type fakeRuns struct {
	started  chan string                        // receives the execution's ID of a run with the code "wait"
	printed  [][]byte                           // pieces that "print" prints
	afterPut func()                             // called after each piece
	report   func(supervisor.OutputListener)    // action of the code "report"
	record   func(supervisor.DebugDriver) error // action of a debugged run
	runs     atomic.Int64
	closed   atomic.Int64 // sessions
}

func (f *fakeRuns) run(
	ctx context.Context, executionID string, request sandbox.Request, callbacks supervisor.Callbacks,
) (sandbox.Outcome, error) {
	f.runs.Add(1)
	outcome := sandbox.Outcome{Status: sandbox.StatusCompleted}
	if callbacks.Debugger != nil {
		return outcome, f.record(callbacks.Debugger)
	}
	switch request.Code {
	case "compute":
		outcome.Usage.CPUMS = 700
	case "show":
		page, _ := json.Marshal(strings.Repeat("x", 300_000))
		output := sandbox.Output{Data: map[string]json.RawMessage{"text/html": page, "text/plain": []byte(`"page"`)}}
		outcome.Outputs = []sandbox.Output{callbacks.Recorder.Show(ctx, output)}
	case "report":
		f.report(callbacks.Listener)
	case "print":
		for n, piece := range f.printed {
			callbacks.Listener.Print("stdout", piece)
			f.afterPut()
			if n%50 == 49 {
				callbacks.Listener.Note(sandbox.Note{Message: strconv.Itoa(n)})
			}
		}
	case "query":
		_, err := callbacks.Requests.Query(ctx, "", "SELECT 1", nil, func(sandbox.RowBatch) error { return nil })
		return outcome, err
	case "wait":
		f.started <- executionID
		<-ctx.Done()
		outcome.Status = sandbox.StatusCancelled
	}
	return outcome, nil
}

// defaultEnvironment is the only environment.
type defaultEnvironment struct{}

func (defaultEnvironment) Environments() []sandbox.Environment {
	return []sandbox.Environment{{Name: "default"}}
}
func (defaultEnvironment) Pools() []sandbox.WarmPool                  { return nil }
func (defaultEnvironment) Packages(string) ([]sandbox.Package, error) { return nil, nil }
func (defaultEnvironment) Refresh(context.Context) error              { return nil }

var (
	ada   = sandbox.Key{User: "ada", Role: sandbox.RoleAgent}
	grace = sandbox.Key{User: "grace", Role: sandbox.RoleDeveloper}
)

// clock moves only when the test moves it. The service's goroutines read it, too.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) Now() time.Time { return *c.now.Load() }

func (c *clock) move(by time.Duration) {
	now := c.Now().Add(by)
	c.now.Store(&now)
}

// fixture is a service on a real PostgreSQL, with runs and a clock that the test controls.
type fixture struct {
	*service.Service
	runs     *fakeRuns
	clock    *clock
	postgres *dbtest.Databases
}

// historyOfAll is the history of a service and of its records.
type historyOfAll interface {
	service.History
	records.History
}

// start starts a service. wrap may replace its history.
func start(t *testing.T, wrap ...func(*history.Store) historyOfAll) *fixture {
	t.Helper()
	return startOn(t, dbtest.Start(t), wrap...)
}

func startOn(t *testing.T, postgres *dbtest.Databases, wrap ...func(*history.Store) historyOfAll) *fixture {
	t.Helper()
	ctx := context.Background()
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.ErrorLevel)
	historyURL := postgres.URL(embedded.RoleHistory, embedded.DatabaseHistory)
	store, err := history.Open(ctx, history.Config{URL: historyURL, Dir: t.TempDir()}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	reader, err := dbaccess.Open(
		ctx,
		dbaccess.Config{URL: postgres.URL(embedded.RoleReader, embedded.DatabaseKnowledge)},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	f := &fixture{runs: &fakeRuns{started: make(chan string, 1)}, clock: &clock{}, postgres: postgres}
	f.clock.now.Store(new(time.Now().UTC().Truncate(time.Second)))
	config := service.Config{
		Supervisor:   supervisor.NewStub(f.runs.run, func() { f.runs.closed.Add(1) }),
		Environments: defaultEnvironment{}, History: store,
		Databases: []service.Database{{Name: "knowledge", Reader: reader, Writer: reader}},
		Default:   policy.Default(), Ceiling: policy.Default(), PerUser: 2, InAll: 10, Parallel: 4,
		Log: log, Clock: f.clock.Now,
	}
	config.Access = access.New(access.Config{
		History: store, Databases: []string{"knowledge"}, Default: config.Default, Environments: defaultEnvironment{},
		Log: log, Clock: f.clock.Now,
	})
	t.Cleanup(config.Access.Close)
	ofRecords := records.Config{
		Access: config.Access, History: store, Blobs: blobs, Log: log, Clock: f.clock.Now, ArtifactBytes: 1 << 30,
	}
	for _, w := range wrap {
		wrapped := w(store)
		config.History, ofRecords.History = wrapped, wrapped
	}
	config.Records = records.New(ofRecords)
	t.Cleanup(config.Records.Close)
	f.Service = service.New(config)
	f.Records.Start(f.Service, f.Service, f.Service)
	return f
}

func (f *fixture) create(t *testing.T, caller sandbox.Key, config string) sandbox.Sandbox {
	t.Helper()
	sb, err := f.Create(context.Background(), caller, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

func (f *fixture) execute(sandboxID, code string) (*sandbox.Execution, error) {
	return f.Execute(context.Background(), ada, sandboxID, sandbox.Request{Code: code, Kind: sandbox.KindExecute})
}

func isFault(t *testing.T, err error, want sandbox.Fault) {
	t.Helper()
	var known *sandbox.Error
	if !errors.As(err, &known) || known.Fault != want {
		t.Errorf("got error %v, want fault %s", err, want)
	}
}

func TestDrainCancelsRunsAndRecordsThem(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := context.Background()
	sb := s.create(t, ada, "")
	ended := make(chan *sandbox.Execution, 1)
	go func() {
		e, _ := s.execute(sb.ID, "wait")
		ended <- e
	}()
	id := <-s.runs.started
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	s.Drain(cancelled)
	if e := <-ended; e == nil || e.Status != sandbox.StatusCancelled || e.Usage.EndedBy != "shutdown" {
		t.Errorf("got execution %+v, want it cancelled by the shutdown", e)
	}
	e, err := s.Records.Execution(ctx, ada, id)
	if err != nil || e.Status != sandbox.StatusCancelled || e.CompletedAt == nil {
		t.Errorf("got record %+v, error %v; want it cancelled and completed", e, err)
	}
	if got := s.runs.closed.Load(); got != 1 {
		t.Errorf("got %d closed sessions, want 1", got)
	}
	_, err = s.execute(sb.ID, "1")
	isFault(t, err, sandbox.FaultGone)
	_, err = s.Create(ctx, ada, nil)
	isFault(t, err, sandbox.FaultFull)
	_, err = s.QuickExecute(ctx, ada, sandbox.Request{Code: "1", Kind: sandbox.KindQuick}, nil)
	isFault(t, err, sandbox.FaultFull)
	s.Drain(ctx) // a second time does nothing
}

func TestRunsAreRejectedSoonWithoutHistory(t *testing.T) {
	t.Parallel()
	s := startOn(t, dbtest.StartPrivate(t))
	ctx := context.Background()
	sb := s.create(t, ada, "")
	admin := sandbox.Key{User: "root", Role: sandbox.RoleAdmin}
	_, secret, err := s.Access.CreateKey(ctx, admin, sandbox.Key{Name: "k", User: "ada", Role: sandbox.RoleAgent})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Access.Authenticate(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if err := s.postgres.Close(); err != nil {
		t.Fatal(err)
	}
	s.clock.move(4 * time.Second)
	if caller, err := s.Access.Authenticate(ctx, secret); err != nil || caller.User != "ada" {
		t.Errorf("cached key after 4 s: got %+v, error %v; want the key", caller, err)
	}
	s.clock.move(2 * time.Second)
	_, err = s.Access.Authenticate(ctx, secret)
	isFault(t, err, sandbox.FaultUnavailable)

	const limit = 2 * time.Minute
	began, attempts := time.Now(), 0
	err = nil
	for attempts = 0; err == nil && time.Since(began) < limit; attempts++ {
		_, err = s.execute(sb.ID, "1")
		_, _ = s.Records.Statistics(ctx, ada) // takes some time
	}
	isFault(t, err, sandbox.FaultUnavailable)
	if int(s.runs.runs.Load()) != attempts-1 || time.Since(began) > limit {
		t.Errorf("got %d runs in %d attempts after %s; want all but the last, within %s",
			s.runs.runs.Load(), attempts, time.Since(began), limit)
	}
	_, err = s.Query(ctx, ada, service.Statement{SandboxID: sb.ID, SQL: "SELECT 1"}, nil)
	isFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Create(ctx, ada, nil)
	isFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Access.Authenticate(ctx, "gh_unknown")
	isFault(t, err, sandbox.FaultUnavailable)
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
	s := start(t, func(store *history.Store) historyOfAll { return &leavingHistory{store, cancel} })
	sb := s.create(t, ada, "")
	e, err := s.Execute(ctx, ada, sb.ID, sandbox.Request{Code: "1", Kind: sandbox.KindExecute})
	if err != nil {
		t.Fatal(err)
	}
	s.Drain(context.Background())
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
	s := start(t, func(store *history.Store) historyOfAll { full = &fullHistory{Store: store}; return full })
	sb := s.create(t, ada, "")
	e, err := s.execute(sb.ID, "query")
	if len(full.starts) != 1 || !full.starts[0] {
		t.Errorf("got progress %v, error %v; want the start of the statement alone", full.starts, err)
	}
	record, err := s.Records.Execution(context.Background(), ada, e.ID)
	if err != nil || len(record.Queries) != 1 || record.Queries[0].Status != "failed" || record.Queries[0].Rows != 0 {
		t.Errorf("got statements %+v, error %v; want one that failed, without rows", record.Queries, err)
	}
}

func TestUnusedSandboxExpires(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := context.Background()
	sb := s.create(t, ada, `{"idle_timeout": 60, "lifetime": 100}`)
	for range 2 { // the lifetime ends after 100 s, and use does not extend it
		if _, err := s.execute(sb.ID, "1"); err != nil {
			t.Fatal(err)
		}
		s.Expire()
		if s.runs.closed.Load() != 0 {
			t.Fatal("the sandbox expired while it was used")
		}
		s.clock.move(50 * time.Second)
	}
	s.clock.move(time.Second)
	s.Expire()
	_, err := s.execute(sb.ID, "1")
	isFault(t, err, sandbox.FaultGone)
	list, _, total, err := s.Records.SandboxHistory(ctx, ada, sb.ID, 10, "")
	if err != nil || len(list) != 2 || total != 2 {
		t.Errorf("got %d of %d executions, error %v; want 2 of 2", len(list), total, err)
	}
	s.Drain(ctx)
}

func TestRunThatIsCancelledBeforeItBeginsIsAFault(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	for n := range 4 { // as many as there are slots
		caller := sandbox.Key{User: strconv.Itoa(n), Role: sandbox.RoleAgent}
		sb := s.create(t, caller, "")
		wait := sandbox.Request{Code: "wait", Kind: sandbox.KindExecute}
		runs.Go(func() { _, _ = s.Execute(ctx, caller, sb.ID, wait) })
		<-s.runs.started
	}
	sb := s.create(t, ada, "")
	short, cancelShort := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancelShort()
	_, err := s.Execute(short, ada, sb.ID, sandbox.Request{Code: "1", Kind: sandbox.KindExecute})
	isFault(t, err, sandbox.FaultGone)
	cancel()
	runs.Wait()
	s.Drain(t.Context())
}

func TestDeletedSandboxesDoNotCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	s := start(t)
	ctx := context.Background()
	for range 3 {
		var last sandbox.Sandbox
		for range 2 {
			last = s.create(t, ada, "")
		}
		_, err := s.Create(ctx, ada, nil)
		isFault(t, err, sandbox.FaultLimit)
		isFault(t, s.Delete(ctx, grace, last.ID), sandbox.FaultNotFound)
		if n, err := s.DeleteAll(ctx, ada); n != 2 || err != nil {
			t.Errorf("got %d deleted sandboxes, error %v; want 2", n, err)
		}
	}
	s.Drain(ctx)
}
