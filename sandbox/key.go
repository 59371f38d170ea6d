package sandbox

import "time"

// Role says what the bearer of a key may do.
type Role string

// The roles. An agent uses its own sandboxes. A developer also debugs, and makes keys of
// their own. An admin may do everything.
const (
	RoleAgent     Role = "agent"
	RoleDeveloper Role = "developer"
	RoleAdmin     Role = "admin"
)

// Key is an API key. History stores its secret as a hash only.
type Key struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	User      string     `json:"user_id"`
	Role      Role       `json:"role"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	Limits    KeyLimits  `json:"limits"`
	// Databases are the names of those that the key may use; nil means all.
	Databases []string `json:"databases,omitempty" doc:"The databases that the key may use; none: all"`
	// The lists restrict the sandboxes that are created with the key, as the keys of a sandbox's config do.
	AllowedModules []string `json:"allowed_modules,omitempty" doc:"Only these modules; none: those of the profile"`
	BlockedModules []string `json:"blocked_modules,omitempty" doc:"Modules that are blocked in addition"`
	CreatedBy      string   `json:"created_by,omitempty" doc:"The user who created the key; none: a start did"`
	// CreatedWith is the key that the creator showed. Its revocation revokes this key too.
	CreatedWith string `json:"created_with,omitempty" doc:"The id of the key that the creator showed"`
	Account     string `json:"-"` // the key whose usage counts: this key's ID, or the ID of the key that made it
}

// KeyLimits is how much a key may use; 0 means the operator's limit for all keys, and the weight 1.
type KeyLimits struct {
	Requests   int `json:"requests_per_minute,omitempty" minimum:"0" maximum:"2147483647"`
	Concurrent int `json:"concurrent_executions,omitempty" minimum:"0" maximum:"2147483647"`
	CPUSeconds int `json:"cpu_seconds_per_day,omitempty" minimum:"0" maximum:"2147483647"`
	// HistoryDays is for how long history keeps the key's executions; 0: as long as those of all keys.
	HistoryDays int `json:"history_days,omitempty" minimum:"0" maximum:"36500" doc:"Days of its executions in history"`
	// Weight says how much of the machine the user gets relative to other users; 0: 1.
	Weight int `json:"weight,omitempty" minimum:"1" maximum:"100" doc:"Relative to other users; none: 1"`
}
