package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"glasshouse/debugger"
	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
	"glasshouse/service/access"
	"glasshouse/service/live"
	"glasshouse/service/tracing"
)

// observers see a run while it goes on.
type observers struct {
	// steps is called with each line of a debugged run; the run waits for it. It returns false to stop the calls. If it
	// is nil, no lines are streamed.
	steps  func(sandbox.Step) bool
	debug  *debugging    // of a run with breakpoints; else nil
	events *EventLog     // of a streamed run; else nil
	replay *replayInputs // of a replay; else nil
	// recorded is called when the run has its slot and is about to be on record. If it returns false, the run does not
	// begin. nil: it begins.
	recorded func() bool
	// base is the state that the session has before the code runs; nil: the one that it has. Executions make it.
	base *sandbox.Base
	// files is the session whose files the session gets after that; nil: it has those that the executions wrote.
	files *supervisor.Session
}

// debugging is an interactive debugger with the recording that it reads.
type debugging struct {
	Debugger
	recorded *debugger.Recording
}

// Debugger stops a run, and shows what it prints. The run tells it when code begins, and when the recording has grown.
type Debugger interface {
	supervisor.DebugDriver
	supervisor.OutputListener
	Begun(executionID string, maxOutput int) // the execution is on record, and may print so many bytes to each stream
	IsStopped() bool
	StatementEnded(sandbox.Query) // the next statement on record
}

// ErrDebuggerIdle is the cause of a run's cancellation if nobody used its stopped debugger.
var ErrDebuggerIdle = errors.New("the debug session was idle for too long")

// Execute runs code in a sandbox and returns its execution, even if the code failed. If the code did not start, it
// returns FaultBusy, FaultGone, FaultTooLarge, FaultInvalid, FaultUnavailable, FaultLimit, FaultFull or an internal
// error. A request with an idempotency key runs once, even if ctx ends. A repeat returns the execution of the first
// one, or FaultInvalid if the first one had other code.
func (s *Service) Execute(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request,
) (*sandbox.Execution, error) {
	return s.once(ctx, caller, sandboxID, request, s.executorIn(caller, sandboxID, nil))
}

// ExecuteSteps is Execute, and calls steps with each line that ran, until steps returns false. The run waits for it. It
// returns FaultForbidden if the caller or the sandbox may not debug.
func (s *Service) ExecuteSteps(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request, steps func(sandbox.Step) bool,
) (*sandbox.Execution, error) {
	return s.executeObserved(ctx, caller, sandboxID, request, observers{steps: steps})
}

// ExecuteDebugged is Execute under a debugger, which reads recorded, the new recording of the code. Its errors are
// those of ExecuteSteps.
func (s *Service) ExecuteDebugged(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request, recorded *debugger.Recording,
	d Debugger,
) (*sandbox.Execution, error) {
	return s.executeObserved(ctx, caller, sandboxID, request, observers{debug: &debugging{d, recorded}})
}

func (s *Service) executeObserved(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request, o observers,
) (*sandbox.Execution, error) {
	if o.steps != nil {
		if err := access.MayDebug(caller); err != nil {
			return nil, err
		}
	}
	runCtx, lease, err := s.Live.Acquire(ctx, caller, sandboxID) // one run at a time
	if sandbox.FaultOf(err) == sandbox.FaultGone && s.InputLog.IsOn() {
		if err = s.Live.Reopen(ctx, caller, sandboxID); err == nil {
			runCtx, lease, err = s.Live.Acquire(ctx, caller, sandboxID)
		}
	}
	if err != nil {
		return nil, err
	}
	if lease.IsEmpty && o.base == nil {
		o.base = &sandbox.Base{SandboxID: sandboxID, Before: s.Clock()}
	}
	return s.executeIn(runCtx, caller, lease, request, o)
}

// executeIn runs code in a sandbox, and releases it.
func (s *Service) executeIn(
	ctx context.Context, caller sandbox.Key, lease *live.Lease, request sandbox.Request, o observers,
) (*sandbox.Execution, error) {
	defer lease.Release()
	r, err := s.newRun(caller, lease.Sandbox, request, o)
	if err != nil {
		return nil, err
	}
	r.lease = lease
	lease.SetExecution(r.opening.ID)
	e, err := r.execute(ctx)
	if r.isLost {
		err = errors.Join(err, s.Live.Abandon(lease.Sandbox.ID))
	}
	return e, err
}

// QuickExecute runs code in a new sandbox that is removed afterwards. config is the
// sandbox's config as JSON; nil means the default one. Its errors are those of Execute.
func (s *Service) QuickExecute(
	ctx context.Context, caller sandbox.Key, request sandbox.Request, config []byte,
) (*sandbox.Execution, error) {
	return s.once(ctx, caller, "", request, s.executorIn(caller, "", config))
}

// executorIn returns the executor of a sandbox or, if sandboxID is "", of new ones with config.
func (s *Service) executorIn(caller sandbox.Key, sandboxID string, config []byte) executor {
	return func(ctx context.Context, request sandbox.Request, o observers) (*sandbox.Execution, error) {
		if sandboxID == "" {
			return s.quickExecuteObserved(ctx, caller, request, config, o)
		}
		return s.executeObserved(ctx, caller, sandboxID, request, o)
	}
}

func (s *Service) quickExecuteObserved(
	ctx context.Context, caller sandbox.Key, request sandbox.Request, config []byte, o observers,
) (*sandbox.Execution, error) {
	lease, err := s.Live.AcquireNew(caller, config, request.Code)
	if err != nil {
		return nil, err
	}
	return s.executeIn(ctx, caller, lease, request, o)
}

// ExecuteEphemeral runs code in a sandbox with policy p that exists only for this run. It opens the session with open
// and closes it. Its errors are those of Execute.
func (s *Service) ExecuteEphemeral(
	ctx context.Context, caller sandbox.Key, p policy.Policy, request sandbox.Request, open live.OpenSession,
) (*sandbox.Execution, error) {
	lease, err := s.Live.AcquireEphemeral(caller, p, request.Code, open)
	if err != nil {
		return nil, err
	}
	return s.executeIn(ctx, caller, lease, request, observers{})
}

// Start starts code and returns its event log as soon as the execution is on record. The code runs as in Execute or, if
// sandboxID is "", as in QuickExecute with config. The run continues if nobody reads the log; Cancel ends it. If the
// code does not start, the errors are those of Execute.
func (s *Service) Start(
	ctx context.Context, caller sandbox.Key, sandboxID string, request sandbox.Request, config []byte,
) (*EventLog, error) {
	return s.startOnce(ctx, caller, sandboxID, request, s.executorIn(caller, sandboxID, config))
}

// start calls execute in a goroutine and returns its event log as soon as the execution is on record.
func (s *Service) start(
	ctx context.Context, execute func(context.Context, *EventLog) (*sandbox.Execution, error),
) (*EventLog, error) {
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	log := newEventLog()
	log.begun = make(chan struct{})
	go func() {
		defer cancel()
		execution, err := execute(runCtx, log)
		s.eventLogs.end(log, execution, err, s.Clock())
	}()
	select {
	case <-log.begun:
		return log, nil
	case <-log.over:
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
	select {
	case <-log.begun:
		return log, nil
	default:
		return nil, log.err
	}
}

// run turns one request into a durable execution. Only run makes the Execution: the opening before the code runs, and
// the whole one in finish.
type run struct {
	service    *Service
	caller     sandbox.Key
	request    sandbox.Request
	observers  observers
	sandbox    sandbox.Sandbox
	lease      *live.Lease // of sandbox; nil for a statement, which needs no session
	isStreamed bool        // the client reads the run's events

	opening   sandbox.Execution // the record from before the code runs; it never changes
	queueTime time.Duration     // wait for the slot
	slotAt    time.Time         // when the run got its slot
	trace     *tracing.Trace    // nil without a tracer
	timeline  tracing.Timeline
	handler   *guestHandler
	session   *supervisor.Session // nil before openSession
	recording *recording          // nil if the run is not recorded
	inputs    *loggedInputs       // nil if the run is not logged
	artifacts collectedArtifacts

	hasOtherFiles bool              // that did not come with the request
	restored      *sandbox.Restored // of a sandbox that was opened again
	isLost        bool              // it could not be restored

	cancel context.CancelCauseFunc // set by register
	ended  chan struct{}           // closed when the end is on record
}

// maxDepth is the maximum depth of JSON that is passed to Python, whose parser can read about 1000 levels.
const maxDepth = 500

// newRun checks a request and makes its run.
func (s *Service) newRun(caller sandbox.Key, sb sandbox.Sandbox, request sandbox.Request, o observers) (*run, error) {
	if err := sandbox.CheckCodeSize(request.Code, sb.Policy); err != nil {
		return nil, err
	}
	if err := request.CheckFiles(); err != nil {
		return nil, err
	}
	if err := request.CheckAnnotations(); err != nil {
		return nil, err
	}
	if sandbox.JSONDepth(request.Context) > maxDepth {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultInvalid, Field: "context",
			Detail: fmt.Sprintf("it nests deeper than %d lists and objects", maxDepth),
		}
	}
	if (o.steps != nil || o.debug != nil || request.Record) && !sb.Policy.EnableDebugging {
		return nil, &sandbox.Error{
			Fault: sandbox.FaultForbidden, Field: "enable_debugging",
			Detail: "this sandbox was created with debugging off",
		}
	}
	if len(request.Files) > 0 {
		if err := sb.CheckFileAccess(); err != nil {
			return nil, err
		}
	}
	if len(request.Context) == 0 {
		request.Context = sandbox.Object("{}")
	}
	now, id := s.Clock(), cmp.Or(request.ExecutionID, s.NewID())
	r := &run{service: s, caller: caller, request: request, observers: o, sandbox: sb, ended: make(chan struct{})}
	r.opening = sandbox.Execution{
		ID: id, SandboxID: sb.ID, User: caller.User, Kind: request.Kind, Status: sandbox.StatusRunning,
		Code: request.Code, Context: json.RawMessage(request.Context), Annotations: request.Annotations,
		Timestamp: now, CreatedAt: now,
	}
	if days := caller.Limits.HistoryDays; days > 0 {
		r.opening.ExpiresAt = new(now.AddDate(0, 0, days))
	}
	r.handler = &guestHandler{service: s, caller: caller, sandbox: sb, execution: &r.opening, events: o.events}
	return r, nil
}

// execute takes a run from its limits to its durable end.
func (r *run) execute(ctx context.Context) (*sandbox.Execution, error) {
	endEvents := r.openEvents()
	ctx, end, err := r.begin(ctx)
	if err != nil {
		endEvents(nil, err)
		return nil, err
	}
	defer end()
	var outcome sandbox.Outcome
	if err = r.openSession(ctx); err == nil {
		outcome, err = r.runCode(ctx)
	}
	if err == nil {
		r.collectArtifacts(ctx)
	}
	keepLarge := r.keepInputs(outcome)
	execution, err := r.finish(ctx, outcome, err) // durable before the answer
	endEvents(execution, err)
	keepLarge()
	return execution, err
}

// openEvents gives a run that nobody streams an event log, so that others can follow it: a person in the pages sees
// what an agent's code prints. Its output costs nothing in addition, so it may be in another order than that of the
// program. The caller calls end. The log is forgotten then, unless somebody follows it.
func (r *run) openEvents() (end func(*sandbox.Execution, error)) {
	if r.isStreamed = r.observers.events != nil; r.isStreamed || r.observers.debug != nil {
		return func(*sandbox.Execution, error) {}
	}
	log := newEventLog()
	r.observers.events, r.handler.events = log, log
	return func(e *sandbox.Execution, err error) {
		logs := &r.service.eventLogs
		if logs.forgetUnfollowed(r.opening.ID) {
			return
		}
		logs.end(log, e, err, r.service.Clock())
	}
}

// begin takes a run through its limits and puts it on record. The caller calls end when the run is over.
func (r *run) begin(ctx context.Context) (_ context.Context, end func(), err error) {
	var m access.Meter
	if r.lease != nil { // a statement uses the CPU time of PostgreSQL, which does not count
		m = access.Meter{TakeCPU: r.lease.TakeCPU, IsPaused: r.isPaused}
	}
	ctx, endUsage, err := r.service.Access.Begin(ctx, r.caller, access.Executions, m) // the key's limits
	if err != nil {
		return nil, nil, err
	}
	ctx, unregister, err := r.register(ctx) // Cancel and Drain can reach it
	if err != nil {
		endUsage()
		return nil, nil, err
	}
	r.trace = r.service.Tracer.Begin(ctx, &r.opening)
	r.opening.TraceID = r.trace.ID()
	queuedAt := time.Now()
	releaseSlot, err := r.acquireSlot(ctx)
	r.slotAt = time.Now()
	r.queueTime = r.slotAt.Sub(queuedAt)
	r.timeline.Queued, r.timeline.Slot = queuedAt, r.slotAt
	if err != nil {
		releaseSlot = func() {}
	} else if r.observers.recorded != nil && !r.observers.recorded() {
		err = errNotBegun()
	} else {
		if r.observers.events != nil { // whoever finds the record may follow the run
			r.service.eventLogs.keep(&r.opening, r.sandbox.Owner, r.observers.events, r.isStreamed)
		}
		err = r.service.History.Begin(context.WithoutCancel(ctx), &r.opening) // before the code runs
	}
	end = func() {
		releaseSlot()
		unregister()
		endUsage()
	}
	if err != nil {
		r.trace.Abort(err, r.timeline)
		end()
		return nil, nil, err
	}
	r.timeline.Recorded = time.Now()
	r.service.feed.add(FeedBegan, r.opening.Summary())
	return ctx, end, nil
}

// isPaused reports whether a debugger has stopped the program.
func (r *run) isPaused() bool { return r.observers.debug != nil && r.observers.debug.IsStopped() }

// register makes the run known to Cancel and Drain.
func (r *run) register(ctx context.Context) (_ context.Context, unregister func(), err error) {
	s := r.service
	done, err := s.beginWork()
	if err != nil {
		return nil, nil, err
	}
	ctx, r.cancel = context.WithCancelCause(limit.WithUser(ctx, r.caller.User))
	s.mu.Lock()
	s.running[r.opening.ID] = r
	s.mu.Unlock()
	return ctx, func() {
		r.cancel(nil)
		s.mu.Lock()
		delete(s.running, r.opening.ID)
		s.mu.Unlock()
		close(r.ended)
		done()
	}, nil
}

// executionWork is the CPU time that the service, PostgreSQL and the kernel take for a short execution.
const executionWork = time.Millisecond

func (r *run) acquireSlot(ctx context.Context) (release func(), err error) {
	work := executionWork
	if r.sandbox.Ephemeral && r.lease != nil {
		work += live.Work
	}
	r.service.Share.Wait(ctx, r.caller.User, work)
	release, err = access.AcquireSlot(ctx, r.service.slots, r.caller.User)
	switch {
	case err == nil:
		limit.BodyDone(ctx) // the slots bound the contexts of runs
		return release, nil
	case sandbox.FaultOf(err) == sandbox.FaultFull:
		return nil, err
	case errors.Is(context.Cause(ctx), errShutdown):
		return nil, access.ErrStopping()
	case access.LimitReached(ctx) != nil:
		return nil, access.LimitReached(ctx)
	}
	return nil, errNotBegun()
}

func errNotBegun() error {
	return sandbox.Errorf(sandbox.FaultGone,
		"the execution was cancelled, or its sandbox was deleted, before it began; none of its code ran")
}

// openSession opens the session and writes the request's files to its /data.
func (r *run) openSession(ctx context.Context) (err error) {
	if r.session, err = r.lease.Open(ctx); err != nil {
		return err
	}
	if r.observers.replay != nil {
		err = r.observers.replay.restore(ctx, r)
	}
	if r.observers.base != nil {
		err = r.restore(ctx, *r.observers.base)
	}
	if err != nil {
		return err
	}
	for _, f := range r.request.Files {
		if _, err := r.session.Uploads().Put(f.Path, bytes.NewReader(f.Body())); err != nil {
			return err
		}
	}
	r.hasOtherFiles = r.session.HasForeignFiles(len(r.request.Files))
	return nil
}

// isRecorded reports whether the run is recorded. A debug session has its own recording.
func (r *run) isRecorded() bool {
	p := r.sandbox.Policy
	return r.observers.steps != nil || r.request.Record || p.Record == policy.RecordAlways && p.EnableDebugging
}

// runCode runs the code. It writes the recording of a recorded run while the code runs, so that the recording survives
// the death of the guest and of the service.
func (r *run) runCode(ctx context.Context) (sandbox.Outcome, error) {
	callbacks := supervisor.Callbacks{Recorder: r.handler}
	if !r.request.WithoutDatabase {
		callbacks.Requests = r.handler
	}
	if r.observers.events != nil {
		r.observers.events.begin(&r.opening, r.sandbox.Policy.MaxOutputSize)
		callbacks.Listener, callbacks.Ordered = r.observers.events, r.isStreamed
	}
	switch {
	case r.observers.debug != nil:
		r.recording = r.service.startRecording(&r.opening, r.observers.debug.recorded, nil)
		r.recording.DebugDriver, r.handler.debug = r.observers.debug, r.observers.debug
		r.observers.debug.Begun(r.opening.ID, r.sandbox.Policy.MaxOutputSize)
		callbacks.Listener, callbacks.Ordered = r.observers.debug, true
	case r.isRecorded():
		recorded, err := debugger.NewRecording(r.request.Code)
		if err != nil {
			return sandbox.Outcome{}, err
		}
		r.recording = r.service.startRecording(&r.opening, recorded, r.observers.steps)
	}
	if r.recording != nil {
		callbacks.Debugger, r.handler.recorded = r.recording, r.recording.recorded
	}
	if r.observers.replay != nil {
		r.observers.replay.handler, r.handler.isReplay = r.handler, true
		callbacks.Inputs = r.observers.replay
	} else if r.inputs = r.newInputs(); r.inputs != nil {
		callbacks.Inputs, r.handler.inputs = r.inputs, r.inputs.Recorder
	}
	request := r.request
	request.Context = withTraceparent(request.Context, r.trace.Traceparent())
	outcome, err := r.session.Run(ctx, r.opening.ID, request, callbacks)
	if r.recording != nil {
		r.recording.end()
	}
	return outcome, err
}

// withTraceparent returns a context with the variable traceparent, unless it is "" or the caller has set the variable.
func withTraceparent(variables sandbox.Object, traceparent string) sandbox.Object {
	if traceparent == "" {
		return variables
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(variables, &given); err != nil || given["traceparent"] != nil {
		return variables
	}
	rest, _ := bytes.CutPrefix(bytes.TrimLeft(variables, " \t\r\n"), []byte("{"))
	comma := ","
	if len(given) == 0 {
		comma = ""
	}
	return fmt.Appendf(nil, `{"traceparent":%q%s%s`, traceparent, comma, rest)
}

// finish makes the execution and writes it to history, even if its caller has left. runErr is an internal error, with
// which the execution is recorded as failed.
func (r *run) finish(ctx context.Context, outcome sandbox.Outcome, runErr error) (*sandbox.Execution, error) {
	r.service.Access.CountCPU(r.caller, time.Duration(outcome.Usage.CPUMS*float64(time.Millisecond)))
	switch {
	case runErr != nil && ctx.Err() != nil: // the run was cancelled before its code began
		outcome.Status, outcome.Error, runErr = sandbox.StatusCancelled, new("the run was cancelled"), nil
	case runErr != nil:
		outcome.Status, outcome.Error = sandbox.StatusFailed, new("the service could not run it: "+runErr.Error())
	}
	if outcome.Status == sandbox.StatusCancelled {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, errShutdown):
			outcome.Usage.EndedBy = "shutdown"
		case errors.Is(cause, ErrDebuggerIdle):
			outcome.Usage.EndedBy = "idle_timeout"
		case access.LimitReached(ctx) != nil:
			outcome.Status, outcome.Usage.EndedBy = sandbox.StatusKilled, access.EndedByCPUSeconds
			outcome.Error = new("the run was ended: " + access.LimitReached(ctx).Error())
		}
	}
	execution := r.execution(outcome)
	if r.lease != nil {
		r.lease.MarkIdle()
	}
	record := execution
	if !r.sandbox.Policy.SaveIntermediateResults {
		copied := *execution
		copied.DebugInfo = sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}}
		record = &copied
	}
	r.timeline.Start, r.timeline.Began, r.timeline.Compile = outcome.Start, outcome.Began, outcome.CompileTime
	if !outcome.Began.IsZero() {
		r.timeline.Ended = outcome.Began.Add(outcome.Duration)
	}
	r.timeline.Storing = time.Now()
	err := r.service.History.Finish(context.Background(), record) // it has a timeout of its own
	r.trace.End(execution, r.timeline)
	r.service.feed.add(FeedEnded, execution.Summary())
	r.service.Metrics.ExecutionEnded(execution)
	if err != nil {
		r.service.logOf(execution).WithError(err).
			Error("could not record the end of an execution")
	}
	return execution, errors.Join(runErr, err)
}

// milliseconds returns a duration in milliseconds with three decimals.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// execution makes the whole execution from its opening, the supervisor's outcome, the handler's records, the recording
// and the artifacts.
func (r *run) execution(outcome sandbox.Outcome) *sandbox.Execution {
	e := r.opening
	e.Status, e.Result, e.Stdout, e.Stderr = outcome.Status, outcome.Result, outcome.Stdout, outcome.Stderr
	e.Error, e.Exception = outcome.Error, r.handler.explain(outcome.Exception)
	e.ExecutionTime, e.MemoryUsage, e.Usage = outcome.Duration.Seconds(), outcome.Usage.PeakMemoryMB, outcome.Usage
	e.Usage.QueueMS = milliseconds(r.queueTime)
	if !outcome.Began.IsZero() {
		e.Usage.StartMS = milliseconds(outcome.Began.Sub(r.slotAt))
	}
	e.DebugInfo, e.Outputs, e.Connections = outcome.DebugInfo, outcome.Outputs, outcome.Connections
	e.Isolation, e.Environment, e.SessionReset = outcome.Isolation, outcome.Environment, outcome.SessionReset
	e.Queries, e.InputLog, e.Restored = r.handler.queries, r.inputLog(&outcome), r.restored
	e.NoteStatements()
	e.Artifacts = append(r.handler.artifacts, r.artifacts.list...)
	e.ArtifactMap = r.artifacts.hostPaths

	e.Truncated = map[string]int64{}
	maps.Copy(e.Truncated, outcome.Truncated)
	missing := func(name string, n int64) {
		if n > 0 {
			e.Truncated[name] += n
		}
	}
	missing("queries", r.handler.droppedQueries)
	missing("artifacts", r.artifacts.missed)
	missing("artifact_map", r.artifacts.unlinked)
	if r.recording != nil {
		missing("recording", r.recording.missing)
		e.RecordedSteps = r.recording.stored
		e.Edits = r.recording.recorded.Edits()
	}
	e.CompletedAt = new(r.service.Clock())
	e.FillEmpty()
	if r.observers.replay != nil {
		r.observers.replay.keepFacts(&outcome)
		e.Replay = r.observers.replay.report(&e)
	}
	return &e
}
