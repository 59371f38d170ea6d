package debug

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"glasshouse/debugger"
	"glasshouse/sandbox"
	"glasshouse/service/run"
)

// maxSessions limits the sessions of one user: recordings of past runs take memory, too. Nothing lists the
// sessions, so those that run no program make room for others.
const maxSessions = 20

// pastIdleTimeout is the time after which an unused session is removed if its run has ended.
const pastIdleTimeout = 10 * time.Minute

// sessions are the open debug sessions, by ID.
type sessions struct {
	mu  sync.Mutex
	all map[string]*Session
}

// add adds a session. If its owner has maxSessions, it replaces the one that was unused for longest among those
// that hold no running program: the run has ended, or isLive says that the sandbox has. It returns FaultLimit if there
// is none.
func (s *sessions) add(d *Session, isLive func(sandboxID string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	var oldest *Session
	var unusedSince time.Time
	for _, other := range s.all {
		if other.owner != d.owner {
			continue
		}
		n++
		lastUsed, isOver := other.usage()
		if (isOver || !isLive(other.SandboxID)) && (oldest == nil || lastUsed.Before(unusedSince)) {
			oldest, unusedSince = other, lastUsed
		}
	}
	if n >= maxSessions {
		if oldest == nil {
			return &sandbox.Error{
				Fault: sandbox.FaultLimit, RetryAfter: 60,
				Detail: fmt.Sprintf("you have %d debug sessions whose programs run; "+
					"close one, or delete its sandbox", n),
			}
		}
		delete(s.all, oldest.ID)
	}
	if s.all == nil {
		s.all = map[string]*Session{}
	}
	s.all[d.ID] = d
	return nil
}

func (s *sessions) find(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[id]
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

// forget removes the sessions over erased executions.
func (s *sessions) forget(isErased func(execution, user string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.all {
		select {
		case <-d.over:
			if d.result != nil && isErased(d.execution, d.result.User) {
				delete(s.all, id)
			}
		default: // it runs
		}
	}
}

// expire ends unused sessions: it cancels a stopped run, and removes a session whose run has ended. A program that is
// not stopped has its own time limit.
func (s *sessions) expire(now time.Time) {
	s.mu.Lock()
	all := maps.Clone(s.all)
	s.mu.Unlock() // Where may wait, and must not delay other sessions
	for id, d := range all {
		lastUsed, isOver := d.usage()
		unused := now.Sub(lastUsed)
		switch {
		case isOver && unused > pastIdleTimeout:
			s.remove(id)
		case !isOver && unused > d.idleTimeout && d.Position().State == debugger.StateStopped:
			d.cancel(run.ErrDebuggerIdle)
		}
	}
}
