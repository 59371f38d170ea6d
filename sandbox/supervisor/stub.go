package supervisor

import (
	"context"
	"errors"

	"glasshouse/sandbox"
	"glasshouse/sandbox/isolate"
)

// RunFunc is the signature of Session.Run.
type RunFunc func(context.Context, Request, Callbacks) (sandbox.Outcome, error)

// NewStub returns a Supervisor without processes, for tests of code that uses sessions.
// run replaces Session.Run, and onClose is called when a session is closed. The sessions have
// no variables, uploads or artifacts.
func NewStub(run RunFunc, onClose func()) *Supervisor {
	return &Supervisor{isolator: noIsolator{}, stub: run, onStubClose: onClose}
}

type noIsolator struct{}

var errStub = errors.New("the stub supervisor does not start processes")

func (noIsolator) Start(context.Context, isolate.ProcessSpec) (*isolate.Process, error) {
	return nil, errStub
}
func (noIsolator) Isolation() sandbox.Isolation                                  { return sandbox.Isolation{} }
func (noIsolator) Ready() error                                                  { return nil }
func (noIsolator) SharedSessionDir(context.Context) (*isolate.SessionDir, error) { return nil, errStub }
