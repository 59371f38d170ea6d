package records

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"glasshouse/debugger"
	recordings "glasshouse/debugger/recording"
	"glasshouse/policy/limit"
	"glasshouse/sandbox"
	"glasshouse/service/access"
)

// OpenRecording is the recording of a run with its source. It can be read during the run.
type OpenRecording struct {
	*debugger.Recording
	Bytes int64 // size in history; 0 during the run
	user  string
}

// Limits of the open recordings of past runs. The one that was read last may exceed the second.
const (
	maxCachedRecordings = 16
	maxCachedIndexBytes = 256 << 20
)

// openRecordings keeps the recordings of running executions, and the recordings of past executions that were read last.
type openRecordings struct {
	mu      sync.Mutex
	running map[string]*OpenRecording // by execution
	past    map[string]*OpenRecording
	order   []string // keys of past, the most recently used last

	opening *limit.Keyed // one reader opens a past recording, and the others use it
}

// init makes the maps. The caller holds mu.
func (o *openRecordings) init() {
	if o.running == nil {
		o.running, o.past = map[string]*OpenRecording{}, map[string]*OpenRecording{}
		o.opening = limit.NewKeyed(1)
	}
}

// lock waits until no other reader opens the recording of an execution, and returns the function that ends that state.
func (o *openRecordings) lock(ctx context.Context, executionID string) (unlock func(), err error) {
	o.mu.Lock()
	o.init()
	opening := o.opening
	o.mu.Unlock()
	return opening.Acquire(ctx, executionID, limit.Forever)
}

// begin adds the recording of a running execution.
func (o *openRecordings) begin(executionID string, r *OpenRecording) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.init()
	o.running[executionID] = r
}

// end removes the recording of an execution that was running.
func (o *openRecordings) end(executionID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.running, executionID)
}

func (o *openRecordings) find(executionID string) *OpenRecording {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.running[executionID]; r != nil {
		return r
	}
	if r := o.past[executionID]; r != nil {
		o.order = append(slices.DeleteFunc(o.order, func(id string) bool { return id == executionID }), executionID)
		return r
	}
	return nil
}

// cache adds the recording of a past execution, and removes the least recently used ones that exceed the limits.
func (o *openRecordings) cache(executionID string, r *OpenRecording) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.init()
	if o.past[executionID] == nil {
		o.order = append(o.order, executionID)
	}
	o.past[executionID] = r
	bytes := 0
	for _, each := range o.past {
		bytes += each.IndexBytes()
	}
	for len(o.order) > maxCachedRecordings || len(o.order) > 1 && bytes > maxCachedIndexBytes {
		bytes -= o.past[o.order[0]].IndexBytes()
		delete(o.past, o.order[0])
		o.order = o.order[1:]
	}
}

// forgetPast forgets the recordings of past executions that were erased.
func (o *openRecordings) forgetPast(isErased func(execution, user string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.order = slices.DeleteFunc(o.order, func(id string) bool {
		if !isErased(id, o.past[id].user) {
			return false
		}
		delete(o.past, id)
		return true
	})
}

// BeginRecording adds the recording of a running execution, which can be read until EndRecording.
func (s *Service) BeginRecording(executionID string, recorded *debugger.Recording) {
	s.recordings.begin(executionID, &OpenRecording{Recording: recorded})
}

// EndRecording removes the recording of an execution that was running: history has it now.
func (s *Service) EndRecording(executionID string) { s.recordings.end(executionID) }

// chunkReadTimeout limits the time in which history returns one chunk.
const chunkReadTimeout = 10 * time.Second

// Recorded opens the recording of a past or running execution. It returns FaultNotFound if the execution was not
// debugged or its recording was deleted.
func (s *Service) Recorded(ctx context.Context, caller sandbox.Key, executionID string) (*OpenRecording, error) {
	if err := access.MayDebug(caller); err != nil {
		return nil, err
	}
	return s.Explainable(ctx, caller, executionID)
}

// errNoRecording returns the error for an execution without a recording. It says how to make one.
func errNoRecording(e *sandbox.Execution) error {
	text := "this execution has no recording: it was not debugged and did not ask for one with \"record\": true, " +
		"none of its code ran, or its recording was deleted"
	switch {
	case e.CompletedAt == nil || e.Kind == sandbox.KindQuery || e.Kind == sandbox.KindRestore || e.Environment == nil:
		return sandbox.Errorf(sandbox.FaultNotFound, "%s", text)
	case e.Replay != nil:
		return sandbox.Errorf(sandbox.FaultNotFound, "%s. Replay its original again with \"record\": true, and "+
			"explain that replay: POST /executions/%s/replay", text, e.Replay.Of)
	}
	return sandbox.Errorf(sandbox.FaultNotFound, "%s. A replay with \"record\": true makes one, of the same run: "+
		"POST /executions/%s/replay, then explain the replay", text, e.ID)
}

// Explainable opens the recording of an execution for the questions that every caller may ask about the own executions:
// why a value is so, and what a run did. The answers have only values that the code itself could read. Its errors are
// those of Recorded.
func (s *Service) Explainable(ctx context.Context, caller sandbox.Key, executionID string) (*OpenRecording, error) {
	e, err := s.Execution(ctx, caller, executionID)
	if err != nil {
		return nil, err
	}
	if r := s.recordings.find(executionID); r != nil {
		return r, nil
	}
	unlock, err := s.recordings.lock(ctx, executionID)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r := s.recordings.find(executionID); r != nil {
		return r, nil
	}
	chunks, err := s.History.Chunks(ctx, executionID)
	if sandbox.FaultOf(err) == sandbox.FaultNotFound {
		return nil, errNoRecording(&e)
	}
	if err != nil {
		return nil, err
	}
	recorded, err := debugger.OpenRecording(e.Code, chunks, func(sequence int) ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), chunkReadTimeout)
		defer cancel()
		return s.History.ChunkData(ctx, executionID, sequence)
	})
	if errors.Is(err, recordings.ErrVersion) {
		return nil, sandbox.Errorf(
			sandbox.FaultNotFound,
			"another version of the service made the recording of this execution, in a format that this version "+
				"cannot read",
		)
	}
	if err != nil {
		return nil, err
	}
	for _, edit := range e.Edits {
		recorded.AddEdit(edit)
	}
	r := &OpenRecording{Recording: recorded, user: e.User}
	for _, c := range chunks {
		r.Bytes += c.Bytes
	}
	if e.CompletedAt != nil {
		s.recordings.cache(executionID, r)
	}
	return r, nil
}

// Steps returns a page of a recording's steps, in the form of the step stream. If folded is set, the page is without
// the steps of comprehensions.
func (s *Service) Steps(r *OpenRecording, from, limit int, folded bool) ([]sandbox.Step, error) {
	read := r.Lines
	if folded {
		read = r.FoldedLines
	}
	lines, err := read(from, from+limit-1)
	steps := []sandbox.Step{}
	for _, l := range lines {
		step := s.Step(l)
		step.Timestamp, step.Edits = time.Time{}, r.EditsAt(l.Step)
		steps = append(steps, step)
	}
	return steps, err
}

// Step returns a line in the form of the step stream.
func (s *Service) Step(l debugger.Line) sandbox.Step {
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
		State: sandbox.StepState{Variables: l.Variables, Changed: l.Changed, Function: l.Function,
			Exactness: l.Exactness, Unread: l.Unread},
	}
}

// RecordingRetention says which recordings of debugged runs are kept.
type RecordingRetention struct {
	Age   time.Duration // 0: of any age
	Bytes int64         // of all recordings together, the oldest are removed first; 0: no limit
}

// pruneInputs removes the oldest input logs beyond InputLogBytes.
func (s *Service) pruneInputs(ctx context.Context) {
	if s.InputLogBytes <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	n, err := s.History.PruneInputs(ctx, s.InputLogBytes)
	switch {
	case err != nil && context.Cause(ctx) != context.Canceled:
		s.Log.WithError(err).Warn("could not remove old input logs")
	case n > 0:
		s.Log.Infof("removed the input logs of %d old executions, which cannot be replayed any more", n)
	}
}

// pruneRecordings removes the recordings beyond the bounds of RecordingRetention.
func (s *Service) pruneRecordings(ctx context.Context) {
	if s.RecordingRetention.Age <= 0 && s.RecordingRetention.Bytes <= 0 {
		return
	}
	var before time.Time
	if s.RecordingRetention.Age > 0 {
		before = s.deletionTime().Add(-s.RecordingRetention.Age)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	n, err := s.History.PruneRecordings(ctx, before, s.RecordingRetention.Bytes)
	switch {
	case err != nil && context.Cause(ctx) != context.Canceled:
		s.Log.WithError(err).Warn("could not remove old recordings")
	case n > 0:
		s.Log.Infof("removed %d old recordings", n)
	}
}
