package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
)

// DebugSession is a session of the debugger with its owner, its driver and its run.
type DebugSession struct {
	*debugger.Session
	ID        string
	SandboxID string // "" for the recording of a past run

	owner     string
	databases []string                // that the code may use; nil: all
	cancel    context.CancelCauseFunc // nil for a past run
	over      chan struct{}           // closed when the run has ended

	mu             sync.Mutex
	execution      string // "" until the execution is on record
	driver         string // name of the client whose commands are accepted
	driverIsEditor bool   // the driver is an editor that is still connected
	lastUsed       time.Time
	idleTimeout    time.Duration
	result         *sandbox.Execution // nil until the run has ended, and if it never began
}

// maxDebugSessions limits the sessions of one user: recordings of past runs take memory, too. Nothing lists the
// sessions, so those that run no program make room for others.
const maxDebugSessions = 20

// pastIdleTimeout is the time after which an unused session is removed if its run has ended.
const pastIdleTimeout = 10 * time.Minute

// errDebuggerIdle is the cause of a run's cancellation if nobody used its stopped debugger.
var errDebuggerIdle = errors.New("the debug session was idle for too long")

// DebugStart configures a new debug session.
type DebugStart struct {
	Request     sandbox.Request
	Breakpoints []debugger.LineBreakpoint
	Exceptions  []string // filters
	StopOnEntry bool
	Driver      string // name of the client whose commands are accepted
}

// OpenDebug runs code in a sandbox under an interactive debugger, and returns when the code has started. The sandbox
// is busy until the run ends.
func (s *Service) OpenDebug(ctx context.Context, caller sandbox.Key, sandboxID string, start DebugStart) (
	*DebugSession, []debugger.BreakpointView, error) {
	if err := access.MayDebug(caller); err != nil {
		return nil, nil, err
	}
	live, err := s.find(ctx, caller, sandboxID)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := debugger.NewRecording(start.Request.Code)
	if err != nil {
		return nil, nil, err
	}
	d := &DebugSession{
		Session: debugger.NewSession(recorded), ID: s.NewID(), SandboxID: sandboxID, owner: caller.User,
		databases: caller.Databases, over: make(chan struct{}), driver: start.Driver, lastUsed: s.Clock(),
		idleTimeout: time.Duration(live.sandbox.Policy.IdleTimeout) * time.Second,
	}
	d.Clock = s.Clock
	d.OnUse(func() { d.touch(s.Clock()) })
	d.SetAdmission(func(ctx context.Context) (context.Context, func(), error) {
		noCPU := func() time.Duration { return 0 } // that of the program counts as its run's
		return s.Access.Begin(ctx, caller, access.Commands, access.Meter{TakeCPU: noCPU})
	})
	d.OnEdit(func(e sandbox.Edit) { s.recordEdit(d.Execution(), e) })
	d.SetStopOnEntry(start.StopOnEntry)
	views, err := d.SetLineBreakpoints(ctx, start.Breakpoints)
	if err == nil {
		err = d.SetExceptionFilters(start.Exceptions)
	}
	if err != nil {
		return nil, nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "breakpoints", Detail: err.Error()}
	}
	if err := s.debugSessions.add(d, s.isLive); err != nil {
		return nil, nil, err
	}
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	d.cancel = cancel
	debug := &interactiveRun{session: d, recorded: recorded, began: make(chan error, 1)}
	go func() {
		execution, err := s.executeObserved(runCtx, caller, sandboxID, start.Request, observers{debug: debug})
		cancel(nil)
		debug.flush()
		d.end(execution, err)
		debug.began <- err // read only if the code never began
	}()
	if err := <-debug.began; err != nil {
		s.debugSessions.remove(d.ID)
		return nil, nil, err
	}
	return d, views, nil
}

// OpenPast opens the recording of an execution as a session.
func (s *Service) OpenPast(ctx context.Context, caller sandbox.Key, executionID, driver string) (*DebugSession, error) {
	r, err := s.Records.Recorded(ctx, caller, executionID)
	if err != nil {
		return nil, err
	}
	e, err := s.Records.Execution(ctx, caller, executionID)
	if err != nil {
		return nil, err
	}
	if e.CompletedAt == nil {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultBusy, Detail: "this run has not ended; use its own session", RetryAfter: 1,
		}
	}
	d := &DebugSession{
		Session: debugger.NewPastSession(r.Recording), ID: s.NewID(), execution: executionID, owner: caller.User,
		over: make(chan struct{}), driver: driver, lastUsed: s.Clock(), idleTimeout: pastIdleTimeout, result: &e,
	}
	d.OnUse(func() { d.touch(s.Clock()) })
	close(d.over)
	return d, s.debugSessions.add(d, s.isLive)
}

// DebugSession returns a session that the caller may see. It returns FaultForbidden for one of the same user whose code
// may use databases that the caller may not use: the caller could evaluate expressions in it.
func (s *Service) DebugSession(caller sandbox.Key, id string) (*DebugSession, error) {
	if err := access.MayDebug(caller); err != nil {
		return nil, err
	}
	d := s.debugSessions.find(id)
	if d == nil || !access.MaySee(caller, d.owner) {
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "there is no such debug session, or it is not yours")
	}
	if d.cancel != nil && !access.MaySeeDatabases(caller, d.databases) {
		return nil, sandbox.Errorf(sandbox.FaultForbidden, "the code of this debug session may use databases that "+
			"your key may not use: use the key that began it, or another one with these databases")
	}
	if err := s.Access.AuditView(context.Background(), caller, "debug-session/"+id, d.owner); err != nil {
		return nil, err
	}
	d.touch(s.Clock())
	return d, nil
}

// CloseDebug ends a session and its run.
func (s *Service) CloseDebug(caller sandbox.Key, id string) error {
	d, err := s.DebugSession(caller, id)
	if err != nil {
		return err
	}
	if d.cancel != nil {
		d.cancel(nil)
	}
	<-d.over
	s.debugSessions.remove(id)
	return nil
}

// Drive makes a client the driver, whose commands are accepted. It returns FaultBusy if another client is the driver
// and take is not set. The clients choose their names.
func (d *DebugSession) Drive(client string, take bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if take {
		d.driver, d.driverIsEditor = client, false
	}
	if d.driver != client {
		return &sandbox.Error{
			Fault: sandbox.FaultBusy,
			Detail: "another client drives this session; yours may watch, or take over " +
				"with the command drive, or in an editor by attaching with drive",
		}
	}
	return nil
}

// attachEditor makes an editor the driver. It fails if another editor is the driver and take is not set.
func (d *DebugSession) attachEditor(client string, take bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if take || !d.driverIsEditor {
		d.driver, d.driverIsEditor = client, true
	}
}

// detachEditor notes that an editor has disconnected.
func (d *DebugSession) detachEditor(client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.driverIsEditor = d.driverIsEditor && d.driver != client
}

// Execution returns the execution's ID, or "" if the execution is not on record yet.
func (d *DebugSession) Execution() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.execution
}

// Result returns the execution, or nil if the run has not ended.
func (d *DebugSession) Result() *sandbox.Execution {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.result
}

func (d *DebugSession) touch(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastUsed = now
}

// usage returns when the session was last used, and whether its run has ended.
func (d *DebugSession) usage() (lastUsed time.Time, isOver bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastUsed, d.result != nil
}

func (d *DebugSession) setExecution(executionID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.execution = executionID
}

// end tells the debugger's clients that the run has ended, and why. If err is not nil, the run has no execution: it
// never began, or its end is not on record.
func (d *DebugSession) end(e *sandbox.Execution, err error) {
	exit := debugger.Exited{Code: 1}
	if e == nil && err != nil {
		d.AddOutput(debugger.OutputStderr, err.Error()+"\n")
	}
	if e != nil {
		exit.Status, exit.Execution, exit.Code = string(e.Status), e.ID, e.ExitCode()
		text := e.EndText(debugger.SourceName)
		if line := 0; text != "" {
			if e.Exception != nil {
				line = e.Exception.Line
			}
			d.AddTraceback(text, line)
		} else if exit.Code != 0 {
			d.AddOutput(debugger.OutputConsole, fmt.Sprintf("the program ended with exit code %d\n", exit.Code))
		}
	}
	d.mu.Lock()
	d.result = e
	d.mu.Unlock()
	d.Ended(exit)
	close(d.over)
}

// recordEdit records a change that a person made, in case the service ends before the run does.
func (s *Service) recordEdit(executionID string, e sandbox.Edit) {
	err := s.History.Progress(context.Background(), sandbox.Progress{
		Execution: executionID, Number: int64(e.Number), Edit: &e,
	})
	if err != nil {
		s.Log.WithError(err).WithField("execution_id", executionID).
			Warn("could not record a change by the debugger; the execution's record will have it")
	}
}

// PersonOf returns the person who has a key, for the commands of a debug session.
func PersonOf(caller sandbox.Key) debugger.Person {
	return debugger.Person{User: caller.User, Key: caller.Name}
}

// debugSessions are the open debug sessions, by ID.
type debugSessions struct {
	mu  sync.Mutex
	all map[string]*DebugSession
}

// add adds a session. If its owner has maxDebugSessions, it replaces the one that was unused for longest among those
// that hold no running program: the run has ended, or isLive says that the sandbox has. It returns FaultLimit if there
// is none.
func (s *debugSessions) add(d *DebugSession, isLive func(sandboxID string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	var oldest *DebugSession
	var unusedSince time.Time
	for _, other := range s.all {
		if other.owner != d.owner {
			continue
		}
		n++
		lastUsed, isOver := other.usage()
		if (isOver || !isLive(other.SandboxID)) && (oldest == nil || lastUsed.Before(unusedSince)) {
			oldest, unusedSince = other, lastUsed
		}
	}
	if n >= maxDebugSessions {
		if oldest == nil {
			return &sandbox.Error{
				Fault: sandbox.FaultLimit, RetryAfter: 60,
				Detail: fmt.Sprintf("you have %d debug sessions whose programs run; "+
					"close one, or delete its sandbox", n),
			}
		}
		delete(s.all, oldest.ID)
	}
	if s.all == nil {
		s.all = map[string]*DebugSession{}
	}
	s.all[d.ID] = d
	return nil
}

func (s *debugSessions) find(id string) *DebugSession {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

func (s *debugSessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// forget removes the sessions over erased executions.
func (s *debugSessions) forget(isErased func(execution, user string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.all {
		select {
		case <-d.over:
			if d.result != nil && isErased(d.execution, d.result.User) {
				delete(s.all, id)
			}
		default: // it runs
		}
	}
}

// expire ends unused sessions: it cancels a stopped run, and removes a session whose run has ended. A program that is
// not stopped has its own time limit.
func (s *debugSessions) expire(now time.Time) {
	s.mu.Lock()
	all := maps.Clone(s.all)
	s.mu.Unlock() // Where may wait, and must not delay other sessions
	for id, d := range all {
		lastUsed, isOver := d.usage()
		unused := now.Sub(lastUsed)
		switch {
		case isOver && unused > pastIdleTimeout:
			s.remove(id)
		case !isOver && unused > d.idleTimeout && d.Position().State == debugger.StateStopped:
			d.cancel(errDebuggerIdle)
		}
	}
}

// interactiveRun is the run of a debug session. It is the run's supervisor.DebugDriver and
// supervisor.OutputListener.
type interactiveRun struct {
	*recording // set by begin
	session    *DebugSession
	recorded   *debugger.Recording
	began      chan error // gets nil when the code begins
	isStopped  atomic.Bool

	mu      sync.Mutex // stdout and stderr come from goroutines of their own
	streams map[string]*textStream
}

var (
	_ supervisor.DebugDriver    = (*interactiveRun)(nil)
	_ supervisor.OutputListener = (*interactiveRun)(nil)
)

// begin gives the run its execution.
func (i *interactiveRun) begin(r *recording, executionID string, maxOutput int) {
	i.recording, i.streams = r, newTextStreams(maxOutput)
	i.session.setExecution(executionID)
}

// Print sends printed text to the debugger's clients.
func (i *interactiveRun) Print(name string, text []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	stream := i.streams[name]
	if stream.isFull || len(text) == 0 {
		return
	}
	i.session.AddOutput(name, string(stream.take(text)))
	if stream.isFull {
		i.session.AddOutput(
			debugger.OutputConsole,
			"more than max_output_size was written to "+name+": the rest is not shown here\n",
		)
	}
}

// PrintLate prints the text of a thread of an earlier run like that of this run.
func (i *interactiveRun) PrintLate(_, name, text string) { i.Print(name, []byte(text)) }

// flush sends the bytes of an incomplete character at the end of the output.
func (i *interactiveRun) flush() {
	for name, stream := range i.streams {
		i.session.AddOutput(name, string(stream.partial))
	}
}

// Note does nothing: the execution has the notes at the end.
func (i *interactiveRun) Note(sandbox.Note) {}

// Output does nothing: the execution has the outputs at the end.
func (i *interactiveRun) Output(sandbox.Output) {}

// Begin returns the session's breakpoints.
func (i *interactiveRun) Begin(pause func()) json.RawMessage {
	breakpoints := i.session.Session.Begin(pause)
	i.began <- nil
	return breakpoints
}

// Records appends the recorder's output to the recording, and tells the session.
func (i *interactiveRun) Records(b []byte, heldSteps uint64) error {
	err := i.recording.Records(b, heldSteps)
	i.session.Recorded()
	return err
}

// Logged sends the message of a log point to the clients.
func (i *interactiveRun) Logged(body []byte) { i.session.Logged(body) }

// Stopped gives the session the stopped program.
func (i *interactiveRun) Stopped(ctx context.Context, location []byte, command supervisor.Command) (any, error) {
	i.isStopped.Store(true)
	defer i.isStopped.Store(false)
	return i.session.Stopped(ctx, location, command)
}
