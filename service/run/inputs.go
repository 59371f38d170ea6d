package run

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"glasshouse/sandbox"
	"glasshouse/sandbox/inputlog"
)

// loggedInputs are the inputs of a run that is logged. It is the supervisor.Inputs of the run.
type loggedInputs struct {
	*inputlog.Recorder
	seed string
}

// Seed implements supervisor.Inputs.
func (i *loggedInputs) Seed() string { return i.seed }

// Clock returns nil: the code reads the machine's clocks.
func (i *loggedInputs) Clock() []byte { return nil }

// Request logs a request, which the handler answers.
func (i *loggedInputs) Request(_ context.Context, body []byte) (answer []byte, err error) {
	i.Begin(body)
	return nil, nil
}

// Answered logs a part of an answer.
func (i *loggedInputs) Answered(size int, frames func() []byte) { i.Add(size, frames) }

// newInputs returns the inputs of a run; nil: it is not logged.
func (r *run) newInputs() *loggedInputs {
	s := r.service
	if !s.InputLog.IsOn() {
		return nil
	}
	i := &loggedInputs{Recorder: s.InputKeys.Record(s.InputLog)}
	if !r.sandbox.Policy.EnableNetworkAccess { // nobody may compute the keys of its TLS connections later
		i.seed = s.InputKeys.Seed(r.opening.ID)
	}
	i.Variables(r.request.Scope.Environ)
	for n := range r.request.Files {
		i.File(r.request.Files[n].Path, r.request.Files[n].Body())
	}
	return i
}

// inputLog describes what is kept of the inputs of a run that has ended.
func (r *run) inputLog(o *sandbox.Outcome) *sandbox.InputLog {
	i := r.inputs
	if i == nil {
		return nil
	}
	out := &sandbox.InputLog{
		Kept: string(r.service.InputLog), Bytes: i.Bytes(), IsFirst: o.Start != nil,
		IsStored: !i.IsEmpty() || len(o.Clock) > 0 || o.ClockMissing > 0,
	}
	if r.request.Kind == sandbox.KindRestore {
		out.Base = r.observers.base
	}
	if r.lease != nil && r.lease.HasOwnPolicy {
		out.Policy, _ = json.Marshal(r.sandbox.Policy)
	}
	scope := r.request.Scope
	if scope.Environ = nil; !scope.IsZero() { // the log has the variables
		out.Scope = &scope
	}
	for _, source := range [...]struct { // in the order of their names
		name       string
		isUnlogged bool
	}{
		{SourceClock, o.Clock == nil && !o.Status.IsCut() || o.ClockMissing > 0},
		{SourceDebugger, r.recording != nil && len(r.recording.recorded.Edits()) > 0},
		{SourceEnded, o.Status.IsCut()},
		{SourceFiles, r.hasOtherFiles},
		{SourceNetwork, r.sandbox.Policy.EnableNetworkAccess},
		{SourceRows, i.IsCut()},
		{SourceThreads, o.Threads > 0},
	} {
		if source.isUnlogged {
			out.Unlogged = append(out.Unlogged, source.name)
		}
	}
	return out
}

// The sources of differences between two runs of the same code that a log may not have.
const (
	SourceNetwork     = "network"     // connections, and randomness, which then is the kernel's
	SourceClock       = "clock"       // readings of clocks
	SourceEnded       = "ended"       // a limit or a caller ended the run
	SourceRows        = "rows"        // answers that were too large for the log
	SourceFiles       = "files"       // files of the session that the code did not write
	SourceThreads     = "threads"     // the order of threads
	SourceDebugger    = "debugger"    // changes that a person made
	SourceEnvironment = "environment" // other packages, or another Python
	SourceDatabase    = "database"    // rows as they are now
	SourceEdits       = "edits"       // edits of rows that the code did not use
	SourceRights      = "rights"      // answers of a database that may not be read any more
	SourceUnknown     = "unknown"     // something else, such as the number of the process's user
	SourceSession     = "session"     // earlier executions that could not run again in the same way
)

// inputStore writes large logs to history after their executions are answered.
type inputStore struct {
	mu      sync.Mutex
	pending map[string]chan struct{} // by execution; closed when history has the log
	bytes   int64                    // of the pending logs
}

const (
	// smallInputBytes is the size of the inputs of a run whose log is stored before its answer, with the execution. To
	// hash, compress and store a larger one takes milliseconds.
	smallInputBytes = 64 << 10
	// maxPendingInputs is how many bytes of logs wait for history. A run that exceeds it waits, too.
	maxPendingInputs = 64 << 20
	// inputTimeout limits the time in which history stores one log.
	inputTimeout = 30 * time.Second
)

// keepInputs stores the log of a run whose code has ended: a small one at once, a large one in the background after
// later was called, or before later returns if many logs wait.
func (r *run) keepInputs(o sandbox.Outcome) (later func()) {
	i := r.inputs
	if i == nil || i.IsEmpty() && len(o.Clock) == 0 && o.ClockMissing == 0 {
		return func() {}
	}
	size := i.Bytes() + int64(len(o.Clock))
	if size <= smallInputBytes {
		r.writeInputs(o)
		return func() {}
	}
	store, done := &r.service.inputs, make(chan struct{})
	store.mu.Lock()
	mayWait := store.bytes+size <= maxPendingInputs
	store.bytes += size
	store.pending[r.opening.ID] = done
	store.mu.Unlock()
	write := func() {
		defer close(done)
		r.writeInputs(o)
		store.mu.Lock()
		defer store.mu.Unlock()
		store.bytes -= size
		delete(store.pending, r.opening.ID)
	}
	if !mayWait {
		return write
	}
	return func() { r.service.work.Go(write) } // the run still counts as work
}

func (r *run) writeInputs(o sandbox.Outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), inputTimeout)
	defer cancel()
	data, err := r.inputs.End(o.Clock, o.ClockMissing)
	if err == nil {
		err = r.service.History.KeepInputs(ctx, &r.opening, data)
	}
	if err != nil {
		r.service.logOf(&r.opening).WithError(err).
			Error("could not keep the inputs of an execution: it cannot be replayed")
	}
}

// loadInputs returns the log of an execution. It waits until history has it.
func (s *Service) loadInputs(ctx context.Context, e *sandbox.Execution) (*inputlog.Log, error) {
	if e.InputLog == nil {
		return nil, sandbox.Errorf(sandbox.FaultGone, "the inputs of execution %s were not kept: it ran with "+
			"--input-log off, or before this version", e.ID)
	}
	if !e.InputLog.IsStored {
		return &inputlog.Log{}, nil
	}
	s.inputs.mu.Lock()
	pending := s.inputs.pending[e.ID]
	s.inputs.mu.Unlock()
	if pending != nil {
		select {
		case <-pending:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	data, err := s.History.Inputs(ctx, e)
	if sandbox.FaultOf(err) == sandbox.FaultNotFound {
		return nil, sandbox.Errorf(sandbox.FaultGone, "the inputs of execution %s are no longer kept", e.ID)
	}
	if err != nil {
		return nil, err
	}
	log, err := inputlog.Decode(data)
	if err == nil && log.Key != s.InputKeys.ID() {
		return nil, sandbox.Errorf(sandbox.FaultGone, "the inputs of execution %s were logged by a service with "+
			"another signing.key in its data folder: only a service with that file can replay it", e.ID)
	}
	return log, err
}
