package supervisor

import (
	"context"

	"glasshouse/sandbox"
)

// RunFunc is the signature of Session.Run.
type RunFunc func(
	ctx context.Context, executionID string, request sandbox.Request, callbacks Callbacks,
) (sandbox.Outcome, error)

// NewStub returns a Supervisor without processes, for tests of code that uses sessions.
// run replaces Session.Run, and onClose is called when a session is closed. The sessions have
// no variables, uploads or artifacts.
func NewStub(run RunFunc, onClose func()) *Supervisor {
	return &Supervisor{stub: run, onStubClose: onClose}
}
