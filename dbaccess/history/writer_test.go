package history

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"glasshouse/dbaccess/history/wal"
	"glasshouse/sandbox"
)

// writeLog writes records into a log, as a service that was killed leaves them.
func writeLog(t *testing.T, dir string, records ...string) {
	t.Helper()
	log, err := wal.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if _, err := log.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentExecutionsAreAllStored(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	var all sync.WaitGroup
	for n := range 64 {
		all.Go(func() {
			e := runningExecution(fmt.Sprint("e", n))
			if err := errors.Join(h.Begin(ctx, e), h.Finish(ctx, end(e, sandbox.StatusCompleted))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	st, err := h.Statistics(ctx, "ada")
	if err != nil || st.TotalExecutions != 64 || st.SuccessRate != 100 {
		t.Errorf("Statistics: got %+v, %v; want 64 executions, all successful", st, err)
	}
	if st, err := h.Statistics(ctx, "grace"); err != nil || st.TotalExecutions != 0 {
		t.Errorf("Statistics of another user: got %d executions, %v; want 0", st.TotalExecutions, err)
	}
}

// Without a reader that waits, the flush loop inserts the backlog by itself.
func TestBacklogIsInsertedWithoutReaders(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	for n := range 20 {
		e := runningExecution(fmt.Sprint("short", n))
		h.begin(t, e)
		h.finish(t, e, sandbox.StatusCompleted)
	}
	h.begin(t, runningExecution("long"))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		counts := h.query(t, `SELECT concat(count(*), ' ', count(completed_at)) FROM executions`)
		if counts[0] == "21 20" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("executions and ended executions after 30 s: got %s, want 21 20", counts[0])
		}
	}
}

func TestUnwritableLogWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h, p := newProxiedStore(t)
	if err := h.writer.log.Close(); err != nil { // its writes fail now, as on a full disk
		t.Fatal(err)
	}
	inserted := func(want sandbox.Status) {
		t.Helper()
		if got := h.query(t, `SELECT status FROM executions`); !reflect.DeepEqual(got, []string{string(want)}) {
			t.Errorf("statuses in the database: got %q, want %q", got, want)
		}
	}
	e := runningExecution("e")
	h.begin(t, e)
	inserted(sandbox.StatusRunning)
	h.finish(t, e, sandbox.StatusCompleted)
	inserted(sandbox.StatusCompleted)

	p.cut()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := h.Finish(cancelled, e); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Finish with neither log nor database: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	if err := h.Begin(cancelled, runningExecution("never")); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("Begin with neither log nor database: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	p.restore()
	if e, err := h.Execution(ctx, "never"); err != nil || e.Status != sandbox.StatusCancelled || e.CompletedAt == nil {
		t.Errorf("execution that did not run: got %+v, %v; want status %s", e, err, sandbox.StatusCancelled)
	}
}

func TestFullDiskAcceptsOnlyEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	e := runningExecution("e")
	storeQuery := func(number int64, status string) error {
		query := sandbox.Query{SQL: "SELECT 1", Status: status}
		return h.Progress(ctx, sandbox.Progress{Execution: e.ID, Number: number, Query: &query})
	}
	h.begin(t, e)
	if err := storeQuery(0, sandbox.QueryRunning); err != nil {
		t.Fatal(err)
	}
	h.writer.space = freeSpace{dir: h.dir, min: 1 << 62}
	for name, err := range map[string]error{
		"a query that begins": storeQuery(1, sandbox.QueryRunning), "Begin": h.Begin(ctx, runningExecution("another")),
		"CreateSandbox": h.CreateSandbox(ctx, sandbox.Sandbox{ID: "another"}), "Ping": h.Ping(ctx),
	} {
		if !hasFault(err, sandbox.FaultUnavailable) {
			t.Errorf("%s: got %v, want %s", name, err, sandbox.FaultUnavailable)
		}
	}
	if err := storeQuery(0, "ok"); err != nil {
		t.Errorf("a query that ends: %v", err)
	}
	got, err := h.Execution(ctx, e.ID)
	if err != nil || len(got.Queries) != 1 || got.Queries[0].Status != "ok" {
		t.Errorf("queries: got %+v, %v; want one with status ok", got.Queries, err)
	}
	h.finish(t, e, sandbox.StatusCompleted)
}

func TestFreeSpaceRefusesBelowItsMinimum(t *testing.T) {
	t.Parallel()
	f := freeSpace{dir: t.TempDir(), min: 1}
	if err := f.check(); err != nil {
		t.Errorf("with a minimum of 1 byte: %v", err)
	}
	f.min = 1 << 62
	if err := f.check(); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("with a minimum of 2^62 bytes: got %v, want %s", err, sandbox.FaultUnavailable)
	}
}

// The end of an execution is on disk when Finish returns or, with asynchronous commit, soon after.
func TestFinishSyncsTheLog(t *testing.T) {
	t.Parallel()
	for _, asynchronous := range []bool{false, true} {
		h := openStore(t, Config{URL: databaseURL(t), Dir: t.TempDir(), AsynchronousCommit: asynchronous})
		for n := range 3 {
			h.finish(t, runningExecution(fmt.Sprint(asynchronous, n)), sandbox.StatusCompleted)
			h.writer.mu.Lock()
			last := h.writer.last
			h.writer.mu.Unlock()
			synced := func() bool { return !last.After(h.writer.log.Synced()) }
			for end := time.Now().Add(30 * time.Second); asynchronous && !synced() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if !synced() {
				t.Fatalf("AsynchronousCommit %t: the end of execution %d is not on disk", asynchronous, n)
			}
		}
	}
}

func TestCrashLosesNoExecution(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	finished := runningExecution("finished")
	finished.Code = "print('\x00')"
	h.begin(t, finished)
	finished.Stdout = "a\x00b\u2028"
	h.finish(t, finished, sandbox.StatusCompleted)
	h.begin(t, runningExecution("open"))
	h = h.reopen(t)
	if n, err := h.Recover(ctx); err != nil || n != 1 {
		t.Fatalf("Recover: got %d, %v; want 1", n, err)
	}
	open, err := h.Execution(ctx, "open")
	if err != nil || open.Status != sandbox.StatusCancelled || open.Error == nil ||
		!strings.Contains(*open.Error, "service") {
		t.Errorf("open execution: got %+v, %v; want it cancelled by the service", open, err)
	}
	if open.Outputs == nil || open.DebugInfo.Logs == nil {
		t.Errorf("open execution: got null lists (%+v), want empty ones", open)
	}
	got, err := h.Execution(ctx, "finished")
	if err != nil || got.Stdout != finished.Stdout || got.Code != finished.Code {
		t.Errorf("finished execution: got stdout %q, code %q, %v", got.Stdout, got.Code, err)
	}
}

// An unreadable record is kept as a file. Other records are replayed and the service starts.
func TestUnreadableRecordIsKeptAsAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const depth = 10_001 // deeper than encoding/json can decode
	writeLog(t, dir, `{"outputs":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`, `{"execution_id":"good",`+
		`"status":"completed","created_at":"2026-01-02T03:04:05Z","completed_at":"2026-01-02T03:04:06Z"}`)
	h := openStore(t, Config{URL: databaseURL(t), Dir: dir})
	if e, err := h.Execution(context.Background(), "good"); err != nil || e.Status != sandbox.StatusCompleted {
		t.Errorf("the readable record: got %+v, %v", e, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "refused", "unread-*.json")); err != nil || len(files) != 1 {
		t.Errorf("files of unreadable records: got %q, %v; want one", files, err)
	}
}

// incompressible returns text that is too long for an index of PostgreSQL, even when it is compressed.
func incompressible() string {
	var text strings.Builder
	for range 1000 {
		text.WriteString(rand.Text())
	}
	return text.String()
}

func TestRefusedRowHarmsNoOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	for n := range 40 {
		e := runningExecution(fmt.Sprint("e", n))
		if n%10 == 0 {
			e.ID, e.User = "bad"+e.ID, incompressible() // the index on owner refuses it
		}
		h.finish(t, e, sandbox.StatusCompleted)
	}
	if n, err := h.CountExecutions(ctx, "s1"); err != nil || n != 36 {
		t.Errorf("CountExecutions: got %d, %v; want 36", n, err)
	}
	for _, id := range []string{"bade0", "bade30"} {
		text, err := os.ReadFile(filepath.Join(h.dir, "refused", id+".json"))
		if err != nil || !strings.Contains(string(text), id) {
			t.Errorf("file of refused execution %s: got %.100q, %v", id, text, err)
		}
	}
}

// If PostgreSQL refuses only the record of an execution, a row with its other columns points to the file.
func TestRefusedRecordLeavesAPointer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	e := runningExecution("e")
	h.begin(t, e)
	e.Connections = []sandbox.Connection{{Host: incompressible()}}
	h.finish(t, e, sandbox.StatusCompleted)
	got, err := h.Execution(ctx, e.ID)
	if err != nil || got.Status != sandbox.StatusCompleted || got.CompletedAt == nil ||
		got.Error == nil || !strings.Contains(*got.Error, "history/refused/e.json") {
		t.Errorf("got %+v, %v; want a completed execution whose error names the file", got, err)
	}
}

func TestUnstorableExecutionsAreErrors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	late := runningExecution("late")
	late.CreatedAt = time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON times end with the year 9999
	if err := h.Finish(ctx, end(late, sandbox.StatusCompleted)); err == nil {
		t.Error("Finish of an execution of the year 300000: got no error")
	}
	if err := h.Finish(ctx, runningExecution("e")); err == nil {
		t.Error("Finish without CompletedAt: got no error")
	}
	if err := h.Begin(ctx, end(runningExecution("e"), sandbox.StatusCompleted)); err == nil {
		t.Error("Begin with CompletedAt: got no error")
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	h.query(t, `INSERT INTO schema_versions (name) VALUES ('9999_future.sql') RETURNING name`)
	_ = h.Close()
	late, err := Open(context.Background(), Config{URL: h.url, Dir: t.TempDir()}, h.logger)
	if err == nil {
		_ = late.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "9999_future.sql") || !strings.Contains(err.Error(), "newer") {
		t.Errorf("Open: got %v, want an error that names the migration and asks for a newer glasshouse", err)
	}
}

// A database that versions with 17 migrations made is not changed. The error says how its executions are moved.
func TestOlderDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	h.query(t, `INSERT INTO schema_versions (name) VALUES ('0002_connections.sql'), ('0003_pending_writes.sql')
		RETURNING name`)
	_ = h.Close()
	late, err := Open(context.Background(), Config{URL: h.url, Dir: t.TempDir()}, h.logger)
	if err == nil {
		_ = late.Close()
	}
	_, verifyErr := Verify(context.Background(), VerifyConfig{URL: h.url})
	for what, err := range map[string]error{"Open": err, "Verify": verifyErr} {
		for _, part := range []string{oldMigration, "history export", "history import"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want an error with %q", what, err, part)
			}
		}
	}
}
