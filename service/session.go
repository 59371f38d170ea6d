package service

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// DebugSession is a debugger's session with what the service knows of it.
type DebugSession struct {
	*debugger.Session
	ID        string
	SandboxID string // "" for the recording of a past run

	owner  string
	cancel context.CancelCauseFunc // nil for a past run
	over   chan struct{}           // closed when the run has ended

	mu        sync.Mutex
	execution string
	driver    string
	editor    bool // the driver is an editor that is there
	used      time.Time
	idle      time.Duration
	result    *sandbox.Execution
}

// maxSessions bounds the sessions of one user; past runs cost memory, too.
const maxSessions = 20

// pastIdle is how long the session of a past run, or of one that is over, is kept unused.
const pastIdle = 10 * time.Minute

var errIdle = errors.New("nobody used the debugger")

// DebugStart is what a debug session begins with.
type DebugStart struct {
	Job         Job
	Breakpoints []debugger.SourceBreakpoint
	Exceptions  []string
	StopOnEntry bool
	Driver      string
}

// OpenDebug runs code in a sandbox under an interactive debugger, and returns when it
// runs. The sandbox is busy until the run is over.
func (s *Service) OpenDebug(ctx context.Context, caller sandbox.Key, id string, start DebugStart) (*DebugSession, []debugger.BreakpointView, error) {
	if err := debugs(caller); err != nil {
		return nil, nil, err
	}
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return nil, nil, err
	}
	journal, err := debugger.NewJournal()
	if err != nil {
		return nil, nil, err
	}
	d := &DebugSession{Session: debugger.NewSession(journal, debugger.Source(start.Job.Code), true), ID: s.NewID(), SandboxID: id, owner: caller.User,
		over: make(chan struct{}), driver: start.Driver, used: s.Clock(), idle: time.Duration(l.box.Policy.IdleTimeout) * time.Second}
	d.OnUse(func() { d.use(s.Clock()) })
	d.SetEntry(start.StopOnEntry)
	views, err := d.SetLines(start.Breakpoints)
	if err == nil {
		err = d.SetExceptions(start.Exceptions)
	}
	if err != nil {
		return nil, nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "breakpoints", Detail: err.Error()}
	}
	if err := s.sessions.add(d); err != nil {
		return nil, nil, err
	}
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	d.cancel = cancel
	began := make(chan error, 1)
	job := start.Job
	watcher := &interactive{session: d, journal: journal, began: began}
	job.debug = watcher
	go func() {
		e, err := s.Execute(running, caller, id, job)
		cancel(nil)
		watcher.flush()
		d.end(e)
		began <- err // where it never began
	}()
	if err := <-began; err != nil {
		s.sessions.remove(d.ID)
		return nil, nil, err
	}
	return d, views, nil
}

// OpenPast opens the recording of an execution as a session.
func (s *Service) OpenPast(ctx context.Context, caller sandbox.Key, execution, driver string) (*DebugSession, error) {
	r, err := s.Recorded(ctx, caller, execution)
	if err != nil {
		return nil, err
	}
	e, err := s.Execution(ctx, caller, execution)
	if err != nil {
		return nil, err
	}
	if e.CompletedAt == nil {
		return nil, &sandbox.Error{Fault: sandbox.FaultBusy, Detail: "this run goes on; use its own session", RetryAfter: 1}
	}
	d := &DebugSession{Session: debugger.NewSession(r.Journal, r.Source, false), ID: s.NewID(), execution: execution, owner: caller.User,
		over: make(chan struct{}), driver: driver, used: s.Clock(), idle: pastIdle, result: &e}
	d.OnUse(func() { d.use(s.Clock()) })
	close(d.over)
	return d, s.sessions.add(d)
}

// DebugSession returns a session that who may see.
func (s *Service) DebugSession(caller sandbox.Key, id string) (*DebugSession, error) {
	if err := debugs(caller); err != nil {
		return nil, err
	}
	s.sessions.mu.Lock()
	d := s.sessions.all[id]
	s.sessions.mu.Unlock()
	if d == nil || !may(caller, d.owner) {
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "there is no such debug session, or it is not yours")
	}
	d.use(s.Clock())
	return d, nil
}

// CloseDebug ends a session, and its run with it.
func (s *Service) CloseDebug(caller sandbox.Key, id string) error {
	d, err := s.DebugSession(caller, id)
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

// Drive makes a client the one whose commands are obeyed; with take, instead of
// another. The name is the client's own.
func (d *DebugSession) Drive(client string, take bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if take {
		d.driver, d.editor = client, false
	}
	if d.driver != client {
		return &sandbox.Error{Fault: sandbox.FaultBusy, Detail: "another client drives this session; yours may look, or take over: with the command drive, or in an editor by attaching with drive"}
	}
	return nil
}

// edit makes an editor the driver, unless another editor is that; with take, even then.
func (d *DebugSession) edit(client string, take bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if take || !d.editor {
		d.driver, d.editor = client, true
	}
}

// leave says that an editor is gone.
func (d *DebugSession) leave(client string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.editor = d.editor && d.driver != client
}

// Execution is the execution's id; "" before the run has one.
func (d *DebugSession) Execution() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.execution
}

// Result is the execution, once the run is over.
func (d *DebugSession) Result() *sandbox.Execution {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.result
}

func (d *DebugSession) use(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = now
}

// began says which execution it is.
func (d *DebugSession) began(execution string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.execution = execution
}

func (d *DebugSession) end(e *sandbox.Execution) {
	body := map[string]any{"exitCode": 1}
	if e != nil {
		body["status"], body["execution_id"] = e.Status, e.ID
		if e.Status == sandbox.StatusCompleted {
			body["exitCode"] = 0
		}
	}
	d.mu.Lock()
	d.result = e
	d.mu.Unlock()
	d.Ended(body)
	close(d.over)
}

// sessions are the debug sessions that are open.
type sessions struct {
	mu  sync.Mutex
	all map[string]*DebugSession
}

func (s *sessions) add(d *DebugSession) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, other := range s.all {
		if other.owner == d.owner {
			n++
		}
	}
	if n >= maxSessions {
		return &sandbox.Error{Fault: sandbox.FaultLimit, Detail: "you have 20 debug sessions open; close one", RetryAfter: 60}
	}
	if s.all == nil {
		s.all = map[string]*DebugSession{}
	}
	s.all[d.ID] = d
	return nil
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// expire ends the sessions that nobody has used: a run that stands is cancelled, one that
// is over is forgotten. A program that runs is bounded by its own limit.
func (s *sessions) expire(now time.Time) {
	s.mu.Lock()
	all := maps.Clone(s.all)
	s.mu.Unlock() // to ask a session may take a while, in which the others go on
	for id, d := range all {
		d.mu.Lock()
		unused, over := now.Sub(d.used), d.result != nil
		d.mu.Unlock()
		switch {
		case over && unused > pastIdle:
			s.remove(id)
		case !over && unused > d.idle && d.Where().State == debugger.StateStopped:
			d.cancel(errIdle)
		}
	}
}

// interactive is the watcher of a debug session's run: the recording, and where it is
// to stop.
type interactive struct {
	*recording
	session *DebugSession
	journal *debugger.Journal
	began   chan error

	mu      sync.Mutex // stdout and stderr come from goroutines of their own
	streams map[string]*stream
}

var _ supervisor.OutputListener = (*interactive)(nil)

// room says how much of each stream is told.
func (i *interactive) room(bytes int) {
	i.streams = map[string]*stream{"stdout": {room: bytes}, "stderr": {room: bytes}}
}

// Print is host.Listener's.
func (i *interactive) Print(name string, text []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.streams[name]
	if s.over || len(text) == 0 {
		return
	}
	i.session.Printed(name, string(s.take(text)))
	if s.over {
		i.session.Printed("console", "more than max_output_size was written to "+name+": the rest is not shown here\n")
	}
}

// flush tells what is left of a character that never became whole.
func (i *interactive) flush() {
	for name, s := range i.streams {
		i.session.Printed(name, string(s.partial))
	}
}

// Note is host.Listener's; the execution has it at the end.
func (i *interactive) Note(sandbox.Note) {}

// Output is host.Listener's; the execution has it at the end.
func (i *interactive) Output(sandbox.Output) {}

func (i *interactive) Begin(attention func()) json.RawMessage {
	stops := i.session.Session.Begin(attention)
	i.began <- nil
	return stops
}

func (i *interactive) Logged(body []byte) { i.session.Logged(body) }

func (i *interactive) Stopped(ctx context.Context, where []byte, ask supervisor.Command) (any, error) {
	return i.session.Stopped(ctx, where, ask)
}
