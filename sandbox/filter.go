package sandbox

import "time"

// ExecutionFilter selects executions for a list, newest first. A zero field does not filter.
type ExecutionFilter struct {
	User      string
	SandboxID string
	Status    Status
	Kind      Kind
	Since     time.Time
	Until     time.Time
	Text      string // a part of the code or the error, in upper or lower case
	Limit     int    // at most 1000; 0 means 50
	After     string // the cursor at the end of the previous page
}

// RecordFilter selects sandboxes, statements, connections, artifacts or audit entries for a list, newest first. A zero
// field does not filter. Each list uses the fields that it has.
type RecordFilter struct {
	User        string
	SandboxID   string
	ExecutionID string
	Status      string
	Fingerprint string // of a statement
	Database    string // of a statement
	Host        string // of a connection
	Action      string // of an audit entry
	Object      string // of an audit entry
	Text        string // a part of a statement, or of an artifact's path, in upper or lower case
	Since       time.Time
	Until       time.Time
	Limit       int    // at most 1000; 0 means 50
	After       string // the cursor at the end of the previous page
}

// Statistics sums up executions. The service fills in ActiveSandboxes.
type Statistics struct {
	ActiveSandboxes      int       `json:"active_sandboxes"`
	TotalExecutions      int       `json:"total_executions"`
	SuccessfulExecutions int       `json:"successful_executions"`
	FailedExecutions     int       `json:"failed_executions"`
	TimeoutExecutions    int       `json:"timeout_executions"`
	SuccessRate          float64   `json:"success_rate"`           // percent, 0 to 100
	AverageExecutionTime float64   `json:"average_execution_time"` // seconds
	PeakMemoryUsage      float64   `json:"peak_memory_usage"`      // MB
	Timestamp            time.Time `json:"timestamp"`
}
