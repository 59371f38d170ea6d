package sandbox

import (
	"encoding/json"
	"time"
)

// AuditEntry says who did what to the records of the service: in general an admin to those of another user.
type AuditEntry struct {
	ID     int64           `json:"id"`
	At     time.Time       `json:"at"`
	User   string          `json:"user_id" doc:"Who did it"`
	KeyID  string          `json:"key_id" doc:"With which key"`
	Action AuditAction     `json:"action"`
	Object string          `json:"object" doc:"Such as execution/ID, user/NAME"`
	Owner  string          `json:"owner,omitempty" doc:"The user to whom the object belongs"`
	Detail json.RawMessage `json:"detail,omitempty"`

	Statement string `json:"statement,omitempty" doc:"Of a pending write that history still has: its SQL"`
}

// AuditAction is an action that the audit log records.
type AuditAction string

// The actions.
const (
	AuditViewed    AuditAction = "viewed"    // a record of another user
	AuditExported  AuditAction = "exported"  // a file of another user was downloaded, or got a URL
	AuditApplied   AuditAction = "applied"   // a pending write
	AuditRejected  AuditAction = "rejected"  // a pending write
	AuditPreviewed AuditAction = "previewed" // a pending write ran and was rolled back
	AuditResolved  AuditAction = "resolved"  // a pending write whose outcome was not known
	AuditErased    AuditAction = "erased"    // from history
	AuditRenamed   AuditAction = "renamed"   // an execution or a sandbox of another user
	AuditCreated   AuditAction = "created"   // a key
	AuditRevoked   AuditAction = "revoked"   // a key
)

// Erased says how much was erased from history.
type Erased struct {
	Executions    int `json:"executions"`
	Statements    int `json:"statements"`
	Connections   int `json:"connections"`
	Artifacts     int `json:"artifacts"`
	Recordings    int `json:"recordings"`
	PendingWrites int `json:"pending_writes"`
	Sandboxes     int `json:"sandboxes"`
	Conversations int `json:"conversations"`
	Messages      int `json:"messages" doc:"Of conversations that stay: their text was removed"`

	Files []ErasedFile `json:"-"` // the artifacts that were erased
}

// ErasedFile is an erased artifact and the newest other version of the same file, which takes its name; nil: none.
type ErasedFile struct {
	Artifact Artifact
	Version  *Artifact
}

// Add adds the numbers of other.
func (e *Erased) Add(other Erased) {
	e.Executions += other.Executions
	e.Statements += other.Statements
	e.Connections += other.Connections
	e.Artifacts += other.Artifacts
	e.Recordings += other.Recordings
	e.PendingWrites += other.PendingWrites
	e.Sandboxes += other.Sandboxes
	e.Conversations += other.Conversations
	e.Messages += other.Messages
	e.Files = append(e.Files, other.Files...)
}
