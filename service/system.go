package service

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// ServiceStatus says how the service is. Only an admin may ask.
func (s *Service) ServiceStatus(ctx context.Context, caller sandbox.Key) (sandbox.ServiceStatus, error) {
	if err := access.RequireAdmin(caller, "see the state of the service"); err != nil {
		return sandbox.ServiceStatus{}, err
	}
	isolation := s.Supervisor.Isolation()
	st := sandbox.ServiceStatus{
		StartedAt: s.startedAt, Isolation: isolation.Level, Enforced: isolation.EnforcedBy, PerUser: s.PerUser,
		Python: s.Environments.Environments(), Pools: s.Environments.Pools(),
	}
	s.mu.Lock()
	st.Sandboxes = sandbox.Occupancy{Now: len(s.live), Max: s.InAll}
	st.Runs = sandbox.Occupancy{Now: len(s.running), Max: s.Parallel}
	s.mu.Unlock()
	st.Retention = s.Records.RetentionStatus()
	var err error
	st.History, err = s.History.Status(ctx)
	return st, err
}
