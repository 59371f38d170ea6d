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
	slots   *Shared
	perUser *Keyed // as many as slots; a slot of it is held through the pause
	users   *Users
	perByte float64 // nanoseconds of other work that follows from each byte

	mu      sync.Mutex
	waiting map[string]int // computations that wait for their turn, by user
}

const (
	// minComputedBytes is the size of the smallest input whose computation takes turns. A turn would
	// take longer than the computation of a smaller one.
	minComputedBytes = 64 << 10
	// pauseFactor is how many times as long as a computation the pause after it is, if there is one and
	// all users have the same weight: a user's computations then take a quarter of the CPUs for computations.
	// On two cores, while 16 clients uploaded, another user's 1+1 took 3.5 to 6 times as long without
	// pauses, and 1.5 with.
	pauseFactor = 3
)

// NewCPU returns a CPU for a process with this GOMAXPROCS. One CPU is left for other work, but there
// is always one for computations.
func NewCPU(gomaxprocs int, users *Users) *CPU { return newCPU(max(gomaxprocs-1, 1), users, 0) }

func newCPU(slots int, users *Users, perByte float64) *CPU {
	return &CPU{
		slots: NewShared(slots, users), perUser: NewKeyed(slots), users: users, perByte: perByte,
		waiting: map[string]int{},
	}
}

// Users returns the users whose computations take turns; nil for the nil CPU.
func (c *CPU) Users() *Users {
	if c == nil {
		return nil
	}
	return c.users
}

// Serial returns a CPU that runs one computation at a time, in addition to those of c, and pauses for the same users.
// It is for work that mostly waits for a disk, and from which perByte nanoseconds of other work follow for each byte,
// such as that of a database. A pause counts that work as a part of the computation.
func (c *CPU) Serial(perByte float64) *CPU { return newCPU(1, c.Users(), perByte) }

// Compute runs f, which computes with a number of bytes. If they are many, f runs in the turn of
// its user. f waits for nothing that needs a turn itself.
func (c *CPU) Compute(user string, bytes int, f func()) {
	defer c.Begin(user, bytes)()
	f()
}

// Begin waits until a computation with a number of bytes may begin, as Compute does. The caller calls
// end when the computation has ended; more calls of end do nothing.
func (c *CPU) Begin(user string, bytes int) (end func()) {
	if c == nil || bytes < minComputedBytes {
		return func() {}
	}
	endPause, endTurn := c.wait(user)
	began := time.Now()
	return sync.OnceFunc(func() {
		endTurn()
		if others := c.users.others(user); others > 0 {
			work := float64(time.Since(began)) + c.perByte*float64(bytes)
			time.AfterFunc(time.Duration(pauseFactor*others*work), endPause)
		} else {
			endPause()
		}
	})
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
