package debug

import (
	"context"
	"errors"
	"fmt"

	"glasshouse/debugger"
	"glasshouse/debugger/dap"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/stages"
	"glasshouse/service/access"
	"glasshouse/service/run"
)

// maxEditors is the maximum number of attached clients of one user.
const maxEditors = 20

// Attach returns the target to which a client of the Debug Adapter Protocol attaches: an open session, which
// the client drives or watches; the recording of an execution; an execution, which runs again and is recorded; or code,
// which starts in a sandbox and ends when the client leaves.
func (s *Service) Attach(ctx context.Context, in dap.Attach) (*dap.Target, error) {
	caller, err := s.Access.AdmitClient(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	if err := access.MayDebug(caller); err != nil {
		return nil, err
	}
	release, err := s.editors.Acquire(ctx, caller.User, 0)
	if errors.Is(err, limit.ErrFull) {
		return nil, &sandbox.Error{Fault: sandbox.FaultLimit, RetryAfter: 60, Detail: fmt.Sprintf(
			"%d of your editors are attached to the debugger, the maximum for one user; disconnect one", maxEditors)}
	}
	if err != nil {
		return nil, err
	}
	target, err := s.openDAP(ctx, caller, in)
	if err != nil {
		release()
		return nil, err
	}
	detach := target.Detach
	target.Detach = func() {
		if detach != nil {
			detach()
		}
		release()
	}
	target.Person, target.Search = PersonOf(caller), s.SearcherOf(caller)
	target.Authorize = func(ctx context.Context) error { return s.Access.KeyLost(ctx, in.Token) }
	return target, nil
}

// StatementsOf returns what lets a caller step into the statements of a session. They run again as executions of the
// caller.
func (s *Service) StatementsOf(caller sandbox.Key, d *Session) debugger.Statements {
	return debugger.Statements{
		Reader: caller.ID + " " + caller.User,
		Stages: func(ctx context.Context, number int) (*stages.Stages, error) { // an editor cannot ask for the rest
			return s.Runs.StagesOf(ctx, caller, d.Execution(), number, stages.Options{Samples: true, All: true})
		},
	}
}

// statementsFor does the same for an editor, whose steps into a line enter the statement there.
func (s *Service) statementsFor(caller sandbox.Key, d *Session) *debugger.Statements {
	of := s.StatementsOf(caller, d)
	of.EntersOnStepIn = true
	return &of
}

func (s *Service) openDAP(ctx context.Context, caller sandbox.Key, in dap.Attach) (*dap.Target, error) {
	driver := "dap " + s.NewID()
	switch {
	case in.Session != "":
		d, err := s.Session(caller, in.Session)
		if err != nil {
			return nil, err
		}
		d.attachEditor(driver, in.Drive)
		return &dap.Target{
			Session: d.Session, Statements: s.statementsFor(caller, d),
			Close:    func() error { return s.CloseSession(caller, d.ID) },
			MayDrive: func() error { return d.Drive(driver, false) },
			Detach:   func() { d.detachEditor(driver) },
		}, nil
	case in.Execution != "":
		d, err := s.OpenPast(ctx, caller, in.Execution, driver)
		if err != nil {
			return nil, err
		}
		return &dap.Target{
			Session: d.Session, Statements: s.statementsFor(caller, d),
			Close:  func() error { return s.CloseSession(caller, d.ID) },
			Detach: func() { s.sessions.remove(d.ID) }, // no other client knows it
		}, nil
	case in.Replay != "":
		replay, err := s.Runs.Replay(ctx, caller, in.Replay, run.ReplayOptions{Record: true})
		if err != nil {
			return nil, err
		}
		in.Replay, in.Execution = "", replay.ID
		return s.openDAP(ctx, caller, in)
	case in.Sandbox != "":
		d, _, err := s.Open(ctx, caller, in.Sandbox, Start{
			Request: sandbox.Request{Code: in.Code, Kind: sandbox.KindDebug}, StopOnEntry: true, Driver: driver,
		})
		if err != nil {
			return nil, err
		}
		d.WaitForStop(ctx) // waits until the code stops at its first line, or has ended because it has no line
		return &dap.Target{
			Session: d.Session, Fresh: true, Statements: s.statementsFor(caller, d),
			Close: func() error { return s.CloseSession(caller, d.ID) },
		}, nil
	}
	return nil, errors.New("attach needs a session, an execution, a replay, or a sandbox with code")
}
