package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"glasshouse/policy"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// Job is a piece of code to run.
type Job struct {
	Code    string
	Context json.RawMessage // a JSON object, or empty
	Kind    sandbox.Kind
	Files   []JobFile // uploads that come with it
	// Steps is told each line of a debugged run, and may hold it up; false: no more are
	// wanted. Nil: the run is not debugged.
	Steps func(sandbox.Step) bool

	debug *interactive // of a debug session
	feed  *EventLog    // nil: nobody follows it
	over  func()       // the code has ended; its durable end is next
}

// JobFile is an upload that comes with a job.
type JobFile struct {
	Path string // below /data
	Body []byte
}

// bring puts the job's files in their places.
func (j Job) bring(session Session, allowed bool) error {
	if len(j.Files) > 0 && !allowed {
		return &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "enable_file_access", Detail: "this sandbox was created with file access off"}
	}
	for _, f := range j.Files {
		if _, err := session.Uploads().Put(f.Path, bytes.NewReader(f.Body)); err != nil {
			return err
		}
	}
	return nil
}

// Execute runs a job in a sandbox: THE main path. The answer is an execution,
// however the code ended; the error is FaultBusy, FaultGone, FaultTooLarge,
// FaultUnavailable, FaultFull, or the service's own.
func (s *Service) Execute(ctx context.Context, caller sandbox.Key, id string, job Job) (*sandbox.Execution, error) {
	if job.Steps != nil {
		if err := debugs(caller); err != nil {
			return nil, err
		}
	}
	l, err := s.find(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if (job.Steps != nil || job.debug != nil) && !l.box.Policy.EnableDebugging {
		return nil, &sandbox.Error{Fault: sandbox.FaultForbidden, Field: "enable_debugging", Detail: "this sandbox was created with debugging off"}
	}
	if !s.take(l) {
		return nil, &sandbox.Error{Fault: sandbox.FaultBusy, Detail: "this sandbox is running something else; wait for it, or cancel it", RetryAfter: 1}
	}
	// Whoever reads in history that a run has ended may begin the next one: that waits
	// for its turn, and is not told that the sandbox is busy.
	job.over = sync.OnceFunc(func() { s.giveBack(l) })
	defer job.over()
	l.turn.Lock()
	defer l.turn.Unlock()
	e, err := s.newExecution(l.box, caller, job)
	if err != nil {
		return nil, err
	}
	if err := job.bring(l.session, l.box.Policy.EnableFileAccess); err != nil {
		return nil, err
	}
	s.mu.Lock()
	l.last, l.used = e.ID, s.Clock()
	s.mu.Unlock()
	err = s.run(ctx, l.box, func(context.Context) (Session, error) { return l.session, nil }, e, job)
	s.mu.Lock()
	l.used = s.Clock()
	s.mu.Unlock()
	return e, err
}

// QuickExecute runs a job in a fresh sandbox that is gone afterwards.
func (s *Service) QuickExecute(ctx context.Context, caller sandbox.Key, job Job, config []byte) (*sandbox.Execution, error) {
	p, err := policy.Accept(config, s.Default, s.Ceiling, s.environments(), caller.Role == sandbox.RoleAdmin)
	if err != nil {
		return nil, invalid(err)
	}
	now := s.Clock()
	box := sandbox.Sandbox{ID: s.NewID(), Owner: caller.User, Policy: p, Ephemeral: true, State: sandbox.StateActive, CreatedAt: now, LastUsed: now}
	e, err := s.newExecution(box, caller, job)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return nil, stopping()
	}
	s.work.Add(1) // until it is closed; Drain waits for that, too
	s.mu.Unlock()
	var opened Session
	err = s.run(ctx, box, func(ctx context.Context) (Session, error) {
		session, err := s.Supervisor.Open(ctx, box, job.Code)
		if err == nil {
			opened = session
			err = job.bring(session, box.Policy.EnableFileAccess)
		}
		return session, err
	}, e, job)
	go func() { // the answer need not wait until the kernel has torn it down
		defer s.work.Done()
		if opened == nil {
			return
		}
		if err := opened.Close(); err != nil {
			s.Log.WithError(err).Warn("close an ephemeral sandbox")
		}
	}()
	return e, err
}

func (s *Service) newExecution(box sandbox.Sandbox, caller sandbox.Key, job Job) (*sandbox.Execution, error) {
	if n := len(job.Code); n > box.Policy.MaxCodeSize {
		return nil, &sandbox.Error{Fault: sandbox.FaultTooLarge, Field: "code", Detail: fmt.Sprintf("the code has %d bytes, and max_code_size is %d", n, box.Policy.MaxCodeSize)}
	}
	if sandbox.JSONDepth(job.Context) > maxDepth {
		return nil, &sandbox.Error{Fault: sandbox.FaultInvalid, Field: "context", Detail: fmt.Sprintf("it nests deeper than %d lists and objects", maxDepth)}
	}
	if len(job.Context) == 0 {
		job.Context = json.RawMessage("{}")
	}
	now := s.Clock()
	return &sandbox.Execution{
		ID: s.NewID(), SandboxID: box.ID, User: caller.User, Caller: caller, Kind: job.Kind, Status: sandbox.StatusRunning, Code: job.Code, Context: job.Context, Result: json.RawMessage("null"),
		DebugInfo: sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}}, Outputs: []sandbox.Output{}, Artifacts: []sandbox.Artifact{},
		ArtifactMap: map[string]string{}, Queries: []sandbox.Query{}, Connections: []sandbox.Connection{}, Truncated: map[string]int64{}, Timestamp: now, CreatedAt: now,
	}, nil
}

// slotWait is how long an execution waits for one of Config.Parallel slots.
const slotWait = 10 * time.Second

// maxDepth is what Python's JSON reader takes with room to spare.
const maxDepth = 500

// run takes an execution from its row to its durable end.
func (s *Service) run(ctx context.Context, box sandbox.Sandbox, open func(context.Context) (Session, error), e *sandbox.Execution, job Job) error {
	endUsage, err := s.beginUsage(ctx, e.Caller)
	if err != nil {
		return err
	}
	defer func() { endUsage(time.Duration(e.Usage.CPUMS * float64(time.Millisecond))) }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return stopping()
	}
	over := make(chan struct{})
	s.running[e.ID] = run{owner: box.Owner, cancel: cancel, over: over}
	s.work.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.running, e.ID)
		s.mu.Unlock()
		close(over)
		s.work.Done()
	}()
	release, err := s.slots.Acquire(ctx, slotWait)
	switch {
	case errors.Is(err, limit.ErrFull):
		return &sandbox.Error{Fault: sandbox.FaultFull, Detail: "too many executions are running; try again", RetryAfter: 2}
	case errors.Is(context.Cause(ctx), errShutdown) && err != nil:
		return stopping()
	case err != nil:
		return sandbox.Errorf(sandbox.FaultGone, "the execution was cancelled, or its sandbox was deleted, before it began; none of its code ran")
	}
	defer release()
	if err := s.History.Begin(context.WithoutCancel(ctx), e); err != nil {
		return err
	}
	session, ranErr := open(ctx)
	if ranErr == nil {
		var live supervisor.OutputListener
		if job.feed != nil {
			job.feed.begin(e, box.Owner, box.Policy.MaxOutputSize)
			s.keep(e.ID, job.feed)
			live = job.feed
		} else if job.debug != nil {
			job.debug.room(box.Policy.MaxOutputSize)
			live = job.debug
		}
		ranErr = s.runIn(ctx, session, box, e, job, live)
		explain(e)
	}
	if ranErr == nil {
		s.collect(ctx, session, box, e)
	}
	switch {
	case ranErr != nil && ctx.Err() != nil: // cut off before its code began
		why := "the run was cancelled"
		e.Status, e.Error, ranErr = sandbox.StatusCancelled, &why, nil
	case ranErr != nil:
		why := "the service could not run it: " + ranErr.Error()
		e.Status, e.Error = sandbox.StatusFailed, &why
	}
	if e.Status == sandbox.StatusCancelled && errors.Is(context.Cause(ctx), errShutdown) {
		e.Usage.EndedBy = "shutdown"
	}
	if e.Status == sandbox.StatusCancelled && errors.Is(context.Cause(ctx), errIdle) {
		e.Usage.EndedBy = "idle_timeout"
	}
	if job.over != nil {
		job.over()
	}
	return errors.Join(ranErr, s.finish(e, box.Policy.SaveIntermediateResults))
}

// finish writes the end of an execution, even when its caller is gone.
func (s *Service) finish(e *sandbox.Execution, keepNotes bool) error {
	now := s.Clock()
	e.CompletedAt = &now
	record := e
	if !keepNotes {
		copied := *e
		copied.DebugInfo = sandbox.DebugInfo{Logs: []sandbox.Note{}, Variables: map[string][]sandbox.Note{}}
		record = &copied
	}
	if err := s.History.Finish(context.Background(), record); err != nil { // it has patience of its own
		s.Log.WithError(err).WithField("execution_id", e.ID).Error("an execution could not be finished in history")
		return err
	}
	return nil
}

// Cancel ends a running execution; it answers when the wish is passed on.
func (s *Service) Cancel(ctx context.Context, caller sandbox.Key, id string) error {
	s.mu.Lock()
	r, ok := s.running[id]
	s.mu.Unlock()
	if ok && may(caller, r.owner) {
		r.cancel(nil)
		return nil
	}
	e, err := s.Execution(ctx, caller, id)
	if err != nil {
		return err
	}
	return sandbox.Errorf(sandbox.FaultBusy, "the execution has ended already: %s", e.Status)
}

// Execution returns one execution that who may see.
func (s *Service) Execution(ctx context.Context, caller sandbox.Key, id string) (sandbox.Execution, error) {
	e, err := s.History.Execution(ctx, id)
	if err == nil && !may(caller, e.User) {
		return sandbox.Execution{}, sandbox.Errorf(sandbox.FaultNotFound, "there is no such execution, or it is not yours")
	}
	return e, err
}

// Executions lists what the filter lets through; a user other than an admin sees
// their own.
func (s *Service) Executions(ctx context.Context, caller sandbox.Key, f sandbox.ExecutionFilter) ([]sandbox.Execution, string, error) {
	if caller.Role != sandbox.RoleAdmin {
		f.User = caller.User
	}
	return s.History.Executions(ctx, f)
}

// SandboxHistory lists a sandbox's executions, newest first, and counts them all;
// it answers for sandboxes that have ended, too.
func (s *Service) SandboxHistory(ctx context.Context, caller sandbox.Key, id string, limit int, after string) ([]sandbox.Execution, string, int, error) {
	if _, err := s.record(ctx, caller, id); err != nil {
		return nil, "", 0, err
	}
	list, next, err := s.History.Executions(ctx, sandbox.ExecutionFilter{SandboxID: id, Limit: limit, After: after})
	if err != nil {
		return nil, "", 0, err
	}
	total, err := s.History.CountExecutions(ctx, id)
	return list, next, total, err
}

// Statistics sums up the caller's executions; an admin's are everybody's.
func (s *Service) Statistics(ctx context.Context, caller sandbox.Key) (sandbox.Statistics, error) {
	user := caller.User
	if caller.Role == sandbox.RoleAdmin {
		user = ""
	}
	st, err := s.History.Statistics(ctx, user)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.live {
		if user == "" || l.box.Owner == user {
			st.ActiveSandboxes++
		}
	}
	return st, err
}
