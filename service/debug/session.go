package debug

import (
	"context"
	"fmt"
	"sync"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// Session is a session of the debugger with its owner, its driver and its run.
type Session struct {
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

// Start configures a new session.
type Start struct {
	Request     sandbox.Request
	Breakpoints []debugger.LineBreakpoint
	Exceptions  []string // filters
	StopOnEntry bool
	Driver      string // name of the client whose commands are accepted
}

// Open runs code in a sandbox under an interactive debugger, and returns when the code has started. The sandbox
// is busy until the run ends.
func (s *Service) Open(ctx context.Context, caller sandbox.Key, sandboxID string, start Start) (
	*Session, []debugger.BreakpointView, error) {
	if err := access.MayDebug(caller); err != nil {
		return nil, nil, err
	}
	sb, err := s.Live.Sandbox(ctx, caller, sandboxID)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := debugger.NewRecording(start.Request.Code)
	if err != nil {
		return nil, nil, err
	}
	d := &Session{
		Session: debugger.NewSession(recorded), ID: s.NewID(), SandboxID: sandboxID, owner: caller.User,
		databases: caller.Databases, over: make(chan struct{}), driver: start.Driver, lastUsed: s.Clock(),
		idleTimeout: time.Duration(sb.Policy.IdleTimeout) * time.Second,
	}
	d.Clock = s.Clock
	d.OnUse(func() { d.touch(s.Clock()) })
	d.SetAdmission(func(ctx context.Context) (context.Context, func(), error) {
		noCPU := func() time.Duration { return 0 } // that of the program counts as its run's
		return s.Access.Begin(ctx, caller, access.Commands, access.Meter{TakeCPU: noCPU})
	})
	d.OnEdit(func(e sandbox.Edit) { s.Runs.RecordEdit(d.Execution(), e) })
	d.SetStopOnEntry(start.StopOnEntry)
	views, err := d.SetLineBreakpoints(ctx, start.Breakpoints)
	if err == nil {
		err = d.SetExceptionFilters(start.Exceptions)
	}
	if err != nil {
		return nil, nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "breakpoints", Detail: err.Error()}
	}
	if err := s.sessions.add(d, s.isLive); err != nil {
		return nil, nil, err
	}
	runCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	d.cancel = cancel
	run := &interactiveRun{session: d, began: make(chan error, 1)}
	go func() {
		execution, err := s.Runs.ExecuteDebugged(runCtx, caller, sandboxID, start.Request, recorded, run)
		cancel(nil)
		run.flush()
		d.end(execution, err)
		run.began <- err // read only if the code never began
	}()
	if err := <-run.began; err != nil {
		s.sessions.remove(d.ID)
		return nil, nil, err
	}
	return d, views, nil
}

// OpenPast opens the recording of an execution as a session.
func (s *Service) OpenPast(ctx context.Context, caller sandbox.Key, executionID, driver string) (*Session, error) {
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
	d := &Session{
		Session: debugger.NewPastSession(r.Recording), ID: s.NewID(), execution: executionID, owner: caller.User,
		over: make(chan struct{}), driver: driver, lastUsed: s.Clock(), idleTimeout: pastIdleTimeout, result: &e,
	}
	d.OnUse(func() { d.touch(s.Clock()) })
	d.SetStatements(e.Queries)
	close(d.over)
	return d, s.sessions.add(d, s.isLive)
}

// Session returns a session that the caller may see. It returns FaultForbidden for one of the same user whose code
// may use databases that the caller may not use: the caller could evaluate expressions in it.
func (s *Service) Session(caller sandbox.Key, id string) (*Session, error) {
	if err := access.MayDebug(caller); err != nil {
		return nil, err
	}
	d := s.sessions.find(id)
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

// CloseSession ends a session and its run.
func (s *Service) CloseSession(caller sandbox.Key, id string) error {
	d, err := s.Session(caller, id)
	if err != nil {
		return err
	}
	if d.cancel != nil {
		d.cancel(nil)
	}
	<-d.over
	s.sessions.remove(id)
	return nil
}

// Drive makes a client the driver, whose commands are accepted. It returns FaultBusy if another client is the driver
// and take is not set. The clients choose their names.
func (d *Session) Drive(client string, take bool) error {
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
func (d *Session) attachEditor(client string, take bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if take || !d.driverIsEditor {
		d.driver, d.driverIsEditor = client, true
	}
}

// detachEditor notes that an editor has disconnected.
func (d *Session) detachEditor(client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.driverIsEditor = d.driverIsEditor && d.driver != client
}

// Execution returns the execution's ID, or "" if the execution is not on record yet.
func (d *Session) Execution() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.execution
}

// Result returns the execution, or nil if the run has not ended.
func (d *Session) Result() *sandbox.Execution {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.result
}

func (d *Session) touch(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastUsed = now
}

// usage returns when the session was last used, and whether its run has ended.
func (d *Session) usage() (lastUsed time.Time, isOver bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastUsed, d.result != nil
}

func (d *Session) setExecution(executionID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.execution = executionID
}

// end tells the debugger's clients that the run has ended, and why. If err is not nil, the run has no execution: it
// never began, or its end is not on record.
func (d *Session) end(e *sandbox.Execution, err error) {
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

// isLive reports whether a sandbox is live.
func (s *Service) isLive(sandboxID string) bool {
	_, isLive := s.Live.CurrentSandbox(sandboxID)
	return isLive
}

// PersonOf returns the person who has a key, for the commands of a debug session.
func PersonOf(caller sandbox.Key) debugger.Person {
	return debugger.Person{User: caller.User, Key: caller.Name}
}
