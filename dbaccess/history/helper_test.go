package history

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/sandbox"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// testStore is a Store with the database, the folder and the clock that the test controls.
type testStore struct {
	*Store
	url, dir string
	clock    *testClock
}

// testClock runs only when the test moves it.
type testClock struct{ nanoseconds atomic.Int64 }

func (c *testClock) Now() time.Time          { return time.Unix(0, c.nanoseconds.Load()) }
func (c *testClock) advance(d time.Duration) { c.nanoseconds.Add(int64(d)) }

func databaseURL(t testing.TB) string {
	t.Helper()
	return dbtest.Start(t).URL(embedded.RoleHistory, embedded.DatabaseHistory)
}

// newStore opens a Store on a new database and in a new folder.
func newStore(t testing.TB) *testStore {
	t.Helper()
	return openStore(t, Config{URL: databaseURL(t), Dir: t.TempDir()})
}

// patient are timeouts that end no test on a busy machine.
var patient = timeouts{read: time.Minute, search: time.Minute, lease: leaseDuration}

// openStore opens a Store whose log messages go nowhere, and closes it at the end of the test.
func openStore(t testing.TB, c Config) *testStore {
	t.Helper()
	return openWithTimeouts(t, c, patient)
}

func openWithTimeouts(t testing.TB, c Config, timeouts timeouts) *testStore {
	t.Helper()
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	clock := &testClock{}
	clock.nanoseconds.Store(time.Now().UnixNano())
	s, err := open(context.Background(), c, logger, clock.Now, timeouts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &testStore{s, c.URL, c.Dir, clock}
}

// reopen closes the store and opens it again, as a restart of the service does.
func (s *testStore) reopen(t testing.TB) *testStore {
	t.Helper()
	_ = s.Close() // during an outage it returns an error
	return openStore(t, Config{URL: s.url, Dir: s.dir})
}

// query runs a statement past the Store and returns its rows as text.
func (s *testStore) query(t testing.TB, sql string, args ...any) []string {
	t.Helper()
	rows, _ := s.pool.Query(context.Background(), sql, args...)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// begin stores executions that run.
func (s *testStore) begin(t testing.TB, list ...*sandbox.Execution) {
	t.Helper()
	for _, e := range list {
		if err := s.Begin(context.Background(), e); err != nil {
			t.Fatalf("Begin %s: %v", e.ID, err)
		}
	}
}

// finish stores the end of an execution.
func (s *testStore) finish(t testing.TB, e *sandbox.Execution, status sandbox.Status) {
	t.Helper()
	if err := s.Finish(context.Background(), end(e, status)); err != nil {
		t.Fatalf("Finish %s: %v", e.ID, err)
	}
}

// runningExecution returns an execution that Begin takes.
func runningExecution(id string) *sandbox.Execution {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &sandbox.Execution{ID: id, SandboxID: "s1", User: "ada", Kind: sandbox.KindExecute,
		Status: sandbox.StatusRunning, Code: "1+1", CreatedAt: now, Timestamp: now}
}

// end returns e as Finish takes it.
func end(e *sandbox.Execution, status sandbox.Status) *sandbox.Execution {
	now := e.CreatedAt.Add(time.Second)
	e.Status, e.CompletedAt = status, &now
	return e
}

func hasFault(err error, fault sandbox.Fault) bool {
	var known *sandbox.Error
	return errors.As(err, &known) && known.Fault == fault
}

// proxy stands between a Store and PostgreSQL. The test cuts it, which looks like a server that is down, or stalls it,
// which looks like a server that hangs.
type proxy struct {
	t        testing.TB
	dir      string
	upstream string // socket of PostgreSQL
	flow     sync.RWMutex

	mu       sync.Mutex
	listener net.Listener
	conns    []net.Conn
	clients  []net.Conn
	silent   atomic.Bool // the server is not told that a client is gone
}

const socketName = ".s.PGSQL.5432"

// newProxy returns a proxy to the server of the URL, and the URL of the proxy.
func newProxy(t testing.TB, url string) (*proxy, string) {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "proxy") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, dir: dir, upstream: filepath.Join(config.Host, socketName)}
	p.restore()
	t.Cleanup(func() {
		p.cut()
		_ = os.RemoveAll(dir)
	})
	return p, "postgres:///" + config.Database + "?host=" + dir + "&user=" + config.User
}

// restore lets new connections through.
func (p *proxy) restore() {
	p.t.Helper()
	listener, err := net.Listen("unix", filepath.Join(p.dir, socketName))
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.listener = listener
	p.mu.Unlock()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", p.upstream)
			if err != nil {
				_ = client.Close()
				continue
			}
			p.mu.Lock()
			p.conns, p.clients = append(p.conns, client, server), append(p.clients, client)
			p.mu.Unlock()
			go p.copy(client, server)
			go p.copy(server, client)
		}
	}()
}

func (p *proxy) copy(to, from net.Conn) {
	defer func() {
		if !p.silent.Load() {
			_ = to.Close()
		}
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.flow.RLock()
		_, err = to.Write(buffer[:n])
		p.flow.RUnlock()
		if err != nil {
			return
		}
	}
}

// cut closes all connections and refuses new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// cutUnnoticed closes the connections of the clients and refuses new ones. The server does not notice.
func (p *proxy) cutUnnoticed() {
	p.silent.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for _, c := range p.clients {
		_ = c.Close()
	}
	p.clients = nil
}

// stall lets nothing through, until the returned function is called.
func (p *proxy) stall() (resume func()) {
	p.flow.Lock()
	return p.flow.Unlock
}
