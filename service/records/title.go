package records

import (
	"context"
	"strings"
	"time"

	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// RenameExecution gives an execution of the caller a title; an admin may rename all. "" removes it.
func (s *Service) RenameExecution(ctx context.Context, caller sandbox.Key, id, title string) error {
	title = strings.TrimSpace(title)
	if err := sandbox.CheckTitle(title); err != nil {
		return err
	}
	e, err := s.Execution(ctx, caller, id)
	if err == nil {
		err = s.auditRename(ctx, caller, "execution/"+id, e.User)
	}
	if err != nil {
		return err
	}
	return s.History.RenameExecution(ctx, id, title)
}

// RenameSandbox gives a sandbox of the caller a title; an admin may rename all. "" removes it.
func (s *Service) RenameSandbox(ctx context.Context, caller sandbox.Key, id, title string) error {
	title = strings.TrimSpace(title)
	if err := sandbox.CheckTitle(title); err != nil {
		return err
	}
	b, err := s.Sandbox(ctx, caller, id)
	if err == nil {
		err = s.auditRename(ctx, caller, "sandbox/"+id, b.Owner)
	}
	if err != nil {
		return err
	}
	return s.History.RenameSandbox(ctx, id, title)
}

func (s *Service) auditRename(ctx context.Context, caller sandbox.Key, object, owner string) error {
	if caller.User == owner {
		return nil
	}
	return s.Access.Audit(ctx, caller, sandbox.AuditRenamed, object, owner)
}

// maxActivityAge is how far back Activity looks.
const maxActivityAge = 90 * 24 * time.Hour

// Activity sums up the caller's executions, or those of all users for an admin, from the hour of a time on.
// isWork leaves out replays and explanations.
func (s *Service) Activity(
	ctx context.Context, caller sandbox.Key, since time.Time, isWork bool,
) (sandbox.Activity, error) {
	now := s.Clock()
	if since.IsZero() {
		since = now.Add(-24 * time.Hour)
	}
	if oldest := now.Add(-maxActivityAge); since.Before(oldest) {
		since = oldest
	}
	since = since.Truncate(time.Hour)
	out, err := s.History.Activity(ctx, sandbox.ActivityFilter{
		User: access.VisibleUser(caller), Since: since, IsWork: isWork,
	})
	out.Since = since
	return out, err
}
