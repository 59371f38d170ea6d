package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

// silent is a server's history, which tells nobody what goes wrong.
func silent(t *testing.T, s *embedded.Server) *Store {
	t.Helper()
	return silentAs(t, s, Config{})
}

func silentAs(t *testing.T, s *embedded.Server, c Config) *Store {
	t.Helper()
	c.URL, c.Dir = s.URL(embedded.RoleHistory, embedded.DatabaseHistory), t.TempDir()
	say := logrus.New()
	say.SetOutput(io.Discard)
	h, err := Open(context.Background(), c, say)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Where the log can't be written, an answer waits for the database; nothing is lost.
func TestABrokenLog(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	h := silent(t, s)
	if err := h.queue.log.Close(); err != nil { // as a disk that is full
		t.Fatal(err)
	}
	e := &sandbox.Execution{ID: "e", SandboxID: "s", User: "ada", Status: sandbox.StatusRunning, CreatedAt: time.Now()}
	there := func() (n int) {
		if err := h.pool.QueryRow(ctx, `SELECT count(*) FROM executions WHERE status = $1`, string(e.Status)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := h.Begin(ctx, e); err != nil || there() != 1 {
		t.Errorf("Begin: %v, %d rows", err, there())
	}
	e.Status = sandbox.StatusCompleted
	if err := h.Finish(ctx, e); err != nil || there() != 1 {
		t.Errorf("Finish: %v, %d rows", err, there())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := h.Finish(gone, e); !lost(err) {
		t.Errorf("with neither log nor database: %v", err)
	}
	if err := h.Begin(gone, &sandbox.Execution{ID: "never", CreatedAt: time.Now()}); !lost(err) {
		t.Errorf("with neither log nor database: %v", err)
	}
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	if n, waits := h.queue.at["never"]; !waits || h.queue.rows[n].e.Status != sandbox.StatusCancelled {
		t.Errorf("what never ran is not on record as that: %v", h.queue.rows)
	}
}

// On a full disk nothing begins, nor does a running execution begin anything; what goes on may end.
func TestAFullDiskTakesEndsOnly(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	h := silent(t, s)
	defer h.Close()
	e := &sandbox.Execution{ID: "e", SandboxID: "s", User: "ada", Status: sandbox.StatusRunning, CreatedAt: time.Now()}
	does := func(number int64, status string) error {
		return h.Progress(ctx, sandbox.Progress{Execution: e.ID, Number: number, Query: &sandbox.Query{SQL: "SELECT 1", Status: status}})
	}
	if err := errors.Join(h.Begin(ctx, e), does(0, sandbox.QueryRunning)); err != nil {
		t.Fatal(err)
	}
	h.queue.disk = disk{folder: h.queue.disk.folder, least: 1 << 62}
	if err := does(1, sandbox.QueryRunning); !isUnavailable(err) {
		t.Errorf("a statement begins: %v", err)
	}
	if err := h.Begin(ctx, &sandbox.Execution{ID: "another", CreatedAt: time.Now()}); !isUnavailable(err) {
		t.Errorf("an execution begins: %v", err)
	}
	if err := h.Ping(ctx); !isUnavailable(err) {
		t.Errorf("and it is said that one could: %v", err)
	}
	if err := does(0, "ok"); err != nil {
		t.Errorf("a statement does not end: %v", err)
	}
	if got, err := h.Execution(ctx, e.ID); err != nil || len(got.Queries) != 1 || got.Queries[0].Status != "ok" {
		t.Errorf("%+v, %v", got.Queries, err)
	}
	e.Status = sandbox.StatusCompleted
	if err := h.Finish(ctx, e); err != nil {
		t.Errorf("the execution does not end: %v", err)
	}
}

// The end of an execution is on disk before Finish returns, or where commits are
// asynchronous soon afterwards, without another word.
func TestTheEndIsOnDisk(t *testing.T) {
	ctx := context.Background()
	s := dbtest.Start(t)
	for _, asynchronous := range []bool{false, true} {
		h := silentAs(t, s, Config{AsynchronousCommit: asynchronous})
		for n := range 3 {
			now := time.Now()
			e := &sandbox.Execution{ID: fmt.Sprintf("%t-%d", asynchronous, n), SandboxID: "s", User: "ada", Status: sandbox.StatusCompleted, CreatedAt: now, CompletedAt: &now}
			if err := h.Finish(ctx, e); err != nil {
				t.Fatal(err)
			}
			h.queue.mu.Lock()
			mark := h.queue.mark
			h.queue.mu.Unlock()
			onDisk := func() bool { return !mark.After(h.queue.log.Synced()) }
			for end := time.Now().Add(30 * time.Second); asynchronous && !onDisk() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if !onDisk() {
				t.Fatalf("asynchronous %t: the end of execution %d is not on disk", asynchronous, n)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
