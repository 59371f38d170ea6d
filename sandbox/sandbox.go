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

// CheckFileAccess returns FaultForbidden if the sandbox has no files.
func (s Sandbox) CheckFileAccess() error {
	if s.Policy.EnableFileAccess {
		return nil
	}
	return &Error{
		Fault: FaultForbidden, Field: "enable_file_access", Detail: "this sandbox was created with file access off",
	}
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

// Scope says where the code of a run finds its variables and its settings.
type Scope struct {
	Namespace string            `json:"namespace,omitempty"` // of variables in the process; "" is the first
	Folder    string            `json:"folder,omitempty"`    // below /session, in which a new namespace begins to work
	Forget    []string          `json:"forget,omitempty"`    // namespaces that are removed before the run
	Environ   map[string]string `json:"environ,omitempty"`   // environment variables of this run only
}

// IsZero reports whether the code uses the first variables of its process and nothing else is special.
func (s Scope) IsZero() bool {
	return s.Namespace == "" && s.Folder == "" && len(s.Forget)+len(s.Environ) == 0
}

// Environment is the current version of a set of packages that code may run with.
type Environment struct {
	Name     string   `json:"name"`
	Digest   string   `json:"digest" doc:"SHA-256 of its lock file: environments with the same digest have the same packages"`
	Python   string   `json:"python" doc:"Version of its interpreter"`
	Packages int      `json:"packages" doc:"Number of packages"`
	Modules  []string `json:"modules" doc:"Modules that code may import beyond those of a profile, from packages that the operator added"`
}

// ModulesOf returns the modules that the operator has added to each environment, by its name.
func ModulesOf(environments []Environment) policy.Environments {
	all := policy.Environments{}
	for _, e := range environments {
		all[e.Name] = e.Modules
	}
	return all
}

// EnvironmentVersion is the version of an environment that something ran with.
type EnvironmentVersion struct {
	Name   string `json:"name"`
	Digest string `json:"digest" doc:"SHA-256 of its lock file"`
}

// Package is a package that is installed in an environment.
type Package struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Summary string   `json:"summary"`
	Modules []string `json:"modules" doc:"Names to import it by"`
}

// EntryKind is the kind of an Entry.
type EntryKind string

// The kinds of an Entry.
const (
	EntryFile   EntryKind = "file"
	EntryFolder EntryKind = "folder"
	EntryLink   EntryKind = "link"
	EntryOther  EntryKind = "other" // a socket, FIFO or device
)

// Entry is a file, folder or link below a sandbox's /session.
type Entry struct {
	Path       string // below /session, "." for /session itself; any bytes that Linux allows in names
	Kind       EntryKind
	Size       int64
	Mode       uint32 // permission bits
	ModifiedAt time.Time
}
