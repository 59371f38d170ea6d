package history

import (
	"bytes"
	"context"
	"fmt"
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

	_ = first.Close() // a proper end has no lease: the next service need not wait
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

// The connection of the lock is lost, and another service starts before this one has reconnected.
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
	first, err := open(ctx, Config{URL: proxied, Dir: t.TempDir()}, logger, clock.Now, patient)
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
	// Its client gets the answer, so history must have it.
	if err := first.Finish(ctx, end(running, sandbox.StatusCompleted)); err != nil {
		t.Errorf("Finish: %v", err)
	}
	if _, err := first.Execution(ctx, "running"); err != nil { // and wait until it is inserted
		t.Error(err)
	}
	if e, err := second.Execution(ctx, "running"); err != nil || e.Status != sandbox.StatusCompleted {
		t.Errorf("the execution in history: got %s, %v; want completed", e.Status, err)
	}
	for n, want := range []sandbox.State{sandbox.StateDeleted, sandbox.StateLost} {
		if b, err := second.Sandbox(ctx, sandboxes[n]); err != nil || b.State != want {
			t.Errorf("sandbox %s in history: got %s, %v; want %s", sandboxes[n], b.State, err, want)
		}
	}
	second.begin(t, runningExecution("new"))
}

// A network has lost the connection of the lock, and the server does not know: it still regards the lock as held.
func TestLockOfALostConnectionIsReleased(t *testing.T) {
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
	eventually(t, "this service has the lock", func() bool { return out.has("locked the history database again") })
	if err := h.Begin(context.Background(), runningExecution("e")); err != nil {
		t.Error(err)
	}
}

// The server ends the connection of the lock.
func TestLockIsTakenAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := newStore(t)
	lockers := fmt.Sprintf(`FROM pg_locks JOIN pg_database d ON d.oid = database AND d.datname = current_database()
		WHERE locktype = 'advisory' AND granted AND classid::bigint << 32 | objid::bigint = %d`, ownershipLock)
	before := h.query(t, `SELECT pid::text `+lockers)
	if len(before) != 1 {
		t.Fatalf("connections that hold the lock: got %q, want one", before)
	}
	h.query(t, `SELECT pg_terminate_backend(pid)::text `+lockers)
	eventually(t, "another connection holds the lock", func() bool {
		now := h.query(t, `SELECT pid::text `+lockers)
		return len(now) == 1 && now[0] != before[0]
	})
	h.begin(t, runningExecution("e"))
	if second, err := Open(ctx, Config{URL: h.url, Dir: t.TempDir()}, h.logger); err == nil {
		_ = second.Close()
		t.Error("a second service opened the database")
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
