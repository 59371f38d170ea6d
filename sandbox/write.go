package sandbox

import (
	"encoding/json"
	"errors"
	"time"
)

// WritePlan says how the server would run a statement that writes. Plan is PostgreSQL's
// query plan as JSON, or nil if no writing login is configured.
type WritePlan struct {
	Plan        json.RawMessage
	Rows        int64 // estimated
	Fingerprint string
	Tables      []string // that it changes and reads
	IsWhole     bool     // an UPDATE or DELETE whose condition, if it has one, is the same for each row
}

// BoundQuery is a query with the values of its parameters.
type BoundQuery struct {
	SQL        string
	Parameters map[string]any
}

// WriteSample is a sample of the rows that a pending write would affect.
type WriteSample struct {
	Query       string // that read the rows
	ExecutionID string // of that query
	Count       int    // rows that were read
	Affected    *int64 // rows that the write would affect; nil: they were not counted
	CountError  string // why not
}

// WritePreview says what a pending write changed in a transaction that was rolled back.
type WritePreview struct {
	Affected int64        `json:"affected_rows"`
	Rows     []ChangedRow `json:"rows" doc:"At most 100 of them"`
}

// ChangedRow is a row of the table that a write changes, as a JSON object in the order of the columns.
type ChangedRow struct {
	Before json.RawMessage `json:"before" doc:"null for a row of an INSERT"`
	After  json.RawMessage `json:"after" doc:"null for a row of a DELETE"`
}

// LargeWriteRows is the number of rows from which on a pending write has the alarm AlarmManyRows.
const LargeWriteRows = 1000

// The alarms of a pending write, which an admin should not miss.
const (
	AlarmNoCondition = "no-condition" // it changes all rows of a table
	AlarmManyRows    = "many-rows"    // PostgreSQL expects that it changes LargeWriteRows or more
)

// Alarms returns the alarms of a write with a plan.
func (p WritePlan) Alarms() (list []string) {
	if p.IsWhole {
		list = append(list, AlarmNoCondition)
	}
	if p.Rows >= LargeWriteRows {
		list = append(list, AlarmManyRows)
	}
	return list
}

// WriteUndo says how an applied write can be undone.
type WriteUndo struct {
	WriteID string   `json:"write_id"`
	Rows    int64    `json:"rows" doc:"Rows that the script restores"`
	Script  string   `json:"script,omitempty" doc:"SQL; a row that has changed since the write stays as it is"`
	Missing string   `json:"missing,omitempty" doc:"Why there is no script"`
	Cannot  []string `json:"cannot" doc:"What the script does not undo"`
}

// PendingWrite is a statement that would write. It waits until an admin applies or rejects it.
type PendingWrite struct {
	ID          string            `json:"id"`
	SandboxID   string            `json:"sandbox_id"`
	ExecutionID string            `json:"execution_id"`
	User        string            `json:"user_id"`
	Database    string            `json:"database,omitempty" doc:"The name of the database that it changes"`
	SQL         string            `json:"query"`
	Parameters  json.RawMessage   `json:"parameters"`
	Types       map[string]string `json:"types,omitempty"` // of the parameters whose type is known
	Plan        json.RawMessage   `json:"plan"`            // null if no writing login is configured
	RowEstimate int64             `json:"row_estimate"`
	Alarms      []string          `json:"alarms,omitempty" enum:"no-condition,many-rows" doc:"Look twice"`
	Status      WriteStatus       `json:"status"`
	CreatedAt   time.Time         `json:"created_at"`
	DecidedBy   string            `json:"decided_by,omitempty"`
	DecidedAt   *time.Time        `json:"decided_at,omitempty"`
	Reason      string            `json:"reason,omitempty" doc:"Why the admin decided so"`
	Affected    int64             `json:"affected_rows"`
	HasUndo     bool              `json:"has_undo,omitempty" doc:"The route undo says how it can be undone"`
	Error       string            `json:"error,omitempty"`
}

// WriteStatus is the status of a pending write.
type WriteStatus string

// The statuses of a write. A write becomes applying before it runs, so it runs at most once for each decision to apply
// it. It becomes unknown if the service or the connection to its database ends before it is known whether the write was
// committed. Then an admin must find out, and record it.
const (
	WritePending  WriteStatus = "pending"
	WriteApplying WriteStatus = "applying"
	WriteUnknown  WriteStatus = "unknown"
	WriteApplied  WriteStatus = "applied"
	WriteFailed   WriteStatus = "failed"
	WriteRejected WriteStatus = "rejected"
)

// ErrOutcomeUnknown is in the chain of an error after which a write may be committed or not.
var ErrOutcomeUnknown = errors.New("it is not known whether the write was committed: look in the database, and then " +
	"record with the route resolve whether it was applied")

// MaxReasonChars is the maximum length of PendingWrite.Reason, in characters.
const MaxReasonChars = 1000

// WriteFilter selects pending writes. A zero field selects all.
type WriteFilter struct {
	Status WriteStatus
	User   string
	Limit  int    // writes in a page; 0 is the default
	After  string // cursor of the previous page
}
