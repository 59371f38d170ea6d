package service

import (
	"context"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// environments are those that a sandbox may choose, each with the modules that the
// operator has added to it.
func (s *Service) environments() policy.Environments {
	all := policy.Environments{}
	for _, e := range s.Environments.Environments() {
		all[e.Name] = e.Modules
	}
	return all
}

// RefreshEnvironments has the service see what the operator has changed, and says what
// there is then. Nothing that runs is interrupted.
func (s *Service) RefreshEnvironments(ctx context.Context, caller sandbox.Key) ([]sandbox.Environment, error) {
	if caller.Role != sandbox.RoleAdmin {
		return nil, sandbox.Errorf(sandbox.FaultForbidden, "only an admin's key may change what code runs with; GET /environments lists it")
	}
	err := s.Environments.Refresh(context.WithoutCancel(ctx))
	if err != nil {
		err = &sandbox.Error{Fault: sandbox.FaultInvalid, Detail: "what was there stays: " + err.Error(), Cause: err}
	}
	return s.Environments.Environments(), err
}
