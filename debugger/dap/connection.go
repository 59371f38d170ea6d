package dap

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	godap "github.com/google/go-dap"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

// Attach holds the arguments of attach and launch: a debug session, the recording of an execution, an execution to run
// again and record, or code to run in a sandbox.
type Attach struct {
	Token       string `json:"token"`
	Session     string `json:"session"`
	Execution   string `json:"execution"`
	Replay      string `json:"replay"` // an execution, which need not have been recorded
	Sandbox     string `json:"sandbox"`
	Code        string `json:"code"`
	Path        string `json:"path"` // of the code on the client's side, for its breakpoints
	StopOnEntry bool   `json:"stopOnEntry"`
	Drive       bool   `json:"drive"` // take the session over from the editor that drives it
}

// check returns an error for names that are too long: each stack frame repeats the path.
func (a Attach) check() error {
	return sandbox.CheckNames(map[string]string{
		"token": a.Token, "session": a.Session, "execution": a.Execution, "replay": a.Replay,
		"sandbox": a.Sandbox, "path": a.Path,
	})
}

// Target is the session that a client has attached to.
type Target struct {
	*debugger.Session
	Fresh    bool         // the program was started for this client, and has stopped at its first line
	Close    func() error // ends the session
	MayDrive func() error // returns why this client may not drive the session now; nil if no other client can
	Detach   func()       // is called when the client leaves; may be nil

	// Person is who the client's token belongs to.
	Person debugger.Person

	// Search calls the searches of this client; nil: they have no limits.
	Search debugger.Searcher

	// Statements lets this client step into the statements of the run; nil: it cannot.
	Statements *debugger.Statements

	// Authorize returns an error if the client's token is not valid any more; may be nil.
	Authorize func(context.Context) error
}

// Opener opens the Target that a client asks to attach to. It returns an error if the client's token does not allow it.
type Opener func(context.Context, Attach) (*Target, error)

var (
	errNotAttached     = errors.New("the client is not attached: send initialize, then attach with a token")
	errAlreadyAttached = errors.New("the client is already attached")
	errCannotRestart   = errors.New("only a program that this client started can restart: attach with sandbox and code")
)

// connection is the connection of one client.
type connection struct {
	ctx  context.Context
	end  context.CancelFunc // ends ctx
	open Opener
	out  *writer

	// turn is held while a request is executed, so that the events that it causes are sent after its response.
	turn         sync.Mutex
	target       *Target
	attached     Attach
	client       godap.InitializeRequestArguments
	disconnected bool
	stopEvents   context.CancelFunc // ends the goroutine that sends events; nil if there is none
	eventsEnded  chan struct{}

	attachTimer    *time.Timer // ends the connection of a client that does not attach
	attachDeadline time.Time

	mu           sync.Mutex
	cancels      map[int]context.CancelFunc // of the requests that have no response yet, by seq
	waiting      int                        // number of these requests
	waitingBytes int
	isAttached   bool          // the client has shown a valid token
	freed        chan struct{} // has a value when waiting or waitingBytes has decreased
}

// execute executes one request and sends its response.
func (c *connection) execute(ctx context.Context, r message) error {
	known := find(r.Command)
	switch {
	case known == nil:
		return c.out.respond(ctx, r, nil, unsupportedError{r.Command})
	case known.beforeAttach != nil:
		return known.beforeAttach(c, ctx, r)
	case c.target == nil:
		return c.out.respond(ctx, r, nil, errNotAttached)
	}
	if err := c.target.authorize(ctx); err != nil {
		c.disconnected = true
		return errors.Join(c.out.respond(ctx, r, nil, err), c.announceEnd(err))
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	defer c.reportProgress(r)()
	body, err := c.executeAttached(ctx, known, r.Arguments)
	return c.out.respond(ctx, r, body, err)
}

func (c *connection) executeAttached(ctx context.Context, r *request, arguments json.RawMessage) (any, error) {
	if r.drives {
		if err := c.mayDrive(); err != nil {
			return nil, err
		}
	}
	if r.connection != nil {
		return r.connection(c, ctx, arguments)
	}
	ctx = debugger.WithPerson(ctx, c.target.Person)
	if c.target.Search != nil {
		ctx = debugger.WithSearcher(ctx, c.target.Search)
	}
	if c.target.Statements != nil {
		ctx = debugger.WithSQL(ctx, *c.target.Statements)
	}
	body, err := r.do(ctx, c.target.Session, c.fromClient(arguments))
	return c.toClient(body), err
}

// mayDrive returns why the client may not drive the session, or nil.
func (c *connection) mayDrive() error {
	if c.target == nil || c.target.MayDrive == nil {
		return nil
	}
	return c.target.MayDrive()
}

func (c *connection) initialize(ctx context.Context, r message) error {
	if err := decode(r.Arguments, &c.client); err != nil {
		return c.out.respond(ctx, r, nil, err)
	}
	return c.out.respond(ctx, r, capabilities(), nil)
}

func (c *connection) attach(ctx context.Context, r message) error {
	c.attachTimer.Stop() // opening may take longer than attachTimeout; it first checks the token
	err := c.openTarget(ctx, r.Arguments)
	sendErr := c.out.respond(ctx, r, nil, err)
	if !c.isAttached {
		c.attachTimer.Reset(time.Until(c.attachDeadline))
	}
	if sendErr != nil || err != nil {
		return sendErr
	}
	return c.out.sendEvent("initialized", nil)
}

func (c *connection) openTarget(ctx context.Context, arguments json.RawMessage) error {
	if c.target != nil {
		return errAlreadyAttached
	}
	var in Attach
	if err := decode(arguments, &in); err != nil {
		return err
	}
	if err := in.check(); err != nil {
		return err
	}
	target, err := c.open(ctx, in)
	if err != nil {
		return err
	}
	c.target, c.attached = target, in
	c.mu.Lock()
	c.isAttached = true // only this goroutine writes the field
	c.mu.Unlock()
	go c.watchToken(target)
	return nil
}

// authorizeInterval is the time between two checks of the token of a client that sends no requests.
const authorizeInterval = 2 * time.Second

// watchToken disconnects the client when its token is not valid any more.
func (c *connection) watchToken(target *Target) {
	ticker := time.NewTicker(authorizeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.ctx.Done():
			return
		}
		if err := target.authorize(c.ctx); err != nil {
			_ = c.announceEnd(err) // the connection ends either way
			c.end()
			return
		}
	}
}

func (t *Target) authorize(ctx context.Context) error {
	if t.Authorize == nil {
		return nil
	}
	return t.Authorize(ctx)
}

// announceEnd tells the client why its session ends.
func (c *connection) announceEnd(reason error) error {
	return errors.Join(
		c.out.sendEvent("output", godap.OutputEventBody{Category: "important", Output: reason.Error() + "\n"}),
		c.out.sendEvent(TerminatedEvent, nil))
}

func (c *connection) disconnect(ctx context.Context, r message) error {
	var in godap.DisconnectArguments
	_ = json.Unmarshal(r.Arguments, &in) // a client can disconnect even with invalid arguments
	c.detach(in.TerminateDebuggee && c.mayDrive() == nil)
	c.disconnected = true
	return c.out.respond(ctx, r, nil, nil)
}

// cancel ends the context of a request, named by its seq or by its progress.
func (c *connection) cancel(ctx context.Context, r message) error {
	var in godap.CancelArguments
	if err := decode(r.Arguments, &in); err != nil {
		return c.out.respond(ctx, r, nil, err)
	}
	if in.ProgressId != "" {
		in.RequestId, _ = strconv.Atoi(in.ProgressId) // an invalid ID cancels nothing
	}
	c.mu.Lock()
	if cancel := c.cancels[in.RequestId]; cancel != nil { // otherwise the request has its response already
		cancel()
	}
	c.mu.Unlock()
	return c.out.respond(ctx, r, nil, nil)
}

func (c *connection) terminate(context.Context, json.RawMessage) (any, error) {
	return nil, c.target.Close()
}

// restart runs the client's program again, or the program in the request's arguments, with the same breakpoints.
func (c *connection) restart(ctx context.Context, arguments json.RawMessage) (any, error) {
	if !c.target.Fresh {
		return nil, errCannotRestart
	}
	latest := struct {
		Attach Attach `json:"arguments"`
	}{c.attached}
	if err := decode(arguments, &latest); err != nil {
		return nil, err
	}
	if err := latest.Attach.check(); err != nil {
		return nil, err
	}
	c.attached = latest.Attach
	old := c.target.Session
	c.turn.Unlock() // the goroutine that sends events may wait for this mutex
	c.detach(true)
	c.turn.Lock()
	target, err := c.open(ctx, c.attached)
	if err != nil {
		return nil, err // the client is not attached any more
	}
	c.target = target
	target.CopyBreakpoints(old)
	return nil, c.startEvents(ctx)
}

// configurationDone starts the goroutine that sends events.
func (c *connection) configurationDone(ctx context.Context, _ json.RawMessage) (any, error) {
	return nil, c.startEvents(ctx)
}

// startEvents starts the goroutine that sends events. A program that was started for this client without stopOnEntry
// runs on; otherwise the first event is the stop at the current position. If this program has ended before its first
// line, as for a syntax error, the client gets all its events, which say why.
func (c *connection) startEvents(ctx context.Context) error {
	if c.stopEvents != nil {
		return nil
	}
	after := c.target.LastEvent()
	if c.target.Fresh && c.target.Position().State == debugger.StateEnded {
		after = 0
	} else if !c.target.Fresh || c.attached.StopOnEntry {
		if !c.target.IsRunning() {
			after-- // the last event is the stop
		}
	} else if err := c.target.Move(ctx, debugger.Continue); err != nil {
		return err
	}
	sending, stop := context.WithCancel(c.ctx)
	c.stopEvents, c.eventsEnded = stop, make(chan struct{})
	go c.sendEvents(sending, c.target.Session, after)
	return nil
}

func (c *connection) sendEvents(ctx context.Context, s *debugger.Session, after int) {
	defer close(c.eventsEnded)
	for ctx.Err() == nil {
		for _, e := range s.Events(ctx, after) {
			after = e.ID
			name, body := Event(e)
			if out, ok := body.(godap.OutputEventBody); ok && out.Source != nil && c.attached.Path != "" {
				from, to := strconv.Quote(debugger.SourceName), strconv.Quote(c.attached.Path)
				out.Output = strings.ReplaceAll(out.Output, "  File "+from, "  File "+to)
				body = out
			}
			if name == invalidatedEvent && !c.client.SupportsInvalidatedEvent {
				continue
			}
			c.turn.Lock()
			err := c.out.sendEvent(name, c.toClient(body))
			c.turn.Unlock()
			if err != nil {
				return
			}
		}
	}
}

// detach ends the events, and the session if it is the client's own or terminate is set.
func (c *connection) detach(terminate bool) {
	if c.stopEvents != nil {
		c.stopEvents()
		<-c.eventsEnded
		c.stopEvents = nil
	}
	if c.target == nil {
		return
	}
	if c.target.Detach != nil {
		c.target.Detach()
	}
	if c.target.Fresh || terminate {
		_ = c.target.Close() // the session may have ended already
	}
	c.target = nil
}

// progressDelay is how long a request may take before its client gets progress events.
const progressDelay = 500 * time.Millisecond

// reportProgress sends progress events for a request that takes longer than progressDelay, until done is called. The
// client may cancel the request by its progress ID.
func (c *connection) reportProgress(r message) (done func()) {
	if !c.client.SupportsProgressReporting {
		return func() {}
	}
	id, started := strconv.Itoa(r.Seq), make(chan struct{})
	timer := time.AfterFunc(progressDelay, func() {
		defer close(started)
		// The error is not reported here, because sending the response also fails.
		_ = c.out.sendEvent("progressStart", godap.ProgressStartEventBody{ProgressId: id, Title: r.Command,
			RequestId: r.Seq, Cancellable: true})
	})
	return func() {
		if !timer.Stop() {
			<-started
			_ = c.out.sendEvent("progressEnd", godap.ProgressEndEventBody{ProgressId: id})
		}
	}
}
