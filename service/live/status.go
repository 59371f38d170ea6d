package live

import (
	"context"

	"glasshouse/sandbox"
)

// Status is the current state of a sandbox.
type Status struct {
	Sandbox     sandbox.Sandbox
	Running     bool
	Variables   sandbox.Variables
	Usage       map[string]any
	Environment *sandbox.EnvironmentVersion // nil if it has no process
	Last        *sandbox.Execution          // nil if nothing has run yet
}

// currentVariables returns the variables of a sandbox that the caller holds. Unlike an inspection by itself, it is
// allowed to a key that has used its CPU time of the day.
func (s *Service) currentVariables(
	ctx context.Context, caller sandbox.Key, live *liveSandbox,
) (sandbox.Variables, error) {
	release, err := s.Access.AcquireInspection(ctx, caller.User)
	if err != nil {
		return sandbox.Variables{}, err
	}
	defer release()
	return live.session.InspectVariables(ctx)
}

// Status returns the current state of a sandbox. It leaves out the variables while something runs in the sandbox.
func (s *Service) Status(ctx context.Context, caller sandbox.Key, id string) (Status, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return Status{}, err
	}
	s.mu.Lock()
	status := Status{
		Sandbox:   live.current(),
		Variables: sandbox.Variables{Variables: map[string]sandbox.Variable{}, Globals: []string{}},
	}
	lastExecution, isBusy := live.lastExecution, live.isBusy
	s.mu.Unlock()
	if !isBusy && live.inUse.TryLock() {
		status.Variables, err = s.currentVariables(ctx, caller, live)
		live.inUse.Unlock()
		if err != nil {
			return status, err
		}
	} else {
		status.Running = true
	}
	status.Usage, status.Environment = live.session.Usage(), live.session.Environment()
	if lastExecution != "" {
		if e, err := s.History.Execution(ctx, lastExecution); err == nil {
			status.Last = &e
		}
	}
	return status, nil
}
