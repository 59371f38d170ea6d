package sandbox

import (
	"encoding/json"
	"time"
)

// Status is how far an execution is, or how it ended.
type Status string

// The statuses of an execution. Failed is the code's own failure; Timeout and
// Killed are limits, Killed with Usage.EndedBy naming which; Cancelled is a
// caller's or the service's wish.
const (
	StatusCreated   Status = "created"
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusTimeout   Status = "timeout"
	StatusCancelled Status = "cancelled"
	StatusKilled    Status = "killed"
)

// Kind says which door an execution came in by.
type Kind string

// The kinds of an execution.
const (
	KindExecute Kind = "execute"
	KindQuick   Kind = "quick-execute"
	KindAnalyze Kind = "analyze-data"
	KindDebug   Kind = "debug"
	KindQuery   Kind = "database-query" // one statement, no code
	KindCompat  Kind = "facade"
)

// Execution is one run of one piece of code in one sandbox, from accepted to
// ended. It is what the API answers and what history keeps.
type Execution struct {
	ID        string          `json:"execution_id"`
	SandboxID string          `json:"sandbox_id"`
	User      string          `json:"user_id"`
	Kind      Kind            `json:"kind"`
	Status    Status          `json:"status"`
	Code      string          `json:"code,omitempty"`
	Context   json.RawMessage `json:"context,omitempty"` // a JSON object

	Result    json.RawMessage `json:"result"` // any JSON; null where there is none
	Stdout    string          `json:"stdout"`
	Stderr    string          `json:"stderr"`
	Error     *string         `json:"error"` // "TypeError: ..." or why a limit ended it
	Exception *Exception      `json:"exception,omitempty"`

	ExecutionTime float64             `json:"execution_time"` // seconds
	MemoryUsage   float64             `json:"memory_usage"`   // peak, MB of its own
	Usage         Usage               `json:"usage"`
	DebugInfo     DebugInfo           `json:"debug_info"`
	Outputs       []Output            `json:"outputs"`
	Artifacts     []Artifact          `json:"artifacts"`
	ArtifactMap   map[string]string   `json:"artifact_map"`
	Queries       []Query             `json:"queries"`
	Connections   []Connection        `json:"connections"`
	Truncated     map[string]int64    `json:"truncated"` // what was cut: bytes (stdout, stderr, result) or items (logs, queries, connections) missing
	Isolation     Isolation           `json:"isolation"`
	Environment   *EnvironmentVersion `json:"environment,omitempty"` // that its code ran with
	SessionReset  bool                `json:"session_reset"`         // the variables are gone, /session stays

	Timestamp   time.Time  `json:"timestamp"` // when it was accepted
	CreatedAt   time.Time  `json:"created_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// FillEmpty replaces missing lists, maps and the missing result by empty ones: the API
// never answers null for a list or a map.
func (e *Execution) FillEmpty() {
	if len(e.Result) == 0 {
		e.Result = json.RawMessage("null")
	}
	e.Outputs, e.Artifacts = emptyIfNil(e.Outputs), emptyIfNil(e.Artifacts)
	e.Queries, e.Connections = emptyIfNil(e.Queries), emptyIfNil(e.Connections)
	e.DebugInfo.Logs = emptyIfNil(e.DebugInfo.Logs)
	if e.DebugInfo.Variables == nil {
		e.DebugInfo.Variables = map[string][]Note{}
	}
	if e.ArtifactMap == nil {
		e.ArtifactMap = map[string]string{}
	}
	if e.Isolation.EnforcedBy == nil {
		e.Isolation.EnforcedBy = map[string]string{}
	}
	if e.Truncated == nil {
		e.Truncated = map[string]int64{}
	}
}

func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Exception is what the code raised, seen from the user's own lines.
type Exception struct {
	Type      string  `json:"type"`
	Message   string  `json:"message"`
	Line      int     `json:"line"`             // in the submitted code, from 1; 0 where none is known
	Column    int     `json:"column,omitempty"` // from 1, for a syntax error
	Traceback []Frame `json:"traceback"`        // outermost first, the user's frames only
	Hint      string  `json:"hint,omitempty"`
	Nearest   string  `json:"nearest,omitempty"` // the name, key or column that was perhaps meant
	Queries   []Query `json:"queries,omitempty"` // the last ones before it; the host's
}

// Summary returns the type and the message, as the last line of a Python traceback has them.
func (x *Exception) Summary() string {
	if x.Message == "" {
		return x.Type
	}
	return x.Type + ": " + x.Message
}

// Frame is one of the user's own frames in a traceback.
type Frame struct {
	Line     int    `json:"line"`
	Function string `json:"function"`
	Code     string `json:"code"`
	File     string `json:"file,omitempty"` // set where it is not the submitted code

	Variables map[string]string `json:"variables,omitempty"` // when it failed, as bounded previews; of the innermost frames
}

// Usage is what an execution used, as the kernel counted it.
type Usage struct {
	WallMS       float64 `json:"wall_ms"`
	CPUMS        float64 `json:"cpu_ms"`
	PeakMemoryMB float64 `json:"peak_memory_mb"`
	EndedBy      string  `json:"ended_by,omitempty"` // the limit's config key, a signal's name, or "shutdown"

	NetworkSent     int64 `json:"network_sent_bytes,omitempty"` // of all connections, as the broker counted them
	NetworkReceived int64 `json:"network_received_bytes,omitempty"`
}

// Isolation is the wall that an execution ran behind.
type Isolation struct {
	Level      string            `json:"level"`       // full, full-without-cgroups, landlock or rlimits
	EnforcedBy map[string]string `json:"enforced_by"` // limit's config key to mechanism
}

// DebugInfo is what the code noted with debug and inspect_var.
type DebugInfo struct {
	Logs      []Note            `json:"logs"`
	Variables map[string][]Note `json:"variables"`
}

// Note is one call of debug (Level and Message are set) or inspect_var (Name,
// Type and Repr are set). It is the child's claim.
type Note struct {
	Time     time.Time       `json:"timestamp"`
	Level    string          `json:"level,omitempty"`
	Message  string          `json:"message,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Name     string          `json:"name,omitempty"`
	Type     string          `json:"type,omitempty"`
	Size     int64           `json:"size,omitempty"` // bytes, as sys.getsizeof or nbytes says
	Repr     string          `json:"repr,omitempty"` // bounded
	Line     int             `json:"line"`
	Function string          `json:"function"`
}

// Output is one rich output: a Jupyter MIME bundle, and one line of text that says to
// a model what a person would see. Binary types are base64.
type Output struct {
	Summary  string                     `json:"summary"`
	Data     map[string]json.RawMessage `json:"data"`
	Metadata json.RawMessage            `json:"metadata,omitempty"`
}

// Variables is a bounded picture of a session's namespace.
type Variables struct {
	Variables map[string]Variable `json:"variables"`
	Globals   []string            `json:"globals"` // every public name, helpers included
	Total     int                 `json:"total"`   // variables in all; more than are listed where the list was cut
}

// Variable is one variable: its type and a bounded, safe repr.
type Variable struct {
	Type  string `json:"type"`
	Repr  string `json:"repr"`
	Shape []int  `json:"shape,omitempty"`
}

// Step is one line of user code that ran. Number counts the lines as they were begun; a
// line that calls others may be told when it calls, and once more when it is over.
type Step struct {
	Number     int64           `json:"step"`
	LineNumber int             `json:"line_number"`
	LineCode   string          `json:"line_code"`
	Result     json.RawMessage `json:"result"` // {"status", ...}; on the last step the whole execution
	State      StepState       `json:"state"`
	Timestamp  time.Time       `json:"timestamp,omitzero"` // when the stream told it; a recording has none
}

// StepState is what a line left.
type StepState struct {
	Variables map[string]string `json:"variables"` // of the line's frame, as bounded previews
	Changed   []string          `json:"changed"`   // what changed since the frame's step before
	Function  string            `json:"function,omitempty"`
	Unread    string            `json:"unread,omitempty"` // why variables are not here
}
