package sandbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Status says how an execution ended, or that it still runs.
type Status string

// The statuses of an execution.
const (
	StatusCreated   Status = "created"
	StatusRunning   Status = "running"
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"    // the code raised an exception
	StatusTimeout   Status = "timeout"   // it exceeded its time limit
	StatusCancelled Status = "cancelled" // a caller or the service cancelled it
	StatusKilled    Status = "killed"    // it exceeded another limit, or its process died; Usage.EndedBy says which
)

// IsEnd reports whether a status is known and that of an execution that has ended.
func (s Status) IsEnd() bool {
	switch s {
	case StatusCompleted, StatusFailed, StatusTimeout, StatusCancelled, StatusKilled:
		return true
	}
	return false
}

// IsCut reports whether something other than the code has ended the run.
func (s Status) IsCut() bool {
	return s == StatusTimeout || s == StatusCancelled || s == StatusKilled
}

// Kind is the kind of request that began an execution.
type Kind string

// The kinds of an execution.
const (
	KindExecute Kind = "execute"
	KindQuick   Kind = "quick-execute"
	KindAnalyze Kind = "analyze-data"
	KindDebug   Kind = "debug"
	KindQuery   Kind = "database-query" // one statement, no code
	KindReplay  Kind = "replay"         // an earlier execution, again
	KindRestore Kind = "restore"        // no code: the earlier executions of a session that was forked or rolled back
	KindNeMo    Kind = "nemo"           // a request to the compatibility API of NeMo

	KindJupyter   Kind = "jupyter" // a cell that a client of Jupyter has sent
	KindE2B       Kind = "e2b"
	KindLibreChat Kind = "librechat"
)

// UnmarshalText accepts facade, the name of KindNeMo in the archives that earlier versions exported.
func (k *Kind) UnmarshalText(text []byte) error {
	if *k = Kind(text); *k == "facade" {
		*k = KindNeMo
	}
	return nil
}

// Kinds are the constants.
var Kinds = []Kind{
	KindExecute, KindQuick, KindAnalyze, KindDebug, KindQuery, KindReplay, KindRestore, KindNeMo, KindJupyter, KindE2B,
	KindLibreChat,
}

// IsKnown reports whether a kind is one of the constants.
func (k Kind) IsKnown() bool { return slices.Contains(Kinds, k) }

// Execution is the record of one run of code in a sandbox. The API returns it and history
// stores it.
type Execution struct {
	ID        string          `json:"execution_id"`
	SandboxID string          `json:"sandbox_id"`
	User      string          `json:"user_id"`
	Kind      Kind            `json:"kind"`
	TraceID   string          `json:"trace_id,omitempty" doc:"Of its OpenTelemetry trace; empty if there is none"`
	Status    Status          `json:"status"`
	Code      string          `json:"code,omitempty"`
	Context   json.RawMessage `json:"context,omitempty"` // a JSON object

	Annotations

	// IsExplanation is set for a statement that ran only to explain one.
	IsExplanation bool `json:"is_explanation,omitempty" doc:"It ran only to explain a statement"`

	Result    json.RawMessage `json:"result"` // any JSON; null if there is none
	Stdout    string          `json:"stdout"`
	Stderr    string          `json:"stderr"`
	Error     *string         `json:"error"` // "TypeError: ...", or the limit that ended it
	Exception *Exception      `json:"exception,omitempty"`

	ExecutionTime float64           `json:"execution_time"` // seconds
	MemoryUsage   float64           `json:"memory_usage"`   // peak of the process's own memory, MB
	Usage         Usage             `json:"usage"`
	DebugInfo     DebugInfo         `json:"debug_info"`
	Outputs       []Output          `json:"outputs"`
	Artifacts     []Artifact        `json:"artifacts"`
	ArtifactMap   map[string]string `json:"artifact_map"`
	Queries       []Query           `json:"queries"`
	Notes         []string          `json:"notes,omitempty" doc:"How values differ from those of the database"`
	Connections   []Connection      `json:"connections"`
	Edits         []Edit            `json:"edits,omitempty" doc:"Changes that a person made in the debugger"`
	// RecordedSteps is the number of steps of the recording that history has, so far if the execution runs. It is 0 if
	// there is none: it was never made, or it was removed.
	RecordedSteps int64 `json:"recorded_steps" doc:"Length of the recording; 0: there is none"`
	// InputLog says what is kept to run it again. Nil: nothing, or it is a record of an earlier version.
	InputLog *InputLog `json:"input_log,omitempty"`
	Replay   *Replay   `json:"replay,omitempty" doc:"Of a replay: what it was compared with"`
	// Restored says how the session came back after the service ended or the sandbox was idle for too long.
	Restored *Restored `json:"restored,omitempty"`
	// Truncated says how much is missing: bytes of stdout, stderr and result, items of all others.
	Truncated map[string]int64 `json:"truncated"`
	Isolation
	Environment  *EnvironmentVersion `json:"environment,omitempty"` // nil if no code ran
	SessionReset bool                `json:"session_reset"`         // the session's variables are lost; /session stays

	Timestamp   time.Time  `json:"timestamp"` // when it was accepted
	CreatedAt   time.Time  `json:"created_at"`
	CompletedAt *time.Time `json:"completed_at"`
	ExpiresAt   *time.Time `json:"expires_at,omitempty" doc:"When history deletes it because of its key's history_days"`
}

// TextBytes returns the bytes of the parts of e that may be large, without the overhead of JSON.
func (e *Execution) TextBytes() int {
	n := len(e.Code) + len(e.Context) + len(e.Result) + len(e.Stdout) + len(e.Stderr)
	for _, note := range e.DebugInfo.Logs {
		n += len(note.Message) + len(note.Data)
	}
	for _, o := range e.Outputs {
		for _, data := range o.Data {
			n += len(data)
		}
	}
	for _, q := range e.Queries {
		n += q.TextBytes()
	}
	return n
}

// TextBytes returns the size of the texts that a record of q has.
func (q *Query) TextBytes() int { return len(q.SQL) + len(q.Parameters) }

// NoteStatements sets the notes about the statements of e whose values differ from those of the database.
func (e *Execution) NoteStatements() {
	for i, q := range e.Queries {
		if len(q.ComputedWithMask) > 0 {
			e.Notes = append(e.Notes, fmt.Sprintf("statement %d: %s", i+1, MaskNotice(q.ComputedWithMask)))
		}
		if len(q.RoundedColumns) > 0 {
			e.Notes = append(e.Notes, fmt.Sprintf("statement %d: %s", i+1, RoundNotice(q.RoundedColumns)))
		}
	}
}

// FillEmpty replaces missing lists and maps by empty ones, and a missing result by null:
// the API never returns null for a list or a map.
func (e *Execution) FillEmpty() {
	if len(e.Result) == 0 {
		e.Result = json.RawMessage("null")
	}
	setEmptyList(&e.Outputs)
	setEmptyList(&e.Artifacts)
	setEmptyList(&e.Queries)
	setEmptyList(&e.Connections)
	setEmptyList(&e.DebugInfo.Logs)
	setEmptyMap(&e.ArtifactMap)
	setEmptyMap(&e.Isolation.EnforcedBy)
	setEmptyMap(&e.Truncated)
	setEmptyMap(&e.DebugInfo.Variables)
}

// ExecutionAnswer is the form of an execution that answers a run: it has no code, context and enforced_by, and no
// empty part. The caller has sent the first two, and GET /executions/{id} returns everything.
type ExecutionAnswer struct {
	Execution
	User        string              `json:"user_id,omitempty"`
	Kind        Kind                `json:"kind,omitempty"`
	Code        string              `json:"code,omitempty"`
	Context     json.RawMessage     `json:"context,omitempty"`
	DebugInfo   *DebugInfo          `json:"debug_info,omitempty"`
	Outputs     []Output            `json:"outputs,omitempty"`
	Artifacts   []Artifact          `json:"artifacts,omitempty"`
	ArtifactMap map[string]string   `json:"artifact_map,omitempty"`
	Queries     []Query             `json:"queries,omitempty"`
	Connections []Connection        `json:"connections,omitempty"`
	Truncated   map[string]int64    `json:"truncated,omitempty"`
	EnforcedBy  map[string]string   `json:"enforced_by,omitempty"`
	Environment *EnvironmentVersion `json:"environment,omitempty"`

	InputLog      *InputLog `json:"input_log,omitempty"`
	RecordedSteps int64     `json:"recorded_steps,omitempty"`
	SessionReset  bool      `json:"session_reset,omitempty"`
	Text          string    `json:"text,omitempty"` // the execution as a language model reads it
}

// Answer returns the answer form of e, with the parts of include: code, context, enforced_by, environment, user_id or
// kind.
func (e *Execution) Answer(include ...string) ExecutionAnswer {
	a := ExecutionAnswer{
		Execution: *e, Outputs: e.Outputs, Artifacts: e.Artifacts, ArtifactMap: e.ArtifactMap, Queries: e.Queries,
		Connections: e.Connections, Truncated: e.Truncated, RecordedSteps: e.RecordedSteps,
		SessionReset: e.SessionReset,
	}
	if len(e.DebugInfo.Logs)+len(e.DebugInfo.Variables) > 0 {
		a.DebugInfo = &e.DebugInfo
	}
	for _, part := range include {
		switch part {
		case "code":
			a.Code = e.Code
		case "context":
			a.Context = e.Context
		case "enforced_by":
			a.EnforcedBy = e.EnforcedBy
		case "environment":
			a.Environment = e.Environment
		case "user_id":
			a.User = e.User
		case "kind":
			a.Kind = e.Kind
		}
	}
	return a
}

// Whole returns the answer form of e with all of its parts, which are absent if they are empty. FillEmpty of the
// Execution that is decoded from its JSON makes them again.
func (e *Execution) Whole() ExecutionAnswer {
	a := e.Answer()
	a.User, a.Kind, a.Code, a.Context = e.User, e.Kind, e.Code, e.Context
	a.EnforcedBy, a.Environment, a.InputLog = e.EnforcedBy, e.Environment, e.InputLog
	return a
}

func setEmptyList[T any](list *[]T) {
	if *list == nil {
		*list = []T{}
	}
}

func setEmptyMap[K comparable, V any](m *map[K]V) {
	if *m == nil {
		*m = map[K]V{}
	}
}

// Usage is the resource usage of an execution, as the kernel counts it.
type Usage struct {
	WallMS       float64 `json:"wall_ms"`
	CPUMS        float64 `json:"cpu_ms"`
	PeakMemoryMB float64 `json:"peak_memory_mb"`
	QueueMS      float64 `json:"queue_ms" doc:"Wait for a slot, before the run; not in wall_ms"`
	StartMS      float64 `json:"start_ms" doc:"From the slot until the guest has received the code; not in wall_ms"`
	// EndedBy is the limit's config key or "cpu_seconds_per_day", a signal, "machine_memory" or "shutdown".
	EndedBy string `json:"ended_by,omitempty"`

	NetworkSent     int64 `json:"network_sent_bytes,omitempty"` // of all connections
	NetworkReceived int64 `json:"network_received_bytes,omitempty"`
}

// Isolation is the level that an execution ran at.
type Isolation struct {
	Level      string            `json:"isolation" doc:"The level; empty if no code ran"`
	EnforcedBy map[string]string `json:"enforced_by" doc:"The mechanism for each limit, by the limit's config key"`
}

// DebugInfo has the calls of debug and inspect_var.
type DebugInfo struct {
	Logs      []Note            `json:"logs"`
	Variables map[string][]Note `json:"variables"`
}

// Note is a call of debug, with Level and Message, or of inspect_var, with Name, Type and
// Repr. Except for Time, it is the guest's claim.
type Note struct {
	Time     time.Time       `json:"timestamp"`
	Level    string          `json:"level,omitempty"`
	Message  string          `json:"message,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Name     string          `json:"name,omitempty"`
	Type     string          `json:"type,omitempty"`
	Size     int64           `json:"size,omitempty"` // bytes, from sys.getsizeof or nbytes
	Repr     string          `json:"repr,omitempty"` // bounded
	Line     int             `json:"line"`
	Function string          `json:"function"`
}

// OutputRole says why an output was shown.
type OutputRole string

// The roles of an output.
const (
	RoleResult  OutputRole = "result"  // the value of the last expression
	RoleDisplay OutputRole = "display" // a call of display
	RoleFigure  OutputRole = "figure"  // a figure that was open at plt.show() or at the end of the run
)

// Output is a rich output: a Jupyter MIME bundle, with binary types in base64, and one line
// of text that describes the output to a language model.
type Output struct {
	Role     OutputRole                 `json:"role,omitempty"` // empty in records from before outputs had roles
	Summary  string                     `json:"summary"`
	Data     map[string]json.RawMessage `json:"data"`
	Metadata json.RawMessage            `json:"metadata,omitempty"`
	Step     int                        `json:"step,omitempty" doc:"Step whose line showed it, if recorded"`
	// DisplayID is the id of an output that code may update. An output that IsUpdate has the newest state of an earlier
	// one with its id, also of an earlier execution.
	DisplayID string    `json:"display_id,omitempty"`
	IsUpdate  bool      `json:"update,omitempty"`
	ShownAt   time.Time `json:"shown_at,omitzero" doc:"Absent in records of earlier versions"`
}

// ArtifactMIME is the MIME type of the part of an Output that lists the parts which are too large for an answer and are
// artifacts instead. It maps the MIME type of each such part to its artifact.
const ArtifactMIME = "application/vnd.glasshouse.artifact+json"

// Reference returns the artifact that has the part of a MIME type.
func (o Output) Reference(kind string) (a Artifact, ok bool) {
	var references map[string]Artifact
	if json.Unmarshal(o.Data[ArtifactMIME], &references) != nil {
		return a, false
	}
	a, ok = references[kind]
	return a, ok
}

// Variables are a session's variables, as bounded previews.
type Variables struct {
	Variables map[string]Variable `json:"variables"`
	Globals   []string            `json:"globals"` // every public name, with the helpers
	Total     int                 `json:"total"`   // number of variables; more than listed if the list was cut
}

// Variable is the type of a variable and a bounded, safe repr.
type Variable struct {
	Type  string `json:"type"`
	Repr  string `json:"repr"`
	Shape []int  `json:"shape,omitempty"`
}

// Step is one line of user code that ran. Number counts the lines in the order in which they
// begin. A line that calls a function may be sent twice with the same number: at the call
// and when the line ends.
type Step struct {
	Number     int64           `json:"step"`
	LineNumber int             `json:"line_number"`
	LineCode   string          `json:"line_code"`
	Result     json.RawMessage `json:"result"` // {"status", ...}; on the last step the whole execution
	State      StepState       `json:"state"`
	Timestamp  time.Time       `json:"timestamp,omitzero"` // when the stream sent it; zero in a recording
	Edits      []Edit          `json:"edits,omitempty"`    // what a person changed before the line ran
}

// StepState is the state after a step.
type StepState struct {
	Variables map[string]string `json:"variables"` // of the line's frame, as previews
	Changed   []string          `json:"changed"`   // since the previous step of the same frame
	Function  string            `json:"function,omitempty"`
	Exactness map[string]string `json:"exactness,omitempty" doc:"Variables whose objects the recording has in part: truncated, sampled or unread"`
	Unread    string            `json:"unread,omitempty"` // the reason why Variables is missing
}

// Outcome says how one run of code ended. The supervisor takes the status, the usage and the
// error from the clock and the kernel, not from the code. The service makes an Execution of
// the Outcome.
type Outcome struct {
	Status    Status
	Result    json.RawMessage // any JSON; null if there is none
	Stdout    string          // valid UTF-8, cut in its middle at max_output_size
	Stderr    string          // in the same form as Stdout
	Error     *string         // "TypeError: ...", or the limit that ended the run
	Exception *Exception

	Start        *GuestStart   // of the guest, if no earlier run had it
	Began        time.Time     // when the guest got the code; zero if it did not
	Duration     time.Duration // wall-clock time, without the time that the program was stopped in a debugger
	CompileTime  time.Duration // to compile and check the code, as the guest claims; part of Duration
	Usage        Usage
	DebugInfo    DebugInfo
	Outputs      []Output
	Connections  []Connection
	Truncated    map[string]int64 // what was cut; see Execution.Truncated
	Isolation    Isolation
	Environment  *EnvironmentVersion
	SessionReset bool // the process ended, and the session's variables with it
	// Clock has the readings of clocks of a run with inputs, as the guest encodes them. Nil: there are none, because
	// the guest cannot log them or did not end by itself. ClockMissing is the number of readings that are not in it.
	Clock        []byte
	ClockMissing int64
	Threads      int64  // that the code started, if it had inputs
	Facts        []Fact // if the request asked for them
	Cell         *Cell  // if the request asked for it
}

// GuestStart says how long a guest took to start.
type GuestStart struct {
	At       time.Time
	Took     time.Duration
	FromPool bool // it was waiting; otherwise it was forked for this sandbox
}

// Progress is a statement, a connection or an edit of a running execution. History keeps it until the
// execution's own record contains it. A later Progress with the same number replaces it.
type Progress struct {
	Execution  string      `json:"progress_of"`
	Number     int64       `json:"number"` // from 0, counted for each kind
	Query      *Query      `json:"query,omitempty"`
	Connection *Connection `json:"connection,omitempty"`
	Edit       *Edit       `json:"edit,omitempty"`
}

// IsStart reports whether the statement or connection has just begun.
func (p Progress) IsStart() bool {
	if p.Query != nil {
		return p.Query.Status == QueryRunning
	}
	return p.Connection != nil && p.Connection.Status == ConnectionOpen
}

// TextBytes returns the size of the texts that may be large.
func (p Progress) TextBytes() int {
	if p.Query == nil {
		return 0
	}
	return p.Query.TextBytes()
}

// Kind returns "query", "connection" or "edit".
func (p Progress) Kind() string {
	switch {
	case p.Query != nil:
		return "query"
	case p.Edit != nil:
		return "edit"
	}
	return "connection"
}

// Edit is a change that a person made to a stopped program in the debugger, or code that they ran in it. The service
// records it; the program cannot forge it.
type Edit struct {
	Number   uint64       `json:"number"` // of the execution, from 1; numbers of edits without effect are missing
	Step     int          `json:"step" doc:"The step at which the program was stopped; its line ran with the new value"`
	Line     int64        `json:"line_number"`
	Function string       `json:"function,omitempty"`
	Code     string       `json:"code" doc:"The assignment or the code, as the person wrote it"`
	Changes  []EditChange `json:"changes" doc:"Variables that it changed, also in place; at most 20"`
	User     string       `json:"user_id"`
	Key      string       `json:"key,omitempty" doc:"The name of the person's key"`
	Time     time.Time    `json:"timestamp"`
}

// EditChange is a variable after an Edit.
type EditChange struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Type  string `json:"type,omitempty"`
}

// By returns the user and the name of the key, for texts.
func (e Edit) By() string {
	if e.Key == "" || e.Key == e.User {
		return e.User
	}
	return e.User + " (key " + e.Key + ")"
}

// Chunk is a part of the recording of a debugged run. Package debugger writes it and history
// stores it.
type Chunk struct {
	Sequence    int // from 0
	First, Last int // steps
	Definitions []byte
	Index       []byte // index of Data, so that a search reads few chunks
	Data        []byte // compressed
	Bytes       int64  // total size of the chunk in history, if a query requested it
}
