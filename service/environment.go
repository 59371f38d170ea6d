package service

import (
	"context"

	"glasshouse/policy"
	"glasshouse/sandbox"
)

// environments returns the environments that a sandbox may choose, each with the modules that the operator has added.
func (s *Service) environments() policy.Environments {
	all := policy.Environments{}
	for _, e := range s.Environments.Environments() {
		all[e.Name] = e.Modules
	}
	return all
}

// RefreshEnvironments loads the operator's changes and returns the environments. Running executions keep their
// environment.
func (s *Service) RefreshEnvironments(ctx context.Context, caller sandbox.Key) ([]sandbox.Environment, error) {
	if caller.Role != sandbox.RoleAdmin {
		return nil, sandbox.Errorf(sandbox.FaultForbidden,
			"only an admin's key may refresh the environments; GET /environments lists them")
	}
	err := s.Environments.Refresh(context.WithoutCancel(ctx))
	if err != nil {
		err = &sandbox.Error{
			Fault: sandbox.FaultInvalid, Detail: "the environments are unchanged: " + err.Error(), Cause: err,
		}
	}
	return s.Environments.Environments(), err
}
