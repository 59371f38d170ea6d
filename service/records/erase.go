package records

import (
	"context"
	"errors"
	"slices"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// auditExport adds an entry if the caller gets the bytes of another user's artifact.
func (s *Service) auditExport(ctx context.Context, caller sandbox.Key, a sandbox.Artifact) error {
	if caller.User == a.User {
		return nil
	}
	return s.Access.Audit(ctx, caller, sandbox.AuditExported, "artifact/"+a.ID, a.User)
}

// AuditEntries lists the audit log, newest first, and returns the cursor of the next page. Only an admin may read it.
func (s *Service) AuditEntries(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.AuditEntry, next string, err error) {
	if err := access.RequireAdmin(caller, "read the audit log"); err != nil {
		return nil, "", err
	}
	return s.History.AuditEntries(ctx, f)
}

// EraseExecution deletes an ended execution with all that belongs to it. Only an admin may do that.
func (s *Service) EraseExecution(ctx context.Context, caller sandbox.Key, id string) (sandbox.Erased, error) {
	if err := access.RequireAdmin(caller, "erase executions"); err != nil {
		return sandbox.Erased{}, err
	}
	e, err := s.History.Execution(ctx, id)
	if err != nil {
		return sandbox.Erased{}, err
	}
	if slices.Contains(s.runs.RunningExecutions(e.User), id) || e.CompletedAt == nil {
		return sandbox.Erased{}, sandbox.Errorf(sandbox.FaultBusy, "the execution runs: cancel it first")
	}
	if err := s.Access.Audit(ctx, caller, sandbox.AuditErased, "execution/"+id, e.User); err != nil {
		return sandbox.Erased{}, err
	}
	erased, err := s.History.EraseExecution(ctx, id)
	return erased, errors.Join(err, s.forget(erased, func(execution, _ string) bool { return execution == id }))
}

// EraseUser deletes all that history has of a user. What runs stays, so the user must have no live sandbox and no
// running execution. Only an admin may do that. An interrupted call can be repeated.
func (s *Service) EraseUser(ctx context.Context, caller sandbox.Key, user string) (sandbox.Erased, error) {
	if err := access.RequireAdmin(caller, "erase the history of a user"); err != nil {
		return sandbox.Erased{}, err
	}
	if err := sandbox.CheckName("user_id", user); err != nil {
		return sandbox.Erased{}, err
	}
	sandboxes, executions := s.live.CountSandboxes(user), s.runs.RunningExecutions(user)
	if sandboxes+len(executions) > 0 {
		return sandbox.Erased{}, sandbox.Errorf(sandbox.FaultBusy, "the user has %d live sandboxes and %d running "+
			"executions: revoke the user's keys and delete the sandboxes first", sandboxes, len(executions))
	}
	if err := s.Access.Audit(ctx, caller, sandbox.AuditErased, "user/"+user, user); err != nil {
		return sandbox.Erased{}, err
	}
	erased, err := s.History.EraseUser(ctx, user)
	return erased, errors.Join(err, s.forget(erased, func(_, owner string) bool { return owner == user }))
}

// forget removes what was erased from memory and from the blob store. isErased gets the id and the user of an
// execution.
func (s *Service) forget(erased sandbox.Erased, isErased func(execution, user string) bool) (err error) {
	s.recordings.forgetPast(isErased)
	for _, memory := range s.memories {
		memory.Forget(isErased)
	}
	if len(erased.Files) == 0 {
		return nil
	}
	for _, file := range erased.Files {
		if file.Version == nil {
			err = errors.Join(err, s.Blobs.Unlink(file.Artifact))
			continue
		}
		_, linkErr := s.Blobs.Link(*file.Version)
		err = errors.Join(err, linkErr)
	}
	s.wakeSweeper() // for the bytes
	return err
}
