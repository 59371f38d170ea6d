// Package service is what Glasshouse does, with no HTTP and no SQL in it.
//
// Service keeps the live sandboxes in memory and their record in history. Each
// live sandbox runs one thing at a time: who comes second is told that it is busy.
// The janitor goroutine ends what expired, the sweeper lets old artifacts go. An execution is on record
// before its code runs and finished, durably, before its answer; that holds when the
// caller has gone away, too. Drain ends it all and waits.
package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// Session is a sandbox's live Python with its files, as host.Session is one.
type Session interface {
	Runner
	CodeAnalyzer
	SessionFiles
	Environment() *sandbox.EnvironmentVersion // nil where nothing of it lives
}

// Runner is what runs.
type Runner interface {
	Run(context.Context, *sandbox.Execution, supervisor.RequestHandler, supervisor.DebugDriver, supervisor.OutputListener) error
	InspectVariables(context.Context) (sandbox.Variables, error)
	Usage() map[string]any
	Close() error
}

// CodeAnalyzer reads code that does not run.
type CodeAnalyzer interface {
	Check(ctx context.Context, code string) (sandbox.CheckResult, error)
	Complete(ctx context.Context, code string, cursor int) (c sandbox.Completion, settled bool, before string, err error)
}

// SessionFiles are the files that it has.
type SessionFiles interface {
	Uploads() *supervisor.Uploads
	Collect(supervisor.StoreArtifact) (found []sandbox.Artifact, missed int64, err error)
}

// Supervisor opens sessions: for one piece of code, or where code is "" for any.
type Supervisor interface {
	Open(ctx context.Context, box sandbox.Sandbox, code string) (Session, error)
	Ready() error                 // why none could be opened now
	Isolation() sandbox.Isolation // of all of them
}

// Environments are what code may run with.
type Environments interface {
	Environments() []sandbox.Environment // the default one first
	Packages(environment string) ([]sandbox.Package, error)
	Refresh(context.Context) error // reads again what the operator has changed
}

// Reader reads the knowledge database.
type Reader interface {
	Query(ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits, sink sandbox.RowSink) (sandbox.QuerySummary, error)
	Tables(context.Context) ([]string, error)
	Schema(ctx context.Context, names ...string) ([]sandbox.Table, error) // all where none is named
	Ping(context.Context) error
}

// Writer plans statements that would write, and runs those that an admin applies.
type Writer interface {
	Capture(ctx context.Context, sql string, params map[string]any) (sandbox.WritePlan, error)
	Apply(ctx context.Context, sql string, params map[string]any) (int64, error)
}

// ExecutionStore keeps executions.
type ExecutionStore interface {
	Begin(context.Context, *sandbox.Execution) error
	Progress(context.Context, sandbox.Progress) error
	Finish(context.Context, *sandbox.Execution) error
	Execution(ctx context.Context, id string) (sandbox.Execution, error)
	Executions(context.Context, sandbox.ExecutionFilter) ([]sandbox.Execution, string, error)
}

// ExecutionCounts sums them up.
type ExecutionCounts interface {
	CountExecutions(ctx context.Context, sandboxID string) (int, error)
	Statistics(ctx context.Context, user string) (sandbox.Statistics, error)
	Ping(context.Context) error
}

// SandboxStore keeps sandboxes.
type SandboxStore interface {
	CreateSandbox(context.Context, sandbox.Sandbox) error
	EndSandbox(ctx context.Context, id string, state sandbox.State, at time.Time) error
	Sandbox(ctx context.Context, id string) (sandbox.Sandbox, error)
}

// KeyStore keeps keys.
type KeyStore interface {
	CreateKey(ctx context.Context, k sandbox.Key, hash []byte) error
	KeyByHash(ctx context.Context, hash []byte) (sandbox.Key, error)
	Keys(ctx context.Context, user string) ([]sandbox.Key, error)
	RevokeKey(ctx context.Context, id, user string) error
}

// RecordingStore keeps what debugged runs did.
type RecordingStore interface {
	KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error
	Chunks(ctx context.Context, execution string) ([]sandbox.Chunk, error) // without their Data
	ChunkData(ctx context.Context, execution string, sequence int) ([]byte, error)
	PruneRecordings(ctx context.Context, before time.Time, bytes int64) (int, error)
}

// PendingWriteStore keeps what waits for an admin.
type PendingWriteStore interface {
	AddWrite(context.Context, sandbox.PendingWrite) error
	MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error
	Write(ctx context.Context, id string) (sandbox.PendingWrite, error)
	Writes(ctx context.Context, status sandbox.WriteStatus) ([]sandbox.PendingWrite, error)
}

// History is all of door two.
type History interface {
	RecordingStore
	PendingWriteStore
	ExecutionStore
	ExecutionCounts
	SandboxStore
	KeyStore
	ArtifactIndex
	UsageStore
}

// Config is what a Service is made of; all fields but Clock and NewID are needed.
type Config struct {
	Supervisor         Supervisor
	Environments       Environments
	Reader             Reader
	Writer             Writer
	History            History
	Blobs              BlobStore
	Default            policy.Policy      // what a creator who asks for nothing gets
	Ceiling            policy.Policy      // what nobody may go beyond
	PerUser            int                // live sandboxes of one user
	InAll              int                // live sandboxes in all
	Parallel           int                // runs at a time; more wait a little, then 503
	RecordingRetention RecordingRetention // what is kept of debugged runs
	Mask               []string           // parameters of statements whose values history does not keep; "*" is all
	Log                logrus.FieldLogger

	SigningKey    []byte // of URLs
	KeyLimits     sandbox.KeyLimits
	ArtifactAge   time.Duration // how long artifacts are kept,
	ArtifactBytes int64         // and how much of each user's

	Clock func() time.Time
	NewID func() string
}

// Service runs code and remembers it. Make it with New, end it with Drain.
type Service struct {
	Config

	mu       sync.Mutex
	live     map[string]*live
	opening  map[string]int // sandboxes being opened, by user
	running  map[string]run // by execution
	feeds    map[string]*EventLog
	draining bool
	work     sync.WaitGroup // runs and closings that Drain waits for
	sessions sessions
	recorded opened    // recordings that are being read
	pruned   time.Time // the janitor's

	quotas quotas

	keysMu sync.Mutex
	keys   map[[32]byte]seenKey

	kept  atomic.Int64  // bytes of artifacts since the last sweep
	sweep chan struct{} // has the sweeper do it now

	slots    *limit.Slots // of executions
	stop     chan struct{}
	stopping sync.Once
}

// live is a sandbox that is there.
type live struct {
	box     sandbox.Sandbox // as it was created; never written
	session Session
	turn    sync.Mutex // held by a run, or by a look, which a run waits for
	running bool       // a run has it, or it is being ended; guarded by Service.mu
	used    time.Time  // last; guarded by Service.mu
	last    string     // its last execution; guarded by Service.mu
}

// now is the sandbox with its last use. The caller holds Service.mu.
func (l *live) now() sandbox.Sandbox {
	box := l.box
	box.LastUsed = l.used
	return box
}

type run struct {
	owner  string
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when its end is on record
}

// New starts a Service and its janitor.
func New(p Config) *Service {
	if p.Clock == nil {
		p.Clock = func() time.Time { return time.Now().UTC() }
	}
	if p.NewID == nil {
		p.NewID = newID
	}
	s := &Service{Config: p, live: map[string]*live{}, opening: map[string]int{}, running: map[string]run{}, feeds: map[string]*EventLog{}, keys: map[[32]byte]seenKey{}, sweep: make(chan struct{}, 1), slots: limit.NewSlots(p.Parallel), stop: make(chan struct{})}
	s.work.Add(2)
	go s.janitor()
	go s.sweeper()
	return s
}

// newID is 128 random bits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}

// Ready says whether executions would be taken now.
func (s *Service) Ready(ctx context.Context) error {
	s.mu.Lock()
	draining := s.draining
	s.mu.Unlock()
	if draining {
		return stopping()
	}
	if err := s.Supervisor.Ready(); err != nil {
		return &sandbox.Error{Fault: sandbox.FaultFull, Detail: err.Error(), RetryAfter: 2, Cause: err}
	}
	if err := s.History.Ping(ctx); err != nil {
		return err
	}
	return s.Reader.Ping(ctx)
}

// errShutdown is why Drain cancels what still runs.
var errShutdown = errors.New("the service is stopping")

func stopping() error {
	return &sandbox.Error{Fault: sandbox.FaultFull, Detail: "the service is stopping; try again when it is back", RetryAfter: 5}
}

// Drain takes nothing new, lets what runs go on until ctx ends, then cancels it,
// and closes every sandbox. When it returns nothing is left.
func (s *Service) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.stopping.Do(func() { close(s.stop) })
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
	all := make([]*live, 0, len(s.live))
	for _, l := range s.live {
		all = append(all, l)
	}
	s.mu.Unlock()
	s.logSaveUsage()
	for _, l := range all {
		if err := s.end(l, sandbox.StateLost); err != nil {
			s.Log.WithError(err).Warn("close a sandbox")
		}
	}
}
