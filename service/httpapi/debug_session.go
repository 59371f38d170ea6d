package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"glasshouse/debugger"
	"glasshouse/debugger/dap"
	"glasshouse/sandbox"
	"glasshouse/service/access"
	"glasshouse/service/debug"
)

type openDebugInput struct {
	InSandbox
	Client string `header:"X-Debug-Client" maxLength:"100" doc:"The client's name; the client that opens a session drives it"`
	Wait   string `query:"wait" pattern:"^([0-9]|[1-5][0-9]|60)$" doc:"Seconds to wait for a stop; 10 by default"`
	Body   struct {
		Code    string         `json:"code" maxLength:"4000000"`
		Context sandbox.Object `json:"context,omitempty"`
		sandbox.Annotations
		Breakpoints breakpointList `json:"breakpoints,omitempty"`
		Exceptions  []string       `json:"exceptions,omitempty" enum:"raised,uncaught" doc:"Stop at every exception, or at unhandled ones"`
		StopOnEntry bool           `json:"stop_on_entry,omitempty"`
	}
}

type openRecordingInput struct {
	InExecution
	Client string `header:"X-Debug-Client" maxLength:"100"`
}

type debugSessionInput struct {
	ID     string `path:"sid"`
	Client string `header:"X-Debug-Client" maxLength:"100" doc:"The client's name; all but the driver observe"`
}

type debugSession struct {
	SessionID   string                    `json:"session_id"`
	SandboxID   string                    `json:"sandbox_id,omitempty"`
	ExecutionID string                    `json:"execution_id"`
	Breakpoints []debugger.BreakpointView `json:"breakpoints,omitempty"`
	Where       debugger.Position         `json:"where"`
	Result      *sandbox.Execution        `json:"result,omitempty" doc:"The execution, when it has ended"`
}

func newDebugSession(
	d *debug.Session, where debugger.Position, breakpoints []debugger.BreakpointView,
) *debugSession {
	out := &debugSession{
		SessionID: d.ID, SandboxID: d.SandboxID, ExecutionID: d.Execution(), Breakpoints: breakpoints, Where: where,
	}
	if where.State == debugger.StateEnded {
		out.Result = d.Result()
	}
	return out
}

// sessionError turns the errors of a debug session into the API's.
func sessionError(err error) error {
	switch {
	case errors.Is(err, debugger.ErrRunning):
		return &sandbox.Error{Fault: sandbox.FaultBusy, Detail: err.Error(), RetryAfter: 1}
	case errors.Is(err, debugger.ErrPast):
		return sandbox.Errorf(sandbox.FaultBusy, "%v", err)
	case errors.Is(err, debugger.ErrRequest):
		return sandbox.Errorf(sandbox.FaultInvalid, "%v", err)
	}
	return recordingError(err)
}

// breakpointList accepts line numbers as well as DAP's objects.
type breakpointList []dap.SourceBreakpoint

// UnmarshalJSON decodes a list of either form.
func (l *breakpointList) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, item := range list {
		item = sandbox.WithIntegers(item)
		var b dap.SourceBreakpoint
		if json.Unmarshal(item, &b.Line) != nil {
			if err := unmarshalExact(item, &b); err != nil {
				return err
			}
		}
		*l = append(*l, b)
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (breakpointList) Schema(huma.Registry) *huma.Schema {
	line := &huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	text := &huma.Schema{Type: huma.TypeString, MaxLength: new(10_000)}
	breakpoint := &huma.Schema{
		Type: huma.TypeObject, Required: []string{"line"}, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"line": line, "column": line, "condition": text, "hitCondition": text, "logMessage": text,
		},
	}
	breakpoint.PrecomputeMessages()
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{
		Description: "A line number, or an object with a line", OneOf: []*huma.Schema{line, breakpoint},
	}}
}

func (a *api) routeDebugSessions(r *routes) {
	forbidden, busy, gone := http.StatusForbidden, http.StatusConflict, http.StatusGone
	route(a, r, r.describe("POST", "/sandbox/{id}/debug/sessions", "openDebugSession", tagDebugger,
		"Execute code under an interactive debugger", forbidden, busy, gone), a.openDebugSession)
	route(a, r, r.describe("POST", "/executions/{id}/debug/sessions", "openRecordingSession", tagDebugger,
		"Open the recording of a debugged execution, to step through it in both directions", forbidden, busy, gone),
		a.openRecordingSession)
	route(a, r, r.describe("GET", "/debug/sessions/{sid}", "getDebugSession", tagDebugger,
		"Get where a debug session is", forbidden), a.getDebugSession)
	route(a, r, r.describe("DELETE", "/debug/sessions/{sid}", "closeDebugSession", tagDebugger,
		"Close a debug session and end its execution", forbidden), a.closeDebugSession)

	object := map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: huma.TypeObject}}}
	op := r.describe("POST", "/debug/sessions/{sid}/{command}", "sendDebugCommand", tagDebugger,
		"Send a request of the Debug Adapter Protocol", http.StatusBadRequest, http.StatusRequestEntityTooLarge,
		forbidden, busy, gone)
	op.Description = "The body has the request's arguments, the response its body. " +
		"A command that moves the program also answers where it is. " +
		"The commands are " + strings.Join(dap.SessionRequests(), ", ") +
		"; and drive, which makes the client the session's driver."
	command := stringParam("path", "command", "")
	for _, name := range append(dap.SessionRequests(), driveCommand) {
		command.Schema.Enum = append(command.Schema.Enum, name)
	}
	op.Parameters = []*huma.Param{
		stringParam("path", "sid", ""), command,
		{Name: "wait", In: "query", Description: "Seconds that a move may wait for the program to stop; 10 by default",
			Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0), Maximum: new(float64(maxStopWait)),
				Default: 10}},
		stringParam("header", "X-Debug-Client", "The client's name, as in opening"),
	}
	op.RequestBody = &huma.RequestBody{Content: object}
	op.Responses["200"] = &huma.Response{
		Description: "The body of the DAP response, with where after a move, and result when the execution has ended",
		Content:     object,
	}
	r.handle(r.keyed, op, func(g *gin.Context) {
		out, err := a.sendDebugCommand(g)
		if err != nil {
			a.fail(g, err)
			return
		}
		g.JSON(http.StatusOK, out)
	})

	op = r.describe("GET", "/debug/sessions/{sid}/events", "streamDebugEvents", tagDebugger,
		"Stream a debug session's events; Last-Event-ID resumes", forbidden)
	op.Parameters = []*huma.Param{
		stringParam("path", "sid", ""), stringParam("header", "Last-Event-ID", "Resume after this event"),
	}
	op.Responses["200"] = &huma.Response{
		Description: "Events of the Debug Adapter Protocol",
		Content:     map[string]*huma.MediaType{"text/event-stream": eventSchema("The body of the event, as JSON")},
	}
	r.handle(r.keyed, op, a.streamDebugEvents)
}

func (a *api) openDebugSession(ctx context.Context, caller sandbox.Key, in *openDebugInput) (*debugSession, error) {
	session, breakpoints, err := a.debug.Open(ctx, caller, in.ID, debug.Start{
		Request: sandbox.Request{
			Code: in.Body.Code, Context: in.Body.Context, Annotations: in.Body.Annotations, Kind: sandbox.KindDebug,
		},
		Breakpoints: dap.LineBreakpoints(
			in.Body.Breakpoints,
		), Exceptions: in.Body.Exceptions, StopOnEntry: in.Body.StopOnEntry,
		Driver: in.Client,
	})
	if err != nil {
		return nil, err
	}
	seconds, _ := strconv.Atoi(cmp.Or(in.Wait, defaultStopWait)) // huma has checked the pattern
	where := waitForStop(ctx, session, seconds)
	return newDebugSession(session, where, session.CurrentViews(breakpoints)), nil
}

func (a *api) openRecordingSession(
	ctx context.Context, caller sandbox.Key, in *openRecordingInput,
) (*debugSession, error) {
	session, err := a.debug.OpenPast(ctx, caller, in.ID, in.Client)
	if err != nil {
		return nil, err
	}
	return newDebugSession(session, session.Position(), nil), nil
}

func (a *api) getDebugSession(_ context.Context, caller sandbox.Key, in *debugSessionInput) (*debugSession, error) {
	session, err := a.debug.Session(caller, in.ID)
	if err != nil {
		return nil, err
	}
	return newDebugSession(session, session.Position(), session.LineBreakpoints()), nil
}

func (a *api) closeDebugSession(_ context.Context, caller sandbox.Key, in *debugSessionInput) (*message, error) {
	return &message{"The debug session is closed"}, a.debug.CloseSession(caller, in.ID)
}

// driveCommand is the one command that DAP does not have.
const driveCommand = "drive"

// sendDebugCommand does one command of a session. gin reads the body, with any content type.
func (a *api) sendDebugCommand(g *gin.Context) (map[string]any, error) {
	ctx, client, command := g.Request.Context(), g.GetHeader("X-Debug-Client"), g.Param("command")
	wait, err := stopWait(g)
	if err != nil {
		return nil, err
	}
	session, err := a.debug.Session(callerFrom(ctx), g.Param("sid"))
	if err != nil {
		return nil, err
	}
	arguments, err := io.ReadAll(g.Request.Body)
	if err != nil {
		return nil, readError(err)
	}
	if err := checkBody(arguments); len(arguments) > 0 && err != nil {
		return nil, err
	}
	var checked sandbox.Object
	if len(arguments) > 0 && json.Unmarshal(arguments, &checked) != nil {
		return nil, sandbox.Errorf(sandbox.FaultMalformed,
			"the body is not a JSON object; send the request's arguments as one, or no body")
	}
	if command == driveCommand || dap.Drives(command) {
		if err := session.Drive(client, command == driveCommand); err != nil {
			return nil, err
		}
	}
	if command == driveCommand {
		return map[string]any{"driver": client}, nil
	}
	caller := callerFrom(ctx)
	ctx = debugger.WithSearcher(debugger.WithPerson(ctx, debug.PersonOf(caller)), a.debug.SearcherOf(caller))
	ctx = debugger.WithSQL(ctx, a.debug.StatementsOf(caller, session))
	body, err := dap.Do(ctx, session.Session, command, arguments)
	if err != nil {
		return nil, sessionError(err)
	}
	out := map[string]any{}
	text, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err == nil && dap.Moves(command) {
		where := waitForStop(ctx, session, wait)
		out["where"] = where
		if where.State == debugger.StateEnded {
			out["result"] = session.Result()
		}
	}
	return out, errors.Join(err, access.LostKey(ctx))
}

const (
	defaultStopWait = "10" // seconds
	maxStopWait     = 60
)

// stopWait returns the seconds that a client wants to wait for a stop.
func stopWait(g *gin.Context) (int, error) {
	text := g.DefaultQuery("wait", defaultStopWait)
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 0 || seconds > maxStopWait {
		return 0, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "query.wait",
			Detail: fmt.Sprintf("expected a number of seconds from 0 to %d", maxStopWait)}
	}
	return seconds, nil
}

// waitForStop waits until the program stops or ends, for at most a number of seconds.
func waitForStop(ctx context.Context, session *debug.Session, seconds int) debugger.Position {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	return session.WaitForStop(ctx)
}

func (a *api) streamDebugEvents(g *gin.Context) {
	client := g.Request.Context()
	session, err := a.debug.Session(callerFrom(client), g.Param("sid"))
	if err != nil {
		a.fail(g, err)
		return
	}
	after, _ := strconv.Atoi(g.GetHeader("Last-Event-ID")) // without it, from the first event
	stream := newEventStream(g)
	defer stream.close()
	if stream.text(": open") != nil || stream.flush() != nil { // the first event may be far away
		return
	}
	for client.Err() == nil {
		ctx, cancel := context.WithTimeout(client, heartbeatInterval)
		events := session.Events(ctx, after)
		cancel()
		terminated := false
		if len(events) == 0 && stream.text(": still open") != nil {
			return
		}
		for _, e := range events { // encoded one by one: together they may have many megabytes
			name, body := dap.Event(e)
			if client.Err() != nil || stream.event(strconv.Itoa(e.ID), name, body) != nil {
				return
			}
			after, terminated = e.ID, terminated || name == dap.TerminatedEvent
		}
		if stream.flush() != nil || terminated {
			return
		}
	}
	if lost := access.LostKey(client); lost != nil {
		stream.problem(lost)
	}
}
