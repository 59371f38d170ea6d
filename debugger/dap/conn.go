package dap

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"glasshouse/debugger"
)

var (
	errFirst = errors.New("first comes initialize, then attach with a token")
	errTwice = errors.New("it is attached already")
)

// handle answers one request; over says that the client takes its leave.
func (c *conn) handle(ctx context.Context, r request) (over bool, err error) {
	switch r.Command {
	case "initialize":
		if len(r.Arguments) > 0 {
			if failed := json.Unmarshal(r.Arguments, &c.client); failed != nil {
				return false, c.respond(ctx, r, nil, failed)
			}
		}
		return false, c.respond(ctx, r, capabilities, nil)
	case "attach", "launch":
		c.clock.Stop() // to open may take longer, and what has no key is refused before
		failed := c.attachTo(ctx, r.Arguments)
		err := c.respond(ctx, r, nil, failed)
		if !c.attached {
			c.clock.Reset(time.Until(c.by))
		}
		if err != nil || failed != nil {
			return false, err
		}
		return false, c.out.tell("initialized", nil)
	case "disconnect":
		var in struct {
			Terminate bool `json:"terminateDebuggee"`
		}
		_ = json.Unmarshal(r.Arguments, &in) // an argument that is left out is its default
		c.leave(in.Terminate && c.may() == nil)
		return true, c.respond(ctx, r, nil, nil)
	}
	if c.target == nil {
		return false, c.respond(ctx, r, nil, errFirst)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	defer c.progress(r)()
	body, failed := c.do(ctx, r)
	return false, c.respond(ctx, r, body, failed)
}

func (c *conn) attachTo(ctx context.Context, arguments json.RawMessage) error {
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
	c.mu.Lock()
	c.attached = true // only this goroutine writes it
	c.mu.Unlock()
	return nil
}

// may says why the client may not drive, if so.
func (c *conn) may() error {
	if c.target == nil || c.target.May == nil {
		return nil
	}
	return c.target.May()
}

func (c *conn) do(ctx context.Context, r request) (any, error) {
	if debugger.Drives(r.Command) {
		if err := c.may(); err != nil {
			return nil, err
		}
	}
	switch r.Command {
	case "configurationDone":
		return nil, c.configured(ctx)
	case "terminate":
		return nil, c.target.Close()
	case "restart":
		return nil, c.restart(ctx, r.Arguments)
	}
	body, err := c.target.Do(ctx, r.Command, c.client.taken(r.Arguments))
	if errors.Is(err, debugger.ErrRunning) && r.Command == "threads" {
		return map[string]any{"threads": []any{map[string]any{"id": 1, "name": "main"}}}, nil
	}
	return c.local(body), err
}

// longer is how long a request may take before its client sees that it goes on.
const longer = 500 * time.Millisecond

// progress tells of a request that takes longer, until the func that it returns is
// called. The client may cancel it by the progress, too.
func (c *conn) progress(r request) (over func()) {
	if !c.client.Progress {
		return func() {}
	}
	id, told := strconv.Itoa(r.Seq), make(chan struct{})
	timer := time.AfterFunc(longer, func() {
		defer close(told)
		_ = c.out.tell("progressStart", map[string]any{"progressId": id, "title": r.Command, "requestId": r.Seq, "cancellable": true}) // the answer fails, too
	})
	return func() {
		if !timer.Stop() {
			<-told
			_ = c.out.tell("progressEnd", map[string]any{"progressId": id})
		}
	}
}

// restart begins the client's own program anew, or the one that it has by now, with the
// breakpoints that it has.
func (c *conn) restart(ctx context.Context, arguments json.RawMessage) error {
	if !c.target.Fresh {
		return errors.New("only code that the client has brought can be run again: this was begun elsewhere")
	}
	latest := struct {
		Attach *Attach `json:"arguments"`
	}{&c.attach}
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &latest); err != nil {
			return err
		}
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
	telling, stop := context.WithCancel(c.ctx)
	c.stop, c.told = stop, make(chan struct{})
	go func() {
		defer close(c.told)
		for telling.Err() == nil {
			for _, e := range c.target.Events(telling, after) {
				after = e.ID
				c.turn.Lock()
				err := c.out.tell(e.Kind, c.local(e.Body))
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
	if c.target == nil {
		return
	}
	if c.target.Leave != nil {
		c.target.Leave()
	}
	if c.target.Fresh || terminate {
		_ = c.target.Close() // it may be over already
	}
	c.target = nil
}

// local is a body as the client has it: its own path in the place of the program, and
// places as it counts them.
func (c *conn) local(body any) any {
	fields := c.client.counts()
	if c.attach.Path == "" && fields == nil || body == nil {
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
	if c.attach.Path != "" {
		c.replace(out)
	}
	return shift(out, fields, -1)
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
