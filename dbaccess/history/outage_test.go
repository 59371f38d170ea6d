package history_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/sandbox"
)

// server is one that the test can kill: it knows the folder.
func server(t *testing.T) (*embedded.Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return serverIn(t, dir), dir
}

// serverIn starts the server of a folder, once more where it was there before.
func serverIn(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, err := embedded.Start(context.Background(), embedded.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func postmaster(dir string) (pid int, err error) {
	body, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if err == nil {
		pid, err = strconv.Atoi(strings.SplitN(string(body), "\n", 2)[0])
	}
	return pid, err
}

func kill(t *testing.T, dir string) {
	t.Helper()
	pid, err := postmaster(dir)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// killAgain kills the server once it answers.
func killAgain(ctx context.Context, t *testing.T, h *history.Store, dir string) {
	t.Helper()
	for h.Ping(ctx) != nil {
		if ctx.Err() != nil {
			t.Fatal("the server does not come back")
		}
	}
	kill(t, dir)
}

func isFault(err error, f sandbox.Fault) bool {
	var e *sandbox.Error
	return errors.As(err, &e) && e.Fault == f
}

// Many callers write while the server is killed again and again: whatever Finish
// said was kept is there, once.
func TestNoFinishedExecutionIsLostWhenTheServerIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, dir := server(t)
	h := open(t, s)
	defer h.Close()
	var all sync.WaitGroup
	const callers, rounds = 16, 40
	for c := range callers {
		all.Go(func() {
			for r := range rounds {
				e := execution(fmt.Sprint("e", c, "-", r))
				if err := h.Begin(ctx, e); err != nil && !isFault(err, sandbox.FaultUnavailable) {
					t.Error(err)
				}
				e.Status, e.Stdout = sandbox.StatusCompleted, e.ID
				if err := h.Finish(ctx, e); err != nil {
					t.Errorf("Finish %s: %v", e.ID, err)
				}
				if c == 0 && r%10 == 5 {
					killAgain(ctx, t, h, dir)
				}
			}
		})
	}
	all.Wait()
	killAgain(ctx, t, h, dir)
	for n := 0; n != callers*rounds; { // rides out the last restart
		var err error
		if n, err = h.CountExecutions(ctx, "s1"); err != nil && (ctx.Err() != nil || !isFault(err, sandbox.FaultUnavailable)) || err == nil && n != callers*rounds {
			t.Fatalf("%d executions, %v; want %d", n, err, callers*rounds)
		}
	}
	killAgain(ctx, t, h, dir) // what is said to be there must not depend on the server's memory
	for c := range callers {
		for r := range rounds {
			id := fmt.Sprint("e", c, "-", r)
			e, err := h.Execution(ctx, id)
			for isFault(err, sandbox.FaultUnavailable) && ctx.Err() == nil {
				e, err = h.Execution(ctx, id)
			}
			if err != nil || e.Status != sandbox.StatusCompleted || e.Stdout != id {
				t.Fatalf("%s is %+v, %v", id, e, err)
			}
		}
	}
}

// While the server is away runs go on for some seconds, on record; then none begins, and
// those that run can end. All of it is there when the server is.
func TestAnOutage(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, dir := server(t)
	logs := t.TempDir()
	h := openIn(t, s, logs)
	if err := h.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	calls := map[string]error{"Ping": h.Ping(ctx)}
	_, calls["Execution"] = h.Execution(ctx, "x")
	_, _, calls["Executions"] = h.Executions(ctx, sandbox.ExecutionFilter{})
	_, calls["Statistics"] = h.Statistics(ctx, "")
	_, calls["Sandbox"] = h.Sandbox(ctx, "x")
	_, calls["KeyByHash"] = h.KeyByHash(ctx, []byte("x"))
	ended, began := execution("ended"), 0
	if err := h.Begin(ctx, ended); err != nil {
		t.Errorf("the first one after the server went: %v", err)
	}
	for calls["Begin"] == nil && ctx.Err() == nil {
		calls["Begin"] = h.Begin(ctx, execution("open")) // the same one, again and again
		_, _ = h.Statistics(ctx, "")
		began++
	}
	for name, err := range calls {
		if !isFault(err, sandbox.FaultUnavailable) {
			t.Errorf("%s: %v, want %s", name, err, sandbox.FaultUnavailable)
		}
	}
	if began < 2 {
		t.Error("none may begin from the start")
	}
	ended.Status, ended.Stdout = sandbox.StatusCompleted, "kept"
	if err := h.Finish(ctx, ended); err != nil {
		t.Errorf("Finish: %v", err)
	}
	if err := h.Close(); err == nil || !strings.Contains(err.Error(), "2 executions are not in the history database") {
		t.Errorf("Close says %v", err)
	}
	if err := h.Begin(ctx, execution("late")); !isFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Begin after Close: %v", err)
	}
	if err := h.Finish(ctx, execution("late")); !isFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Finish after Close: %v", err)
	}

	again := serverIn(t, dir)
	h = openIn(t, again, logs)
	defer h.Close()
	if n, err := h.Recover(ctx); n != 1 || err != nil {
		t.Errorf("Recover = %d, %v; want 1", n, err)
	}
	for id, want := range map[string]sandbox.Status{"ended": sandbox.StatusCompleted, "open": sandbox.StatusCancelled} {
		if e, err := h.Execution(ctx, id); err != nil || e.Status != want || e.CompletedAt == nil || id == "ended" && e.Stdout != "kept" {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
	}
}

// A server that hangs, and closes no connection, hangs nobody.
func TestAHangingServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, dir := server(t)
	h := open(t, s)
	defer h.Close()
	if err := h.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	signal := func(what syscall.Signal) {
		own, err := postmaster(dir)
		if err != nil {
			t.Fatal(err)
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", own, own))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range append(strings.Fields(string(children)), strconv.Itoa(own)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = syscall.Kill(pid, what)
			}
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	e := execution("e")
	if err := errors.Join(h.Begin(ctx, e), h.Finish(ctx, e)); err != nil {
		t.Errorf("a run: %v", err)
	}
	if _, err := h.KeyByHash(ctx, []byte("x")); !isFault(err, sandbox.FaultUnavailable) {
		t.Errorf("a key: %v", err)
	}
	if err := h.Begin(ctx, execution("late")); !isFault(err, sandbox.FaultUnavailable) {
		t.Errorf("a run, ten seconds later: %v", err)
	}
	signal(syscall.SIGCONT)
	if e, err := h.Execution(ctx, "e"); err != nil || e.CompletedAt == nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// What came while the server was away is read when it is back, with no restart.
func TestTheServerComesBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, dir := server(t)
	h := open(t, s)
	defer h.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	patient := execution("patient")
	patient.Status = sandbox.StatusCompleted
	if err := h.Finish(ctx, patient); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Execution(ctx, "patient"); !isFault(err, sandbox.FaultUnavailable) {
		t.Errorf("before it is back: %v", err)
	}
	serverIn(t, dir)
	if e, err := h.Execution(ctx, "patient"); err != nil || e.Status != sandbox.StatusCompleted || e.CompletedAt == nil {
		t.Errorf("%+v, %v", e, err)
	}
}
