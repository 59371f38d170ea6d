// Package protocol is the one opening in the wall: the protocol between the host
// and a walled-in child, over one stream socket pair given to the child at its
// birth.
//
// A frame is a length (4 bytes, big endian, of the body), a kind (1 byte) and a
// body. Control is small JSON; rows are parts of Python marshal data, which the
// child decodes at C speed with its standard library while the next are read. The
// other end is sandbox/python/guest/protocol.py; both ship in one binary, so nothing
// is negotiated.
//
//	host                        child
//	enter (+ /session and /data mounts) ->
//	                         <- ready (+ fresh clones of those mounts, where they are any,
//	                            and the listener of a network of the child's own)
//	assign ->
//	run (+ memory for records, where it is watched) ->
//	                         <- note*, output*, ask*    (answer -> each ask; columns and rows* before it)
//	                         <- records                 (that memory is full)
//	records ->                                          (it is empty)
//	                         <- stop                    (its program stands now)
//	command ->               <- value                   (any number, the last a resume)
//	                         <- done
//	look ->                  <- value                   (only between runs)
//
// User code shares the child with our code and can forge any frame, so the
// reader believes nothing: sizes are capped before allocation, an illegal frame
// is an error that ends the child, identity belongs to the connection.
package protocol

import (
	"encoding/json"

	"glasshouse/sandbox"
)

// Kind is a frame's kind.
type Kind byte

// The kinds of frames; the comment says which way each goes.
const (
	KindEnter   Kind = 'E' // host to child: Enter, or nothing where the child has it from its zygote
	KindReady   Kind = 'R' // child to host: Ready
	KindAssign  Kind = 'P' // host to child: Assign
	KindRun     Kind = 'X' // host to child: Run
	KindDone    Kind = 'D' // child to host: Done
	KindRequest Kind = 'A' // child to host: Ask
	KindAnswer  Kind = 'J' // host to child: Answer, JSON
	KindColumns Kind = 'H' // host to child: Columns
	KindRows    Kind = 'M' // host to child: 4-byte id, then marshal data, as Rows says
	KindNote    Kind = 'N' // child to host: sandbox.Note
	KindOutput  Kind = 'O' // child to host: sandbox.Output
	KindRecords Kind = 'T' // child to host, and back: the memory for records is full, and empty
	KindStop    Kind = 'S' // child to host: where the program stands, JSON of package debugger
	KindCommand Kind = 'C' // host to child that stands: likewise; resume ends it, all else has a Value
	KindLog     Kind = 'G' // child to host: what a log point says
	KindInspect Kind = 'L' // host to child: Look
	KindValue   Kind = 'V' // child to host: sandbox.Variables, sandbox.Verdict or sandbox.Completion
)

// The largest bodies that a child may send, in bytes.
const (
	maxDone  = 32 << 20 // a bounded result, or one output
	maxOther = 1 << 20  // notes, records, asks, values
)

func (k Kind) maxBody() int {
	switch k {
	case KindDone, KindOutput:
		return maxDone
	case KindRequest, KindNote, KindRecords, KindStop, KindLog, KindValue, KindReady:
		return maxOther
	}
	return -1 // not a child's to send
}

// Enter tells a child to lock itself down, for good.
type Enter struct {
	UID       int      `json:"uid"`               // inside the namespace
	Filter    string   `json:"filter"`            // the name of one of the zygote's filters
	Landlock  bool     `json:"landlock"`          //
	Workspace int64    `json:"workspace"`         // bytes of a fresh /session
	Attach    bool     `json:"attach"`            // mounts of /session and /data come with it
	Folder    string   `json:"folder"`            // where session, data and tmp are; "" where it has mounts of its own
	Network   *Network `json:"network,omitempty"` // one of its own; left out: none
}

// Network is a network of the child's own: a loopback, and one listener on it.
type Network struct {
	Host        string            `json:"host"`
	Port        int               `json:"port"`
	Environment map[string]string `json:"environment"` // tells programs of the listener
}

// Assign tells a locked child what it is given to a sandbox with. Where the policy is
// the default one, as the zygote was told it, it and its rules are left out; where
// nothing is left, so is the frame.
type Assign struct {
	Policy json.RawMessage `json:"policy,omitempty"`
	Rules  json.RawMessage `json:"rules,omitempty"`
	Limits map[int]int64   `json:"limits,omitempty"` // of setrlimit, by number, where they can't be set from outside
}

// Ready says that the child is locked down, or why it is not.
type Ready struct {
	Error string `json:"error"`
}

// Run is one piece of code.
type Run struct {
	ExecutionID string          `json:"execution_id"`
	Code        string          `json:"code"`
	Context     json.RawMessage `json:"context"`
	Watch       bool            `json:"watch"`
	Stops       json.RawMessage `json:"stops,omitempty"` // where it stops, of package debugger
}

// Done is what a guest claims of its run. The supervisor checks the size of each part
// before it parses the part; everything else of an outcome comes from the supervisor and
// the kernel. A missing part is null or false.
type Done struct {
	Result    json.RawMessage `json:"result"`
	Exception json.RawMessage `json:"exception"` // a sandbox.Exception
	Truncated json.RawMessage `json:"truncated"` // a map[string]int64
	Interrupt bool            `json:"interrupt"` // the supervisor's interrupt ended the code
}

// Inspect is a question of the host's between runs: for the variables, or about code that
// does not run.
type Inspect struct {
	What   string `json:"what"` // "", "check" or "complete"
	Code   string `json:"code"`
	Cursor int    `json:"cursor"` // in characters from 0
}

// Request is a question of running code to the host.
type Request struct {
	ID     uint32            `json:"id"`
	What   string            `json:"what"` // "query", "tables", "schema", "history"
	SQL    string            `json:"sql"`
	Params map[string]any    `json:"params"` // numbers are json.Number
	Types  map[string]string `json:"types"`  // of those parameters whose type is known
	Form   string            `json:"form"`   // of rows: FormPlain, FormFrame or FormArrow
	Table  string            `json:"table"`
}

// Columns begins the answer to an Ask that has rows.
type Columns struct {
	ID      uint32           `json:"id"`
	Columns []sandbox.Column `json:"columns"`
}

// Answer is the host's answer to an Ask, or the end of one that has rows: Value says
// whether they were truncated. Where it is refused the rows are void.
type Answer struct {
	ID      uint32           `json:"id"`
	Value   any              `json:"value,omitempty"`
	Refused *sandbox.Refusal `json:"refused,omitempty"`
}
