package live

import (
	"context"

	"glasshouse/policy"
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

// Rules returns the code rules and the policy of a sandbox. The code rules say which modules and functions its code may
// use.
func (s *Service) Rules(ctx context.Context, caller sandbox.Key, id string) (policy.CodeRules, policy.Policy, error) {
	live, err := s.find(ctx, caller, id)
	if err != nil {
		return policy.CodeRules{}, policy.Policy{}, err
	}
	return policy.Rules(live.sandbox.Policy,
		sandbox.ModulesOf(s.Environments.Environments())[live.sandbox.Policy.Environment]), live.sandbox.Policy, nil
}
