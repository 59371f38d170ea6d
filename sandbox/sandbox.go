package sandbox

import (
	"time"

	"glasshouse/policy"
)

// State says where a sandbox is in its life.
type State string

// The states of a sandbox. Only an active one runs code; the others keep
// their history readable and answer a run with 410 and the reason.
const (
	StateActive  State = "active"
	StateDeleted State = "deleted"
	StateExpired State = "expired"
	StateLost    State = "lost" // the service stopped or was killed
)

// Sandbox is one agent's place: an owner, a policy, a folder, and at most one
// live Python session.
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

// ExpiresAt is when the sandbox ends if it is not used before: the earlier of
// its lifetime, counted from its creation, and its idle time, from its last use.
func (s Sandbox) ExpiresAt() time.Time {
	life := s.CreatedAt.Add(time.Duration(s.Policy.Lifetime) * time.Second)
	idle := s.LastUsed.Add(time.Duration(s.Policy.IdleTimeout) * time.Second)
	if idle.Before(life) {
		return idle
	}
	return life
}
