// Package run runs code in sandboxes and records every run. It does not depend on HTTP or SQL.
//
//	s := run.New(run.Config{...})
//	execution, err := s.Execute(ctx, caller, sandboxID, sandbox.Request{Code: "1 + 1", Kind: sandbox.KindExecute})
//	s.Drain(ctx)
//
// A Service is safe for concurrent use. It has these responsibilities:
//
//  1. Run code (execute.go is the main path). An execution is on record before its code
//     runs. Its end is on disk before the answer is sent, even if the caller has left.
//  2. Answer the requests of running code, and record each statement and connection (handler.go).
//  3. Run statements that clients send (query.go), and capture those that would write (capture.go).
//  4. Stream the events of a run to any number of readers (events.go), and say which runs begin and end (feed.go).
//  5. Record runs step by step (recording.go).
//  6. Put an execution into words that a model or a terminal shows (modeltext.go, terminaltext.go).
//
// Package access admits callers before it, and holds them to their limits. Package live lends it the sandboxes. Package
// records reads and deletes what runs have left. Package debug stops runs, and explains recordings.
//
// New starts the janitor, a goroutine that removes old event logs. Drain ends it and all runs, and waits for them.
package run

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/service/access"
	"glasshouse/service/database"
	"glasshouse/service/live"
	"glasshouse/service/metrics"
	"glasshouse/service/records"
	"glasshouse/service/tracing"
)

// Config configures a Service. Only Clock and NewID are optional.
type Config struct {
	Access    *access.Service  // of keys, which it holds to their limits
	Records   *records.Service // which Start is given the Service
	Live      *live.Service    // has the sandboxes; Drain closes it
	Databases *database.Service
	History   History
	Parallel  int          // maximum number of concurrent executions; limit.Shared shares them
	Share     *limit.Share // of short executions; nil: they do not wait for each other
	Mask      []string     // parameters of statements whose values history does not keep; "*" means all
	Log       logrus.FieldLogger
	Metrics   *metrics.Metrics // nil: nothing is counted
	Tracer    *tracing.Tracer  // nil: there are no traces

	InputLog  inputlog.Mode // what is kept of the inputs of runs; "": nothing
	InputKeys inputlog.Keys // of their logs

	Clock func() time.Time // nil: the machine's clock, in UTC
	NewID func() string    // nil: random bits as hex
}

// Service runs code and records every run. New returns one; Drain ends it.
type Service struct {
	Config

	mu         sync.Mutex
	running    map[string]*run   // by execution
	attempts   map[string]string // running executions of idempotency keys, by the ID of the key's first attempt
	isDraining bool

	work      sync.WaitGroup // Drain waits for it
	eventLogs eventLogs      // by execution
	inputs    inputStore
	slots     *limit.Shared // of executions
	keyed     *limit.Keyed  // a slot for each idempotency key, by the ID of its first attempt
	feed      *ExecutionFeed
	startedAt time.Time

	stop     chan struct{} // closed to end the janitor
	stopOnce sync.Once
}

// New starts a Service with its janitor.
func New(config Config) *Service {
	if config.Clock == nil {
		config.Clock = func() time.Time { return time.Now().UTC() }
	}
	if config.NewID == nil {
		config.NewID = access.NewID
	}
	s := &Service{
		Config: config, running: map[string]*run{}, attempts: map[string]string{},
		slots: limit.NewShared(config.Parallel, config.Access.Users), keyed: limit.NewKeyed(1),
		feed:      newExecutionFeed(),
		startedAt: config.Clock(), stop: make(chan struct{}),
		inputs: inputStore{pending: map[string]chan struct{}{}},
	}
	s.work.Go(s.runJanitor)
	return s
}

// Ready returns an error if the service would not accept executions now, or if no database answers. Otherwise it
// returns the number of databases that do not answer.
func (s *Service) Ready(ctx context.Context) (unavailableDatabases int, err error) {
	if err := s.Live.Ready(); err != nil {
		return 0, err
	}
	if err := s.History.Ping(ctx); err != nil {
		return 0, err
	}
	return s.Databases.Ready(ctx)
}

// logOf returns the log for lines about an execution. They have its id, and that of its trace.
func (s *Service) logOf(e *sandbox.Execution) logrus.FieldLogger {
	log := s.Log.WithField("execution_id", e.ID)
	if e.TraceID != "" {
		log = log.WithField("trace_id", e.TraceID)
	}
	return log
}

// errShutdown is the cause of a run's cancellation if Drain cancels it.
var errShutdown = errors.New("the service is stopping")

// beginWork makes Drain wait until done is called. It returns an error if Drain has begun.
func (s *Service) beginWork() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining {
		return nil, access.ErrStopping()
	}
	s.work.Add(1)
	return s.work.Done, nil
}

// Drain rejects new work, waits for running executions until ctx ends, then cancels them, and closes every sandbox of
// Config.Live. When it returns, nothing runs. It may be called again.
func (s *Service) Drain(ctx context.Context) {
	s.Live.Stop()
	s.mu.Lock()
	s.isDraining = true
	s.mu.Unlock()
	s.stopOnce.Do(func() { close(s.stop) })
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		s.mu.Lock()
		for _, r := range s.running {
			r.cancel(errShutdown)
		}
		s.mu.Unlock()
		<-done
	}
	s.Live.Close()
}

// janitorInterval is the time between two runs of the janitor.
const janitorInterval = time.Second

// runJanitor removes old event logs until the service stops. It runs in a goroutine of its own.
func (s *Service) runJanitor() {
	ticker := time.NewTicker(janitorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.eventLogs.remove(s.Clock())
		}
	}
}
