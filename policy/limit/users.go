package limit

import (
	"math"
	"sync"
	"time"
)

// Users knows which users send requests, and their weights. A user's weight is the largest of the keys with which the
// user sent requests in the last minute. A user with the weight 2 gets twice as much as one with the weight 1 of
// everything for which both wait. All users of the nil Users have the weight 1, and send no requests.
type Users struct {
	mu      sync.Mutex
	last    [2]request        // the last requests of two different users, the newest first
	weights map[string]weight // larger than 1
}

// request says when a user sent a request.
type request struct {
	user string
	at   time.Time
}

// weight is a user's weight, and until when no smaller one replaces it.
type weight struct {
	value int
	until time.Time
}

const (
	// othersTime is the time for which a request of a user slows down other users.
	othersTime = time.Second
	// weightTime is the time for which the weight of a key counts after a request.
	weightTime = time.Minute
)

// Seen records that a user has sent a request with a key that has a weight; 0 means 1.
func (u *Users) Seen(user string, keyWeight int) {
	if u == nil {
		return
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last[0].user != user {
		u.last[1] = u.last[0]
	}
	u.last[0] = request{user, now}
	switch known := u.weights[user]; {
	case keyWeight < known.value && now.Before(known.until):
	case keyWeight <= 1:
		delete(u.weights, user)
	default:
		if u.weights == nil {
			u.weights = map[string]weight{}
		}
		u.weights[user] = weight{keyWeight, now.Add(weightTime)}
	}
}

// Weight returns the weight of a user, at least 1.
func (u *Users) Weight(user string) int {
	if u == nil {
		return 1
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.weightOf(user)
}

// weightOf is Weight for a caller that holds mu.
func (u *Users) weightOf(user string) int { return max(u.weights[user].value, 1) }

// others returns the weight of a user who has sent a request in the last second, other than this one, divided by this
// one's weight. It returns 0 if there is no other.
func (u *Users) others(user string) float64 {
	if u == nil {
		return 0
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.last[0]
	if last.user == user {
		last = u.last[1]
	}
	if time.Since(last.at) >= othersTime {
		return 0
	}
	return float64(u.weightOf(last.user)) / float64(u.weightOf(user))
}

// Divisors returns the numbers by which to divide the priority of each user's processes, so that users get CPU time in
// proportion to their weights. processes has the number of running processes of each user. All processes of the users
// with the largest weight get as much as one process without a divisor.
func (u *Users) Divisors(processes map[string]int) (divisors map[string]int) {
	largest := 1
	for user := range processes {
		largest = max(largest, u.Weight(user))
	}
	divisors = make(map[string]int, len(processes))
	for user, n := range processes {
		divisors[user] = max(int(math.Round(float64(n*largest)/float64(u.Weight(user)))), 1)
	}
	return divisors
}
