package limit

import (
	"context"
	"sync"
	"time"
)

// Share bounds the part of the machine that a user's small operations may take while other users send requests. Beyond
// it they are spaced evenly, so that between two of them others find a CPU. The nil Share limits nothing.
type Share struct {
	cpu  *CPU
	cpus float64

	mu   sync.Mutex
	next map[string]time.Time // when a user without a burst may begin an operation
}

const (
	// shareBurst is the time for which a user who did nothing before may exceed the share.
	shareBurst = 250 * time.Millisecond
	// maxShareWait is the time after which a waiting operation asks again whether other users send requests.
	maxShareWait = 50 * time.Millisecond
)

// NewShare returns a Share of a number of CPUs. cpu knows who sends requests.
func NewShare(cpu *CPU, cpus float64) *Share {
	return &Share{cpu: cpu, cpus: cpus, next: map[string]time.Time{}}
}

// Wait returns when a user may begin an operation that takes an amount of CPU time, or when ctx ends. While no other
// user sends requests, that is at once.
func (s *Share) Wait(ctx context.Context, user string, work time.Duration) {
	if s == nil || !s.cpu.OthersSeen(user) {
		return
	}
	begin := s.reserve(user, time.Duration(float64(work)/s.cpus))
	for s.cpu.OthersSeen(user) {
		wait := time.Until(begin)
		if wait <= 0 {
			return
		}
		select {
		case <-time.After(min(wait, maxShareWait)):
		case <-ctx.Done():
			return
		}
	}
}

// reserve returns when an operation may begin that takes the user's share for a duration.
func (s *Share) reserve(user string, takes time.Duration) (begin time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	earliest := time.Now().Add(-shareBurst)
	begin, known := s.next[user]
	if !known {
		for other, next := range s.next {
			if next.Before(earliest) { // like a new one
				delete(s.next, other)
			}
		}
	}
	if begin.Before(earliest) {
		begin = earliest
	}
	s.next[user] = begin.Add(takes)
	return begin
}
