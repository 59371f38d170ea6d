package service

import (
	"context"
	"errors"
	"time"

	"glasshouse/sandbox"
)

// What is kept of feeds whose executions have ended, for readers who were cut off.
const (
	feedTime  = 5 * time.Minute
	feedBytes = 64 << 20 // of all of them, about
)

// Start begins a job in a sandbox as Execute does, or where id is "" in a fresh one
// with config as QuickExecute does, and returns its feed as soon as it is on record.
// The run goes on whoever listens; Cancel ends it. What keeps it from running is an
// error, as it is of those two.
func (s *Service) Start(ctx context.Context, caller sandbox.Key, id string, job Job, config []byte) (*EventLog, error) {
	running, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	f := newFeed()
	job.feed = f
	go func() {
		defer giveUp()
		var e *sandbox.Execution
		var err error
		if id == "" {
			e, err = s.QuickExecute(running, caller, job, config)
		} else {
			e, err = s.Execute(running, caller, id, job)
		}
		f.end(e, err, s.Clock())
	}()
	select {
	case <-f.begun:
		return f, nil
	case <-f.over:
	case <-ctx.Done():
		giveUp()
		return nil, ctx.Err()
	}
	select {
	case <-f.begun:
		return f, nil
	default:
		return nil, f.failed
	}
}

// keep holds a feed for those who come for it, and lets old ones go.
func (s *Service) keep(id string, f *EventLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[id] = f
	s.forget(s.Clock())
}

// forget lets go of feeds whose executions ended too long ago, or, the oldest first,
// of which there are too many. The caller holds mu.
func (s *Service) forget(now time.Time) {
	for total := 0; ; total = 0 {
		var oldest string
		var since time.Time
		for id, f := range s.feeds {
			f.mu.Lock()
			if f.ended {
				total += f.bytes
				if oldest == "" || f.endedAt.Before(since) {
					oldest, since = id, f.endedAt
				}
			}
			f.mu.Unlock()
		}
		if oldest == "" || total <= feedBytes && now.Sub(since) < feedTime {
			return
		}
		delete(s.feeds, oldest)
	}
}

// Follow is the feed of an execution, and where to go on in it for who has had its
// events up to after. One that was not started as a stream, or ended some time ago,
// has a feed made of its record when it has ended; of that, who has had some events
// gets the last one, which is the whole execution.
func (s *Service) Follow(ctx context.Context, caller sandbox.Key, id string, after int64) (*EventLog, int64, error) {
	s.mu.Lock()
	f := s.feeds[id]
	s.mu.Unlock()
	if f != nil && may(caller, f.owner) {
		return f, after, nil
	}
	s.Await(ctx, caller, id)
	e, err := s.Execution(context.WithoutCancel(ctx), caller, id)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, 0, err
	}
	f = replay(e, s.Clock())
	if after > 0 {
		after = int64(len(f.events)) - 1
	}
	return f, after, nil
}

// Await returns when an execution that who may see has ended, or is none that goes on, or
// when ctx ends.
func (s *Service) Await(ctx context.Context, caller sandbox.Key, id string) {
	s.mu.Lock()
	r, running := s.running[id]
	s.mu.Unlock()
	if running && may(caller, r.owner) {
		select {
		case <-r.over:
		case <-ctx.Done():
		}
	}
}
