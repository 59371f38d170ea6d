package sandbox

import "time"

// ExecutionFilter says which executions a list holds, newest first. Zero fields do not
// filter; Limit 0 is 50.
type ExecutionFilter struct {
	User      string
	SandboxID string
	Status    Status
	Since     time.Time
	Until     time.Time
	Text      string // in the code or the error, whatever its case
	Limit     int    // at most 1000
	After     string // the cursor that the page before ended with
}

// Statistics sums up executions; ActiveSandboxes is filled by who knows them.
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
