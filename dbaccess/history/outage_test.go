package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// newProxiedStore returns a Store whose connections the test can cut and stall.
func newProxiedStore(t *testing.T) (*testStore, *proxy) {
	t.Helper()
	p, url := newProxy(t, databaseURL(t))
	return openStore(t, Config{URL: url, Dir: t.TempDir()}), p
}

func TestOutageAcceptsRunsForAWhileAndThenOnlyEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, p := newProxiedStore(t)
	if err := h.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	p.cut()
	finished, open := runningExecution("finished"), runningExecution("open")
	h.begin(t, finished)
	h.clock.advance(maxBacklogAge - 1)
	h.begin(t, open)
	h.clock.advance(1)
	errs := map[string]error{"Ping": h.Ping(ctx), "Begin": h.Begin(ctx, runningExecution("late")),
		"CreateSandbox": h.CreateSandbox(ctx, sandbox.Sandbox{ID: "late"})}
	_, errs["Execution"] = h.Execution(ctx, "x")
	_, _, errs["Executions"] = h.Executions(ctx, sandbox.ExecutionFilter{})
	_, errs["Statistics"] = h.Statistics(ctx, "")
	_, errs["Sandbox"] = h.Sandbox(ctx, "x")
	_, errs["KeyByHash"] = h.KeyByHash(ctx, []byte("x"))
	for name, err := range errs {
		if !hasFault(err, sandbox.FaultUnavailable) {
			t.Errorf("%s: got %v, want %s", name, err, sandbox.FaultUnavailable)
		}
	}
	finished.Stdout = "kept"
	h.finish(t, finished, sandbox.StatusCompleted)
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "2 records are not in the history database") {
		t.Errorf("Close: got %v, want an error that 2 records are not in the database", err)
	}
	if err := h.Begin(ctx, runningExecution("late")); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Begin after Close: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	late := end(runningExecution("late"), sandbox.StatusCompleted)
	if err := h.Finish(ctx, late); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Finish after Close: got %v, want %s", err, sandbox.FaultUnavailable)
	}

	p.restore()
	h = h.reopen(t)
	if n, err := h.Recover(ctx); n != 1 || err != nil {
		t.Errorf("Recover: got %d, %v; want 1", n, err)
	}
	for id, want := range map[string]sandbox.Status{
		"finished": sandbox.StatusCompleted, "open": sandbox.StatusCancelled,
	} {
		e, err := h.Execution(ctx, id)
		if err != nil || e.Status != want || e.CompletedAt == nil || id == "finished" && e.Stdout != "kept" {
			t.Errorf("execution %s after the outage: got %+v, %v; want status %s", id, e, err, want)
		}
	}
	if _, err := h.Execution(ctx, "late"); !hasFault(err, sandbox.FaultNotFound) {
		t.Errorf("refused execution: got %v, want %s", err, sandbox.FaultNotFound)
	}
}

// A hanging server closes no connection. Its callers must still get an answer.
func TestHangingServerHangsNoCaller(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p, url := newProxy(t, databaseURL(t))
	timeouts := patient
	timeouts.read = 300 * time.Millisecond
	h := openWithTimeouts(t, Config{URL: url, Dir: t.TempDir()}, timeouts)
	resume := sync.OnceFunc(p.stall())
	defer resume()
	e := runningExecution("e")
	h.begin(t, e)
	h.finish(t, e, sandbox.StatusCompleted)
	if _, err := h.KeyByHash(ctx, []byte("x")); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("KeyByHash: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	h.clock.advance(maxBacklogAge)
	if err := h.Begin(ctx, runningExecution("late")); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Begin: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	resume()
	if e, err := h.Execution(ctx, "e"); err != nil || e.CompletedAt == nil {
		t.Errorf("after the server goes on: got %+v, %v", e, err)
	}
}

func TestBacklogIsInsertedWhenTheServerIsBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, p := newProxiedStore(t)
	p.cut()
	e := runningExecution("e")
	h.finish(t, e, sandbox.StatusCompleted)
	if err := errors.Join(h.CreateSandbox(ctx, sandbox.Sandbox{ID: "s", Owner: "ada", State: sandbox.StateActive}),
		h.EndSandbox(ctx, "s", "ada", sandbox.StateDeleted, time.Now())); err != nil {
		t.Errorf("a sandbox during the outage: %v", err)
	}
	if _, err := h.Execution(ctx, "e"); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Execution during the outage: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	p.restore()
	if e, err := h.Execution(ctx, "e"); err != nil || e.Status != sandbox.StatusCompleted || e.CompletedAt == nil {
		t.Errorf("Execution after the outage: got %+v, %v", e, err)
	}
	if b, err := h.Sandbox(ctx, "s"); err != nil || b.State != sandbox.StateDeleted {
		t.Errorf("Sandbox after the outage: got %+v, %v", b, err)
	}
}

func TestStatementsWaitForTheServer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, p := newProxiedStore(t)
	day := time.Now()
	if err := h.AddCPU(ctx, "ada", day, time.Second); err != nil {
		t.Fatal(err)
	}
	p.cut()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := h.AddCPU(short, "grace", day, time.Second); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("AddCPU whose caller gives up: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	done := make(chan error, 1)
	go func() { done <- h.AddCPU(ctx, "ada", day, time.Second) }()
	p.restore()
	if err := <-done; err != nil {
		t.Errorf("AddCPU that waits: %v", err)
	}
	if used, err := h.CPUUsed(ctx, "ada", day); err != nil || used != 2*time.Second {
		t.Errorf("CPUUsed: got %s, %v; want 2s", used, err)
	}
	p.cut()
	go func() { done <- h.AddCPU(ctx, "ada", day, time.Second) }()
	_ = h.Close()
	if err := <-done; !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("AddCPU during Close: got %v, want %s", err, sandbox.FaultUnavailable)
	}
}

// Many callers write while the server is killed repeatedly. Every execution whose Finish returned nil must be stored
// once.
func TestFinishedExecutionsSurviveKillsOfTheServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	callers, rounds := 16, 20
	if testing.Short() {
		rounds = 10
	}
	server, kill := startKillableServer(ctx, t)
	h := openStore(t, Config{URL: server.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: t.TempDir()})
	killWhenReachable := func() {
		for h.Ping(ctx) != nil {
			if ctx.Err() != nil {
				t.Error("the server does not come back")
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		kill()
	}
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for r := range rounds {
				e := runningExecution(fmt.Sprint("e", c, "-", r))
				if err := h.Begin(ctx, e); err != nil && !hasFault(err, sandbox.FaultUnavailable) {
					t.Errorf("Begin %s: %v", e.ID, err)
				}
				e.Stdout = e.ID
				if err := h.Finish(ctx, end(e, sandbox.StatusCompleted)); err != nil {
					t.Errorf("Finish %s: %v", e.ID, err)
				}
				if c == 0 && r%10 == 5 {
					killWhenReachable()
				}
			}
		})
	}
	all.Wait()
	killWhenReachable()
	// untilReachable tries again while the server restarts.
	untilReachable := func(f func() error) {
		err := f()
		for hasFault(err, sandbox.FaultUnavailable) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
			err = f()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	untilReachable(func() error {
		n, err := h.CountExecutions(ctx, "s1")
		if err == nil && n != callers*rounds {
			t.Errorf("%d executions, want %d", n, callers*rounds)
		}
		return err
	})
	killWhenReachable() // the rows must not depend on the server's memory
	for c := range callers {
		for r := range rounds {
			id := fmt.Sprint("e", c, "-", r)
			untilReachable(func() error {
				e, err := h.Execution(ctx, id)
				if err == nil && (e.Status != sandbox.StatusCompleted || e.Stdout != id) {
					t.Errorf("execution %s: got status %s, stdout %q", id, e.Status, e.Stdout)
				}
				return err
			})
		}
	}
}

// startKillableServer starts a server with the settings of production, and returns a function that kills it with
// SIGKILL. The server is started again after that.
func startKillableServer(ctx context.Context, t *testing.T) (*embedded.Server, func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(t.Output())
	server, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if text, _ := os.ReadFile(filepath.Join(dir, "postgres.log")); t.Failed() {
			t.Logf("the end of the server's log:\n%s", text[max(0, len(text)-4000):])
		}
	})
	kill := func() error {
		text, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	}
	return server, func() {
		err := kill()
		// The backends of a killed server may answer while the file still names it or the next one is written.
		for wait := time.Millisecond; err != nil && wait < 20*time.Second; wait *= 2 {
			time.Sleep(wait)
			err = kill()
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A database that becomes read-only, as that of a standby is, is an outage that the service names. What was
// acknowledged before and meanwhile is stored once the database takes it.
func TestReadOnlyDatabaseIsNamedAndLosesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	out, logger := newTestLog()
	url := databaseURL(t)
	s, err := open(ctx, Config{URL: url, Dir: t.TempDir()}, logger, time.Now, patient)
	if err != nil {
		t.Fatal(err)
	}
	h := &testStore{Store: s, url: url}
	t.Cleanup(func() { _ = h.Close() })
	admin, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(ctx)
	database := pgx.Identifier{admin.Config().Database}.Sanitize()
	setReadOnly := func(value string) { // for all connections, as after the promotion of another server
		t.Helper()
		for _, sql := range []string{"SET default_transaction_read_only = off",
			"ALTER DATABASE " + database + " SET default_transaction_read_only = " + value,
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND " +
				"pid <> pg_backend_pid()"} {
			if _, err := admin.Exec(ctx, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := runningExecution("open")
	h.begin(t, open)
	setReadOnly("on")
	key := sandbox.Key{ID: "k", User: "ada", Role: sandbox.RoleAgent, CreatedAt: time.Now()}
	eventually(t, "runs are refused because of the read-only database", func() bool {
		err := h.Begin(ctx, runningExecution("late"))
		return hasFault(err, sandbox.FaultUnavailable) && strings.Contains(err.Error(), "is read-only")
	})
	write := sandbox.PendingWrite{ID: "w", User: "ada", CreatedAt: key.CreatedAt}
	for name, call := range map[string]func() error{
		"Ping":          func() error { return h.Ping(ctx) },
		"CreateSandbox": func() error { return h.CreateSandbox(ctx, sandbox.Sandbox{ID: "late"}) },
		"CreateKey":     func() error { return h.CreateKey(ctx, key, []byte("hash"), 0) },
		"AddWrite":      func() error { return h.AddWrite(ctx, write, 100, 1<<20) },
	} {
		eventually(t, name+" is refused because of the read-only database", func() bool { // on a new connection
			err := call()
			if !hasFault(err, sandbox.FaultUnavailable) {
				t.Fatalf("%s: got %v, want %s", name, err, sandbox.FaultUnavailable)
			}
			return strings.Contains(err.Error(), "is read-only")
		})
	}
	open.Stdout = "acknowledged"
	h.finish(t, open, sandbox.StatusCompleted)
	if keys, err := h.Keys(ctx, ""); err != nil || len(keys) != 0 {
		t.Errorf("a read: got %v, %v; want it to work", keys, err)
	}
	eventually(t, "the log has the reason", func() bool { return out.has("read-only transaction") })

	setReadOnly("off")
	eventually(t, "runs begin again", func() bool { return h.Begin(ctx, runningExecution("after")) == nil })
	e, err := h.Execution(ctx, "open")
	if err != nil || e.Status != sandbox.StatusCompleted || e.Stdout != "acknowledged" {
		t.Errorf("afterwards: got %+v, %v; want the end that was acknowledged", e, err)
	}
	if refused, _ := os.ReadDir(h.refusedDir); len(refused) > 0 {
		t.Errorf("got %v as files, want all records in the database", refused)
	}
}
