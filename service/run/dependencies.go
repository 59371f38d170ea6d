package run

import (
	"context"

	"glasshouse/sandbox"
)

// The service declares interfaces for the packages that cmd passes to it. Therefore it does not depend on SQL,
// processes or package installers.

// History is the service's own database. It stores records unchanged.
type History interface {
	Ping(context.Context) error
	Status(context.Context) (sandbox.HistoryStatus, error)

	// Executions.
	Begin(context.Context, *sandbox.Execution) error
	Progress(context.Context, sandbox.Progress) error
	Finish(context.Context, *sandbox.Execution) error
	Execution(ctx context.Context, id string) (sandbox.Execution, error)
	HasExecution(ctx context.Context, id string) (bool, error)
	Executions(context.Context, sandbox.ExecutionFilter) (list []sandbox.Execution, next string, err error)
	KeepChunk(ctx context.Context, execution string, c sandbox.Chunk) error // of a recording
	KeepInputs(ctx context.Context, e *sandbox.Execution, log []byte) error
	Inputs(ctx context.Context, e *sandbox.Execution) (log []byte, err error) // FaultNotFound if there is none
	// KeepStages keeps the stages of a statement with its execution. Stages returns them, or FaultNotFound.
	KeepStages(ctx context.Context, execution string, number int, record []byte) error
	Stages(ctx context.Context, execution string, number int) (record []byte, err error)

	// A captured statement, which waits for an admin's decision.
	AddWrite(ctx context.Context, w sandbox.PendingWrite, maxWrites, maxBytes int) error
}
