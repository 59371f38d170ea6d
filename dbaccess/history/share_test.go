package history

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
)

// One user's records fill the user's share of the backlog while PostgreSQL is slow. Another user's runs begin.
func TestFloodOfRecordsRefusesNoOtherUser(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	ctx := context.Background()
	of := func(user string) *sandbox.Execution {
		e := runningExecution("e-" + user)
		e.User, e.SandboxID = user, "s-"+user
		return e
	}
	h.begin(t, of("many"))
	if _, err := h.Execution(ctx, "e-many"); err != nil { // inserted
		t.Fatal(err)
	}
	blocker, err := pgx.Connect(ctx, h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close(ctx)
	if _, err := blocker.Exec(ctx, "BEGIN; LOCK TABLE progress IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	statement := strings.Repeat("x", 1<<20)
	flood := func(ctx context.Context, first int) (n int, err error) {
		for n = first; err == nil; n++ {
			err = h.Progress(ctx, queryProgress("e-many", int64(n), statement, sandbox.QueryRunning))
		}
		return n - 1, err
	}
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	n, err := flood(short, 0)
	if !hasFault(err, sandbox.FaultUnavailable) || n < maxBacklogBytes>>20-1 || n > maxBacklogBytes>>20+1 {
		t.Fatalf("got %d statements and %v, want the %d MiB of the backlog", n, err, maxBacklogBytes>>20)
	}
	for _, user := range []string{"one", "another"} {
		e := of(user)
		if err := errors.Join(h.CreateSandbox(ctx, sandbox.Sandbox{ID: "s-" + user, Owner: user}),
			h.Begin(ctx, e), h.Progress(ctx, queryProgress(e.ID, 0, "SELECT 1", sandbox.QueryRunning)),
			h.Finish(ctx, end(e, sandbox.StatusCompleted))); err != nil {
			t.Errorf("user %s: got %v, want a run", user, err)
		}
	}
	if err := h.Ping(ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
	waiting := make(chan error)
	go func() {
		waiting <- h.Progress(ctx, queryProgress("e-many", int64(n), "SELECT 1", sandbox.QueryRunning))
	}()
	if _, err := blocker.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("a statement that waits for space: %v", err)
	}
	for user, queries := range map[string]int{"many": n + 1, "one": 0, "another": 0} {
		if e, err := h.Execution(ctx, "e-"+user); err != nil || len(e.Queries) != queries {
			t.Errorf("execution of %s: got %d queries, %v; want %d", user, len(e.Queries), err, queries)
		}
	}
}

// One user's writes that wait for each other leave connections for other users' reads.
func TestWritesOfOneUserLeaveConnections(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	ctx := context.Background()
	blocker, err := pgx.Connect(ctx, h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close(ctx)
	if _, err := blocker.Exec(ctx, "BEGIN; LOCK TABLE pending_writes, artifacts IN EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	many, cancel := context.WithCancel(limit.WithUser(ctx, "many"))
	const writes = 3 * minPoolConns
	done := make(chan error, 2*writes)
	for n := range writes {
		go func() {
			done <- h.AddWrite(many, sandbox.PendingWrite{ID: fmt.Sprint(n), User: "many", Status: sandbox.WritePending,
				CreatedAt: time.Now()}, 100, 1<<20)
		}()
		go func() {
			done <- h.KeepArtifacts(many, []sandbox.Artifact{{ID: fmt.Sprint("a", n), Path: fmt.Sprint(n)}})
		}()
	}
	for h.writes.Held("many") < 4 || h.reads.Held("many") < 8 { // the most that one user may hold
		time.Sleep(time.Millisecond)
	}
	one, cancelOne := context.WithTimeout(limit.WithUser(ctx, "one"), 20*time.Second)
	defer cancelOne()
	if _, err := h.Keys(one, "one"); err != nil {
		t.Errorf("a read of another user: %v", err)
	}
	if err := h.AddCPU(one, "one", time.Now(), time.Second); err != nil {
		t.Errorf("a write of another user: %v", err)
	}
	cancel()
	for range 2 * writes {
		<-done
	}
}
