package service

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/sandbox/supervisor"
)

// RecordingRetention says which recordings of debugged runs are kept.
type RecordingRetention struct {
	Age   time.Duration // 0: of any age
	Bytes int64         // of all recordings together, the oldest are removed first; 0: no limit
}

// chunkWriteTimeout is how long history may take for one chunk of a recording.
const chunkWriteTimeout = 5 * time.Second

// recording records a debugged run while it runs: it appends to the journal, hands chunks
// to history, and streams steps. It is the supervisor.DebugDriver of a run without
// breakpoints.
type recording struct {
	service   *Service
	execution *sandbox.Execution // as it began
	journal   *debugger.Journal
	steps     *debugger.Plain // nil if nobody wants the steps
	noSteps   bool            // the reader of the steps wants no more
	missing   int64           // chunks that history has not taken, after end

	mu      sync.Mutex // guards the fields below
	pending []sandbox.Chunk
	failed  bool          // history has not taken a chunk in time
	writing chan struct{} // closed when writeChunks ends; nil if it does not run
}

// startRecording starts the recording of an execution. steps gets each line; it may be nil.
func (s *Service) startRecording(e *sandbox.Execution, journal *debugger.Journal, steps func(sandbox.Step) bool) *recording {
	r := &recording{service: s, execution: e, journal: journal}
	source := debugger.Source(e.Code)
	s.recordings.begin(e.ID, &OpenRecording{Journal: journal, Source: source})
	if steps == nil {
		return r
	}
	journal.Follow(func(t *debugger.Table, state *debugger.State, record *debugger.Record) {
		if r.noSteps {
			return
		}
		if r.steps == nil {
			r.steps = debugger.NewPlain(t, state, source, func(l debugger.Line) { r.noSteps = r.noSteps || !steps(s.step(l)) })
		}
		r.steps.See(state, record)
	})
	return r
}

// Begin returns nil: the program never stops.
func (r *recording) Begin(func()) json.RawMessage { return nil }

// Logged does nothing: the program has no log points.
func (r *recording) Logged([]byte) {}

// Stopped returns an error: the program has no breakpoints.
func (r *recording) Stopped(context.Context, []byte, supervisor.Command) (any, error) {
	return nil, errors.New("a stop in a run that has no breakpoints")
}

// Records appends what the recorder wrote to the journal.
func (r *recording) Records(b []byte) error {
	err := r.journal.Append(b)
	r.writeChunks()
	return err
}

// writeChunks starts a goroutine that hands complete chunks to history, unless one runs: the
// program does not wait for history. After a failure only end tries again.
func (r *recording) writeChunks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, r.journal.Take()...)
	if r.failed || len(r.pending) == 0 || r.writing != nil {
		return
	}
	r.writing = make(chan struct{})
	go func() {
		for r.writeChunk() {
		}
	}()
}

// writeChunk hands the first pending chunk to history, and reports whether to go on.
func (r *recording) writeChunk() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 && !r.failed {
		chunk := r.pending[0]
		r.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), chunkWriteTimeout)
		err := r.service.History.KeepChunk(ctx, r.execution.ID, chunk)
		cancel()
		r.mu.Lock()
		if err == nil {
			r.pending = r.pending[1:]
			return true
		}
		r.service.Log.WithError(err).WithField("execution_id", r.execution.ID).Warn("could not record a chunk of a recording; it is tried again at the end of the run")
		r.failed = true
	}
	close(r.writing)
	r.writing = nil
	return false
}

// wait waits until writeChunks has ended, and returns how many chunks are still pending.
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

// end closes the recording and tries once more to write what is pending.
func (r *recording) end() {
	r.journal.End(func(last *debugger.State) {
		if r.steps != nil && !r.noSteps {
			r.steps.End(last)
		}
	})
	r.wait()
	r.mu.Lock()
	r.failed = false
	r.mu.Unlock()
	r.writeChunks()
	r.missing = int64(r.wait())
	r.service.recordings.end(r.execution.ID)
}

// step returns a line as the step stream shows it.
func (s *Service) step(l debugger.Line) sandbox.Step {
	result := struct {
		Status     string `json:"status"`
		Error      string `json:"error,omitempty"`
		DuringCall bool   `json:"during_call,omitempty"`
	}{l.Status, l.Error, l.DuringCall}
	text, _ := json.Marshal(result) // cannot fail: two strings and a bool
	if l.Changed == nil {
		l.Changed = []string{}
	}
	return sandbox.Step{
		Number: int64(l.Step), LineNumber: int(l.Number), LineCode: l.Code, Result: text, Timestamp: s.Clock(),
		State: sandbox.StepState{Variables: l.Variables, Changed: l.Changed, Function: l.Function, Unread: l.Unread},
	}
}
