package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
)

// OpenRecording is the recording of a debugged run, with the program that it is of. It can
// be read while the run goes on.
type OpenRecording struct {
	*debugger.Journal
	Source []string
	Bytes  int64 // that history keeps of it; 0 while the run goes on
}

// opened keeps the recordings that were read last, and those of runs that go on.
type opened struct {
	mu    sync.Mutex
	live  map[string]*OpenRecording
	kept  []string // most recent last
	cache map[string]*OpenRecording
}

const maxOpened = 16

func (o *opened) begin(id string, r *OpenRecording) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil {
		o.live, o.cache = map[string]*OpenRecording{}, map[string]*OpenRecording{}
	}
	o.live[id] = r
}

func (o *opened) end(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.live, id)
}

func (o *opened) find(id string) *OpenRecording {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.live[id]; r != nil {
		return r
	}
	if r := o.cache[id]; r != nil {
		o.kept = append(slices.DeleteFunc(o.kept, func(k string) bool { return k == id }), id)
		return r
	}
	return nil
}

func (o *opened) keep(id string, r *OpenRecording) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cache == nil {
		o.live, o.cache = map[string]*OpenRecording{}, map[string]*OpenRecording{}
	}
	if o.cache[id] == nil {
		o.kept = append(o.kept, id)
	}
	o.cache[id] = r
	for len(o.kept) > maxOpened {
		delete(o.cache, o.kept[0])
		o.kept = o.kept[1:]
	}
}

// readTime is how long history may take for one part of a recording.
const readTime = 10 * time.Second

// Recorded opens the recording of an execution that who may see, past or running.
// FaultNotFound where it was not debugged, or its recording is no longer kept.
func (s *Service) Recorded(ctx context.Context, caller sandbox.Key, id string) (*OpenRecording, error) {
	if err := debugs(caller); err != nil {
		return nil, err
	}
	e, err := s.Execution(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if r := s.recorded.find(id); r != nil {
		return r, nil
	}
	chunks, err := s.History.Chunks(ctx, id)
	var known *sandbox.Error
	if errors.As(err, &known) && known.Fault == sandbox.FaultNotFound {
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "this execution has no recording: it was not debugged, or its recording is no longer kept")
	}
	if err != nil {
		return nil, err
	}
	journal, err := debugger.Open(chunks, func(sequence int) ([]byte, error) {
		ctx, done := context.WithTimeout(context.Background(), readTime)
		defer done()
		return s.History.ChunkData(ctx, id, sequence)
	})
	if errors.Is(err, debugger.ErrVersion) {
		return nil, sandbox.Errorf(sandbox.FaultNotFound, "the recording of this execution was made by another version of the service, which wrote it otherwise")
	}
	if err != nil {
		return nil, err
	}
	r := &OpenRecording{Journal: journal, Source: debugger.Source(e.Code)}
	for _, c := range chunks {
		r.Bytes += c.Bytes
	}
	if e.CompletedAt != nil {
		s.recorded.keep(id, r)
	}
	return r, nil
}

// Steps returns a page of a recording's steps as the plain stream showed them.
func (s *Service) Steps(r *OpenRecording, from, limit int) ([]sandbox.Step, error) {
	lines, err := r.Lines(from, from+limit-1, r.Source)
	out := []sandbox.Step{}
	for _, l := range lines {
		step := s.step(l)
		step.Timestamp = time.Time{}
		out = append(out, step)
	}
	return out, err
}

// prune forgets recordings as Keep says, once an hour.
func (s *Service) prune() {
	if s.RecordingRetention.Age <= 0 && s.RecordingRetention.Bytes <= 0 || s.Clock().Before(s.pruned.Add(time.Hour)) {
		return
	}
	s.pruned = s.Clock()
	var before time.Time
	if s.RecordingRetention.Age > 0 {
		before = s.pruned.Add(-s.RecordingRetention.Age)
	}
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	if n, err := s.History.PruneRecordings(ctx, before, s.RecordingRetention.Bytes); err != nil {
		s.Log.WithError(err).Warn("forget old recordings")
	} else if n > 0 {
		s.Log.Infof("%d old recordings are forgotten", n)
	}
}
