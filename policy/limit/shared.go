package limit

import (
	"context"
	"sync"
	"time"
)

// reserveFactor is how many times as many slots as are free a user may hold. One user can
// take 4 of 5 slots, and two users 4 of 9 each: the rest waits for other users.
const reserveFactor = 4

// Shared bounds the number of concurrent operations of all users together, and shares the
// slots among the users:
//
//   - A user who holds n slots gets another one only while more than n/4 slots are free.
//     So one user alone takes at most four fifths of the slots, and a user who holds none
//     gets one at once. A Shared of fewer than 5 slots has no such reserve.
//   - A slot that becomes free goes to the waiting user who holds the fewest slots. Users who
//     hold the same number take turns. The operations of one user are served in their order.
//   - Slots of a user with the weight w count 1/w each, and the user has w turns. Next to a user with
//     the weight w, one with the weight 1 gets another slot only while more than n*w/4 are free.
type Shared struct {
	of *Users // their weights

	mu    sync.Mutex
	free  int
	users map[string]*sharer // users that hold a slot or wait for one
	turns int64              // number of slots given so far
}

// sharer is one user of a Shared.
type sharer struct {
	weight   int
	held     int
	lastTurn int64 // when the user last got a slot, counted in turns
	waiting  []chan struct{}
}

// NewShared returns size slots, or one if size is less. users knows the weights; nil: all are the same.
func NewShared(size int, users *Users) *Shared {
	return &Shared{of: users, free: max(size, 1), users: map[string]*sharer{}}
}

// Acquire takes a slot for a user and returns the function that releases it, which must be
// called once. It waits at most wait for a slot, then returns ErrFull; a wait of 0 does not
// block. It returns the context's error if the context ends first.
func (s *Shared) Acquire(ctx context.Context, user string, wait time.Duration) (release func(), err error) {
	weight := s.of.Weight(user)
	s.mu.Lock()
	u := s.users[user]
	if u == nil {
		u = &sharer{lastTurn: s.turns - 1} // before the user who got the last slot
		s.users[user] = u
	}
	u.weight = weight
	if len(u.waiting) == 0 && s.mayTake(u, s.largestWeight()) {
		s.give(u)
		s.mu.Unlock()
		return func() { s.release(user, u) }, nil
	}
	if wait <= 0 {
		s.forget(user, u)
		s.mu.Unlock()
		return nil, ErrFull
	}
	turn := make(chan struct{})
	u.waiting = append(u.waiting, turn)
	s.mu.Unlock()
	var expired <-chan time.Time
	if wait != Forever {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-turn:
		return func() { s.release(user, u) }, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-expired:
		err = ErrFull
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, other := range u.waiting {
		if other == turn {
			u.waiting = append(u.waiting[:n], u.waiting[n+1:]...)
			s.forget(user, u)
			return nil, err
		}
	}
	// The slot came at the same moment.
	return func() { s.release(user, u) }, nil
}

// Held returns how many slots a user holds.
func (s *Shared) Held(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[user]; u != nil {
		return u.held
	}
	return 0
}

// Waiting returns how many operations of a user wait for a slot.
func (s *Shared) Waiting(user string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.users[user]; u != nil {
		return len(u.waiting)
	}
	return 0
}

// mayTake reports whether a user may take a free slot now, if largest is the largest weight of all users. The caller
// holds mu.
func (s *Shared) mayTake(u *sharer, largest int) bool {
	return s.free > 0 && u.held*largest < reserveFactor*s.free*u.weight
}

// largestWeight returns the largest weight of the users that hold a slot or wait for one. The caller holds mu.
func (s *Shared) largestWeight() (largest int) {
	for _, u := range s.users {
		largest = max(largest, u.weight)
	}
	return largest
}

// give gives a slot to a user. The caller holds mu.
func (s *Shared) give(u *sharer) {
	s.free--
	s.turns++
	u.held, u.lastTurn = u.held+1, s.turns
}

// forget removes a user who neither holds nor waits. The caller holds mu.
func (s *Shared) forget(user string, u *sharer) {
	if u.held == 0 && len(u.waiting) == 0 {
		delete(s.users, user)
	}
}

func (s *Shared) release(user string, u *sharer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.held--
	s.free++
	for {
		next := s.next()
		if next == nil {
			break
		}
		s.give(next)
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
	}
	s.forget(user, u)
}

// next returns the waiting user who gets the next slot, or nil if none may take one. The
// caller holds mu.
func (s *Shared) next() (next *sharer) {
	largest := s.largestWeight()
	for _, u := range s.users {
		if len(u.waiting) > 0 && s.mayTake(u, largest) && (next == nil || s.isBefore(u, next)) {
			next = u
		}
	}
	return next
}

// isBefore reports whether the next slot is for a rather than for b. The caller holds mu.
func (s *Shared) isBefore(a, b *sharer) bool {
	if heldA, heldB := a.held*b.weight, b.held*a.weight; heldA != heldB {
		return heldA < heldB
	}
	// A user who waits since n turns has the rank of n+1 users.
	rankA, rankB := (s.turns-a.lastTurn+1)*int64(a.weight), (s.turns-b.lastTurn+1)*int64(b.weight)
	if rankA != rankB {
		return rankA > rankB
	}
	return a.weight > b.weight
}
