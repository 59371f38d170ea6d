package sandbox

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"glasshouse/policy"
)

// Limits of the texts in an ExecutionSummary, in characters.
const (
	SummaryCodeChars  = 200
	SummaryErrorChars = 500
)

// ExecutionSummary is an execution in a list: without its outputs, and with numbers instead of its parts.
type ExecutionSummary struct {
	ID            string     `json:"execution_id"`
	SandboxID     string     `json:"sandbox_id"`
	User          string     `json:"user_id"`
	Kind          Kind       `json:"kind"`
	Status        Status     `json:"status"`
	Code          string     `json:"code" doc:"The first 200 characters"`
	CodeBytes     int64      `json:"code_bytes" doc:"Size of the whole code"`
	Error         *string    `json:"error" doc:"The first 500 characters"`
	ExecutionTime float64    `json:"execution_time" doc:"Seconds"`
	CPUMS         float64    `json:"cpu_ms"`
	MemoryUsage   float64    `json:"memory_usage" doc:"MB"`
	Queries       int        `json:"queries" doc:"Number of statements; 0 while it runs, as the other numbers"`
	RowsRead      int64      `json:"rows_read" doc:"Rows that its statements returned"`
	Connections   int        `json:"connections" doc:"Number of network connections"`
	Artifacts     int        `json:"artifacts" doc:"Number of files that it left"`
	RecordedSteps int64      `json:"recorded_steps" doc:"Length of its recording; 0: it has none"`
	IsExplanation bool       `json:"is_explanation,omitempty" doc:"It ran only to explain a statement"`
	ReplayOf      string     `json:"replay_of,omitempty" doc:"Of a replay that has ended: the execution that ran again"`
	CreatedAt     time.Time  `json:"created_at"`
	CompletedAt   *time.Time `json:"completed_at"`

	Annotations
}

// Summary returns the summary of e. Its texts are cut at a character.
func (e *Execution) Summary() ExecutionSummary {
	s := ExecutionSummary{
		ID: e.ID, SandboxID: e.SandboxID, User: e.User, Kind: e.Kind, Status: e.Status,
		Code: firstChars(e.Code, SummaryCodeChars), CodeBytes: int64(len(e.Code)), ExecutionTime: e.ExecutionTime,
		CPUMS: e.Usage.CPUMS, MemoryUsage: e.MemoryUsage, Queries: len(e.Queries), RowsRead: e.RowsRead(),
		Connections: len(e.Connections), Artifacts: len(e.Artifacts), RecordedSteps: e.RecordedSteps,
		CreatedAt: e.CreatedAt, CompletedAt: e.CompletedAt, Annotations: e.Annotations,
		IsExplanation: e.IsExplanation,
	}
	if e.Replay != nil {
		s.ReplayOf = e.Replay.Of
	}
	if e.Error != nil {
		s.Error = new(firstChars(*e.Error, SummaryErrorChars))
	}
	return s
}

// RowsRead returns the number of rows that the statements of e returned. A captured statement has not run, and its rows
// are an estimate.
func (e *Execution) RowsRead() (n int64) {
	for _, q := range e.Queries {
		if q.Status != "captured" {
			n += int64(q.Rows)
		}
	}
	return n
}

// SearchedChars is the number of characters of what a run printed, and of its results, in which searches find a text.
const SearchedChars = 1000

// SearchText returns the beginning of what e printed and of its result and outputs: their texts and numbers, without
// the syntax of JSON.
func (e *Execution) SearchText() string {
	results := jsonText(nil, e.Result, SearchedChars)
	for _, o := range e.Outputs {
		if room := SearchedChars - len(results); room > 0 {
			results = append(results, firstChars(o.Summary, room)...)
			results = append(results, ' ')
		}
		for _, kind := range []string{"application/vnd.dataresource+json", "text/plain"} {
			results = jsonText(results, o.Data[kind], SearchedChars)
		}
	}
	parts := []string{firstChars(e.Stdout, SearchedChars), string(results)}
	return strings.TrimSpace(strings.Join(parts, "\n"))
}

// jsonText appends the texts, names and numbers of a JSON value to out, until out has about a number of bytes.
func jsonText(out []byte, value json.RawMessage, limit int) []byte {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	for len(out) < limit {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case string:
			out = append(append(out, firstChars(token, limit-len(out))...), ' ')
		case json.Number:
			out = append(append(out, token...), ' ')
		}
	}
	return out
}

// firstChars returns the first n characters of text.
func firstChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// SandboxSummary is a live or ended sandbox in a list.
type SandboxSummary struct {
	ID        string     `json:"sandbox_id"`
	Owner     string     `json:"user_id"`
	State     State      `json:"status"`
	CreatedAt time.Time  `json:"created_at"`
	LastUsed  time.Time  `json:"last_used_at" doc:"When its last execution began, or its creation"`
	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"Of an active sandbox, if nobody uses it until then"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Title     string     `json:"title,omitempty" doc:"The name that somebody gave it"`
	FirstRun  string     `json:"first_run,omitempty" doc:"Title of its first execution, or its first 200 characters"`
	Runs      int        `json:"runs" doc:"Number of its executions; 1000 stands for more, too"`
}

// SandboxDetails is a live or ended sandbox by itself.
type SandboxDetails struct {
	SandboxSummary
	Config    policy.Policy `json:"config"`
	Isolation string        `json:"isolation,omitempty" doc:"The level, of an active sandbox"`
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
	Table       string // in a statement, or in a view that it reads
	Host        string // of a connection
	Action      string // of an audit entry
	Object      string // of an audit entry
	IsWork      bool   // of a statement: neither a replay nor an explanation sent it
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
