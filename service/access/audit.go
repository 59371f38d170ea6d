package access

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// MaySee reports whether the caller may see objects of an owner.
func MaySee(caller sandbox.Key, owner string) bool {
	return caller.Role == sandbox.RoleAdmin || caller.User == owner
}

// VisibleUser returns the user whose records the caller may see; "" means all users.
func VisibleUser(caller sandbox.Key) string {
	if caller.Role == sandbox.RoleAdmin {
		return ""
	}
	return caller.User
}

// MaySeeDatabase reports whether a caller may use the database with a name.
func MaySeeDatabase(caller sandbox.Key, name string) bool {
	return len(caller.Databases) == 0 || slices.Contains(caller.Databases, name)
}

// MayUserSeeDatabase reports whether a valid key of a user may use the database with a name. A user without a valid key
// is not restricted: who has left can no longer be given fewer rights, and admins still read what that user ran.
func (s *Service) MayUserSeeDatabase(ctx context.Context, user, name string) (bool, error) {
	if len(s.Databases) == 1 {
		return true, nil // every key may use the only database
	}
	keys, err := s.History.Keys(ctx, user)
	if err != nil {
		return false, err
	}
	now, hasKey := s.Clock(), false
	for _, key := range keys {
		if key.RevokedAt != nil || key.ExpiresAt != nil && now.After(*key.ExpiresAt) {
			continue
		}
		if MaySeeDatabase(key, name) {
			return true, nil
		}
		hasKey = true
	}
	return !hasKey, nil
}

// MaySeeDatabases reports whether a caller may use all databases of a key with a list of names.
func MaySeeDatabases(caller sandbox.Key, names []string) bool {
	return len(caller.Databases) == 0 || len(names) > 0 &&
		!slices.ContainsFunc(names, func(name string) bool { return !MaySeeDatabase(caller, name) })
}

// RequireAdmin returns FaultForbidden unless the caller is an admin. action says what only an admin may do.
func RequireAdmin(caller sandbox.Key, action string) error {
	if caller.Role != sandbox.RoleAdmin {
		return sandbox.Errorf(sandbox.FaultForbidden, "only an admin's key may %s", action)
	}
	return nil
}

// MayDebug returns FaultForbidden if the caller may not debug.
func MayDebug(caller sandbox.Key) error {
	if caller.Role == sandbox.RoleAgent {
		return sandbox.Errorf(sandbox.FaultForbidden, "debugging needs a developer's or an admin's key")
	}
	return nil
}

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

// Audit adds an entry to the audit log. An error means that the entry is not stored: the caller does not do what the
// entry says.
func (s *Service) Audit(
	ctx context.Context, caller sandbox.Key, action sandbox.AuditAction, object, owner string,
) error {
	return s.AuditDetail(ctx, caller, action, object, owner, nil)
}

// AuditDetail is Audit for an entry with a detail, which may be nil.
func (s *Service) AuditDetail(
	ctx context.Context, caller sandbox.Key, action sandbox.AuditAction, object, owner string, detail json.RawMessage,
) error {
	return s.History.AddAudit(ctx, sandbox.AuditEntry{
		User: caller.User, KeyID: caller.ID, Action: action, Object: object, Owner: owner, Detail: detail,
	})
}

// AuditView adds an entry if the caller views an object of another user.
func (s *Service) AuditView(ctx context.Context, caller sandbox.Key, object, owner string) error {
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
	if err := s.Audit(ctx, caller, sandbox.AuditViewed, object, owner); err != nil {
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
