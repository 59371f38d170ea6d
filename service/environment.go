package service

import (
	"context"

	"glasshouse/sandbox"
)

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
