package service

import (
	"context"
	"encoding/json"
	"fmt"

	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
)

// AttachDAP finds what a client of the Debug Adapter Protocol asks for: a session that
// is open, which it then drives, or watches where another editor drives it; the recording
// of an execution; or code, which is begun in a sandbox and ends with the client.
func (s *Service) AttachDAP(ctx context.Context, in dap.Attach) (*dap.Target, error) {
	caller, err := s.Authenticate(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	driver := "dap " + s.NewID()
	switch {
	case in.Session != "":
		d, err := s.DebugSession(caller, in.Session)
		if err != nil {
			return nil, err
		}
		d.edit(driver, in.Drive)
		return &dap.Target{
			Session: d.Session,
			Close:   func() error { return s.CloseDebug(caller, d.ID) },
			May:     func() error { return d.Drive(driver, false) },
			Leave:   func() { d.leave(driver) },
		}, nil
	case in.Execution != "":
		d, err := s.OpenPast(ctx, caller, in.Execution, driver)
		if err != nil {
			return nil, err
		}
		return &dap.Target{Session: d.Session, Close: func() error { return s.CloseDebug(caller, d.ID) }}, nil
	case in.Sandbox != "":
		d, _, err := s.OpenDebug(ctx, caller, in.Sandbox, DebugStart{
			Job: Job{Code: in.Code, Context: json.RawMessage("{}"), Kind: sandbox.KindDebug}, StopOnEntry: true, Driver: driver,
		})
		if err != nil {
			return nil, err
		}
		d.Settled(ctx) // at its first line, or over where it has none
		return &dap.Target{Session: d.Session, Fresh: true, Close: func() error { return s.CloseDebug(caller, d.ID) }}, nil
	}
	return nil, fmt.Errorf("attach to a session, to an execution, or to a sandbox with code")
}

// MayDebug says whether who may debug, for a door that opens before anything is attached.
func (s *Service) MayDebug(caller sandbox.Key) error { return debugs(caller) }

// debugs says whether who may debug.
func debugs(caller sandbox.Key) error {
	if caller.Role == sandbox.RoleAgent {
		return sandbox.Errorf(sandbox.FaultForbidden, "debugging needs a developer's or an admin's key")
	}
	return nil
}
