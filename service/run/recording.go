package run

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"glasshouse/debugger"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// chunkWriteTimeout limits the time in which history stores one chunk of a recording.
const chunkWriteTimeout = 5 * time.Second

// recording records a debugged run during the run: it fills the debugger's recording, passes chunks to history, and
// streams steps. It is the supervisor.DebugDriver of the run.
type recording struct {
	supervisor.DebugDriver // of an interactive debugger; else noDebugger
	service                *Service
	execution              *sandbox.Execution // the opening
	recorded               *debugger.Recording
	missing                int64 // chunks that history has not stored; set by end

	mu      sync.Mutex // guards the fields below
	pending []sandbox.Chunk
	stored  int64         // steps that history has
	failed  bool          // history has not stored a chunk in time
	writing chan struct{} // closed when writeChunks ends; nil if it does not run
}

// startRecording starts the recording of an execution. It calls steps with each line; steps may be nil.
func (s *Service) startRecording(
	e *sandbox.Execution, recorded *debugger.Recording, steps func(sandbox.Step) bool,
) *recording {
	r := &recording{DebugDriver: noDebugger{}, service: s, execution: e, recorded: recorded}
	s.Records.BeginRecording(e.ID, recorded)
	if steps != nil {
		recorded.StreamLines(func(l debugger.Line) bool { return steps(s.Records.Step(l)) })
	}
	return r
}

// Records appends the recorder's output to the recording, and tells the debugger.
func (r *recording) Records(b []byte, heldSteps uint64) error {
	err := r.recorded.Append(b)
	r.recorded.SetHeldSteps(heldSteps)
	r.writeChunks()
	return errors.Join(err, r.DebugDriver.Records(b, heldSteps))
}

// noDebugger is the supervisor.DebugDriver of a run without breakpoints.
type noDebugger struct{}

// Begin returns nil: the program never stops.
func (noDebugger) Begin(func()) json.RawMessage { return nil }

// Records does nothing: nobody waits for steps.
func (noDebugger) Records([]byte, uint64) error { return nil }

// Logged does nothing: the program has no log points.
func (noDebugger) Logged([]byte) {}

// Stopped returns an error: the program has no breakpoints.
func (noDebugger) Stopped(context.Context, []byte, supervisor.Command) (any, error) {
	return nil, errors.New("a stop in a run that has no breakpoints")
}

// writeChunks starts a goroutine that passes complete chunks to history, unless it runs already. The program does not
// wait for history. After a failure only end tries again.
func (r *recording) writeChunks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, r.recorded.TakeChunks()...)
	if r.failed || len(r.pending) == 0 || r.writing != nil {
		return
	}
	r.writing = make(chan struct{})
	go func() {
		for r.writeChunk() {
		}
	}()
}

// writeChunk passes the first pending chunk to history, and reports whether the next chunk may follow.
func (r *recording) writeChunk() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 && !r.failed {
		chunk := r.pending[0]
		r.mu.Unlock()
		user := limit.WithUser(context.Background(), r.execution.User)
		ctx, cancel := context.WithTimeout(user, chunkWriteTimeout)
		err := r.service.History.KeepChunk(ctx, r.execution.ID, chunk)
		cancel()
		r.mu.Lock()
		if err == nil {
			r.pending, r.stored = r.pending[1:], int64(chunk.Last)
			r.service.Metrics.RecordingStored(len(chunk.Data))
			return true
		}
		r.service.logOf(r.execution).WithError(err).
			Warn("could not record a chunk of a recording; it is tried again at the end of the run")
		r.failed = true
	}
	close(r.writing)
	r.writing = nil
	return false
}

// wait waits until writeChunks has ended, and returns the number of pending chunks.
func (r *recording) wait() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if writing := r.writing; writing != nil {
		r.mu.Unlock()
		<-writing
		r.mu.Lock()
	}
	return len(r.pending)
}

// end closes the recording and tries once more to write the pending chunks.
func (r *recording) end() {
	r.recorded.End()
	r.wait()
	r.mu.Lock()
	r.failed = false
	r.mu.Unlock()
	r.writeChunks()
	r.missing = int64(r.wait())
	r.service.Records.EndRecording(r.execution.ID)
}

// RecordEdit records a change that a person made in a debugger, in case the service ends before the run does.
func (s *Service) RecordEdit(executionID string, e sandbox.Edit) {
	err := s.History.Progress(context.Background(), sandbox.Progress{
		Execution: executionID, Number: int64(e.Number), Edit: &e,
	})
	if err != nil {
		s.Log.WithError(err).WithField("execution_id", executionID).
			Warn("could not record a change by the debugger; the execution's record will have it")
	}
}
