package records_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/service/access"
	"glasshouse/service/records"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

var (
	ada   = sandbox.Key{ID: "a", User: "ada", Role: sandbox.RoleAgent}
	grace = sandbox.Key{ID: "g", User: "grace", Role: sandbox.RoleDeveloper}
	root  = sandbox.Key{ID: "r", User: "root", Role: sandbox.RoleAdmin}
)

// clock moves only when the test moves it. The goroutines of the service read it, too.
type clock struct{ now atomic.Pointer[time.Time] }

func (c *clock) Now() time.Time { return *c.now.Load() }

func (c *clock) move(by time.Duration) { c.now.Store(new(c.Now().Add(by))) }

// life is what lives next to the records. The test sets it before it is read.
type life struct {
	sandboxes  map[string]sandbox.Sandbox
	executions []string // running
	forgotten  []func(execution, user string) bool
}

func (l *life) CurrentSandbox(id string) (sandbox.Sandbox, bool) {
	sb, isLive := l.sandboxes[id]
	return sb, isLive
}

func (l *life) CountSandboxes(user string) (n int) {
	for _, sb := range l.sandboxes {
		if user == "" || sb.Owner == user {
			n++
		}
	}
	return n
}

func (l *life) RunningExecutions(string) []string { return l.executions }

func (l *life) TouchSandbox(string) {}

func (l *life) Forget(isErased func(execution, user string) bool) {
	l.forgotten = append(l.forgotten, isErased)
}

// fixture is a service on a real PostgreSQL, with a clock and a life that the test controls.
type fixture struct {
	*records.Service
	clock *clock
	life  *life
	store *history.Store
}

// start starts a service. wrap may replace its history.
func start(t *testing.T, change ...func(*records.Config, *history.Store)) *fixture {
	t.Helper()
	ctx, log := context.Background(), logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	url := dbtest.Start(t).URL(embedded.RoleHistory, embedded.DatabaseHistory)
	store, err := history.Open(ctx, history.Config{URL: url, Dir: t.TempDir()}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	f := &fixture{clock: &clock{}, life: &life{}, store: store}
	f.clock.now.Store(new(time.Now().UTC().Truncate(time.Second)))
	keys := access.New(access.Config{History: store, Default: policy.Default(), Log: log, Clock: f.clock.Now})
	t.Cleanup(keys.Close)
	config := records.Config{
		Access: keys, History: store, Blobs: blobs, SigningKey: []byte("of the tests"), Log: log, Clock: f.clock.Now,
	}
	for _, c := range change {
		c(&config, store)
	}
	f.Service = records.New(config)
	f.Start(f.life, f.life, f.life)
	t.Cleanup(f.Close)
	return f
}

// awaitFirstCheck waits for the check of the limits that Start causes.
func (f *fixture) awaitFirstCheck() {
	for tick := time.Tick(time.Millisecond); f.RetentionStatus().CheckedAt == nil; <-tick {
	}
}

// finish records an execution of ada's that has ended.
func (f *fixture) finish(t *testing.T, id string, at time.Time) {
	t.Helper()
	end := at.Add(time.Second)
	e := &sandbox.Execution{ID: id, SandboxID: "s", User: ada.User, Kind: sandbox.KindExecute,
		Status: sandbox.StatusCompleted, Code: "1", CreatedAt: at, Timestamp: at, CompletedAt: &end}
	if err := f.store.Finish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// total returns the number of ada's executions that are in PostgreSQL.
func (f *fixture) total(t *testing.T) int {
	t.Helper()
	st, err := f.Statistics(t.Context(), ada)
	if err != nil {
		t.Fatal(err)
	}
	return st.TotalExecutions
}

func isFault(t *testing.T, err error, want sandbox.Fault) {
	t.Helper()
	if err == nil || sandbox.FaultOf(err) != want {
		t.Errorf("got error %v, want fault %s", err, want)
	}
}
