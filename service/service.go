// Package service implements the functions of Glasshouse: it runs code in sandboxes and records every run. It does not
// depend on HTTP or SQL.
//
//	s := service.New(service.Config{...})
//	sb, err := s.Create(ctx, caller, config)
//	execution, err := s.Execute(ctx, caller, sb.ID, sandbox.Request{Code: "1 + 1", Kind: sandbox.KindExecute})
//	s.Drain(ctx)
//
// A Service is safe for concurrent use. It has these responsibilities:
//
//  1. Run code (execute.go is the main path). An execution is on record before its code
//     runs. Its end is on disk before the answer is sent, even if the caller has left.
//  2. Answer the requests of running code, and record each statement and connection (handler.go).
//  3. Keep the live sandboxes. A sandbox runs one request at a time; a second one gets FaultBusy
//     (sandboxes.go).
//  4. Stream the events of a run to any number of readers (events.go), and record debugged
//     runs (recording.go).
//
// Package access admits callers before it, and holds them to their limits. Package records reads and deletes what runs
// have left. Package debug stops runs, and explains recordings.
//
// New starts the janitor, a goroutine that ends expired sandboxes. Drain ends it and all runs, and waits for them.
package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/metrics"
	"glasshouse/service/records"
	"glasshouse/service/tracing"
)

// Config configures a Service. Only Clock and NewID are optional.
type Config struct {
	Access       *access.Service  // of keys, which it holds to their limits
	Records      *records.Service // which Start is given the Service
	Supervisor   *supervisor.Supervisor
	Environments Environments
	Databases    []Database // at least one; the first is the default
	History      History
	Default      policy.Policy // of a sandbox without a config
	Ceiling      policy.Policy // the highest limits in a config
	PerUser      int           // maximum number of live sandboxes of one user
	InAll        int           // maximum number of live sandboxes
	Parallel     int           // maximum number of concurrent executions; limit.Shared shares them
	Mask         []string      // parameters of statements whose values history does not keep; "*" means all
	Log          logrus.FieldLogger
	Metrics      *metrics.Metrics // nil: nothing is counted
	Tracer       *tracing.Tracer  // nil: there are no traces

	Clock func() time.Time // nil: the machine's clock, in UTC
	NewID func() string    // nil: random bits as hex
}

// Service runs code and records every run. New returns one; Drain ends it.
type Service struct {
	Config

	mu         sync.Mutex
	live       map[string]*liveSandbox
	ending     map[string]sandbox.State // how sandboxes end whose end is not on record yet
	opening    map[string]int           // sandboxes being opened, by user
	liveOf     map[string]int           // number of live sandboxes, by owner
	running    map[string]*run          // by execution
	eventLogs  map[string]*EventLog
	isDraining bool

	work      sync.WaitGroup // Drain waits for it
	logsEnded atomic.Int64   // event logs whose executions have ended

	slots *limit.Shared // of executions
	share *limit.Share  // of executions and new sandboxes

	startedAt time.Time

	feed *ExecutionFeed

	stop     chan struct{} // closed to end the janitor
	stopOnce sync.Once
}

// Users returns the users who share the service; nil: all have the same weight.
func (s *Service) Users() *limit.Users {
	if s.Supervisor == nil {
		return nil
	}
	return s.Supervisor.CPU.Users()
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
		Config: config, live: map[string]*liveSandbox{}, ending: map[string]sandbox.State{},
		opening: map[string]int{}, liveOf: map[string]int{},
		running: map[string]*run{}, eventLogs: map[string]*EventLog{},
		stop: make(chan struct{}), feed: newExecutionFeed(),
	}
	s.slots = limit.NewShared(config.Parallel, s.Users())
	if s.Supervisor != nil {
		s.share = s.Supervisor.Share
	}
	s.startedAt = s.Clock()
	s.work.Add(1)
	go s.runJanitor()
	return s
}

// Ready returns an error if the service would not accept executions now, or if no database answers. Otherwise it
// returns the number of databases that do not answer.
func (s *Service) Ready(ctx context.Context) (unavailableDatabases int, err error) {
	s.mu.Lock()
	isDraining := s.isDraining
	s.mu.Unlock()
	if isDraining {
		return 0, access.ErrStopping()
	}
	if err := s.Supervisor.Ready(); err != nil {
		return 0, &sandbox.Error{Fault: sandbox.FaultFull, Detail: err.Error(), RetryAfter: 2, Cause: err}
	}
	if err := s.History.Ping(ctx); err != nil {
		return 0, err
	}
	return s.readyDatabases(ctx)
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

// Drain rejects new work, waits for running executions until ctx ends, then cancels them, and closes every sandbox.
// When it returns, nothing runs.
func (s *Service) Drain(ctx context.Context) {
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
	s.mu.Lock()
	all := make([]*liveSandbox, 0, len(s.live))
	for _, live := range s.live {
		all = append(all, live)
	}
	s.mu.Unlock()
	if err := s.endAll(all, sandbox.StateLost); err != nil {
		s.Log.WithError(err).Warn("could not close all sandboxes")
	}
}
