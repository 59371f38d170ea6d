package limit

import (
	"context"
	"sync"
	"time"
)

// Share bounds the part of the machine that a user's small operations may take while other users send requests. Beyond
// it they are spaced evenly, so that between two of them others find a CPU. The nil Share limits nothing.
type Share struct {
	users *Users
	cpus  float64

	mu   sync.Mutex
	next map[string]time.Time // when a user without a burst may begin an operation
}

const (
	// userPart is the part of the machine that a user's small operations take next to a user with the same
	// weight. Next to a user with another weight, this part and the rest are divided in proportion to the weights.
	userPart = 0.25
	// shareBurst is the time for which a user who did nothing before may exceed the share.
	shareBurst = 250 * time.Millisecond
	// maxShareWait is the time after which a waiting operation asks again whether other users send requests.
	maxShareWait = 50 * time.Millisecond
)

// NewShare returns the Share of a machine with a number of CPUs.
func NewShare(users *Users, cpus int) *Share {
	return &Share{users: users, cpus: float64(cpus), next: map[string]time.Time{}}
}

// Wait returns when a user may begin an operation that takes an amount of CPU time, or when ctx ends. While no other
// user sends requests, that is at once.
func (s *Share) Wait(ctx context.Context, user string, work time.Duration) {
	for begin := s.reserve(user, work); ; {
		wait := time.Until(begin)
		if wait <= 0 || s.users.others(user) == 0 {
			return
		}
		select {
		case <-time.After(min(wait, maxShareWait)):
		case <-ctx.Done():
			return
		}
	}
}

// Charge notes that an operation of a user has taken an amount of CPU time in addition to the one that it waited for.
// The user's next operation waits for it.
func (s *Share) Charge(user string, work time.Duration) { s.reserve(user, work) }

// reserve returns when an operation may begin that takes an amount of CPU time. A user who was alone may have used more
// than the share: this leaves no burst, and no debt.
func (s *Share) reserve(user string, work time.Duration) (begin time.Time) {
	if s == nil || user == "" { // the service itself
		return begin
	}
	others := s.users.others(user)
	part := userPart
	if others > 0 {
		part /= userPart + (1-userPart)*others
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	earliest := now.Add(-shareBurst)
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
	next := begin.Add(time.Duration(float64(work) / (part * s.cpus)))
	if others == 0 && next.After(now) {
		next = now
	}
	s.next[user] = next
	return begin
}
