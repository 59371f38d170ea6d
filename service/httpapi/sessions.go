package httpapi

import (
	"bufio"
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
	"glasshouse/sandbox"
	"glasshouse/service"
)

// InSession is the path of a debug session, and who speaks.
type InSession struct {
	ID     string `path:"sid"`
	Client string `header:"X-Debug-Client" maxLength:"100" doc:"A name of the client's own choice: the one that opened the session drives it, others look"`
}

type sessionAnswer struct {
	SessionID   string                    `json:"session_id"`
	SandboxID   string                    `json:"sandbox_id,omitempty"`
	ExecutionID string                    `json:"execution_id"`
	Breakpoints []debugger.BreakpointView `json:"breakpoints,omitempty"`
	Where       debugger.Where            `json:"where"`
	Result      *sandbox.Execution        `json:"result,omitempty" doc:"The execution, once it is over"`
}

func describe(d *service.DebugSession, where debugger.Where, views []debugger.BreakpointView) *sessionAnswer {
	e := d.Result()
	out := &sessionAnswer{SessionID: d.ID, SandboxID: d.SandboxID, ExecutionID: d.Execution(), Breakpoints: views, Where: where}
	if where.State == debugger.StateEnded {
		out.Result = e
	}
	return out
}

// debugging turns what a session answers into the API's errors.
func debugging(err error) error {
	switch {
	case errors.Is(err, debugger.ErrRunning):
		return &sandbox.Error{Fault: sandbox.FaultBusy, Detail: err.Error(), RetryAfter: 1}
	case errors.Is(err, debugger.ErrPast):
		return sandbox.Errorf(sandbox.FaultBusy, "%v", err)
	case errors.Is(err, debugger.ErrRequest):
		return sandbox.Errorf(sandbox.FaultInvalid, "%v", err)
	}
	return reading(err)
}

// breakpointList takes plain line numbers as well as DAP's objects.
type breakpointList []debugger.SourceBreakpoint

// UnmarshalJSON reads one breakpoint after the other.
func (l *breakpointList) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	for _, each := range list {
		var b debugger.SourceBreakpoint
		if json.Unmarshal(each, &b.Line) != nil {
			if err := json.Unmarshal(each, &b); err != nil {
				return err
			}
		}
		*l = append(*l, b)
	}
	return nil
}

// Schema says both forms.
func (breakpointList) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Type: "array", Items: &huma.Schema{Description: "A line number, or {line, condition, hitCondition, logMessage}"}}
}

func (a *api) sessions(router *gin.Engine, group place) {
	type openInput struct {
		InSandbox
		Client string `header:"X-Debug-Client" maxLength:"100"`
		Wait   string `query:"wait" pattern:"^[0-9]{1,2}$" doc:"Seconds to wait for the first stop; without it, 10"`
		Body   struct {
			Code        string         `json:"code"`
			Context     object         `json:"context,omitempty"`
			Breakpoints breakpointList `json:"breakpoints,omitempty"`
			Exceptions  []string       `json:"exceptions,omitempty" enum:"raised,uncaught" doc:"Stop where an exception is raised, or only where nobody handles it"`
			StopOnEntry bool           `json:"stop_on_entry,omitempty"`
		}
	}
	route(a, group, "POST", "/sandbox/{id}/debug/sessions", "Run code under an interactive debugger", func(ctx context.Context, caller sandbox.Key, in *openInput) (*sessionAnswer, error) {
		d, views, err := a.service.OpenDebug(ctx, caller, in.ID, service.DebugStart{
			Job:         service.Job{Code: in.Body.Code, Context: json.RawMessage(in.Body.Context), Kind: sandbox.KindDebug},
			Breakpoints: in.Body.Breakpoints, Exceptions: in.Body.Exceptions, StopOnEntry: in.Body.StopOnEntry, Driver: in.Client,
		})
		if err != nil {
			return nil, err
		}
		return describe(d, settled(ctx, d, in.Wait), views), nil
	})
	type pastInput struct {
		ID     string `path:"id"`
		Client string `header:"X-Debug-Client" maxLength:"100"`
	}
	route(a, group, "POST", "/executions/{id}/debug/sessions", "Open the recording of a debugged run, to step through it both ways", func(ctx context.Context, caller sandbox.Key, in *pastInput) (*sessionAnswer, error) {
		d, err := a.service.OpenPast(ctx, caller, in.ID, in.Client)
		if err != nil {
			return nil, err
		}
		return describe(d, d.Where(), nil), nil
	})
	route(a, group, "GET", "/debug/sessions/{sid}", "Where a debug session stands", func(_ context.Context, caller sandbox.Key, in *InSession) (*sessionAnswer, error) {
		d, err := a.service.DebugSession(caller, in.ID)
		if err != nil {
			return nil, err
		}
		return describe(d, d.Where(), nil), nil
	})
	route(a, group, "DELETE", "/debug/sessions/{sid}", "End a debug session, and its run", func(_ context.Context, caller sandbox.Key, in *InSession) (*message, error) {
		return &message{"The debug session is closed"}, a.service.CloseDebug(caller, in.ID)
	})
	at := group
	at.api.OpenAPI().AddOperation(&huma.Operation{
		Method: "POST", Path: at.prefix + "/debug/sessions/{sid}/{command}", OperationID: "POST" + at.prefix + "/debug/sessions/{sid}/{command}",
		Summary:     "One request of the Debug Adapter Protocol: its arguments in, its body out; a move also says where it came to",
		Description: strings.Join(debugger.Requests(), ", ") + "; and drive, which takes the session over",
		Parameters: []*huma.Param{
			{Name: "sid", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}, {Name: "command", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}},
			{Name: "wait", In: "query", Description: "Seconds that a move may wait for the program to stop; without it, 10", Schema: &huma.Schema{Type: "integer"}},
			{Name: "X-Debug-Client", In: "header", Description: "Who speaks, as in opening", Schema: &huma.Schema{Type: "string"}},
		},
		RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: "object"}}}},
		Responses:   map[string]*huma.Response{"200": {Description: "The body of the response, and for a move where", Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{Type: "object"}}}}},
	})
	router.POST(at.prefix+"/debug/sessions/:sid/:command", func(g *gin.Context) {
		out, err := a.command(g)
		if err != nil {
			a.problem(g, err)
			return
		}
		g.JSON(http.StatusOK, out)
	})
	at.api.OpenAPI().AddOperation(&huma.Operation{
		Method: "GET", Path: at.prefix + "/debug/sessions/{sid}/events", OperationID: "GET" + at.prefix + "/debug/sessions/{sid}/events", Summary: "A debug session's events as they come; Last-Event-ID resumes",
		Parameters: []*huma.Param{{Name: "sid", In: "path", Required: true, Schema: &huma.Schema{Type: "string"}}},
		Responses:  map[string]*huma.Response{"200": {Description: "Events of the Debug Adapter Protocol", Content: map[string]*huma.MediaType{"text/event-stream": {}}}},
	})
	router.GET(at.prefix+"/debug/sessions/:sid/events", a.events)
}

// command does one command of a session.
func (a *api) command(g *gin.Context) (map[string]any, error) {
	ctx, client, name := g.Request.Context(), g.GetHeader("X-Debug-Client"), g.Param("command")
	d, err := a.service.DebugSession(callerFrom(ctx), g.Param("sid"))
	if err != nil {
		return nil, err
	}
	arguments, err := io.ReadAll(g.Request.Body)
	if err != nil {
		return nil, sandbox.Errorf(sandbox.FaultTooLarge, "the body has more than %d bytes", maxBody)
	}
	var whole object
	if len(arguments) > 0 && json.Unmarshal(arguments, &whole) != nil {
		return nil, sandbox.Errorf(sandbox.FaultMalformed, "the body is not a JSON object")
	}
	if name == "drive" || debugger.Drives(name) {
		if err := d.Drive(client, name == "drive"); err != nil {
			return nil, err
		}
	}
	if name == "drive" {
		return map[string]any{"driver": client}, nil
	}
	body, err := d.Do(ctx, name, arguments)
	if err != nil {
		return nil, debugging(err)
	}
	out := map[string]any{}
	text, err := json.Marshal(body)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err == nil && debugger.Moves(name) {
		where := settled(ctx, d, g.Query("wait"))
		out["where"] = where
		if where.State == debugger.StateEnded {
			out["result"] = d.Result()
		}
	}
	return out, err
}

// settled waits until the program stands, or is over, for as long as the caller wants.
func settled(ctx context.Context, d *service.DebugSession, wait string) debugger.Where {
	seconds, err := strconv.Atoi(wait)
	if err != nil || seconds < 0 || seconds > 60 {
		seconds = 10
	}
	ctx, done := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer done()
	return d.Settled(ctx)
}

func (a *api) events(g *gin.Context) {
	d, err := a.service.DebugSession(callerFrom(g.Request.Context()), g.Param("sid"))
	if err != nil {
		a.problem(g, err)
		return
	}
	after, _ := strconv.Atoi(g.GetHeader("Last-Event-ID"))
	g.Header("Content-Type", "text/event-stream")
	g.Header("Cache-Control", "no-cache")
	g.Status(http.StatusOK)
	out, text := http.NewResponseController(g.Writer), bufio.NewWriterSize(g.Writer, 32<<10)
	for g.Request.Context().Err() == nil {
		ctx, done := context.WithTimeout(g.Request.Context(), heartbeat)
		list := d.Events(ctx, after)
		done()
		over := false
		if len(list) == 0 {
			_, _ = text.WriteString(": here\n\n") // Flush has its error
		}
		for _, e := range list { // one by one: together they may be many megabytes
			body, err := json.Marshal(e.Body)
			if err != nil || g.Request.Context().Err() != nil || out.SetWriteDeadline(time.Now().Add(patience)) != nil {
				return
			}
			if _, err := fmt.Fprintf(text, "id: %d\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, body); err != nil {
				return
			}
			after, over = e.ID, over || e.Kind == "terminated"
		}
		if out.SetWriteDeadline(time.Now().Add(patience)) != nil || text.Flush() != nil || out.Flush() != nil || over {
			return
		}
	}
}
