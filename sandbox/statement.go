package sandbox

import (
	"time"
)

// StatementChars is the number of characters of its SQL that a Statement has.
const StatementChars = 2000

// Statement is a Query of an ended execution in a list.
type Statement struct {
	ExecutionID string    `json:"execution_id"`
	Number      int       `json:"number" doc:"Within the execution, from 1"`
	SandboxID   string    `json:"sandbox_id"`
	User        string    `json:"user_id"`
	Database    string    `json:"database,omitempty" doc:"The name of the database that it was sent to"`
	SQL         string    `json:"query" doc:"The first 2000 characters; the execution has all, and the parameters"`
	SQLBytes    int64     `json:"query_bytes" doc:"Size of the whole statement"`
	Status      string    `json:"status"`
	Reason      string    `json:"reason,omitempty" doc:"The rule that refused it"`
	Error       string    `json:"error,omitempty"`
	Rows        int64     `json:"rows"`
	Bytes       int64     `json:"bytes"`
	Truncated   bool      `json:"truncated"`
	Fingerprint string    `json:"fingerprint,omitempty" doc:"The same for statements that differ only in constants"`
	Tables      []string  `json:"tables,omitempty" doc:"Tables and views in it, and in its views"`
	DurationMS  float64   `json:"duration_ms"`
	StartedAt   time.Time `json:"started_at"`
}

// StatementStatistics sums up the statements with one fingerprint that were sent to one database.
type StatementStatistics struct {
	Fingerprint string         `json:"fingerprint"`
	Database    string         `json:"database,omitempty"`
	SQL         string         `json:"query" doc:"The newest of them, its first 2000 characters"`
	Calls       int64          `json:"calls"`
	TotalMS     float64        `json:"total_ms"`
	MeanMS      float64        `json:"mean_ms"`
	P95MS       float64        `json:"p95_ms"`
	MaxMS       float64        `json:"max_ms"`
	Rows        int64          `json:"rows"`
	Failed      int64          `json:"failed"`
	Refused     int64          `json:"refused"`
	Captured    int64          `json:"captured" doc:"Writes that did not run, but waited for an admin"`
	Reasons     map[string]int `json:"reasons" doc:"Refusals by rule"`
	Users       int            `json:"users" doc:"Number of users who sent it"`
	MainUsers   []string       `json:"main_users" doc:"Those who sent it most often, five at most"`
	LastAt      time.Time      `json:"last_at"`
}

// StatementOrder names a number by which StatementStatistics are sorted, the largest first.
type StatementOrder string

// The orders of statistics.
const (
	OrderTotal   StatementOrder = "total" // total_ms
	OrderCalls   StatementOrder = "calls"
	OrderMean    StatementOrder = "mean"
	OrderP95     StatementOrder = "p95"
	OrderRows    StatementOrder = "rows"
	OrderRefused StatementOrder = "refused"
)

// ConnectionRecord is a Connection of an ended execution in a list.
type ConnectionRecord struct {
	ExecutionID string `json:"execution_id"`
	Number      int    `json:"number" doc:"Within the execution, from 1"`
	SandboxID   string `json:"sandbox_id"`
	User        string `json:"user_id"`
	Connection
}

// ConnectionStatus is the state or the end of a Connection.
type ConnectionStatus string

// The statuses of a connection.
const (
	ConnectionAllowed ConnectionStatus = "allowed" // the connection was allowed, and has ended
	ConnectionRefused ConnectionStatus = "refused" // the policy does not allow the connection
	ConnectionFailed  ConnectionStatus = "failed"  // the connection was allowed, but could not be made or used
	ConnectionOpen    ConnectionStatus = "open"    // the connection was allowed, and is open
)

// Connection is history's record of one connection that code requested from its sandbox to
// a host. The bytes are those of TCP between the broker and the host: for TLS the encrypted
// stream, for plain HTTP with the headers.
type Connection struct {
	Host          string           `json:"host"` // as the policy compares it: ASCII, lower case
	Port          int              `json:"port"`
	Address       string           `json:"address,omitempty"` // "ip:port" that was connected to
	Status        ConnectionStatus `json:"status"`
	Reason        string           `json:"reason,omitempty"` // why it was refused, failed or cut
	BytesSent     int64            `json:"bytes_sent"`
	BytesReceived int64            `json:"bytes_received"`
	DurationMS    float64          `json:"duration_ms"`
	StartedAt     time.Time        `json:"started_at"`
}
