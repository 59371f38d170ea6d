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
	return s, dir
}

func kill(t *testing.T, dir string) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.SplitN(string(body), "\n", 2)[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func isFault(err error, f sandbox.Fault) bool {
	var e *sandbox.Error
	return errors.As(err, &e) && e.Fault == f
}

// Many callers write while the server is killed again and again: whatever Finish
// said was kept is there, although its opening need not have been.
func TestNoFinishedExecutionIsLostWhenTheServerIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s, dir := server(t)
	h := open(t, s)
	defer h.Close()
	var all sync.WaitGroup
	var mu sync.Mutex
	var kept []string
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
					continue
				}
				mu.Lock()
				kept = append(kept, e.ID)
				n := len(kept)
				mu.Unlock()
				if n == callers*rounds/4 || n == callers*rounds/2 {
					kill(t, dir)
				}
			}
		})
	}
	all.Wait()
	kill(t, dir) // what Finish said is kept must not depend on the server's memory
	for _, id := range kept {
		var e sandbox.Execution
		var err error
		for ctx.Err() == nil { // rides out the last restart
			if e, err = h.Execution(ctx, id); !isFault(err, sandbox.FaultUnavailable) {
				break
			}
		}
		if err != nil || e.Status != sandbox.StatusCompleted || e.Stdout != id {
			t.Fatalf("%s is %+v, %v", id, e, err)
		}
	}
	if n, err := h.CountExecutions(ctx, "s1"); err != nil || n != len(kept) {
		t.Errorf("%d executions, %v; want %d", n, err, len(kept))
	}
}

func TestAnOutageHasItsOwnAnswer(t *testing.T) {
	ctx := context.Background()
	s, _ := server(t)
	h := open(t, s)
	if err := h.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	calls := map[string]error{"Ping": h.Ping(ctx), "Begin": h.Begin(short, execution("b")), "Finish": h.Finish(short, execution("f"))}
	_, calls["Execution"] = h.Execution(ctx, "x")
	_, _, calls["Executions"] = h.Executions(ctx, sandbox.Filter{})
	_, calls["Statistics"] = h.Statistics(ctx, "")
	_, calls["Sandbox"] = h.Sandbox(ctx, "x")
	_, calls["KeyByHash"] = h.KeyByHash(ctx, []byte("x"))
	for name, err := range calls {
		if !isFault(err, sandbox.FaultUnavailable) {
			t.Errorf("%s: %v, want %s", name, err, sandbox.FaultUnavailable)
		}
	}
	// Closing ends what still waits for a server that does not come back.
	waiting := make(chan error, 1)
	patient, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	go func() { waiting <- h.Finish(patient, execution("w")) }()
	h.Close()
	if err := <-waiting; err == nil {
		t.Error("Finish said that it kept an execution with no server")
	}
	if err := h.Begin(ctx, execution("late")); err == nil {
		t.Error("Begin after Close has no error")
	}
}

func TestAFinishWaitsForTheServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, dir := server(t)
	h := open(t, s)
	defer h.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() {
		e := execution("patient")
		e.Status = sandbox.StatusCompleted
		waiting <- h.Finish(ctx, e)
	}()
	log := logrus.New()
	log.SetOutput(io.Discard)
	again, err := embedded.Start(ctx, embedded.Config{Dir: dir, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := <-waiting; err != nil {
		t.Fatal(err)
	}
	if e, err := h.Execution(ctx, "patient"); err != nil || e.Status != sandbox.StatusCompleted || e.CompletedAt == nil {
		t.Errorf("%+v, %v", e, err)
	}
}
