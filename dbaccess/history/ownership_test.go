package history

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/polltest"
	"glasshouse/sandbox"
)

// testLog is a log that a test reads while it is written.
type testLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *testLog) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

func newTestLog() (*testLog, *logrus.Logger) {
	out, logger := &testLog{}, logrus.New()
	logger.SetOutput(out)
	return out, logger
}

// eventually polls for a state that has no event.
var eventually = polltest.Eventually

// openSandbox is the record of a sandbox that is live.
func openSandbox(id string) sandbox.Sandbox {
	return sandbox.Sandbox{ID: id, Owner: "ada", State: sandbox.StateActive, CreatedAt: time.Now().UTC()}
}

func TestSecondServiceIsRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first := newStore(t)
	running := runningExecution("running")
	first.begin(t, running)
	if err := first.CreateSandbox(ctx, openSandbox("live")); err != nil {
		t.Fatal(err)
	}
	second, err := Open(ctx, Config{URL: first.url, Dir: t.TempDir()}, first.logger)
	if err == nil {
		_ = second.Close()
		t.Fatal("a second service opened the database")
	}
	for _, want := range []string{first.owner.node.ID, first.dir, "stop that service"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error of the second service: got %q, want it to contain %q", err, want)
		}
	}
	if e, err := first.Execution(ctx, "running"); err != nil || e.Status != sandbox.StatusRunning {
		t.Errorf("the first service's execution: got %s, %v; want running", e.Status, err)
	}
	if b, err := first.Sandbox(ctx, "live"); err != nil || b.State != sandbox.StateActive {
		t.Errorf("the first service's sandbox: got %s, %v; want active", b.State, err)
	}

	_ = first.Close() // after a proper end the next service need not wait
	out, logger := newTestLog()
	second, err = Open(ctx, Config{URL: first.url, Dir: t.TempDir()}, logger)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if out.has("waiting") {
		t.Error("the second service waited although the first had ended")
	}
	if n, err := second.Recover(ctx); n != 1 || err != nil {
		t.Errorf("Recover: got %d, %v; want 1", n, err)
	}
	e, err := second.Execution(ctx, "running")
	if err != nil || e.Status != sandbox.StatusCancelled || !strings.Contains(*e.Error, first.owner.node.ID) {
		t.Errorf("what the first service left: got %+v, %v; want an execution that its node's end cancelled", e, err)
	}
	if !out.has("node " + first.owner.node.ID + " left 1 executions running") {
		t.Error("the log does not say which node left an execution")
	}
}

// Somebody starts a copy of the data folder of a service that runs.
func TestCopyOfAFolderIsRefused(t *testing.T) {
	t.Parallel()
	first, dir := newStore(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "node"), []byte(first.owner.node.ID), 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := Open(context.Background(), Config{URL: first.url, Dir: dir}, first.logger)
	if !errors.Is(err, ErrOwned) {
		_ = second.Close()
		t.Errorf("a service with a copy of the folder: got %v, want %v", err, ErrOwned)
	}
	first.begin(t, runningExecution("e"))
}

// A service that was about to record the executions of a killed one as cancelled is replaced, and its records are
// inserted later.
func TestEndOfAnotherNodeIsKept(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	e := runningExecution("e")
	h.begin(t, e)
	h.finish(t, e, sandbox.StatusCompleted)
	status := func() string {
		if _, err := h.Execution(context.Background(), "e"); err != nil { // and wait until it is inserted
			t.Fatal(err)
		}
		return h.query(t, `SELECT status FROM executions`)[0]
	}
	if got := status(); got != "completed" {
		t.Fatalf("got %s, want completed", got)
	}
	h.query(t, `UPDATE executions SET node = 'another' RETURNING id`)
	h.finish(t, e, sandbox.StatusCancelled)
	if got := status(); got != "completed" {
		t.Errorf("after the cancellation by another node: got %s, want completed", got)
	}
	h.query(t, `UPDATE executions SET node = $1 RETURNING id`, h.owner.node.ID)
	h.finish(t, e, sandbox.StatusFailed)
	if got := status(); got != "failed" {
		t.Errorf("after the end that its own node adds: got %s, want failed", got)
	}
}

// Rows have their node. Rows of the time before nodes were recorded have none, and are recovered, too.
func TestRowsHaveTheirNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	h.begin(t, runningExecution("old"), runningExecution("new"))
	if err := h.CreateSandbox(ctx, openSandbox("s")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Sandbox(ctx, "s"); err != nil { // and wait until all rows are inserted
		t.Fatal(err)
	}
	id := h.owner.node.ID
	if got := h.query(t, `SELECT node FROM executions UNION ALL SELECT node FROM sandboxes`); !slices.Equal(
		got, []string{id, id, id},
	) {
		t.Errorf("nodes of the rows: got %q, want %s", got, id)
	}
	h.query(t, `UPDATE executions SET node = '' WHERE id = 'old' RETURNING id`)
	h = h.reopen(t)
	if h.owner.node.ID != id {
		t.Errorf("the id of the node after a restart: got %s, want %s", h.owner.node.ID, id)
	}
	if n, err := h.Recover(ctx); n != 2 || err != nil {
		t.Errorf("Recover: got %d, %v; want 2", n, err)
	}
}

// A service loses its connections, and another one starts before it has connected again.
func TestServiceReturnsWithinItsLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := databaseURL(t)
	p, proxied := newProxy(t, url)
	first := openStore(t, Config{URL: proxied, Dir: t.TempDir()})
	p.cut()
	out, logger := newTestLog()
	refused := make(chan error, 1)
	go func() {
		second, err := Open(ctx, Config{URL: url, Dir: t.TempDir()}, logger)
		if err == nil {
			_ = second.Close()
		}
		refused <- err
	}()
	eventually(t, "the second service waits", func() bool { return out.has("waiting") })
	p.restore()
	if err := <-refused; err == nil || !strings.Contains(err.Error(), first.owner.node.ID) {
		t.Errorf("the second service: got %v, want an error that names the first one's node", err)
	}
	first.begin(t, runningExecution("e"))
}

func TestServiceWhoseDatabaseWasTakenOverStartsNoNewWork(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	url := databaseURL(t)
	p, proxied := newProxy(t, url)
	out, logger := newTestLog()
	clock := &testClock{}
	dir := t.TempDir()
	first, err := open(ctx, Config{URL: proxied, Dir: dir}, logger, clock.Now, patient)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	running := runningExecution("running")
	if err := first.Begin(ctx, running); err != nil {
		t.Fatal(err)
	}
	sandboxes := []string{"ended", "live"}
	for _, id := range sandboxes {
		if err := first.CreateSandbox(ctx, openSandbox(id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := first.Execution(ctx, "running"); err != nil { // and wait until all rows are inserted
		t.Fatal(err)
	}
	p.cut()
	if err := first.EndSandbox(ctx, "ended", "ada", sandbox.StateDeleted, time.Now()); err != nil {
		t.Fatal(err)
	}
	impatient := patient
	impatient.lease = 10 * time.Millisecond
	second := openWithTimeouts(t, Config{URL: url, Dir: t.TempDir()}, impatient)
	second.owner.mu.Lock()
	second.owner.lease = leaseDuration
	second.owner.mu.Unlock()
	if n, err := second.Recover(ctx); n != 1 || err != nil {
		t.Errorf("Recover of the second service: got %d, %v; want 1", n, err)
	}
	p.restore()
	eventually(t, "the first service notices", func() bool {
		return out.has("level=error") && out.has(second.owner.node.ID+" (host ")
	})
	for name, err := range map[string]error{
		"Begin":         first.Begin(ctx, runningExecution("late")),
		"CreateSandbox": first.CreateSandbox(ctx, openSandbox("late")),
		"Ping":          first.Ping(ctx),
	} {
		if !hasFault(err, sandbox.FaultUnavailable) || !strings.Contains(err.Error(), "taken over") {
			t.Errorf("%s: got %v, want %s because the database was taken over", name, err, sandbox.FaultUnavailable)
		}
	}
	// Its client gets the answer. It is stored when the first service has the database again.
	if err := first.Finish(ctx, end(running, sandbox.StatusCompleted)); err != nil {
		t.Errorf("Finish: %v", err)
	}
	second.begin(t, runningExecution("new"))
	if _, err := first.Execution(ctx, "running"); !hasFault(err, sandbox.FaultUnavailable) {
		t.Errorf("a read of the first service, whose records wait: got %v, want %s", err, sandbox.FaultUnavailable)
	}
	check := func(h *testStore, status sandbox.Status, states ...sandbox.State) {
		t.Helper()
		if e, err := h.Execution(ctx, "running"); err != nil || e.Status != status {
			t.Errorf("the execution in history: got %s, %v; want %s", e.Status, err, status)
		}
		for n, want := range states {
			if b, err := h.Sandbox(ctx, sandboxes[n]); err != nil || b.State != want {
				t.Errorf("sandbox %s in history: got %s, %v; want %s", sandboxes[n], b.State, err, want)
			}
		}
	}
	check(second, sandbox.StatusCancelled, sandbox.StateLost, sandbox.StateLost)
	if err := first.Close(); err == nil || !strings.Contains(err.Error(), "are not in the history database") {
		t.Errorf("Close of the first service: got %v, want the number of records that wait", err)
	}
	_ = second.Close()
	check(openStore(t, Config{URL: url, Dir: dir}), sandbox.StatusCompleted, sandbox.StateDeleted, sandbox.StateLost)
}

// A service stops while it stores records, and another one takes the database. The transaction ends first.
func TestTakeOverWaitsForATransaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	first := newStore(t)
	running := runningExecution("running")
	first.begin(t, running)
	first.owner.stop() // no more signs of life
	<-first.owner.stopped
	tx, err := first.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, `SELECT require_node($1, $2)`, first.owner.node.ID, first.owner.node.Epoch); err != nil {
		t.Fatal(err)
	}
	impatient := patient
	impatient.lease = 10 * time.Millisecond
	opened, dir := make(chan error, 1), t.TempDir()
	go func() {
		second, err := open(ctx, Config{URL: first.url, Dir: dir}, first.logger, time.Now, impatient)
		if err == nil {
			defer second.Close()
		}
		opened <- err
	}()
	eventually(t, "the second service waits for the transaction", func() bool {
		return len(first.query(t, `SELECT pid::text FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'SELECT FROM nodes%'`)) == 1
	})
	select {
	case err := <-opened:
		t.Errorf("the second service has the database while the first one stores records: %v", err)
	default:
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	first.finish(t, running, sandbox.StatusCompleted)
	if _, err := first.Execution(ctx, "running"); err == nil || !strings.Contains(err.Error(), "does not confirm") {
		t.Errorf("a record of the first service: got %v, want one that is not stored", err)
	}
}

// A network has lost the connections, and the server does not know.
func TestServiceConnectsAgain(t *testing.T) {
	t.Parallel()
	url := databaseURL(t)
	p, proxied := newProxy(t, url)
	out, logger := newTestLog()
	h, err := Open(context.Background(), Config{URL: proxied, Dir: t.TempDir()}, logger)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p.cutUnnoticed()
	p.restore()
	eventually(t, "the database confirms again", func() bool { return out.has("confirms again that only") })
	if err := h.Begin(context.Background(), runningExecution("e")); err != nil {
		t.Error(err)
	}
}

// A standby that lacks the row of the node becomes the primary server.
func TestLostNodeIsStoredAgain(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	lost := h.query(t, `DELETE FROM nodes RETURNING id || epoch`)
	eventually(t, "the node has its row again", func() bool {
		return slices.Equal(h.query(t, `SELECT id || epoch FROM nodes`), lost)
	})
	h.begin(t, runningExecution("e"))
}

// A standby that lacks the row of the node has become the primary server, and another node has used it meanwhile.
func TestNodeOfTheSameEpochTakesOver(t *testing.T) {
	t.Parallel()
	h := newStore(t)
	h.query(t, `UPDATE nodes SET id = 'another'`)
	eventually(t, "the service notices", func() bool {
		err := h.Begin(context.Background(), runningExecution("late"))
		return err != nil && strings.Contains(err.Error(), "taken over")
	})
	if ids := h.query(t, `SELECT id FROM nodes`); !slices.Equal(ids, []string{"another"}) {
		t.Errorf("nodes: got %q, want only the other one", ids)
	}
}
