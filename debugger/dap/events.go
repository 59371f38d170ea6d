package dap

import (
	"cmp"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

// stoppedBody adds the step and the line to the type of go-dap, which also omits an empty hitBreakpointIds.
type stoppedBody struct {
	godap.StoppedEventBody
	HitBreakpointIDs []int `json:"hitBreakpointIds"`
	Step             int   `json:"step"`
	Line             int64 `json:"line"`
}

// exitedBody adds the execution and its status to the type of go-dap.
type exitedBody struct {
	godap.ExitedEventBody
	Status    string `json:"status,omitempty"`
	Execution string `json:"execution_id,omitempty"`
}

// TerminatedEvent is the name of a session's last event.
const TerminatedEvent = "terminated"

// invalidatedEvent is the name of the event that tells all clients that one of them changed a variable. A client that
// gets it reads the variables again.
const invalidatedEvent = "invalidated"

// invalidatedBody adds the change to the type of go-dap.
type invalidatedBody struct {
	godap.InvalidatedEventBody
	Edit sandbox.Edit `json:"edit"`
}

// Event returns the name and the body of a session's event in the protocol.
func Event(e debugger.Event) (name string, body any) {
	switch b := e.Body.(type) {
	case debugger.Stopped:
		stopped := stoppedBody{
			StoppedEventBody: godap.StoppedEventBody{
				Reason: b.Reason, Description: b.Description, Text: cmp.Or(b.Text, b.Description),
				ThreadId:          threadID(b.Thread),
				AllThreadsStopped: true,
			},
			HitBreakpointIDs: b.HitIDs, Step: b.Step, Line: b.Line,
		}
		if b.HitIDs == nil {
			stopped.HitBreakpointIDs = []int{}
		}
		return "stopped", stopped
	case debugger.Edited:
		areas := []godap.InvalidatedAreas{"variables"}
		return invalidatedEvent, invalidatedBody{godap.InvalidatedEventBody{Areas: areas}, b.Edit}
	case debugger.Continued:
		return "continued", godap.ContinuedEventBody{ThreadId: threadID(b.Thread), AllThreadsContinued: true}
	case debugger.Output:
		body := godap.OutputEventBody{Category: b.Category, Output: b.Text, Line: b.Line}
		if b.IsTraceback {
			body.Source = &program
		}
		return "output", body
	case debugger.BreakpointChanged:
		return "breakpoint", godap.BreakpointEventBody{Reason: "changed", Breakpoint: breakpointBody(b.Breakpoint)}
	case debugger.Exited:
		return "exited", exitedBody{godap.ExitedEventBody{ExitCode: b.Code}, b.Status, b.Execution}
	}
	return TerminatedEvent, empty{}
}

// threadID returns the number of a thread. A position without a thread belongs to the main thread, which is 1.
func threadID(thread uint64) int { return int(max(thread, 1)) }
