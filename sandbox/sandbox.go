package sandbox

import (
	"time"

	"glasshouse/policy"
)

// State is the state of a sandbox.
type State string

// The states of a sandbox. Only an active sandbox runs code. For the others, clients can
// still read the history; a run gets status 410 with the reason.
const (
	StateActive  State = "active"
	StateDeleted State = "deleted"
	StateExpired State = "expired"
	StateLost    State = "lost" // the service stopped or was killed
)

// Sandbox is an owner, a policy, a folder, and at most one live Python session.
type Sandbox struct {
	ID        string        `json:"sandbox_id"`
	Owner     string        `json:"user_id"`
	Policy    policy.Policy `json:"config"`
	Ephemeral bool          `json:"ephemeral"`
	State     State         `json:"status"`
	CreatedAt time.Time     `json:"created_at"`
	LastUsed  time.Time     `json:"last_used_at"`
	EndedAt   *time.Time    `json:"ended_at,omitempty"`
}

// ExpiresAt returns when the sandbox ends if nobody uses it until then: at the end of its
// lifetime, counted from its creation, or of its idle time, counted from its last use,
// whichever is earlier.
func (s Sandbox) ExpiresAt() time.Time {
	lifetimeEnd := s.CreatedAt.Add(time.Duration(s.Policy.Lifetime) * time.Second)
	idleEnd := s.LastUsed.Add(time.Duration(s.Policy.IdleTimeout) * time.Second)
	if idleEnd.Before(lifetimeEnd) {
		return idleEnd
	}
	return lifetimeEnd
}

// Summary returns s as lists show it.
func (s Sandbox) Summary() SandboxSummary {
	out := SandboxSummary{
		ID: s.ID, Owner: s.Owner, State: s.State, CreatedAt: s.CreatedAt, LastUsed: s.LastUsed,
		EndedAt: s.EndedAt,
	}
	if s.State == StateActive {
		out.ExpiresAt = new(s.ExpiresAt())
	}
	return out
}
