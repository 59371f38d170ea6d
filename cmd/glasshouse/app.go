package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	runtimedebug "runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/dbaccess"
	"glasshouse/dbaccess/embedded"
	"glasshouse/dbaccess/history"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/sandbox/inputlog"
	"glasshouse/sandbox/isolate"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/database"
	"glasshouse/service/debug"
	"glasshouse/service/httpapi"
	"glasshouse/service/live"
	"glasshouse/service/mcpapi"
	"glasshouse/service/metrics"
	"glasshouse/service/records"
	"glasshouse/service/run"
	"glasshouse/service/tracing"
	"glasshouse/service/write"
)

// app has every part of the service.
type app struct {
	access     *access.Service
	records    *records.Service
	live       *live.Service
	databases  *database.Service
	runs       *run.Service
	writes     *write.Service
	debug      *debug.Service
	isolator   *isolate.Isolator
	supervisor *supervisor.Supervisor
	history    *history.Store
	opened     []database.Database // by openDatabases, the default one first
	readers    []*dbaccess.Reader  // of opened
	parsers    *dbaccess.Parsers   // of readers
	postgres   *embedded.Server    // nil if both databases are named
	blobs      *blob.Store
	lock       *os.File // of the data folder
	log        *logrus.Logger
	adminKey   string // secret of the first admin key
	plan       plan
	results    *limit.Results // that readers and answers hold in memory
	users      *limit.Users
	clients    *limit.Connections // of all APIs
	cpu        *limit.CPU         // for the service's own computations
	share      *limit.Share       // of users' small operations
	metrics    *metrics.Metrics
	tracer     *tracing.Tracer // nil: there are no traces
}

// queueTimeout is the time that a start waits for a free sandbox before it is answered 503: longer than a burst of
// short runs takes, and shorter than clients wait for an answer. The linker sets another one in the binary of the
// tests, because a busy machine needs longer.
var queueTimeout = "10s"

// coldStartTimeout is the time that a command waits for its sandbox. Python imports its packages
// first, which takes a slow machine longer than a request should wait.
const coldStartTimeout = time.Minute

// buildForCode builds the service for one command that runs only this code. Its warm interpreters import
// only the packages that the code imports.
func buildForCode(ctx context.Context, s settings, code string) (*app, error) {
	return build(ctx, s, isolate.WarmSetsFor(code), func(string) {})
}

// build starts every part; the isolation and the databases start concurrently. It calls progress at the
// beginning of each step. If a part fails, it stops those that have started.
func build(ctx context.Context, s settings, sets []isolate.WarmSet, progress func(string)) (a *app, err error) {
	users := new(limit.Users)
	a = &app{log: newLog(s), metrics: metrics.New(version), users: users,
		cpu:   limit.NewCPU(runtime.GOMAXPROCS(0), users),
		share: limit.NewShare(users, runtime.NumCPU())}
	defer func() {
		if err != nil {
			a.close(context.WithoutCancel(ctx), s)
			a = nil
		}
	}()
	if name := s.databases.named.chosen; name != "" {
		return a, fmt.Errorf("--database %s names no URL, which only prove and check sql accept: use --database %s=URL",
			name, name)
	}
	if sets, err = a.makePlan(&s, sets, progress); err != nil {
		return a, err
	}
	a.clients = limit.NewConnections(a.plan.connections, users)
	if a.tracer, err = a.openTracer(ctx); err != nil {
		return a, err
	}
	ceiling := s.ceiling
	if ceiling.EnableNetworkAccess, ceiling.AllowedHosts, err = s.isolation.network(); err != nil {
		return a, err
	}
	dataDir := s.server.dataDir
	if err = os.MkdirAll(dataDir, 0o755); err != nil {
		return a, fmt.Errorf("make the data folder: %w; choose another with --data-dir", err)
	}
	if a.lock, err = lockFolder(dataDir); err != nil {
		return a, err
	}
	if s.compat.folder != "" {
		if err = os.MkdirAll(s.compat.folder, 0o755); err != nil {
			return a, fmt.Errorf(
				"make the folder of the compatibility API nemo: %w; choose another with --nemo-folder",
				err,
			)
		}
	}
	signing, err := signingKey(dataDir)
	if err != nil {
		return a, err
	}
	inputKeys, err := inputlog.NewKeys(signing)
	if err != nil {
		return a, err
	}
	hashSeed, err := inputlog.HashSeed(signing)
	if err != nil {
		return a, err
	}
	isolated := make(chan error, 1)
	go func() {
		var err error
		config := s.isolateConfig(sets, a.log.Warnf)
		config.MaxOpenIdle, config.Descriptors = a.plan.openIdle, limit.NewDescriptors(a.plan.reserve)
		config.Users, config.HashSeed = a.users, hashSeed
		config.Forked, config.PoolMissed = a.metrics.GuestForked, a.metrics.PoolMissed
		a.isolator, err = isolate.Open(config)
		isolated <- err
	}()
	progress("starting the isolation and the warm interpreters")
	err = a.openDatabases(ctx, s, progress)
	if err = errors.Join(err, <-isolated); err != nil {
		return a, err
	}
	if a.blobs, err = blob.Open(dataDir); err != nil {
		return a, err
	}
	if err = a.linkRestored(ctx, dataDir); err != nil {
		return a, err
	}
	adminKey, err := a.storeAdminKey(ctx, s)
	if err != nil {
		return a, err
	}
	queue := coldStartTimeout
	if sets == nil {
		if queue, err = time.ParseDuration(queueTimeout); err != nil {
			return a, err
		}
	}
	a.supervisor = supervisor.New(a.isolator, queue)
	a.supervisor.CPU, a.supervisor.Share = a.cpu, a.share
	a.supervisor.ConnectionEnded = a.metrics.ConnectionEnded
	a.supervisor.Network.Descriptors = limit.NewDescriptors(a.plan.reserve)
	// Half of it for one user, so that no user takes the memory of all others.
	a.supervisor.Uploads.All, a.supervisor.Uploads.User = s.limits.uploadsMB<<20, s.limits.uploadsMB<<20/2
	var names []string
	for _, d := range a.opened {
		names = append(names, d.Name)
	}
	a.access = access.New(access.Config{
		History: a.history, Databases: names, Default: s.defaults, Environments: a.isolator,
		KeyLimits: s.limits.keys, Inspections: s.limits.parallel / 4, AdminKeyID: adminKey.ID,
		SessionAge: s.signIn.sessionAge, Users: a.users, Connections: a.clients, Log: a.log,
	})
	a.records = records.New(records.Config{
		Access: a.access, History: a.history, Blobs: a.blobs, SigningKey: signing, Log: a.log,
		ArtifactAge: s.retention.artifactAge, ArtifactBytes: s.retention.artifactMB << 20,
		RecordingRetention: records.RecordingRetention{
			Age:   s.retention.recordingAge,
			Bytes: int64(s.retention.recordingsMB) << 20,
		},
		InputLogBytes: s.retention.inputLogMB << 20,
		HistoryMaxAge: s.retention.historyAge, HistoryMaxBytes: s.retention.historyMB << 20,
	})
	a.live = live.New(live.Config{
		Access: a.access, Records: a.records, Supervisor: a.supervisor, Environments: a.isolator, History: a.history,
		Default: s.defaults, Ceiling: ceiling, PerUser: s.limits.sandboxesPerUser, InAll: s.limits.sandboxes,
		Log: a.log,
	})
	a.databases = database.New(database.Config{Access: a.access, List: a.opened})
	a.runs = run.New(run.Config{
		Access: a.access, Records: a.records, Live: a.live, Databases: a.databases, History: a.history,
		Parallel: s.limits.parallel, Share: a.share, Mask: splitList(s.databases.maskParameters), Log: a.log,
		Metrics: a.metrics, Tracer: a.tracer,
		InputLog: inputlog.Mode(s.retention.inputLog), InputKeys: inputKeys,
	})
	a.writes = write.New(write.Config{
		Access: a.access, Databases: a.databases, Runs: a.runs, History: a.history,
	})
	a.debug = debug.New(debug.Config{Access: a.access, Records: a.records, Live: a.live, Runs: a.runs})
	a.records.Start(a.live, a.runs, a.runs, a.debug)
	a.metrics.Watch(metrics.Sources{
		Sandboxes: a.live.SandboxStates, PoolReady: a.isolator.Waiting, History: a.history.Waiting,
		PendingWrites: a.history.PendingWrites, LateCleanups: a.isolator.LateCleanups,
		Databases: names,
	})
	return a, nil
}

// makePlan raises this process's limits and lowers the settings that do not fit into them. It prints a line for each of
// these, and returns the warm sets. A command that runs only one code brings its own set, and has no settings to lower.
func (a *app) makePlan(s *settings, sets []isolate.WarmSet, progress func(string)) ([]isolate.WarmSet, error) {
	if err := isolate.RaiseLimits(); err != nil {
		a.log.Warn(err)
	}
	if sets != nil {
		a.plan = plan{warmSets: sets, connections: 64, reserve: 16}
		return sets, nil
	}
	capacity := isolate.MeasureCapacity()
	if os.Getenv("GOMEMLIMIT") == "" {
		runtimedebug.SetMemoryLimit(memoryLimit(capacity.MemoryBytes))
	}
	var lines []string
	var err error
	a.plan, lines, err = s.makePlan(capacity)
	for _, line := range lines {
		progress(line)
	}
	return a.plan.warmSets, err
}

// memoryLimit returns the number of bytes above which the service collects garbage more often, on a machine with so
// much memory. The live heap is mostly small, so by default its garbage grows to many times its size: large results
// would take several times the memory that is counted for them. A service with many sandboxes runs on a larger machine.
func memoryLimit(machine int64) int64 {
	const largeResults = 640 << 20 // what the largest results of two users take, with what the service takes itself
	return max(min(max(largeResults, machine/40), machine/4), 64<<20)
}

// openDatabases opens the history store and the readers, and starts the embedded server if one needs it.
func (a *app) openDatabases(ctx context.Context, s settings, progress func(string)) (err error) {
	historyURL, knowledgeURL := s.databases.historyURL, s.databases.knowledgeURL
	if historyURL == "" || knowledgeURL == "" {
		progress("starting the embedded PostgreSQL in " + filepath.Join(s.server.dataDir, "postgres"))
		if a.postgres, err = embedded.Start(ctx, embedded.Config{Dir: s.server.dataDir, Log: a.log}); err != nil {
			return err
		}
		if historyURL == "" {
			historyURL = a.postgres.URL(embedded.RoleHistory, embedded.DatabaseHistory)
		}
		if knowledgeURL == "" {
			progress("loading the demo data, up to today")
			if err = a.postgres.LoadDemo(ctx); err != nil {
				return err
			}
			knowledgeURL = a.postgres.URL(embedded.RoleReader, embedded.DatabaseKnowledge)
			s.databases.writers = maps.Clone(s.databases.writers)
			if s.databases.writers == nil {
				s.databases.writers = writerURLs{}
			}
			s.databases.writers[sandbox.DefaultDatabase] = a.postgres.URL(embedded.RoleWriter, embedded.DatabaseKnowledge)
		}
	}
	if a.history, err = history.Open(ctx, history.Config{
		URL: historyURL, Dir: filepath.Join(s.server.dataDir, "history"), AsynchronousCommit: !s.databases.synchronousCommit,
		CPU: a.cpu, Share: a.share,
	}, a.log); err != nil {
		if errors.Is(err, history.ErrOwned) {
			const hint = "%w with --database-url; a command with the --data-dir of a running service asks that service"
			err = fmt.Errorf(hint, err)
		}
		return err
	}
	interrupted, err := a.history.Recover(ctx)
	if err != nil {
		return err
	}
	if interrupted > 0 {
		a.log.Warnf(
			"%d executions were running when the service last ended; they are recorded as cancelled",
			interrupted,
		)
	}
	return a.openReaders(ctx, s, knowledgeURL)
}

// apiConfig returns the configuration of the HTTP API with what each has.
func (a *app) apiConfig() httpapi.Config {
	return httpapi.Config{
		Access: a.access, Records: a.records, Live: a.live, Databases: a.databases, Runs: a.runs, Writes: a.writes,
		Debug: a.debug, Log: a.log, Version: version, CPU: a.cpu, Results: a.results,
	}
}

// newMCP returns the MCP server.
func (a *app) newMCP() *mcpapi.Server {
	return mcpapi.New(mcpapi.Config{
		Records: a.records, Live: a.live, Databases: a.databases, Runs: a.runs, Debug: a.debug, Log: a.log,
		Version: version, CPU: a.cpu,
	})
}

// drain rejects new work, waits for running executions until ctx ends, then cancels them, and closes every sandbox. It
// may be called again.
func (a *app) drain(ctx context.Context) {
	if a.runs != nil {
		a.debug.Close()
		a.runs.Drain(ctx)
	}
}

// close stops every part that has started, the service first.
func (a *app) close(ctx context.Context, s settings) {
	drain, cancel := context.WithTimeout(ctx, s.server.drain)
	a.drain(drain)
	cancel()
	if a.records != nil {
		a.records.Close()
	}
	if a.access != nil {
		a.access.Close()
	}
	export, cancelExport := context.WithTimeout(ctx, traceExportTimeout)
	defer cancelExport()
	if err := a.tracer.Close(export); err != nil {
		a.log.WithError(err).Warn("could not export the last traces")
	}
	if a.isolator != nil {
		a.isolator.Close()
	}
	if a.blobs != nil {
		_ = a.blobs.Close()
	}
	for _, reader := range a.readers {
		reader.Close()
	}
	if a.parsers != nil {
		a.parsers.Close()
	}
	if a.history != nil {
		if err := a.history.Close(); err != nil {
			a.log.Warn(err)
		}
	}
	if a.postgres != nil {
		if err := a.postgres.Close(); err != nil {
			a.log.Warn(err)
		}
	}
	if a.lock != nil {
		_ = a.lock.Close()
	}
}

// lockTimeout is how long lockFolder waits. A service that was killed while it started a process leaves the lock to
// that process for a moment.
const lockTimeout = 2 * time.Second

// lockFolder locks a data folder, because only one service at a time may use it. Closing the file unlocks the folder.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf(
			"the data folder cannot be used: %w; choose another --data-dir, or use its owner's account", err)
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if err := checkRestored(dir); err != nil {
				_ = f.Close()
				return nil, err
			}
			return f, nil
		}
		if time.Now().After(end) {
			f.Close()
			return nil, fmt.Errorf("another glasshouse uses %s: stop it, or choose another --data-dir", dir)
		}
	}
}

// signingKey returns the key that signs URLs. It is kept in the data folder, so that URLs are valid
// after a restart.
func signingKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "signing.key")
	key, err := os.ReadFile(path)
	if err == nil && len(key) >= 32 {
		return key, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	key = []byte(rand.Text() + rand.Text())
	return key, os.WriteFile(path, key, 0o600)
}

// storeAdminKey sets the secret of the first admin key: that of --admin-key, of the data folder, or a new one.
// It writes the secret to the data folder and the key to history, and returns the key. It returns an error if history
// has the key and the key cannot administer the service.
func (a *app) storeAdminKey(ctx context.Context, s settings) (sandbox.Key, error) {
	path := filepath.Join(s.server.dataDir, "admin.key")
	secret := s.server.adminKey
	if secret == "" {
		if body, err := os.ReadFile(path); err == nil {
			secret = strings.TrimSpace(string(body))
		}
	}
	if secret == "" {
		secret = access.NewSecret()
	}
	if len(secret) < 16 {
		return sandbox.Key{}, errors.New("the admin key has fewer than 16 characters: choose a longer --admin-key")
	}
	hash := access.HashKey(secret)
	key, err := a.history.KeyByHash(ctx, hash[:])
	if sandbox.FaultOf(err) == sandbox.FaultNotFound {
		key = sandbox.Key{ID: fmt.Sprintf("admin-%x", hash[:4]), Name: "first admin key", User: sandbox.AdminUser,
			Role: sandbox.RoleAdmin, CreatedAt: time.Now().UTC()}
		err = a.history.CreateKey(ctx, key, hash[:], 0)
	}
	if err == nil {
		err = checkAdminKey(key, path, time.Now())
	}
	if err != nil {
		return key, err
	}
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		return key, err
	}
	a.adminKey = secret
	return key, os.Chmod(path, 0o600) // if the file existed with another mode
}

// checkAdminKey returns an error if the key of the settings, or of the file at path, is not a valid admin's key.
func checkAdminKey(key sandbox.Key, path string, now time.Time) error {
	problem := ""
	switch {
	case key.RevokedAt != nil:
		problem = "was revoked on " + key.RevokedAt.UTC().Format(time.RFC3339)
	case key.ExpiresAt != nil && now.After(*key.ExpiresAt):
		problem = "expired on " + key.ExpiresAt.UTC().Format(time.RFC3339)
	case key.Role != sandbox.RoleAdmin:
		problem = fmt.Sprintf("is the key of the %s %q", key.Role, key.User)
	default:
		return nil
	}
	return fmt.Errorf("the admin key (id %s) %s: start with another --admin-key, or remove %s to get a new key",
		key.ID, problem, path)
}
