// Package records reads and deletes what runs have left: executions, sandboxes, artifacts, recordings and
// conversations.
//
//	r := records.New(records.Config{...})
//	r.Start(live, runs, memories...) // before callers use it
//	e, err := r.Execution(ctx, caller, id)
//
// A Service is safe for concurrent use. It has these responsibilities:
//
//  1. Read records that the caller may see (execution.go, sandbox.go, conversation.go, review.go).
//  2. Store the files that runs leave, hand them out, and remove old ones (artifact.go).
//  3. Open recordings, and keep those that were read last in memory (recording.go).
//  4. Delete records on demand (erase.go), and the oldest ones if history has a limit (retention.go).
//
// Start starts two goroutines: the sweeper removes old artifacts, and retention deletes the oldest executions and
// recordings. Close ends them.
package records

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"glasshouse/sandbox"
	"glasshouse/sandbox/blob"
	"glasshouse/service/access"
)

// History has the records. Package history stores them unchanged.
type History interface {
	// Executions and sandboxes.
	Execution(ctx context.Context, id string) (sandbox.Execution, error)
	Executions(context.Context, sandbox.ExecutionFilter) (list []sandbox.Execution, next string, err error)
	CountExecutions(ctx context.Context, sandboxID string) (int, error)
	Statistics(ctx context.Context, user string) (sandbox.Statistics, error)
	Activity(context.Context, sandbox.ActivityFilter) (sandbox.Activity, error)
	RenameExecution(ctx context.Context, id, title string) error
	RenameSandbox(ctx context.Context, id, title string) error
	Sandbox(ctx context.Context, id string) (sandbox.Sandbox, error)

	// The records of artifacts, whose bytes are in the blob store; and which blobs and folders still belong to one.
	KeepArtifacts(context.Context, []sandbox.Artifact) error
	Artifact(ctx context.Context, id string) (sandbox.Artifact, error)
	Artifacts(ctx context.Context, sandboxID, after string, limit int) ([]sandbox.Artifact, string, error)
	ExpireArtifacts(ctx context.Context, before time.Time, maxBytesPerUser int64) ([]sandbox.Artifact, error)
	SumsInUse(ctx context.Context, sums []string) ([]string, error)
	PlacesInUse(ctx context.Context, folders []string) ([]string, error)

	// Recordings of debugged runs.
	Chunks(ctx context.Context, execution string) ([]sandbox.Chunk, error) // without their Data
	ChunkData(ctx context.Context, execution string, sequence int) ([]byte, error)
	PruneRecordings(ctx context.Context, before time.Time, maxBytes int64) (int, error)
	PruneInputs(ctx context.Context, maxBytes int64) (int, error)

	// Lists of what executions, sandboxes and statements did, and of who saw it.
	ExecutionSummaries(context.Context, sandbox.ExecutionFilter) ([]sandbox.ExecutionSummary, string, error)
	CountBesidesWork(context.Context, sandbox.ExecutionFilter) (int, error)
	SandboxSummaries(context.Context, sandbox.RecordFilter) ([]sandbox.SandboxSummary, string, error)
	ArtifactRecords(context.Context, sandbox.RecordFilter) ([]sandbox.Artifact, string, error)
	Statements(context.Context, sandbox.RecordFilter) ([]sandbox.Statement, string, error)
	TopStatements(context.Context, sandbox.RecordFilter, sandbox.StatementOrder) (
		list []sandbox.StatementStatistics, considered int64, err error)
	Connections(context.Context, sandbox.RecordFilter) ([]sandbox.ConnectionRecord, string, error)
	AuditEntries(context.Context, sandbox.RecordFilter) ([]sandbox.AuditEntry, string, error)

	// Conversations with a language model.
	Conversation(ctx context.Context, id string) (sandbox.Conversation, error)
	Conversations(context.Context, sandbox.RecordFilter) ([]sandbox.Conversation, string, error)
	EraseConversation(ctx context.Context, id string) error

	// Deletion of an execution, and of all that there is of a user.
	EraseExecution(ctx context.Context, id string) (sandbox.Erased, error)
	EraseUser(ctx context.Context, user string) (sandbox.Erased, error)

	// Deletion of the oldest part of history in batches.
	// ExpiredExecutions returns the ids of the oldest ended executions that began before a time or, if byKey is set,
	// whose own time of expiry is before it, without those whose writes wait for a decision.
	ExpiredExecutions(ctx context.Context, before time.Time, byKey bool, limit int) (ids []string, err error)
	EraseExecutions(ctx context.Context, ids []string) (sandbox.Erased, error)
	// EraseEnded deletes at most limit sandboxes and limit conversations that have ended before a time.
	EraseEnded(ctx context.Context, before time.Time, limit int) (sandbox.Erased, error)
	// SizeLimit returns a time so that what began since then has at most maxBytes. It is zero if all of history has.
	SizeLimit(ctx context.Context, maxBytes int64) (time.Time, error)
}

// Live knows the live sandboxes. Its methods do not wait.
type Live interface {
	// CurrentSandbox returns the state of a live sandbox, and false for one that does not live.
	CurrentSandbox(id string) (sb sandbox.Sandbox, isLive bool)
	// CountSandboxes returns the number of live sandboxes of a user, or of all if user is "".
	CountSandboxes(user string) int
	// TouchSandbox postpones the idle expiry of a sandbox, if it is live.
	TouchSandbox(id string)
}

// Runs knows the running executions.
type Runs interface {
	// RunningExecutions returns the IDs of the running executions of a user, or of all if user is "".
	RunningExecutions(user string) []string
}

// Memory keeps parts of executions in memory.
type Memory interface {
	// Forget removes what was erased. isErased gets the ID and the user of an execution.
	Forget(isErased func(execution, user string) bool)
}

// Config configures a Service.
type Config struct {
	Access             *access.Service // says who may see a record, and notes who has
	History            History
	Blobs              *blob.Store
	SigningKey         []byte             // of URLs
	ArtifactAge        time.Duration      // maximum age of artifacts
	ArtifactBytes      int64              // maximum size of one user's artifacts
	RecordingRetention RecordingRetention // which recordings are kept
	InputLogBytes      int64              // maximum size of all input logs; 0: no limit
	HistoryMaxAge      time.Duration      // of executions; 0: no limit
	HistoryMaxBytes    int64              // of all records and recordings; 0: no limit
	Log                logrus.FieldLogger

	Clock func() time.Time // nil: the machine's clock, in UTC
	// Elapsed returns the time since New by a clock that nobody sets; nil: the difference of two readings of Clock,
	// which is that of the machine's monotonic clock.
	Elapsed func() time.Duration
	NewID   func() string // nil: random bits as hex
}

// Service reads and deletes records. New returns one; Close ends it.
type Service struct {
	Config
	live       Live // set by Start, like the next two
	runs       Runs
	memories   []Memory
	recordings openRecordings
	retention  retention
	startedAt  time.Time

	storedBytes atomic.Int64  // of artifacts, since the last sweep
	sweepNow    chan struct{} // wakes the sweeper
	sweeping    sync.Mutex    // held while a sweep runs

	stop     chan struct{} // closed to end the sweeper and retention
	stopOnce sync.Once
	work     sync.WaitGroup
}

// New returns a Service, which Start makes ready.
func New(config Config) *Service {
	if config.Clock == nil {
		config.Clock = func() time.Time { return time.Now().UTC() }
	}
	if config.NewID == nil {
		config.NewID = access.NewID
	}
	s := &Service{Config: config, sweepNow: make(chan struct{}, 1), stop: make(chan struct{})}
	s.startedAt = s.Clock()
	if s.Elapsed == nil {
		s.Elapsed = func() time.Duration { return s.Clock().Sub(s.startedAt) }
	}
	return s
}

// Start starts the deletion of old records. live and runs are what goes on next to them, and memories have to forget
// what is erased. Start is called once, before the first call of another method.
func (s *Service) Start(live Live, runs Runs, memories ...Memory) {
	s.live, s.runs, s.memories = live, runs, memories
	s.work.Go(s.runSweeper)
	s.work.Go(s.runRetention)
}

// Close ends the deletion of old records, and waits for it. It may be called again.
func (s *Service) Close() {
	s.stopOnce.Do(func() { close(s.stop) })
	s.work.Wait()
}
