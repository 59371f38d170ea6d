package records

import (
	"context"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Execution returns one execution that the caller may see.
func (s *Service) Execution(ctx context.Context, caller sandbox.Key, id string) (sandbox.Execution, error) {
	e, err := s.History.Execution(ctx, id)
	if err == nil && !access.MaySee(caller, e.User) {
		return sandbox.Execution{}, sandbox.Errorf(sandbox.FaultNotFound,
			"there is no such execution, or it is not yours")
	}
	if err == nil {
		err = s.Access.AuditView(ctx, caller, "execution/"+id, e.User)
	}
	return e, err
}

// Executions lists the executions that match the filter, and returns the cursor of the next page. Callers other than
// admins see only their own.
func (s *Service) Executions(
	ctx context.Context, caller sandbox.Key, f sandbox.ExecutionFilter,
) (list []sandbox.Execution, next string, err error) {
	if caller.Role != sandbox.RoleAdmin {
		f.User = caller.User
	}
	list, next, err = s.History.Executions(ctx, f)
	for _, e := range list {
		if err == nil {
			err = s.Access.AuditView(ctx, caller, "user/"+e.User, e.User)
		}
	}
	return list, next, err
}

// SandboxHistory lists the executions of a live or ended sandbox, newest first. It returns the cursor of the next page
// and the number of all executions.
func (s *Service) SandboxHistory(ctx context.Context, caller sandbox.Key, id string, limit int, after string) (
	list []sandbox.Execution, next string, total int, err error) {
	if _, err := s.Sandbox(ctx, caller, id); err != nil {
		return nil, "", 0, err
	}
	list, next, err = s.History.Executions(ctx, sandbox.ExecutionFilter{SandboxID: id, Limit: limit, After: after})
	if err != nil {
		return nil, "", 0, err
	}
	total, err = s.History.CountExecutions(ctx, id)
	return list, next, total, err
}

// Statistics summarises the caller's executions or, for an admin, those of all users.
func (s *Service) Statistics(ctx context.Context, caller sandbox.Key) (sandbox.Statistics, error) {
	user := access.VisibleUser(caller)
	st, err := s.History.Statistics(ctx, user)
	st.ActiveSandboxes = s.live.CountSandboxes(user)
	return st, err
}
