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
)

// script is a host whose runs last until they are cancelled, where the code is
// "wait", show a large page, where it is "show", print, where it is "print", ask for a row, where it is "ask", tell what the test says, where it is "tell", and else complete at once: what service does around a run is looked at
// here, not the run.
type script struct {
	started chan string
	prints  [][]byte                        // what is printed, in pieces, where the code is "print"
	printed func()                          // is called after each
	tells   func(supervisor.OutputListener) // what a run tells, where the code is "tell"
	ran     int
	closed  atomic.Int64
	records func(supervisor.DebugDriver) error // has a debugged run recorded
}

func (s *script) Open(context.Context, sandbox.Sandbox, string) (service.Session, error) {
	return s, nil
}

func (s *script) Ready() error { return nil }

func (s *script) Isolation() sandbox.Isolation { return sandbox.Isolation{} }

func (s *script) Run(ctx context.Context, e *sandbox.Execution, desk supervisor.RequestHandler, watch supervisor.DebugDriver, live supervisor.OutputListener) error {
	s.ran++
	e.Status = sandbox.StatusCompleted
	if watch != nil {
		return s.records(watch)
	}
	if e.Code == "compute" {
		e.Usage.CPUMS = 700
	}
	if e.Code == "show" {
		page, _ := json.Marshal(strings.Repeat("x", 300_000))
		e.Outputs = append(e.Outputs, desk.Show(ctx, sandbox.Output{Data: map[string]json.RawMessage{"text/html": page, "text/plain": []byte(`"page"`)}}))
	}
	if e.Code == "tell" {
		s.tells(live)
	}
	if e.Code == "print" {
		for n, piece := range s.prints {
			live.Print("stdout", piece)
			s.printed()
			if n%50 == 49 {
				live.Note(sandbox.Note{Message: strconv.Itoa(n)})
			}
		}
	}
	if e.Code == "ask" {
		_, err := desk.Query(ctx, "SELECT 1", nil, func(sandbox.RowBatch) error { return nil })
		return err
	}
	if e.Code == "wait" {
		s.started <- e.ID
		<-ctx.Done()
		e.Status = sandbox.StatusCancelled
	}
	return nil
}

func (s *script) InspectVariables(context.Context) (sandbox.Variables, error) {
	return sandbox.Variables{}, nil
}
func (s *script) Check(context.Context, string) (sandbox.CheckResult, error) {
	return sandbox.CheckResult{}, nil
}
func (s *script) Complete(context.Context, string, int) (sandbox.Completion, bool, string, error) {
	return sandbox.Completion{}, true, "", nil
}
func (s *script) Usage() map[string]any                    { return nil }
func (s *script) Close() error                             { s.closed.Add(1); return nil }
func (s *script) Uploads() *supervisor.Uploads             { return nil }
func (s *script) Environment() *sandbox.EnvironmentVersion { return nil }
func (s *script) Environments() []sandbox.Environment {
	return []sandbox.Environment{{Name: "default"}}
}
func (s *script) Packages(string) ([]sandbox.Package, error) { return nil, nil }
func (s *script) Refresh(context.Context) error              { return nil }
func (s *script) Collect(supervisor.StoreArtifact) ([]sandbox.Artifact, int64, error) {
	return nil, 0, nil
}

var ada = sandbox.Key{User: "ada", Role: sandbox.RoleAgent}

// clock stands still but where the test moves it; the service's janitor reads it beside
// the test.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) Now() time.Time { return *c.now.Load() }

func (c *clock) move(by time.Duration) {
	now := c.Now().Add(by)
	c.now.Store(&now)
}

// start gives a service on a real PostgreSQL, with a clock that the test moves.
func start(t *testing.T) (*service.Service, *script, *dbtest.Databases, *clock) {
	t.Helper()
	return startWith(t, func(h *history.Store) service.History { return h })
}

func startWith(t *testing.T, wrap func(*history.Store) service.History) (*service.Service, *script, *dbtest.Databases, *clock) {
	t.Helper()
	ctx := context.Background()
	db := dbtest.Start(t)
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.ErrorLevel)
	store, err := history.Open(ctx, history.Config{URL: db.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: t.TempDir()}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	reader, err := dbaccess.Open(ctx, dbaccess.Config{URL: db.URL(embedded.RoleReader, embedded.DatabaseKnowledge)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	began, now := time.Now().UTC().Truncate(time.Second), &clock{}
	now.now.Store(&began)
	h := &script{started: make(chan string, 1)}
	kept, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	s := service.New(service.Config{Supervisor: h, Environments: h, Reader: reader, Writer: reader, History: wrap(store), Blobs: kept, Default: policy.Default(), Ceiling: policy.Default(), PerUser: 2, InAll: 10, Parallel: 4, Log: log,
		Clock: now.Now})
	return s, h, db, now
}

func isFault(t *testing.T, err error, want sandbox.Fault) {
	t.Helper()
	var known *sandbox.Error
	if !errors.As(err, &known) || known.Fault != want {
		t.Errorf("%v is not %s", err, want)
	}
}

// What runs when the service stops is cancelled and on record, and nothing new is
// taken.
func TestDrainLeavesNothing(t *testing.T) {
	s, h, _, _ := start(t)
	ctx := context.Background()
	box, err := s.Create(ctx, ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan *sandbox.Execution, 1)
	go func() {
		e, _ := s.Execute(ctx, ada, box.ID, service.Job{Code: "wait", Kind: sandbox.KindExecute})
		done <- e
	}()
	id := <-h.started
	stop, cancel := context.WithCancel(ctx)
	cancel() // no patience
	s.Drain(stop)
	if e := <-done; e == nil || e.Status != sandbox.StatusCancelled || e.Usage.EndedBy != "shutdown" {
		t.Errorf("%+v", e)
	}
	if e, err := s.Execution(ctx, ada, id); err != nil || e.Status != sandbox.StatusCancelled || e.CompletedAt == nil {
		t.Errorf("the record: %+v, %v", e, err)
	}
	if h.closed.Load() != 1 {
		t.Errorf("%d sessions were closed", h.closed.Load())
	}
	_, err = s.Execute(ctx, ada, box.ID, service.Job{Code: "1", Kind: sandbox.KindExecute})
	isFault(t, err, sandbox.FaultGone)
	_, err = s.Create(ctx, ada, nil)
	isFault(t, err, sandbox.FaultFull)
	_, err = s.QuickExecute(ctx, ada, service.Job{Code: "1", Kind: sandbox.KindQuick}, nil)
	isFault(t, err, sandbox.FaultFull)
	s.Drain(ctx) // twice is once
}

// Without its database history goes on for some seconds; then nothing runs, and the
// caller is told.
func TestNothingRunsWithoutHistory(t *testing.T) {
	s, h, db, now := start(t)
	ctx := context.Background()
	box, err := s.Create(ctx, ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := s.CreateKey(ctx, sandbox.Key{User: "root", Role: sandbox.RoleAdmin}, sandbox.Key{Name: "k", User: "ada", Role: sandbox.RoleAgent})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	now.move(4 * time.Second)
	if caller, err := s.Authenticate(ctx, secret); err != nil || caller.User != "ada" {
		t.Errorf("a key that was known is %+v, %v", caller, err)
	}
	now.move(2 * time.Second)
	_, err = s.Authenticate(ctx, secret)
	isFault(t, err, sandbox.FaultUnavailable)
	began, ran := time.Now(), 0
	err = nil
	for ran = 0; err == nil && time.Since(began) < 30*time.Second; ran++ {
		_, err = s.Execute(ctx, ada, box.ID, service.Job{Code: "1", Kind: sandbox.KindExecute})
		_, _ = s.Statistics(ctx, ada) // some time passes
	}
	isFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Query(ctx, ada, box.ID, "SELECT 1", nil, nil)
	isFault(t, err, sandbox.FaultUnavailable)
	_, err = s.Create(ctx, ada, nil)
	isFault(t, err, sandbox.FaultUnavailable)
	if h.ran != ran-1 || time.Since(began) > 30*time.Second {
		t.Errorf("%d runs of %d, after %s", h.ran, ran, time.Since(began))
	}
	if _, err := s.Authenticate(ctx, "gh_any"); err == nil {
		t.Error("a key was believed without history")
	} else {
		isFault(t, err, sandbox.FaultUnavailable)
	}
}

// impatient is a caller that leaves as soon as its opening row is committed.
type impatient struct {
	*history.Store
	leave context.CancelFunc
}

func (i *impatient) Begin(ctx context.Context, e *sandbox.Execution) error {
	if err := i.Store.Begin(context.WithoutCancel(ctx), e); err != nil {
		return err
	}
	i.leave()
	return ctx.Err()
}

// No row may stay open, however early its caller leaves.
func TestACallerThatLeavesAtTheStart(t *testing.T) {
	ctx, leave := context.WithCancel(context.Background())
	s, _, _, _ := startWith(t, func(h *history.Store) service.History { return &impatient{h, leave} })
	box, err := s.Create(ctx, ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Execute(ctx, ada, box.ID, service.Job{Code: "1", Kind: sandbox.KindExecute})
	if err != nil {
		t.Error(err)
	}
	s.Drain(context.Background())
	list, _, err := s.Executions(context.Background(), ada, sandbox.ExecutionFilter{Limit: 10})
	if err != nil || len(list) != 1 || list[0].ID != e.ID || list[0].CompletedAt == nil {
		t.Errorf("the record: %+v, %v", list, err)
	}
}

// full is a history that has room for the ends of things only.
type full struct {
	*history.Store
	told []bool // of what begins, or not
}

func (f *full) Progress(_ context.Context, p sandbox.Progress) error {
	f.told = append(f.told, p.IsStart())
	return &sandbox.Error{Fault: sandbox.FaultUnavailable, Detail: "no room"}
}

// A statement whose beginning history has no room for does not run; of its end history is
// told with the run's, not before: it would be the end of what has not begun.
func TestAStatementThatHistoryHasNoRoomFor(t *testing.T) {
	ctx := context.Background()
	var h *full
	s, _, _, _ := startWith(t, func(store *history.Store) service.History { h = &full{Store: store}; return h })
	box, err := s.Create(ctx, ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Execute(ctx, ada, box.ID, service.Job{Code: "ask", Kind: sandbox.KindExecute})
	if len(h.told) != 1 || !h.told[0] {
		t.Errorf("history was told of things that begin, or not: %v, %v", h.told, err)
	}
	kept, err := s.Execution(ctx, ada, e.ID)
	if err != nil || len(kept.Queries) != 1 || kept.Queries[0].Status != "failed" || kept.Queries[0].Rows != 0 {
		t.Errorf("the record has %+v, %v", kept.Queries, err)
	}
}

func TestSandboxesExpire(t *testing.T) {
	s, h, _, now := start(t)
	ctx := context.Background()
	box, err := s.Create(ctx, ada, []byte(`{"idle_timeout": 60, "lifetime": 100}`))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // used each 50 s, it lives on until its lifetime ends
		if _, err := s.Execute(ctx, ada, box.ID, service.Job{Code: "1", Kind: sandbox.KindExecute}); err != nil {
			t.Fatal(err)
		}
		s.Expire()
		if h.closed.Load() != 0 {
			t.Fatal("it expired while it was used")
		}
		now.move(50 * time.Second)
	}
	now.move(time.Second)
	s.Expire()
	_, err = s.Execute(ctx, ada, box.ID, service.Job{Code: "1", Kind: sandbox.KindExecute})
	isFault(t, err, sandbox.FaultGone)
	if list, _, total, err := s.SandboxHistory(ctx, ada, box.ID, 10, ""); err != nil || len(list) != 2 || total != 2 {
		t.Errorf("its history: %d of %d, %v", len(list), total, err)
	}
	s.Drain(ctx)
}

// A run that waits for a place and is cancelled is told so, by an error that can be acted on.
func TestARunThatNeverBegan(t *testing.T) {
	s, h, _, _ := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for n := range 4 { // as many as have a place
		caller := sandbox.Key{User: strconv.Itoa(n), Role: sandbox.RoleAgent}
		box, err := s.Create(ctx, caller, nil)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { _, _ = s.Execute(ctx, caller, box.ID, service.Job{Code: "wait", Kind: sandbox.KindExecute}) })
		<-h.started
	}
	box, err := s.Create(ctx, ada, nil)
	if err != nil {
		t.Fatal(err)
	}
	soon, leave := context.WithTimeout(ctx, 200*time.Millisecond)
	defer leave()
	_, err = s.Execute(soon, ada, box.ID, service.Job{Code: "1", Kind: sandbox.KindExecute})
	isFault(t, err, sandbox.FaultGone)
	cancel()
	all.Wait()
	s.Drain(t.Context())
}

func TestPlacesAreGivenBack(t *testing.T) {
	s, _, _, _ := start(t)
	ctx := context.Background()
	for range 3 {
		var last sandbox.Sandbox
		for range 2 {
			box, err := s.Create(ctx, ada, nil)
			if err != nil {
				t.Fatal(err)
			}
			last = box
		}
		_, err := s.Create(ctx, ada, nil)
		isFault(t, err, sandbox.FaultLimit)
		isFault(t, s.Delete(ctx, sandbox.Key{User: "grace", Role: sandbox.RoleDeveloper}, last.ID), sandbox.FaultNotFound)
		if n, err := s.DeleteAll(ctx, ada); n != 2 || err != nil {
			t.Errorf("%d were deleted, %v", n, err)
		}
	}
	s.Drain(ctx)
}
