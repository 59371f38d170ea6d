// Package live keeps the live sandboxes: it opens and ends them, reads and changes their files, and looks into them.
//
//	s := live.New(live.Config{...})
//	sb, err := s.Create(ctx, caller, config)
//	ctx, lease, err := s.Acquire(ctx, caller, sb.ID) // to run code in it
//	defer lease.Release()
//
// A Service is safe for concurrent use. It has these responsibilities:
//
//  1. Open sandboxes within the limits, and end them on demand or when they expire (sandbox.go, lifetime.go).
//  2. Lend a sandbox to one run at a time, or open one for a single run (lease.go). Package run runs the code.
//  3. Read and write the files of sandboxes (files.go).
//  4. Look at variables, and check and complete code, without a record (inspect.go, tool.go).
//  5. List the modules that code may import (environment.go).
//  6. Choose the policy of a sandbox that the client of another server creates, such as one of E2B (compat.go).
//
// New starts the janitor, a goroutine that ends expired sandboxes. Close ends it and all sandboxes.
package live

import (
	"context"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/records"
)

// Environments are the sets of packages that code may run with.
type Environments interface {
	Environments() []sandbox.Environment // the default one first
	Packages(environment string) ([]sandbox.Package, error)
	Pools() []sandbox.WarmPool
	Refresh(context.Context) error // loads the operator's changes
}

// History records sandboxes.
type History interface {
	CreateSandbox(context.Context, sandbox.Sandbox) error
	ReopenSandbox(ctx context.Context, id string) error
	EndSandbox(ctx context.Context, id, owner string, state sandbox.State, at time.Time) error
	Execution(ctx context.Context, id string) (sandbox.Execution, error)
}

// Config configures a Service.
type Config struct {
	Access       *access.Service  // says who may use a sandbox, and holds inspections to their limits
	Records      *records.Service // knows the sandboxes that have ended
	Supervisor   *supervisor.Supervisor
	Environments Environments
	History      History
	Default      policy.Policy // of a sandbox without a config
	Ceiling      policy.Policy // the highest limits in a config
	PerUser      int           // maximum number of live sandboxes of one user
	InAll        int           // maximum number of live sandboxes
	Log          logrus.FieldLogger

	Clock func() time.Time // nil: the machine's clock, in UTC
	NewID func() string    // nil: random bits as hex
}

// Service keeps the live sandboxes. New returns one; Close ends it.
type Service struct {
	Config

	mu         sync.Mutex
	live       map[string]*liveSandbox
	ending     map[string]sandbox.State // how sandboxes end whose end is not on record yet
	opening    map[string]int           // sandboxes being opened, by user
	reopening  map[string]bool          // sandboxes being opened again
	liveOf     map[string]int           // number of live sandboxes, by owner
	isStopping bool

	work     sync.WaitGroup // Close waits for it
	stop     chan struct{}  // closed to end the janitor
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
		Config: config, live: map[string]*liveSandbox{}, ending: map[string]sandbox.State{},
		opening: map[string]int{}, reopening: map[string]bool{}, liveOf: map[string]int{}, stop: make(chan struct{}),
	}
	s.work.Go(s.runJanitor)
	return s
}

// Ready returns FaultFull if no sandbox can be opened now.
func (s *Service) Ready() error {
	s.mu.Lock()
	isStopping := s.isStopping
	s.mu.Unlock()
	if isStopping {
		return access.ErrStopping()
	}
	if err := s.Supervisor.Ready(); err != nil {
		return &sandbox.Error{Fault: sandbox.FaultFull, Detail: err.Error(), RetryAfter: 2, Cause: err}
	}
	return nil
}

// beginWork makes Close wait until done is called. It returns an error after Stop.
func (s *Service) beginWork() (done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isStopping {
		return nil, access.ErrStopping()
	}
	s.work.Add(1)
	return s.work.Done, nil
}

// Stop rejects new sandboxes and inspections from now on, and ends the janitor. Runs can still use their sandboxes.
func (s *Service) Stop() {
	s.mu.Lock()
	s.isStopping = true
	s.mu.Unlock()
	s.stopOnce.Do(func() { close(s.stop) })
}

// Close calls Stop, waits for inspections and for sandboxes of single runs, and ends every sandbox. The runs in them
// must have ended. It may be called again.
func (s *Service) Close() {
	s.Stop()
	s.work.Wait()
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

// CurrentSandbox implements records.Live.
func (s *Service) CurrentSandbox(id string) (sb sandbox.Sandbox, isLive bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := s.live[id]
	if live == nil {
		return sb, false
	}
	return live.current(), true
}

// CountSandboxes implements records.Live.
func (s *Service) CountSandboxes(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user == "" {
		return len(s.live)
	}
	return s.liveOf[user]
}

// TouchSandbox implements records.Live.
func (s *Service) TouchSandbox(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.live[id]; live != nil {
		live.lastUsed = s.Clock()
	}
}

// SandboxStates returns the number of live sandboxes by state: opening, idle or busy.
func (s *Service) SandboxStates() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy, opening := 0, 0
	for _, live := range s.live {
		if live.isBusy {
			busy++
		}
	}
	for _, n := range s.opening {
		opening += n
	}
	return map[string]int{"opening": opening, "idle": len(s.live) - busy, "busy": busy}
}
