package limit

import (
	"context"
	"sync"
	"time"
)

// CPU shares the CPU time of the process's own computations among users. Go has no priorities:
// a goroutine that becomes ready waits behind all that are ready already, for up to 10 ms each.
// So computations run one behind the other, in turn by user, and one CPU stays free for all
// other work. While other users send requests, a user's computations also pause, which slows
// down what feeds them, such as PostgreSQL's reading of large records. A caller divides a long
// task into computations of some milliseconds. The nil CPU limits nothing.
type CPU struct {
	slots    *Shared
	perUser  *Keyed // as many as slots; a slot of it is held through the pause
	requests *recentRequests
	perByte  float64 // nanoseconds of other work that follows from each byte

	mu      sync.Mutex
	waiting map[string]int // computations that wait for their turn, by user
}

// recentRequests are the last requests of two different users, the newest first.
type recentRequests struct {
	mu   sync.Mutex
	last [2]request
}

// request says when a user sent a request.
type request struct {
	user string
	at   time.Time
}

const (
	// minComputedBytes is the size of the smallest input whose computation takes turns. A turn would
	// take longer than the computation of a smaller one.
	minComputedBytes = 64 << 10
	// pauseFactor is how many times as long as a computation the pause after it is, if there is one:
	// a user's computations then take a quarter of the CPUs for computations. On two cores, another
	// user's 1+1 beside 16 clients that upload took 3.5 to 6 times as long without pauses, and 1.5 with.
	pauseFactor = 3
	// othersTime is the time for which a request of another user makes computations pause.
	othersTime = time.Second
)

// NewCPU returns a CPU for a process with this GOMAXPROCS. One CPU is left for other work, but there
// is always one for computations.
func NewCPU(gomaxprocs int) *CPU {
	return newCPU(max(gomaxprocs-1, 1), &recentRequests{}, 0)
}

func newCPU(slots int, requests *recentRequests, perByte float64) *CPU {
	return &CPU{
		slots: NewShared(slots), perUser: NewKeyed(slots), requests: requests, perByte: perByte,
		waiting: map[string]int{},
	}
}

// Serial returns a CPU that runs one computation at a time, beside those of c, and pauses for the requests that c has
// seen. It is for work that mostly waits for a disk, and from which perByte nanoseconds of other work follow for each
// byte, such as that of a database. A pause counts that work as a part of the computation.
func (c *CPU) Serial(perByte float64) *CPU {
	requests := &recentRequests{}
	if c != nil {
		requests = c.requests
	}
	return newCPU(1, requests, perByte)
}

// Seen records that a user has sent a request.
func (c *CPU) Seen(user string) {
	if c == nil {
		return
	}
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	if c.requests.last[0].user != user {
		c.requests.last[1] = c.requests.last[0]
	}
	c.requests.last[0] = request{user, time.Now()}
}

// OthersSeen reports whether a user other than this one has sent a request in the last second.
func (c *CPU) OthersSeen(user string) bool {
	if c == nil {
		return false
	}
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	last := c.requests.last[0]
	if last.user == user {
		last = c.requests.last[1]
	}
	return time.Since(last.at) < othersTime
}

// Compute runs f, which computes with a number of bytes. If they are many, f runs in the turn of
// its user. f waits for nothing that needs a turn itself.
func (c *CPU) Compute(user string, bytes int, f func()) {
	if c == nil || bytes < minComputedBytes {
		f()
		return
	}
	endPause, endTurn := c.wait(user)
	began := time.Now()
	defer func() {
		endTurn()
		if c.OthersSeen(user) {
			work := time.Since(began) + time.Duration(c.perByte*float64(bytes))
			time.AfterFunc(pauseFactor*work, endPause)
		} else {
			endPause()
		}
	}()
	f()
}

// wait waits for the turn of a user. It returns the functions that end the turn and the pause after it.
func (c *CPU) wait(user string) (endPause, endTurn func()) {
	count := func(n int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting[user] += n; c.waiting[user] == 0 {
			delete(c.waiting, user)
		}
	}
	count(1)
	defer count(-1)
	// Without a deadline, neither returns an error.
	endPause, _ = c.perUser.Acquire(context.Background(), user, Forever)
	endTurn, _ = c.slots.Acquire(context.Background(), user, Forever)
	return endPause, endTurn
}

// Waiting returns how many computations of a user wait for their turn.
func (c *CPU) Waiting(user string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[user]
}
