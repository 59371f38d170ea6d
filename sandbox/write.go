package sandbox

import (
	"encoding/json"
	"time"
)

// WritePlan is what the server would do with a statement that writes. Plan is
// PostgreSQL's, as JSON, and nil where no writing login is configured.
type WritePlan struct {
	Plan        json.RawMessage
	Rows        int64 // an estimate
	Fingerprint string
}

// PendingWrite is a statement that would write and was not run: it waits for an
// admin, or was decided on.
type PendingWrite struct {
	ID          string            `json:"id"`
	SandboxID   string            `json:"sandbox_id"`
	ExecutionID string            `json:"execution_id"`
	User        string            `json:"user_id"`
	SQL         string            `json:"query"`
	Parameters  json.RawMessage   `json:"parameters"`
	Types       map[string]string `json:"types,omitempty"` // of those parameters whose type is known
	Plan        json.RawMessage   `json:"plan"`            // null: there was no writing login to plan it
	RowEstimate int64             `json:"row_estimate"`
	Status      WriteStatus       `json:"status"`
	CreatedAt   time.Time         `json:"created_at"`
	DecidedBy   string            `json:"decided_by,omitempty"`
	DecidedAt   *time.Time        `json:"decided_at,omitempty"`
	Affected    int64             `json:"affected_rows"`
	Error       string            `json:"error,omitempty"`
}

// WriteStatus says where a pending write is.
type WriteStatus string

// A write is applied at most once: it leaves pending for applying before it runs, and
// stays there where the service ends in between, for an admin to look.
const (
	WritePending  WriteStatus = "pending"
	WriteApplying WriteStatus = "applying"
	WriteApplied  WriteStatus = "applied"
	WriteFailed   WriteStatus = "failed"
	WriteRejected WriteStatus = "rejected"
)
