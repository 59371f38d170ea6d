package run

import (
	"context"

	"glasshouse/sandbox"
)

// The service declares interfaces for the packages that cmd passes to it. Therefore it does not depend on SQL,
// processes or package installers.

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

// History is the service's own database. It stores records unchanged.
type History interface {
	Ping(context.Context) error
	Status(context.Context) (sandbox.HistoryStatus, error)

	// Executions.
	Begin(context.Context, *sandbox.Execution) error
	Progress(context.Context, sandbox.Progress) error
	Finish(context.Context, *sandbox.Execution) error
	Execution(ctx context.Context, id string) (sandbox.Execution, error)
	Executions(context.Context, sandbox.ExecutionFilter) (list []sandbox.Execution, next string, err error)
	KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error // of a recording

	// Captured statements that wait for an admin's decision.
	AddWrite(ctx context.Context, w sandbox.PendingWrite, maxWrites, maxBytes int) error
	MoveWrite(ctx context.Context, w sandbox.PendingWrite, from sandbox.WriteStatus) error
	FinishWrite(context.Context, sandbox.PendingWrite) error
	Write(ctx context.Context, id string) (sandbox.PendingWrite, error)
	Writes(context.Context, sandbox.WriteFilter) (list []sandbox.PendingWrite, next string, err error)
}
