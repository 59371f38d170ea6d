package service

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"glasshouse/sandbox"
)

const (
	// viewInterval is the time in which the audit log has one entry for a key that views an object again and again. A
	// page that shows the steps of a recording does so.
	viewInterval = 10 * time.Minute
	// maxRecentViews bounds the memory of recentViews; when it is full, it is emptied, which only adds entries.
	maxRecentViews = 10_000
)

// recentViews are the views that the audit log has from the last viewInterval.
type recentViews struct {
	mu sync.Mutex
	at map[view]time.Time
}

type view struct{ keyID, object string }

// audit adds an entry to the audit log. An error means that the entry is not stored: the caller does not do what the
// entry says.
func (s *Service) audit(
	ctx context.Context, caller sandbox.Key, action sandbox.AuditAction, object, owner string,
) error {
	return s.auditDetail(ctx, caller, action, object, owner, nil)
}

// auditDetail is audit for an entry with a detail, which may be nil.
func (s *Service) auditDetail(
	ctx context.Context, caller sandbox.Key, action sandbox.AuditAction, object, owner string, detail json.RawMessage,
) error {
	return s.History.AddAudit(ctx, sandbox.AuditEntry{
		User: caller.User, KeyID: caller.ID, Action: action, Object: object, Owner: owner, Detail: detail,
	})
}

// auditView adds an entry if the caller views an object of another user.
func (s *Service) auditView(ctx context.Context, caller sandbox.Key, object, owner string) error {
	if caller.User == owner {
		return nil
	}
	now, this := s.Clock(), view{caller.ID, object}
	s.views.mu.Lock()
	isRecent := now.Sub(s.views.at[this]) < viewInterval
	s.views.mu.Unlock()
	if isRecent {
		return nil
	}
	if err := s.audit(ctx, caller, sandbox.AuditViewed, object, owner); err != nil {
		return err
	}
	s.views.mu.Lock()
	defer s.views.mu.Unlock()
	if s.views.at == nil || len(s.views.at) >= maxRecentViews {
		s.views.at = map[view]time.Time{}
	}
	s.views.at[this] = now
	return nil
}

// auditExport adds an entry if the caller gets the bytes of another user's artifact.
func (s *Service) auditExport(ctx context.Context, caller sandbox.Key, a sandbox.Artifact) error {
	if caller.User == a.User {
		return nil
	}
	return s.audit(ctx, caller, sandbox.AuditExported, "artifact/"+a.ID, a.User)
}

// AuditEntries lists the audit log, newest first, and returns the cursor of the next page. Only an admin may read it.
func (s *Service) AuditEntries(ctx context.Context, caller sandbox.Key, f sandbox.RecordFilter) (
	list []sandbox.AuditEntry, next string, err error) {
	if err := requireAdmin(caller, "read the audit log"); err != nil {
		return nil, "", err
	}
	return s.History.AuditEntries(ctx, f)
}

// EraseExecution deletes an ended execution with all that belongs to it. Only an admin may do that.
func (s *Service) EraseExecution(ctx context.Context, caller sandbox.Key, id string) (sandbox.Erased, error) {
	if err := requireAdmin(caller, "erase executions"); err != nil {
		return sandbox.Erased{}, err
	}
	e, err := s.History.Execution(ctx, id)
	if err != nil {
		return sandbox.Erased{}, err
	}
	if s.runningExecution(caller, id) != nil || e.CompletedAt == nil {
		return sandbox.Erased{}, sandbox.Errorf(sandbox.FaultBusy, "the execution runs: cancel it first")
	}
	if err := s.audit(ctx, caller, sandbox.AuditErased, "execution/"+id, e.User); err != nil {
		return sandbox.Erased{}, err
	}
	erased, err := s.History.EraseExecution(ctx, id)
	return erased, errors.Join(err, s.forget(erased, func(execution, _ string) bool { return execution == id }))
}

// EraseUser deletes all that history has of a user. What runs stays, so the user must have no live sandbox and no
// running execution. Only an admin may do that. An interrupted call can be repeated.
func (s *Service) EraseUser(ctx context.Context, caller sandbox.Key, user string) (sandbox.Erased, error) {
	if err := requireAdmin(caller, "erase the history of a user"); err != nil {
		return sandbox.Erased{}, err
	}
	if err := sandbox.CheckName("user_id", user); err != nil {
		return sandbox.Erased{}, err
	}
	s.mu.Lock()
	sandboxes, executions := s.liveOf[user], 0
	for _, r := range s.running {
		if r.opening.User == user {
			executions++
		}
	}
	s.mu.Unlock()
	if sandboxes+executions > 0 {
		return sandbox.Erased{}, sandbox.Errorf(sandbox.FaultBusy, "the user has %d live sandboxes and %d running "+
			"executions: revoke the user's keys and delete the sandboxes first", sandboxes, executions)
	}
	if err := s.audit(ctx, caller, sandbox.AuditErased, "user/"+user, user); err != nil {
		return sandbox.Erased{}, err
	}
	erased, err := s.History.EraseUser(ctx, user)
	return erased, errors.Join(err, s.forget(erased, func(_, owner string) bool { return owner == user }))
}

// forget removes what was erased from memory and from the blob store: event logs, events of the feed, recordings, debug
// sessions over them, and files. isErased gets the id and the user of an execution.
func (s *Service) forget(erased sandbox.Erased, isErased func(execution, user string) bool) (err error) {
	s.mu.Lock()
	for id, l := range s.eventLogs {
		if e, ended := l.Execution(); ended && e != nil && isErased(id, e.User) {
			delete(s.eventLogs, id)
		}
	}
	s.mu.Unlock()
	s.feed.forget(isErased)
	s.recordings.forgetPast(isErased)
	s.debugSessions.forget(isErased)
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
