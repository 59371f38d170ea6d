// Package protocol implements the protocol between the supervisor and a guest process. They
// communicate over one stream socket pair, which the guest gets when it starts. A guest
// without a network has no other connection.
//
//	conn := protocol.NewConn(socket)
//	err := conn.Write(protocol.KindRun, protocol.Run{Code: "1 + 1"})
//	kind, body, err := conn.Read()
//
// A frame is the length of its body (4 bytes, big endian), a kind (1 byte) and the body.
// Bodies are small JSON, except for rows, which are Python marshal data that the guest's
// standard library decodes at C speed. The guest's side is sandbox/python/guest/protocol.py;
// both are in one binary, so the version is not negotiated.
//
// The frames come in this order:
//
//	supervisor                  guest
//	enter (+ /session and /data mounts) ->
//	                         <- ready (+ clones of those mounts, if there are any,
//	                            and the listener of the guest's own network)
//	assign ->
//	run (+ memory for records, if the run is debugged) ->
//	                         <- note*, output*, late*, request*  (answer -> each request; columns and rows* before it)
//	                         <- sync                      (the program waits until its earlier frames are handled)
//	sync ->
//	                         <- records                   (the memory for records is full)
//	records ->                                            (it is empty)
//	                         <- stop                      (the program is stopped)
//	command ->               <- value                     (any number; the last is a resume, which has no value)
//	                         <- done
//	inspect ->               <- value                     (between runs only)
//	copies ->                <- value                     (between runs only)
//
// The package has these responsibilities:
//
//  1. Declare every message (protocol.go).
//  2. Write and read frames (conn.go). User code runs in the guest and can forge any
//     frame. So the reader checks sizes before it allocates, an illegal frame is an error
//     that ends the guest, and no frame says which guest or execution it comes from.
//  3. Encode rows (rows.go, times.go).
package protocol

import (
	"bytes"
	"encoding/json"

	"glasshouse/sandbox"
)

// Kind is a frame's kind.
type Kind byte

// The kinds of frames. The comment gives the direction and the body.
const (
	KindEnter   Kind = 'E' // to the guest: Enter, or no body if the guest got its Enter from its zygote
	KindReady   Kind = 'R' // to the supervisor: Ready
	KindAssign  Kind = 'P' // to the guest: Assign
	KindRun     Kind = 'X' // to the guest: Run
	KindDone    Kind = 'D' // to the supervisor: Done
	KindRequest Kind = 'A' // to the supervisor: Request
	KindAnswer  Kind = 'J' // to the guest: Answer
	KindColumns Kind = 'H' // to the guest: Columns
	KindRows    Kind = 'M' // to the guest: a Request's ID (4 bytes, big endian), then marshal data; see RowWriter
	KindNote    Kind = 'N' // to the supervisor: sandbox.Note
	KindOutput  Kind = 'O' // to the supervisor: sandbox.Output
	KindSync    Kind = 'Y' // to the supervisor: a request to handle all earlier frames; to the guest: that is done
	KindRecords Kind = 'T' // to the supervisor: the memory for records is full; to the guest: it is empty
	KindStop    Kind = 'S' // to the supervisor: where the program is stopped, as JSON of package debugger
	KindCommand Kind = 'C' // to a stopped guest: JSON of package debugger; all but resume are answered by a Value
	KindLog     Kind = 'G' // to the supervisor: the message of a log point
	KindLate    Kind = 'B' // to the supervisor: Late
	KindInspect Kind = 'L' // to the guest: Inspect
	KindCopies  Kind = 'U' // to the guest: pages that it has copied from its zygote; see procfs.CopiesOf
	KindValue   Kind = 'V' // to the supervisor: sandbox.Variables, TablePage, CheckResult or Completion
)

// The largest bodies that a guest may send, in bytes.
const (
	maxLargeBody = 32 << 20 // a result, or one output
	maxSmallBody = 1 << 20  // notes, records, requests, values
)

// maxBody returns the largest body of this kind; -1 if a guest must not send it.
func (k Kind) maxBody() int {
	switch k {
	case KindDone, KindOutput:
		return maxLargeBody
	case KindRequest, KindNote, KindSync, KindRecords, KindStop, KindLog, KindLate, KindValue, KindReady:
		return maxSmallBody
	}
	return -1
}

// Enter tells a guest to lock itself down, for good.
type Enter struct {
	UID       int      `json:"uid"`               // inside the namespace
	Filter    string   `json:"filter"`            // the name of one of the zygote's seccomp filters
	Landlock  bool     `json:"landlock"`          //
	Workspace int64    `json:"workspace"`         // size limit in bytes of a new /session
	Attach    string   `json:"attach"`            // the mount that comes with the frame: AttachFiles, AttachSession or ""
	Folder    string   `json:"folder"`            // contains session, data and tmp; "" if the guest has private mounts
	Network   *Network `json:"network,omitempty"` // nil: no network
}

// The values of Enter.Attach.
const (
	AttachFiles   = "files"   // the files of an earlier guest of the session
	AttachSession = "session" // only /session: a folder of the machine
)

// Network describes a guest's private network: a loopback device, and one listener on it.
type Network struct {
	Host        string            `json:"host"`
	Port        int               `json:"port"`
	Environment map[string]string `json:"environment"` // variables that tell programs the address of the listener
	// Sysctls are values of files below /proc/sys/net by path. If there are any, the last descriptor that comes
	// with the frame is that folder.
	Sysctls map[string]string `json:"sysctls,omitempty"`
}

// Assign assigns a locked-down guest to a sandbox. It has only the values that differ from
// the zygote's defaults. If no value differs, the frame is not sent.
type Assign struct {
	Policy json.RawMessage `json:"policy,omitempty"`
	Rules  json.RawMessage `json:"rules,omitempty"`
	Limits map[int]int64   `json:"limits,omitempty"` // for setrlimit, by number, if they cannot be set from outside
}

// Ready says that the guest is locked down, or why the lockdown failed.
type Ready struct {
	Error string `json:"error"`
}

// Late is text that a thread has printed after the run that began it, while an ordered run goes on.
type Late struct {
	ExecutionID string `json:"execution_id"` // of the run that began the thread
	Stream      string `json:"stream"`       // stdout or stderr
	Text        string `json:"text"`
}

// Run runs one piece of code.
type Run struct {
	ExecutionID string          `json:"execution_id"`
	Code        string          `json:"code"`
	Context     json.RawMessage `json:"context"`
	Watch       bool            `json:"watch"`   // the run is debugged
	Ordered     bool            `json:"ordered"` // what is printed after a note or an output must arrive after it
	sandbox.Scope
	Stops  json.RawMessage `json:"stops,omitempty"`  // breakpoints, as JSON of package debugger
	Inputs *Inputs         `json:"inputs,omitempty"` // nil: the run is not logged
	// Facts are the first and last lines of statements whose values the guest looks at. It does so by other code than the
	// original's, so it is for replays.
	Facts [][2]int64 `json:"facts,omitempty"`
	// Cell is the path of a value whose origin the guest follows, too, such as rows[3]["x"].
	Cell string `json:"cell,omitempty"`
}

// Inputs makes the randomness and the clocks of a run repeatable.
type Inputs struct {
	Seed string `json:"seed"` // of the randomness, 64 hex digits; "": the kernel's randomness
	// Clock has the readings of an earlier run, in base64, which the code gets again. Nil: the code reads the machine's
	// clocks, and the guest logs the readings.
	Clock *string `json:"clock,omitempty"`
}

// Done is the guest's claim about its run. The supervisor checks the size of each part before
// it parses the part. All other fields of an outcome come from the supervisor and the kernel.
// A missing part is null or false.
type Done struct {
	Result    json.RawMessage `json:"result"`
	Exception json.RawMessage `json:"exception"` // a sandbox.Exception
	Truncated json.RawMessage `json:"truncated"` // a map[string]int64
	Interrupt bool            `json:"interrupt"` // the supervisor's interrupt ended the code
	CompileMS float64         `json:"compile_ms"`
	// Clock has the readings of clocks of a run with Inputs, in base64. Nil: the guest cannot log them.
	Clock        *string         `json:"clock"`
	ClockMissing int64           `json:"clock_missing"` // readings that are not in Clock
	Threads      int64           `json:"threads"`       // threads of Python that started during a run with Inputs
	Facts        json.RawMessage `json:"facts"`         // a list of sandbox.Fact, if the run was asked for them
	Cell         json.RawMessage `json:"cell"`          // a sandbox.Cell, if the run was asked for it
}

// Inspect asks a guest between runs for its variables, for rows of a table, or about code that does not run.
type Inspect struct {
	What   string                `json:"what"` // "" for variables, "rows", "check" or "complete"
	Code   string                `json:"code"`
	Cursor int                   `json:"cursor"` // in characters from 0
	Rows   *sandbox.TableRequest `json:"rows,omitempty"`
}

// Request is a request of running code to the supervisor.
type Request struct {
	ID   uint32 `json:"id"`
	What string `json:"what"` // "query", "stages", "tables", "schema" or "history"
	// Database is the name of the database; "" means the default one.
	Database string            `json:"database"`
	SQL      string            `json:"sql"`
	Params   Params            `json:"params"`
	Types    map[string]string `json:"types"` // PostgreSQL types of the parameters whose type is known
	Form     string            `json:"form"`  // of rows: FormPlain, FormFrame or FormArrow
	Exact    bool              `json:"exact"` // numeric values of a frame are texts, not float64
	Table    string            `json:"table"`
}

// Params are the values of a statement's parameters by name. Numbers are json.Number, which keeps their digits.
type Params map[string]any

// UnmarshalJSON decodes an object or null.
func (p *Params) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(p))
}

// Columns begins the answer to a Request that has rows.
type Columns struct {
	ID      uint32           `json:"id"`
	Columns []sandbox.Column `json:"columns"`
}

// Answer answers a Request. If rows came before it, it ends them, and Value says whether
// they were truncated. If it is a refusal, the guest must discard those rows.
type Answer struct {
	ID      uint32           `json:"id"`
	Value   any              `json:"value,omitempty"`
	Refused *sandbox.Refusal `json:"refused,omitempty"`
}
