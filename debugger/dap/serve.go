package dap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"glasshouse/debugger"
)

// Attach is what a client's attach or launch asks for: a debug session, the recording
// of an execution, or code to be run in a sandbox.
type Attach struct {
	Token       string `json:"token"`
	Session     string `json:"session"`
	Execution   string `json:"execution"`
	Sandbox     string `json:"sandbox"`
	Code        string `json:"code"`
	Path        string `json:"path"` // where the client has the code, for its breakpoints
	StopOnEntry bool   `json:"stopOnEntry"`
}

// Target is what was attached to.
type Target struct {
	*debugger.Session
	Fresh bool         // its program stands at its first line, for this client
	Close func() error // ends it; nil: it outlives the client
}

// Opener finds what a client asks for, if its token allows that.
type Opener func(context.Context, Attach) (*Target, error)

// conn is one client.
type conn struct {
	open   Opener
	out    *writer
	turn   sync.Mutex // held from a move until it is answered, so that its events come behind
	target *Target
	attach Attach
	stop   context.CancelFunc
	told   chan struct{} // the events' goroutine is over
}

var capabilities = map[string]any{
	"supportsConfigurationDoneRequest": true, "supportsConditionalBreakpoints": true, "supportsHitConditionalBreakpoints": true, "supportsLogPoints": true,
	"supportsEvaluateForHovers": true, "supportsStepBack": true, "supportsSetVariable": true, "supportsCompletionsRequest": true,
	"supportsExceptionInfoRequest": true, "supportsDataBreakpoints": true, "supportsTerminateRequest": true, "supportsLoadedSourcesRequest": true,
	"supportTerminateDebuggee": true, "supportsGotoTargetsRequest": true, "supportsBreakpointLocationsRequest": true, "supportsRestartFrame": true,
	"supportsSetExpression": true, "supportsModulesRequest": true, "supportsRestartRequest": true,
	"exceptionBreakpointFilters": []any{
		map[string]any{"filter": "uncaught", "label": "Uncaught exceptions", "default": true},
		map[string]any{"filter": "raised", "label": "Raised exceptions", "default": false},
	},
}

// own are the requests of a connection; the others are the session's.
var own = []string{"initialize", "attach", "launch", "configurationDone", "restart", "terminate", "disconnect", "cancel"}

// Requests are those that are answered.
func Requests() []string { return append(slices.Clone(own), debugger.Requests()...) }

var (
	errFirst = errors.New("first comes initialize, then attach with a token")
	errTwice = errors.New("it is attached already")
)

// Serve talks with one client until it disconnects or ctx ends.
func Serve(ctx context.Context, stream io.ReadWriteCloser, open Opener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	defer stream.Close()
	c := &conn{open: open, out: &writer{out: stream}}
	defer c.leave(false)
	in := bufio.NewReaderSize(stream, 16<<10)
	for {
		body, err := readFrame(in)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(body, &r); err != nil {
			return err
		}
		if r.Type != "request" {
			continue
		}
		over, err := c.handle(ctx, r)
		if err != nil || over {
			return err
		}
	}
}

// handle answers one request; over says that the client takes its leave.
func (c *conn) handle(ctx context.Context, r request) (over bool, err error) {
	switch r.Command {
	case "initialize":
		return false, c.out.respond(r, capabilities, nil)
	case "attach", "launch":
		failed := c.attached(ctx, r.Arguments)
		if err := c.out.respond(r, nil, failed); err != nil || failed != nil {
			return false, err
		}
		return false, c.out.tell("initialized", nil)
	case "disconnect":
		var in struct {
			Terminate *bool `json:"terminateDebuggee"`
		}
		_ = json.Unmarshal(r.Arguments, &in) // an argument that is left out is its default
		c.leave(in.Terminate != nil && *in.Terminate)
		return true, c.out.respond(r, nil, nil)
	}
	if c.target == nil {
		return false, c.out.respond(r, nil, errFirst)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	body, failed := c.do(ctx, r)
	return false, c.out.respond(r, body, failed)
}

func (c *conn) attached(ctx context.Context, arguments json.RawMessage) error {
	if c.target != nil {
		return errTwice
	}
	if err := json.Unmarshal(arguments, &c.attach); err != nil {
		return err
	}
	target, err := c.open(ctx, c.attach)
	if err != nil {
		return err
	}
	c.target = target
	return nil
}

func (c *conn) do(ctx context.Context, r request) (any, error) {
	switch r.Command {
	case "configurationDone":
		return nil, c.configured(ctx)
	case "terminate":
		if c.target.Close == nil {
			return nil, errors.New("the session was opened elsewhere; disconnect with terminateDebuggee, or close it there")
		}
		return nil, c.target.Close()
	case "restart":
		return nil, c.restart(ctx)
	case "cancel":
		return nil, nil // requests are answered one after the other: it is too late
	}
	body, err := c.target.Do(ctx, r.Command, r.Arguments)
	if errors.Is(err, debugger.ErrRunning) && r.Command == "threads" {
		return map[string]any{"threads": []any{map[string]any{"id": 1, "name": "main"}}}, nil
	}
	return c.local(body), err
}

// restart begins the client's own program anew, with the breakpoints that it has.
func (c *conn) restart(ctx context.Context) error {
	if !c.target.Fresh {
		return errors.New("only code that the client has brought can be run again: this was begun elsewhere")
	}
	old := c.target.Session
	c.turn.Unlock() // the events' goroutine may be waiting for it
	c.leave(true)
	c.turn.Lock()
	target, err := c.open(ctx, c.attach)
	if err != nil {
		return err // there is nothing to talk of: what comes is answered as ahead of attach
	}
	c.target = target
	target.Inherit(old)
	return c.configured(ctx)
}

// configured begins to tell events: where the program stands now, or, where it has stood
// at its first line only for this client's breakpoints, goes on.
func (c *conn) configured(ctx context.Context) error {
	if c.stop != nil {
		return nil
	}
	after := c.target.Last()
	if w := c.target.Where(); !c.target.Fresh || c.attach.StopOnEntry {
		if w.State != debugger.StateRunning {
			after-- // its stop
		}
	} else if err := c.target.Move(ctx, debugger.Continue); err != nil {
		return err
	}
	telling, stop := context.WithCancel(ctx)
	c.stop, c.told = stop, make(chan struct{})
	go func() {
		defer close(c.told)
		for telling.Err() == nil {
			for _, e := range c.target.Events(telling, after) {
				after = e.ID
				c.turn.Lock()
				err := c.out.tell(e.Kind, e.Body)
				c.turn.Unlock()
				if err != nil {
					return
				}
			}
		}
	}()
	return nil
}

// leave ends the events, and the program where it is the client's own or is to end.
func (c *conn) leave(terminate bool) {
	if c.stop != nil {
		c.stop()
		<-c.told
		c.stop = nil
	}
	if c.target != nil && c.target.Close != nil && (c.target.Fresh || terminate) {
		_ = c.target.Close() // it may be over already
	}
	c.target = nil
}

// local puts the client's own path in the place of the program, in a body that names it.
func (c *conn) local(body any) any {
	if c.attach.Path == "" || body == nil {
		return body
	}
	text, err := json.Marshal(body)
	if err != nil {
		return body
	}
	var out any
	if json.Unmarshal(text, &out) != nil {
		return body
	}
	c.replace(out)
	return out
}

func (c *conn) replace(v any) {
	switch v := v.(type) {
	case []any:
		for _, each := range v {
			c.replace(each)
		}
	case map[string]any:
		if v["name"] == "code" && v["sourceReference"] == 1.0 {
			delete(v, "sourceReference")
			v["path"] = c.attach.Path
			return
		}
		for _, each := range v {
			c.replace(each)
		}
	}
}
