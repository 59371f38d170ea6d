package limit

import "context"

// CPU shares the CPU time of the process's own computations among users. Go has no priorities:
// a goroutine that becomes ready waits behind all that are ready already, for up to 10 ms each.
// So computations run one behind the other, in turn by user, and one CPU stays free for all
// other work. A caller divides a long task into computations of some milliseconds. The nil CPU
// limits nothing.
type CPU struct{ slots *Shared }

// NewCPU returns a CPU for a process with this GOMAXPROCS. One CPU is left for other work, but there
// is always one for computations.
func NewCPU(gomaxprocs int) *CPU { return &CPU{NewShared(gomaxprocs - 1)} }

// minComputedBytes is the size of the smallest input whose computation takes turns. A turn would
// take longer than the computation of a smaller one.
const minComputedBytes = 64 << 10

// Compute runs f, which computes with a number of bytes. If they are many, f runs in the turn of
// its user. f waits for nothing that needs a turn itself.
func (c *CPU) Compute(user string, bytes int, f func()) {
	if c == nil || bytes < minComputedBytes {
		f()
		return
	}
	release, _ := c.slots.Acquire(context.Background(), user, Forever) // returns no error without an end
	defer release()
	f()
}

// Waiting returns how many computations of a user wait for their turn.
func (c *CPU) Waiting(user string) int {
	c.slots.mu.Lock()
	defer c.slots.mu.Unlock()
	if u := c.slots.users[user]; u != nil {
		return len(u.waiting)
	}
	return 0
}
