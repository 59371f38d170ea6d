package sandbox

import (
	"encoding/json"
	"time"
)

// Query is one read-only statement with named parameters, as history keeps it.
type Query struct {
	SQL         string          `json:"query"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // a JSON object
	Status      string          `json:"status"`               // "ok", "refused", "failed", "cancelled", "captured", "running"
	Reason      string          `json:"reason,omitempty"`     // the Refusal's reason code
	Error       string          `json:"error,omitempty"`
	Rows        int             `json:"rows"`
	Bytes       int64           `json:"bytes"`
	Truncated   bool            `json:"truncated"`
	Fingerprint string          `json:"fingerprint,omitempty"`
	DurationMS  float64         `json:"duration_ms"`
	StartedAt   time.Time       `json:"started_at"`
}

// QueryRunning is the status of one that has begun and has not ended.
const QueryRunning = "running"

// Column describes one output column of Rows. Kind says how each side renders
// the plain values that stand for it:
//
//	bool int float string bytes      as they are (float may be NaN or infinite)
//	decimal                          string, as PostgreSQL prints it
//	date time timetz timestamp timestamptz   string, ISO 8601; "infinity" stays
//	timedelta                        []any{months, days, microseconds}, int64 each
//	uuid                             string
//	json                             string, the JSON text untouched
//	inet cidr record range multirange   string, as PostgreSQL prints it; Of is the kind of a range's ends
//	text                             string: any other type, as PostgreSQL prints it
//
// Array is true where a value is an array of Kind: a nested []any.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type"` // PostgreSQL's name for it, as in "numeric" or "int4[]"
	Kind  string `json:"kind"`
	Of    string `json:"of,omitempty"`
	Array bool   `json:"array,omitempty"`
	// Masked says that the operator keeps the values back; each is "***".
	Masked bool `json:"masked,omitempty"`
}

// TypedParameter is a parameter whose PostgreSQL type the caller knows: that of a list's
// elements where Value is a list.
type TypedParameter struct {
	Type  string // as in "numeric"
	Value any    // text in PostgreSQL's own form, a number, or a list of them
}

// MarshalJSON leaves the type out: history keeps parameters as they were given.
func (t TypedParameter) MarshalJSON() ([]byte, error) { return json.Marshal(t.Value) }

// Table is one table or view that may be read.
type Table struct {
	Name        string        `json:"table_name"`
	Kind        string        `json:"table_type"` // "table", "view", "materialized view", "partitioned table" or "foreign table"
	Comment     *string       `json:"comment"`
	RowEstimate *int64        `json:"row_estimate"` // of the server's statistics; null where it has none
	PrimaryKey  []string      `json:"primary_key"`
	ForeignKeys []ForeignKey  `json:"foreign_keys"`
	Columns     []TableColumn `json:"columns,omitempty"`
}

// ForeignKey says that columns hold a key of another table.
type ForeignKey struct {
	Columns           []string `json:"columns"`
	Table             string   `json:"references"`
	ReferencedColumns []string `json:"referenced_columns"`
}

// TableColumn is one column of a table, as db_schema answers it.
type TableColumn struct {
	Name       string  `json:"column_name"`
	Type       string  `json:"data_type"`
	IsNullable string  `json:"is_nullable"` // "YES" or "NO", as information_schema has it
	Default    *string `json:"column_default"`
	Comment    *string `json:"comment"`
	PrimaryKey bool    `json:"primary_key"` // or a part of it
	Unique     bool    `json:"unique"`      // by itself
	References *string `json:"references"`  // "table(column)"
	Position   int     `json:"ordinal_position"`
	Masked     bool    `json:"masked"` // its values are kept back: it may be selected, and nothing else be done with it
}

// QueryLimits bounds one statement. The zero value of a field means the reader's own
// ceiling.
type QueryLimits struct {
	MaxRows  int
	MaxBytes int64
	Timeout  time.Duration
	// Whose statement it is, for budgets of concurrency; empty is nobody's.
	User    string
	Sandbox string
}
