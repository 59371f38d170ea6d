package sandbox

import (
	"encoding/json"
	"time"
)

// Query is history's record of one read-only statement with named parameters.
type Query struct {
	Database   string          `json:"database,omitempty" doc:"The name of the database that it was sent to"`
	SQL        string          `json:"query"`
	Parameters json.RawMessage `json:"parameters,omitempty"` // a JSON object
	// "ok", "refused", "failed", "cancelled", "captured" or "running"
	Status           string    `json:"status"`
	Reason           string    `json:"reason,omitempty"` // the Refusal's reason code
	Error            string    `json:"error,omitempty"`
	Rows             int       `json:"rows"`
	Bytes            int64     `json:"bytes"`
	Truncated        bool      `json:"truncated"`
	Fingerprint      string    `json:"fingerprint,omitempty"`
	Tables           []string  `json:"tables,omitempty" doc:"Tables and views in it, and in its views"`
	ComputedWithMask []string  `json:"computed_with_mask,omitempty" doc:"Masked columns that it used as ***"`
	RoundedColumns   []string  `json:"rounded_columns,omitempty" doc:"Numeric columns that lost digits in db_frame"`
	DurationMS       float64   `json:"duration_ms"`
	StartedAt        time.Time `json:"started_at"`
	Step             int       `json:"step,omitempty" doc:"The step of a recorded run that sent it"`
}

// UnknownDatabase is the reason of a statement whose Database is a text of the caller, which names no database that the
// caller may use.
const UnknownDatabase = "unknown-database"

// KnownDatabase returns the name of the configured database that the statement was sent to, or "".
func (q *Query) KnownDatabase() string {
	if q.Reason == UnknownDatabase {
		return ""
	}
	return q.Database
}

// QueryRunning is the status of a statement that has not ended.
const QueryRunning = "running"

// Column describes one column of a result. Kind says how its values are represented:
//
//	bool int float string bytes      as they are (float may be NaN or infinite)
//	decimal                          string, as PostgreSQL prints it
//	date time timetz timestamp timestamptz   string, ISO 8601; "infinity" stays
//	timedelta                        []any{months, days, microseconds}, int64 each
//	uuid                             string
//	json                             string, the JSON text untouched
//	inet cidr record range multirange   string, as PostgreSQL prints it; Of is the kind of a range's bounds
//	text                             string: any other type, as PostgreSQL prints it
//
// If Array is set, a value is an array of Kind: a nested []any.
type Column struct {
	Name   string `json:"name"`
	Type   string `json:"type"` // PostgreSQL's name, such as "numeric" or "int4[]"
	Kind   string `json:"kind"`
	Of     string `json:"of,omitempty"`
	Array  bool   `json:"array,omitempty"`
	Masked bool   `json:"masked,omitempty"` // the operator hides the values; each is "***", or NULL of an outer join
}

// TypedParameter is a parameter whose PostgreSQL type the caller knows.
type TypedParameter struct {
	Type  string // such as "numeric"; if Value is a list, the type of its elements
	Value any    // text in PostgreSQL's own format, a number, or a list of them
}

// MarshalJSON writes only the value, because history stores parameters as the code passed them.
func (t TypedParameter) MarshalJSON() ([]byte, error) { return json.Marshal(t.Value) }

// Table is a table or view that may be read.
type Table struct {
	Name        string        `json:"table_name"` // as a statement writes it, with its schema if it needs one
	Kind        string        `json:"table_type"` // "table", "view", "materialized view", "partitioned table" or "foreign table"
	Comment     *string       `json:"comment"`
	RowEstimate *int64        `json:"row_estimate"` // from the server's statistics; null if it has none
	PrimaryKey  []string      `json:"primary_key"`
	ForeignKeys []ForeignKey  `json:"foreign_keys"`
	Columns     []TableColumn `json:"columns,omitempty"`
}

// ForeignKey is a foreign key of a table.
type ForeignKey struct {
	Columns           []string `json:"columns"`
	Table             string   `json:"references"`
	ReferencedColumns []string `json:"referenced_columns"`
}

// TableColumn is a column of a table, as db_schema returns it.
type TableColumn struct {
	Name       string  `json:"column_name"`
	QuotedName string  `json:"-"` // as a statement writes it
	Type       string  `json:"data_type"`
	IsNullable string  `json:"is_nullable"` // "YES" or "NO", as in information_schema
	Default    *string `json:"column_default"`
	Comment    *string `json:"comment"`
	PrimaryKey bool    `json:"primary_key"` // or part of it
	Unique     bool    `json:"unique"`      // by itself
	References *string `json:"references"`  // "table(column)"
	Position   int     `json:"ordinal_position"`
	Masked     bool    `json:"masked"` // a query may select it, as "***", but not use it in any other way
}

// QueryLimits are the limits of one statement. A zero limit means the reader's own.
type QueryLimits struct {
	MaxRows  int
	MaxBytes int64
	Timeout  time.Duration
	// User and Sandbox count the statement against their limits of concurrency, unless empty.
	User    string
	Sandbox string
	// Copy also gets the rows of a statement, if a question about it is answered: its stages, or where a row comes
	// from. nil: nobody does.
	Copy RowSink
}

// DefaultDatabase is the name of the database that statements could not name before databases had names: that of the
// setting --knowledge-url, or the embedded demo.
const DefaultDatabase = "knowledge"

// MaxDatabaseName is the maximum length of a database's name, in characters.
const MaxDatabaseName = 63

// DatabaseStatus says how a database is that statements can name.
type DatabaseStatus struct {
	Name          string `json:"name"`
	IsDefault     bool   `json:"default" doc:"Statements that name no database go to it"`
	Status        string `json:"status" enum:"ready,unavailable"`
	ServerVersion string `json:"server_version,omitempty" doc:"The version of its PostgreSQL"`
	Problem       string `json:"problem,omitempty" doc:"Why it is unavailable"`
}

// The statuses of a database.
const (
	DatabaseReady       = "ready"
	DatabaseUnavailable = "unavailable"
)
