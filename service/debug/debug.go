// Package debug lets people and models step through programs, and asks recordings why a value is so.
//
//	d := debug.New(debug.Config{...})
//	session, breakpoints, err := d.Open(ctx, caller, sandboxID, debug.Start{...})
//	why, err := d.Why(ctx, caller, executionID, question)
//
// A Service is safe for concurrent use. It has these responsibilities:
//
//  1. Run code under the debugger, and open recordings of past runs, as sessions of an owner with a driver (session.go,
//     interactive.go). Sessions that nobody uses end (sessions.go).
//  2. Attach editors to sessions by the Debug Adapter Protocol (dap.go).
//  3. Search and explain recordings as inspections, which count for the key (search.go, why.go).
//
// New starts one goroutine, which ends unused sessions. Close ends it.
package debug

import (
	"sync"
	"time"

	"glasshouse/policy/limit"
	"glasshouse/service/access"
	"glasshouse/service/live"
	"glasshouse/service/records"
	"glasshouse/service/run"
)

// Config configures a Service.
type Config struct {
	Access        *access.Service  // of callers, whose keys it holds to their limits
	Records       *records.Service // has the recordings
	Live          *live.Service    // has the sandboxes
	Runs          *run.Service     // runs the code of sessions
	MaxSearchTime time.Duration    // of a recording; 0: DefaultMaxSearchTime

	Clock func() time.Time // nil: the machine's clock, in UTC
	NewID func() string    // nil: random bits as hex
}

// Service debugs code. New returns one; Close ends it.
type Service struct {
	Config
	sessions sessions
	editors  *limit.Keyed // attached clients of the Debug Adapter Protocol, by user

	stop     chan struct{} // closed to end runJanitor
	stopOnce sync.Once
	janitor  sync.WaitGroup
}

// New starts a Service.
func New(config Config) *Service {
	if config.Clock == nil {
		config.Clock = func() time.Time { return time.Now().UTC() }
	}
	if config.NewID == nil {
		config.NewID = access.NewID
	}
	s := &Service{Config: config, editors: limit.NewKeyed(maxEditors), stop: make(chan struct{})}
	s.janitor.Go(s.runJanitor)
	return s
}

// janitorInterval is the time between two looks for unused sessions.
const janitorInterval = time.Second

// runJanitor ends unused sessions until Close. It runs in a goroutine of its own.
func (s *Service) runJanitor() {
	ticker := time.NewTicker(janitorInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			s.sessions.expire(s.Clock())
		}
	}
}

// Forget implements records.Memory: it closes sessions over recordings of erased executions.
func (s *Service) Forget(isErased func(execution, user string) bool) { s.sessions.forget(isErased) }

// Close stops the search for unused sessions. It may be called again. The runs of sessions end with those of
// Config.Runs.
func (s *Service) Close() {
	s.stopOnce.Do(func() { close(s.stop) })
	s.janitor.Wait()
}
