package service

import (
	"context"
	"time"

	"glasshouse/sandbox"
)

// The service declares interfaces for the packages that cmd passes to it. Therefore it does not depend on SQL,
// processes or package installers.

// Environments are the sets of packages that code may run with.
type Environments interface {
	Environments() []sandbox.Environment // the default one first
	Packages(environment string) ([]sandbox.Package, error)
	Pools() []sandbox.WarmPool
	Refresh(context.Context) error // loads the operator's changes
}

// Reader reads a database.
type Reader interface {
	Query(
		ctx context.Context,
		sql string,
		params map[string]any,
		l sandbox.QueryLimits,
		sink sandbox.RowSink,
	) (sandbox.QuerySummary, error)
	Tables(context.Context) ([]string, error)
	Schema(ctx context.Context, names ...string) ([]sandbox.Table, error) // without names, all tables
	Status(context.Context) (serverVersion string, err error)
}

// Writer plans statements that would write, and runs statements that an admin has approved.
type Writer interface {
	Capture(ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits) (sandbox.WritePlan, error)
	SampleQueries(
		ctx context.Context, sql string, params map[string]any,
	) (rows, count sandbox.BoundQuery, err error)
	Preview(
		ctx context.Context, sql string, params map[string]any, l sandbox.QueryLimits,
	) (sandbox.WritePreview, error)
	Apply(ctx context.Context, sql string, params map[string]any) (int64, error)
}

// History is the service's own database. It stores records unchanged. *history.Store is one; a test that needs another
// answer of some methods embeds the store and writes those.
type History interface {
	Ping(context.Context) error
	Status(context.Context) (sandbox.HistoryStatus, error)

	// Executions.
	Begin(context.Context, *sandbox.Execution) error
	Progress(context.Context, sandbox.Progress) error
	Finish(context.Context, *sandbox.Execution) error
	Execution(ctx context.Context, id string) (sandbox.Execution, error)
	Executions(context.Context, sandbox.ExecutionFilter) (list []sandbox.Execution, next string, err error)
	CountExecutions(ctx context.Context, sandboxID string) (int, error)
	Statistics(ctx context.Context, user string) (sandbox.Statistics, error)

	// Sandboxes.
	CreateSandbox(context.Context, sandbox.Sandbox) error
	EndSandbox(ctx context.Context, id, owner string, state sandbox.State, at time.Time) error
	Sandbox(ctx context.Context, id string) (sandbox.Sandbox, error)

	// Keys. ForgetKeys deletes those of an account that expired before a time.
	CreateKey(ctx context.Context, k sandbox.Key, hash []byte, most int) error
	KeyByHash(ctx context.Context, hash []byte) (sandbox.Key, error)
	Keys(ctx context.Context, user string) ([]sandbox.Key, error)
	RevokeKeys(ctx context.Context, id string, at time.Time, choose func([]sandbox.Key) (ids []string, err error)) error
	ForgetKeys(ctx context.Context, account string, before time.Time) error

	// The CPU time that accounts have used, by day.
	CPUUsed(ctx context.Context, account string, day time.Time) (time.Duration, error)
	AddCPU(ctx context.Context, account string, day time.Time, used time.Duration) error

	// The records of artifacts, whose bytes are in the blob store; and which blobs and folders still belong to one.
	KeepArtifacts(context.Context, []sandbox.Artifact) error
	Artifact(ctx context.Context, id string) (sandbox.Artifact, error)
	Artifacts(ctx context.Context, sandboxID, after string, limit int) ([]sandbox.Artifact, string, error)
	ExpireArtifacts(ctx context.Context, before time.Time, maxBytesPerUser int64) ([]sandbox.Artifact, error)
	SumsInUse(ctx context.Context, sums []string) ([]string, error)
	PlacesInUse(ctx context.Context, folders []string) ([]string, error)

	// Recordings of debugged runs.
	KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error
	Chunks(ctx context.Context, execution string) ([]sandbox.Chunk, error) // without their Data
	ChunkData(ctx context.Context, execution string, sequence int) ([]byte, error)
	PruneRecordings(ctx context.Context, before time.Time, maxBytes int64) (int, error)

	// Captured statements that wait for an admin's decision.
	AddWrite(ctx context.Context, w sandbox.PendingWrite, maxWrites, maxBytes int) error
	MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error
	FinishWrite(context.Context, sandbox.PendingWrite) error
	Write(ctx context.Context, id string) (sandbox.PendingWrite, error)
	Writes(context.Context, sandbox.WriteFilter) (list []sandbox.PendingWrite, next string, err error)

	// Lists of what executions, sandboxes and statements did.
	ExecutionSummaries(context.Context, sandbox.ExecutionFilter) ([]sandbox.ExecutionSummary, string, error)
	SandboxSummaries(context.Context, sandbox.RecordFilter) ([]sandbox.SandboxSummary, string, error)
	ArtifactRecords(context.Context, sandbox.RecordFilter) ([]sandbox.Artifact, string, error)
	Statements(context.Context, sandbox.RecordFilter) ([]sandbox.Statement, string, error)
	TopStatements(context.Context, sandbox.RecordFilter, sandbox.StatementOrder) (
		list []sandbox.StatementStatistics, considered int64, err error)
	Connections(context.Context, sandbox.RecordFilter) ([]sandbox.ConnectionRecord, string, error)

	// Who did what to the records of others.
	AddAudit(context.Context, sandbox.AuditEntry) error
	AuditEntries(context.Context, sandbox.RecordFilter) ([]sandbox.AuditEntry, string, error)

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

	// Conversations with a language model.
	Conversation(ctx context.Context, id string) (sandbox.Conversation, error)
	Conversations(context.Context, sandbox.RecordFilter) ([]sandbox.Conversation, string, error)
	Messages(ctx context.Context, conversation string) ([]sandbox.ChatMessage, error)
	Message(ctx context.Context, conversation string, position int) (sandbox.ChatMessage, error)
	CreateConversation(context.Context, sandbox.Conversation) error
	UpdateConversation(context.Context, sandbox.Conversation) error
	PutMessages(ctx context.Context, conversation string, at time.Time, list ...sandbox.ChatMessage) error
	EraseConversation(ctx context.Context, id string) error
}
