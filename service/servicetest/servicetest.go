// Package servicetest starts the services on a real PostgreSQL, with code and a clock that a test controls.
//
//	func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }
//
//	f := servicetest.Start(t, func(c *servicetest.Config) { c.Runs.Parallel = 1 })
//	sb := f.Create(t, servicetest.Ada, "")
//	e, err := f.Execute(sb.ID, "wait")
package servicetest

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/dbtest"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/database"
	"glasshouse/service/debug"
	"glasshouse/service/live"
	"glasshouse/service/records"
	"glasshouse/service/run"
	"glasshouse/service/write"
)

// Two callers without limits.
var (
	Ada   = sandbox.Key{User: "ada", Role: sandbox.RoleAgent}
	Grace = sandbox.Key{User: "grace", Role: sandbox.RoleDeveloper}
)

// Clock moves only when the test moves it. The goroutines of the services read it, too.
type Clock struct{ now atomic.Pointer[time.Time] }

// Now returns the time.
func (c *Clock) Now() time.Time { return *c.now.Load() }

// Move sets the clock forward, or back.
func (c *Clock) Move(by time.Duration) { c.now.Store(new(c.Now().Add(by))) }

// History is the history of all services.
type History interface {
	live.History
	run.History
	records.History
}

// Config is what a test may change before the services start.
type Config struct {
	Postgres *dbtest.Databases
	Code     *Code
	Live     live.Config
	Runs     run.Config

	history func(*history.Store) History
}

// WithHistory makes the services use what wrap returns, instead of the store.
func WithHistory(wrap func(*history.Store) History) func(*Config) {
	return func(c *Config) { c.history = wrap }
}

// Fixture has the services of a test.
type Fixture struct {
	Access    *access.Service
	Records   *records.Service
	Live      *live.Service
	Runs      *run.Service
	Databases *database.Service
	Writes    *write.Service
	Debug     *debug.Service
	Code      *Code
	Clock     *Clock
	Postgres  *dbtest.Databases
}

// Start starts services. change may change their configuration.
func Start(t *testing.T, change ...func(*Config)) *Fixture {
	t.Helper()
	f := &Fixture{Code: &Code{Started: make(chan string, 1)}, Clock: &Clock{}}
	f.Clock.now.Store(new(time.Now().UTC().Truncate(time.Second)))
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.ErrorLevel)
	c := Config{
		Code: f.Code,
		Live: live.Config{
			Supervisor:   supervisor.NewStub(f.Code.Run, func() { f.Code.Closed.Add(1) }),
			Environments: defaultEnvironment{}, Default: policy.Default(), Ceiling: policy.Default(),
			PerUser: 2, InAll: 10, Log: log, Clock: f.Clock.Now,
		},
		Runs: run.Config{Parallel: 4, Log: log, Clock: f.Clock.Now},
	}
	for _, each := range change {
		each(&c)
	}
	if c.Postgres == nil {
		c.Postgres = dbtest.Start(t)
	}
	f.Postgres = c.Postgres
	store, err := history.Open(t.Context(), history.Config{
		URL: f.Postgres.URL(embedded.RoleHistory, embedded.DatabaseHistory), Dir: t.TempDir(),
	}, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	reader, err := dbaccess.Open(t.Context(), dbaccess.Config{
		URL: f.Postgres.URL(embedded.RoleReader, embedded.DatabaseKnowledge),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	var kept History = store
	if c.history != nil {
		kept = c.history(store)
	}
	f.Access = access.New(access.Config{
		History: store, Databases: []string{"knowledge"}, Default: c.Live.Default, Environments: c.Live.Environments,
		Log: log, Clock: f.Clock.Now,
	})
	t.Cleanup(f.Access.Close)
	f.Records = records.New(records.Config{
		Access: f.Access, History: kept, Blobs: blobs, Log: log, Clock: f.Clock.Now, ArtifactBytes: 1 << 30,
	})
	t.Cleanup(f.Records.Close)
	c.Live.Access, c.Live.Records, c.Live.History = f.Access, f.Records, kept
	f.Live = live.New(c.Live)
	c.Runs.Access, c.Runs.Records, c.Runs.Live, c.Runs.History = f.Access, f.Records, f.Live, kept
	f.Databases = database.New(database.Config{
		Access: f.Access, List: []database.Database{{Name: "knowledge", Reader: reader, Writer: reader}},
	})
	c.Runs.Databases = f.Databases
	f.Runs = run.New(c.Runs)
	f.Writes = write.New(write.Config{
		Access: f.Access, Databases: f.Databases, Runs: f.Runs, History: store, Clock: f.Clock.Now,
	})
	f.Debug = debug.New(debug.Config{
		Access: f.Access, Records: f.Records, Live: f.Live, Runs: f.Runs, Clock: f.Clock.Now,
	})
	t.Cleanup(f.Debug.Close)
	f.Records.Start(f.Live, f.Runs, f.Runs, f.Debug)
	return f
}

// Create opens a sandbox with a config as JSON; "" means the default one.
func (f *Fixture) Create(t *testing.T, caller sandbox.Key, config string) sandbox.Sandbox {
	t.Helper()
	sb, err := f.Live.Create(context.Background(), caller, []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// Execute runs code as Ada.
func (f *Fixture) Execute(sandboxID, code string) (*sandbox.Execution, error) {
	return f.Runs.Execute(context.Background(), Ada, sandboxID, sandbox.Request{Code: code, Kind: sandbox.KindExecute})
}

// WantFault fails the test unless err has a fault.
func WantFault(t *testing.T, err error, want sandbox.Fault) {
	t.Helper()
	var known *sandbox.Error
	if !errors.As(err, &known) || known.Fault != want {
		t.Errorf("got error %v, want fault %s", err, want)
	}
}

// defaultEnvironment is the only environment.
type defaultEnvironment struct{}

func (defaultEnvironment) Environments() []sandbox.Environment {
	return []sandbox.Environment{{Name: "default"}}
}
func (defaultEnvironment) Pools() []sandbox.WarmPool                  { return nil }
func (defaultEnvironment) Packages(string) ([]sandbox.Package, error) { return nil, nil }
func (defaultEnvironment) Refresh(context.Context) error              { return nil }
