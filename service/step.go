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

// RecordingRetention says what is kept of debugged runs.
type RecordingRetention struct {
	Age   time.Duration // 0: however old
	Bytes int64         // of all recordings, the oldest go first; 0: however many
}

// chunkTime is how long history may take for a part of a recording.
const chunkTime = 5 * time.Second

// runIn runs e in its session, debugged where steps is given: then what the recorder
// writes is kept while it runs, so that a kill, of the code or of the service, leaves
// what was before.
func (s *Service) runIn(ctx context.Context, session Session, box sandbox.Sandbox, e *sandbox.Execution, job Job, live supervisor.OutputListener) error {
	answers := &desk{service: s, box: box, execution: e, feed: job.feed}
	switch {
	case job.debug != nil:
		job.debug.recording = s.newRecording(e, job.debug.journal, nil)
		job.debug.session.began(e.ID)
		defer job.debug.end()
		return session.Run(ctx, e, answers, job.debug, live)
	case job.Steps != nil:
		journal, err := debugger.NewJournal()
		if err != nil {
			return err
		}
		r := s.newRecording(e, journal, job.Steps)
		defer r.end()
		return session.Run(ctx, e, answers, r, live)
	}
	return session.Run(ctx, e, answers, nil, live)
}

// recording is a debugged run that goes on: its host.Watcher.
type recording struct {
	service *Service
	e       *sandbox.Execution
	journal *debugger.Journal
	plain   *debugger.Plain
	alone   bool // nobody wants the steps any more

	mu      sync.Mutex      // guards what follows
	waiting []sandbox.Chunk // that history has not taken
	away    bool
	keeping chan struct{} // closed when there is nothing more to keep for now
}

var _ supervisor.DebugDriver = (*recording)(nil)

func (s *Service) newRecording(e *sandbox.Execution, journal *debugger.Journal, steps func(sandbox.Step) bool) *recording {
	r := &recording{service: s, e: e, journal: journal}
	source := debugger.Source(e.Code)
	s.recorded.begin(e.ID, &OpenRecording{Journal: journal, Source: source})
	if steps == nil {
		return r
	}
	journal.Follow(func(t *debugger.Table, state *debugger.State, record *debugger.Record) {
		if r.alone { // what is left would take its time for nothing
			return
		}
		if r.plain == nil {
			r.plain = debugger.NewPlain(t, state, source, func(l debugger.Line) { r.alone = r.alone || !steps(s.step(l)) })
		}
		r.plain.See(state, record)
	})
	return r
}

// Begin says that the program never stops.
func (r *recording) Begin(func()) json.RawMessage { return nil }

// Logged takes nothing: such a program has no log points.
func (r *recording) Logged([]byte) {}

// Stopped is an error.
func (r *recording) Stopped(context.Context, []byte, supervisor.Command) (any, error) {
	return nil, errors.New("a stop of a run that has no breakpoints")
}

// Records takes what the recorder wrote.
func (r *recording) Records(b []byte) error {
	err := r.journal.Append(b)
	r.keep()
	return err
}

// keep hands complete chunks to history, which the program does not wait for. One that
// it did not take in time is tried again at the end.
func (r *recording) keep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, r.journal.Take()...)
	if r.away || len(r.waiting) == 0 || r.keeping != nil {
		return
	}
	r.keeping = make(chan struct{})
	go func() {
		for r.keepOne() {
		}
	}()
}

// keepOne keeps the first chunk that waits, and says whether to go on.
func (r *recording) keepOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) > 0 && !r.away {
		chunk := r.waiting[0]
		r.mu.Unlock()
		ctx, done := context.WithTimeout(context.Background(), chunkTime)
		err := r.service.History.KeepChunk(ctx, r.e.ID, chunk)
		done()
		r.mu.Lock()
		if err == nil {
			r.waiting = r.waiting[1:]
			return true
		}
		r.service.Log.WithError(err).WithField("execution_id", r.e.ID).Warn("a part of a recording waits for history")
		r.away = true
	}
	close(r.keeping)
	r.keeping = nil
	return false
}

// kept waits until history has all that it takes for now, and returns how many chunks
// it has not.
func (r *recording) kept() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if keeping := r.keeping; keeping != nil {
		r.mu.Unlock()
		<-keeping
		r.mu.Lock()
	}
	return len(r.waiting)
}

// end closes the recording; what could not be kept is said in the execution.
func (r *recording) end() {
	r.journal.End(func(last *debugger.State) {
		if r.plain != nil && !r.alone {
			r.plain.End(last)
		}
	})
	r.kept()
	r.mu.Lock()
	r.away = false // it is tried once more
	r.mu.Unlock()
	r.keep()
	n := r.kept()
	r.service.recorded.end(r.e.ID)
	if n > 0 {
		r.e.Truncated["recording"] = int64(n)
	}
}

// step is a line as the plain stream shows it.
func (s *Service) step(l debugger.Line) sandbox.Step {
	result := struct {
		Status     string `json:"status"`
		Error      string `json:"error,omitempty"`
		DuringCall bool   `json:"during_call,omitempty"`
	}{l.Status, l.Error, l.DuringCall}
	text, _ := json.Marshal(result) // of two texts and a bool
	if l.Changed == nil {
		l.Changed = []string{}
	}
	return sandbox.Step{
		Number: int64(l.Step), LineNumber: int(l.Number), LineCode: l.Code, Result: text, Timestamp: s.Clock(),
		State: sandbox.StepState{Variables: l.Variables, Changed: l.Changed, Function: l.Function, Unread: l.Unread},
	}
}
