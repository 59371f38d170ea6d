package run

import (
	"context"
	"sync"
	"time"

	"glasshouse/sandbox"
)

// maxFeedEvents is the number of events that a reader may be behind.
const maxFeedEvents = 1000

// The names of feed events.
const (
	FeedBegan = "began"
	FeedEnded = "ended"
	FeedGap   = "gap" // events are missing before the next one: the reader reads the list again
)

// FeedEvent says that an execution has begun or ended. IDs grow, also after a restart of the service.
type FeedEvent struct {
	ID        int64
	Name      string
	Execution sandbox.ExecutionSummary // of a gap: the user of the event that was erased, if one was
}

// ExecutionFeed holds the last events of all executions. Adding an event waits for no reader.
type ExecutionFeed struct {
	mu      sync.Mutex
	events  []FeedEvent // the last maxFeedEvents, in the order of their IDs
	lastID  int64
	changed chan struct{} // closed, and replaced, at each event
}

// newExecutionFeed returns a feed whose IDs follow those of a feed that an earlier process had.
func newExecutionFeed() *ExecutionFeed {
	return &ExecutionFeed{lastID: time.Now().UnixMicro(), changed: make(chan struct{})}
}

func (f *ExecutionFeed) add(name string, e sandbox.ExecutionSummary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastID++
	if len(f.events) == maxFeedEvents {
		f.events = append(f.events[:0], f.events[maxFeedEvents/2:]...)
	}
	f.events = append(f.events, FeedEvent{f.lastID, name, e})
	close(f.changed)
	f.changed = make(chan struct{})
}

// forget replaces the events of erased executions by gaps, because the IDs have none.
func (f *ExecutionFeed) forget(isErased func(execution, user string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range f.events {
		if e.Name != FeedGap && isErased(e.Execution.ID, e.Execution.User) {
			f.events[i] = FeedEvent{e.ID, FeedGap, sandbox.ExecutionSummary{User: e.Execution.User}}
		}
	}
}

// after returns the events that follow an ID, and a channel that is closed when there is another event. If some of
// them are no longer held, the first event is a gap.
func (f *ExecutionFeed) after(id int64) (events []FeedEvent, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.lastID - int64(len(f.events)) // the ID before the first event
	if id < first || id > f.lastID {
		events = append(events, FeedEvent{ID: first, Name: FeedGap})
		id = first
	}
	return append(events, f.events[id-first:]...), f.changed
}

// FeedPosition returns the ID after which a new reader begins.
func (s *Service) FeedPosition() int64 {
	s.feed.mu.Lock()
	defer s.feed.mu.Unlock()
	return s.feed.lastID
}

// NextFeedEvents waits for events after an ID that the caller may see, of one user or, if user is "", of all. It
// returns them and the ID after which the caller continues. It returns ctx's error when ctx ends.
func (s *Service) NextFeedEvents(
	ctx context.Context, caller sandbox.Key, user string, after int64,
) (events []FeedEvent, last int64, err error) {
	if caller.Role != sandbox.RoleAdmin {
		user = caller.User
	}
	for {
		found, changed := s.feed.after(after)
		for _, e := range found {
			mayMissOwn := e.Name == FeedGap && e.Execution.User == ""
			if after = e.ID; user == "" || mayMissOwn || e.Execution.User == user {
				events = append(events, e)
			}
		}
		if len(events) > 0 {
			return events, after, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, after, ctx.Err()
		}
	}
}
