package run

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
	"glasshouse/service/access"
)

// ServiceStatus says how the service is. Only an admin may ask.
func (s *Service) ServiceStatus(ctx context.Context, caller sandbox.Key) (sandbox.ServiceStatus, error) {
	if err := access.RequireAdmin(caller, "see the state of the service"); err != nil {
		return sandbox.ServiceStatus{}, err
	}
	isolation := s.Live.Supervisor.Isolation()
	st := sandbox.ServiceStatus{
		StartedAt: s.startedAt, Isolation: isolation.Level, Enforced: isolation.EnforcedBy, PerUser: s.Live.PerUser,
		Python: s.Live.Environments.Environments(), Pools: s.Live.Environments.Pools(),
	}
	st.Sandboxes = sandbox.Occupancy{Now: s.Live.CountSandboxes(""), Max: s.Live.InAll}
	st.Runs = sandbox.Occupancy{Now: len(s.RunningExecutions("")), Max: s.Parallel}
	st.Retention, st.InputLog = s.Records.RetentionStatus(), string(inputlog.Off)
	if s.InputLog.IsOn() {
		st.InputLog = string(s.InputLog)
	}
	var err error
	st.History, err = s.History.Status(ctx)
	return st, err
}
